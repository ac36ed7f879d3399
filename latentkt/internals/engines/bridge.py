"""TransformerLens: a TransformerBridge on a copy of the model.

Booting a bridge rebuilds the model that it is given in place, so it gets a copy of the modules on the same weights;
weights stay as they are (no compatibility mode: it would centre and fold them). Tokens are made elsewhere, so nothing
is put before them.
"""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import torch

from latentkt.errors import ModelRefusedError, RunError
from latentkt.internals.engines.base import Edit, Engine, EngineRun, GradOf, SiteKey, gradients
from latentkt.internals.engines.twin import twin

if TYPE_CHECKING:
    from jaxtyping import Int
    from torch import Tensor

    from latentkt.models import ModelHandle

__all__ = ["BridgeEngine"]

_HOOKS = {
    "resid_pre": "hook_resid_pre",
    "resid_mid": "hook_attn_out",  # hook_resid_mid is the input of a norm: what is put there is not added
    "resid_post": "hook_resid_post",
    "attn_out": "hook_attn_out",
    "mlp_out": "hook_mlp_out",
    "z": "attn.hook_z",
    "q": "attn.hook_q",
    "k": "attn.hook_k",
    "v": "attn.hook_v",
    "pattern": "attn.hook_pattern",
}
_TOLERANCE = 1e-4


class BridgeEngine(Engine):
    """Runs a TransformerBridge; one forward a cell.

    The bridge is eager whatever the handle is. On opening, its logits are held to the handle's.

    Args:
        handle: The model.

    Raises:
        ModelRefusedError: The bridge does not know the architecture, or computes something else.
    """

    name = "transformer_lens"

    def __init__(self, handle: ModelHandle) -> None:
        super().__init__(handle)
        self._bridge = _boot(handle)
        self._check()

    @property
    def bridge(self) -> Any:
        """The TransformerBridge, for TransformerLens's own tools; it shares the handle's weights: train none."""
        return self._bridge

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
        wanted, changes = self.require(capture), dict(edits or {})
        self.require(changes)
        kept: dict[SiteKey, Tensor] = {}
        hooks = _Hooks(wanted, changes, kept, differentiate=grad_of is not None)
        inputs = self.handle.inputs(ids, mask)
        inputs.pop("use_cache")
        with torch.set_grad_enabled(grad_of is not None):
            logits = self._bridge.run_with_hooks(inputs.pop("input_ids"), fwd_hooks=hooks.all(), **inputs)
        silent = [key for key in [*wanted, *changes] if key not in kept]
        if silent:
            raise RunError("hooks never ran", expected="each site once a run", found=silent)
        found = {key: kept[key] for key in wanted}
        grads = gradients(grad_of, logits, found) if grad_of else {}
        return EngineRun(logits.detach().float(), {key: value.detach() for key, value in found.items()}, grads)

    def _check(self) -> None:
        ids = torch.arange(2, 2 + min(6, self.handle.vocab_size - 2))[None]
        ours, theirs = self.handle.logits(ids).log_softmax(-1), self.run(ids).logits.log_softmax(-1)
        gap = (ours - theirs).abs().max().item()
        if not gap <= (_TOLERANCE if self.handle.dtype == torch.float32 else 0.1):
            raise ModelRefusedError(
                f"TransformerBridge computes other logits than model {self.handle.name!r}",
                expected=f"log-probabilities within {_TOLERANCE:g} nat",
                found=f"{gap:.3g} nat",
                fix="use engine='fast'",
            )


class _Hooks:
    """The hooks of one run, in the bridge's names."""

    def __init__(
        self,
        wanted: list[SiteKey],
        edits: Mapping[SiteKey, Edit],
        kept: dict[SiteKey, Tensor],
        *,
        differentiate: bool,
    ) -> None:
        self._keys = list(dict.fromkeys([*edits, *wanted]))
        self._edits, self._kept, self._grad = edits, kept, differentiate
        self._pre: dict[int, Tensor] = {}

    def all(self) -> list[tuple[str, Any]]:
        hooks = []
        for layer in sorted({layer for _, layer in self._keys} | {0}):
            hooks.append((f"blocks.{layer}.hook_resid_pre", self._enter(layer)))
        for key in sorted(self._keys, key=lambda key: key[0] == "resid_mid"):  # it stands on an edited attn_out
            if key[0] != "resid_pre":
                hooks.append((f"blocks.{key[1]}.{_HOOKS[key[0]]}", self._at(key)))
        return hooks

    def _through(self, key: SiteKey, value: Tensor) -> Tensor:
        new = self._edits[key](value) if key in self._edits else value
        self._kept[key] = new
        return new

    def _enter(self, layer: int) -> Any:
        def hook(value: Tensor, hook: Any) -> Tensor:
            if self._grad and layer == 0:
                value = value.detach().requires_grad_()
            if ("resid_pre", layer) in self._keys:
                value = self._through(("resid_pre", layer), value)
            self._pre[layer] = value
            return value

        return hook

    def _at(self, key: SiteKey) -> Any:
        def hook(value: Tensor, hook: Any) -> Tensor:
            if key[0] == "resid_mid":
                pre = self._pre[key[1]]
                return self._through(key, value + pre) - pre
            return self._through(key, value)

        return hook


def _boot(handle: ModelHandle) -> Any:
    """A bridge on a copy of the model; TransformerLens's own effects on logging and warnings are undone."""
    from transformers import AutoTokenizer

    level = logging.getLogger("transformers").level
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        from transformer_lens.model_bridge import TransformerBridge

        handle.tokenizer.save_pretrained(folder)  # in memory it would be fetched anew by its name, and changed
        tokenizer = AutoTokenizer.from_pretrained(folder)
        try:
            bridge = TransformerBridge.boot_transformers(
                "local/model", hf_model=twin(handle.model), tokenizer=tokenizer, device=str(handle.device)
            )
        except (ValueError, KeyError, NotImplementedError) as error:
            raise ModelRefusedError(
                f"TransformerBridge does not know model {handle.name!r}",
                expected="an architecture with an adapter in TransformerLens",
                found=f"{type(handle.model).__name__}: {error}",
                fix="use engine='fast'",
            ) from error
        finally:
            logging.getLogger("transformers").setLevel(level)
    bridge.eval()
    bridge.requires_grad_(False)
    return bridge
