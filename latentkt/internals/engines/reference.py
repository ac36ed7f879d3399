"""The oracle: plain hooks on the Hugging Face modules, written without the site table, one forward a cell.

It shares with `fast` the names of an architecture's modules, the tokens and the definition of the score, and nothing
else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import torch

from latentkt.errors import InputError, RunError
from latentkt.internals.engines.base import Edit, Engine, EngineRun, GradOf, SiteKey, gradients

if TYPE_CHECKING:
    from jaxtyping import Int
    from torch import Tensor

__all__ = ["ReferenceEngine"]


class ReferenceEngine(Engine):
    """One plain forward a cell."""

    name = "reference"

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
        wanted = self.require(capture)
        changes = dict(edits or {})
        self.require(changes)
        hooks = _Hooks(self, wanted, changes, differentiate=grad_of is not None)
        with torch.set_grad_enabled(grad_of is not None), hooks:
            logits = self.handle.logits(ids, mask)
        hooks.all_fired()
        found = {key: hooks.kept[key] for key in wanted}
        grads = gradients(grad_of, logits, found) if grad_of else {}
        return EngineRun(logits.detach(), {key: value.detach() for key, value in found.items()}, grads)


class _Hooks:
    """The hooks of one run: layer by layer, from the block's input to its output."""

    def __init__(self, engine: Engine, wanted: list[SiteKey], edits: Mapping[SiteKey, Edit], *, differentiate: bool):
        self._handle = engine.handle
        self._edits, self._grad = edits, differentiate
        self._todo = list(dict.fromkeys([*wanted, *edits]))
        self.kept: dict[SiteKey, Tensor] = {}
        self._pre: dict[int, Tensor] = {}
        self._removers: list[Any] = []

    def __enter__(self) -> None:
        try:
            for layer, block in enumerate(self._handle.arch.layers):
                self._removers.append(block.register_forward_pre_hook(self._enter(layer), with_kwargs=True))
            order = ("q", "k", "v", "z", "pattern", "attn_out", "resid_mid", "mlp_out", "resid_post")
            for site, layer in sorted(self._todo, key=lambda key: order.index(key[0]) if key[0] in order else -1):
                if site != "resid_pre":
                    self._removers.append(self._add(site, layer))
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        for remover in self._removers:
            remover.remove()

    def all_fired(self) -> None:
        silent = [key for key in self._todo if key not in self.kept]
        if silent:
            raise RunError("hooks never ran", expected="each site once a run", found=silent)

    def _through(self, key: SiteKey, value: Tensor) -> Tensor:
        if key in self._edits:
            if key[0] == "pattern":
                raise InputError("site 'pattern' cannot be replaced by a hook", fix="patch z, which the pattern makes")
            value = self._edits[key](value)
        self.kept[key] = value
        return value

    def _enter(self, layer: int) -> Any:
        def hook(module: Any, args: Any, kwargs: Any) -> Any:
            hidden = args[0] if args else kwargs["hidden_states"]
            if self._grad and layer == 0:
                hidden = hidden.detach().requires_grad_()
            if ("resid_pre", layer) in self._todo:
                hidden = self._through(("resid_pre", layer), hidden)
            self._pre[layer] = hidden
            return ((hidden, *args[1:]), kwargs) if args else (args, {**kwargs, "hidden_states": hidden})

        return hook

    def _add(self, site: str, layer: int) -> Any:
        arch, family = self._handle.arch, self._handle.arch.family
        key = (site, layer)
        if site == "resid_post":
            return self._on_output(arch.layers[layer], lambda out: self._through(key, out))
        if site == "attn_out":
            return self._on_output(arch.part(layer, family.attn_added), lambda out: self._through(key, out))
        if site == "resid_mid":
            module = arch.part(layer, family.attn_added)
            return self._on_output(module, lambda out: self._through(key, out + self._pre[layer]) - self._pre[layer])
        if site == "mlp_out":
            return self._on_output(
                arch.part(layer, family.mlp_added),
                lambda out: self._through(key, out.view(self._pre[layer].shape)).view(out.shape),
            )
        if site == "pattern":
            return arch.attention(layer).register_forward_hook(
                lambda module, args, out: (out[0], self._through(key, out[1]), *out[2:])
            )
        if site == "z":
            heads = (arch.n_heads, arch.d_head)

            def change(module: Any, args: Any) -> Any:
                return (self._through(key, args[0].view(*args[0].shape[:-1], *heads)).reshape(args[0].shape),)

            return arch.out_proj(layer).register_forward_pre_hook(change)
        return self._projection(site, layer)

    def _projection(self, site: str, layer: int) -> Any:
        arch, family, key = self._handle.arch, self._handle.arch.family, (site, layer)
        heads = arch.n_heads if site == "q" else arch.n_kv_heads
        number = ("q", "k", "v").index(site)
        if family.fused is None:
            module = arch.part(layer, family.qkv[number])
            return self._on_output(module, lambda out: self._normed(key, out, heads))
        module = arch.part(layer, family.qkv[0])
        if family.fused == "interleaved":

            def interleaved(out: Tensor) -> Tensor:
                parts = list(out.view(*out.shape[:-1], arch.n_heads, 3, arch.d_head).unbind(-2))
                parts[number] = self._through(key, parts[number])
                return torch.stack(parts, -2).reshape(out.shape)

            return self._on_output(module, interleaved)
        widths = [arch.n_heads * arch.d_head, *[arch.n_kv_heads * arch.d_head] * 2]

        def concatenated(out: Tensor) -> Tensor:
            parts = list(out.split(widths, -1))
            parts[number] = self._normed(key, parts[number], heads)
            return torch.cat(parts, -1)

        return self._on_output(module, concatenated)

    def _normed(self, key: SiteKey, out: Tensor, heads: int) -> Tensor:
        if out.dim() == 4:
            return self._through(key, out)
        shaped = out.view(*out.shape[:-1], heads, self._handle.d_head)
        return self._through(key, shaped).reshape(out.shape)

    @staticmethod
    def _on_output(module: Any, change: Any) -> Any:
        def hook(module: Any, args: Any, out: Any) -> Any:
            return (change(out[0]), *out[1:]) if isinstance(out, tuple) else change(out)

        return module.register_forward_hook(hook)
