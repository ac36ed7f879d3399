"""nnsight: local tracing, and requests for NDIF that are built and never sent from here.

A request names the model by its key and carries the traced block, its edits and the tokens, not the weights. Sending
it is the user's own step, with nnsight and an account.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch

from latentkt.errors import RunError
from latentkt.internals.engines.base import Edit, Engine, EngineRun, GradOf, SiteKey, gradients
from latentkt.internals.engines.twin import twin

if TYPE_CHECKING:
    from jaxtyping import Int
    from torch import Tensor

    from latentkt.models import SiteAccess

__all__ = ["TracingEngine"]

_ORDER = ("resid_pre", "q", "k", "v", "z", "pattern", "attn_out", "resid_mid", "mlp_out", "resid_post")


class TracingEngine(Engine):
    """Runs nnsight on the handle's model; one forward a cell.

    Args:
        handle: The model.
    """

    name = "nnsight"

    @cached_property
    def _model(self) -> Any:
        """Nnsight wraps the forward of every module that it is given."""
        return twin(self.handle.model)

    @cached_property
    def _paths(self) -> dict[int, str]:
        return {id(module): path for path, module in self.handle.model.named_modules()}

    def _envoy(self, traced: Any, module: torch.nn.Module) -> Any:
        here = traced
        for part in self._paths[id(module)].split("."):
            here = here[int(part)] if part.isdigit() else getattr(here, part)
        return here

    def run(
        self,
        ids: Int[Tensor, "batch pos"],
        mask: Int[Tensor, "batch pos"] | None = None,
        *,
        capture: Iterable[SiteKey] = (),
        edits: Mapping[SiteKey, Edit] | None = None,
        grad_of: GradOf | None = None,
    ) -> EngineRun:
        """See `Engine.run`."""
        import nnsight

        wanted, changes = self.require(capture), dict(edits or {})
        self.require(changes)
        traced = nnsight.NNsight(self._model)
        steps = self._steps(traced, [*wanted, *changes], changes, differentiate=grad_of is not None)
        inputs = self.handle.inputs(ids, mask)
        with torch.set_grad_enabled(grad_of is not None), traced.trace(**inputs):
            kept = nnsight.save(walk(steps))
            logits = nnsight.save(traced.output.logits)
        silent = [key for key in [*wanted, *changes] if key not in kept]
        if silent:
            raise RunError("sites were never reached", expected="each site once a run", found=silent)
        logits = logits.float()
        found = {key: kept[key] for key in wanted}
        grads = gradients(grad_of, logits, found) if grad_of else {}
        return EngineRun(logits.detach(), {key: value.detach() for key, value in found.items()}, grads)

    def _steps(
        self, traced: Any, keys: Iterable[SiteKey], edits: Mapping[SiteKey, Edit], *, differentiate: bool
    ) -> list[tuple[SiteKey, Any, Any, SiteAccess, Edit | None]]:
        """(key, envoy, envoy of the block, where the value lies, edit) in the order of the forward pass."""
        chosen = set(keys) | ({("resid_pre", 0)} if differentiate else set())
        steps = []
        for key in sorted(chosen, key=lambda key: (key[1], _ORDER.index(key[0]))):
            access = self.handle.arch.site(*key)
            edit = edits.get(key)
            if differentiate and key[0] != "pattern":
                edit = _Watched(edit, detach=key == ("resid_pre", 0))
            steps.append((key, self._envoy(traced, access.module), self._envoy(traced, access.block), access, edit))
        return steps


class _Watched:
    """Puts the value itself back, so that what follows hangs on the tensor that is kept."""

    def __init__(self, edit: Edit | None, *, detach: bool) -> None:
        self._edit, self._detach = edit, detach

    def __call__(self, value: Tensor) -> Tensor:
        if self._detach:
            value = value.detach().requires_grad_()
        return value if self._edit is None else self._edit(value)


def walk(steps: list[tuple[SiteKey, Any, Any, SiteAccess, Edit | None]]) -> dict[SiteKey, Tensor]:
    """Inside a trace: read each site as the pass reaches it, and put the edited value in its place."""
    kept: dict[SiteKey, Tensor] = {}
    pre: dict[int, Tensor] = {}
    for (site, layer), envoy, block, access, edit in steps:
        if layer not in pre:
            pre[layer] = block.input
        raw = envoy.input if access.kind == "input" else envoy.output
        whole = raw
        if access.kind == "output" and isinstance(raw, tuple):
            raw = raw[access.index]
        value = access.layout.read(raw, batch=pre[layer].shape[0])
        if access.on_residual:
            value = value + pre[layer]
        if edit is not None:
            value = edit(value)
            new = access.layout.write(raw, value - pre[layer] if access.on_residual else value)
            if access.kind == "input":
                envoy.input = new
            elif isinstance(whole, tuple):
                envoy.output = (*whole[: access.index], new, *whole[access.index + 1 :])
            else:
                envoy.output = new
            if site == "resid_pre":
                pre[layer] = value
        kept[site, layer] = value
    return kept
