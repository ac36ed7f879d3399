"""Gradients on the way into each receiver: what a change of the residual stream does through this one part only.

Queries, keys and values read the residual stream through a norm and a projection, which are run backwards here, head
by head. What the MLP reads follows from what is left: the gradient in front of a block is the sum of those through
its parts and the one that passes by. In blocks with attention first this sum is known twice, and both must agree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from latentkt.errors import RunError
from latentkt.internals.paths import LOGITS, Node
from latentkt.models.norms import read_norm

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from latentkt.internals.engines.base import SiteKey
    from latentkt.internals.gradient import Slope
    from latentkt.models import ModelHandle

__all__ = ["needed_sites", "project", "reads", "receiver_gradients", "sender_changes"]

_TOLERANCE = 2e-3


def needed_sites(handle: ModelHandle) -> list[SiteKey]:
    """Sites whose values and gradients the functions of this module read."""
    middle = () if handle.arch.parallel else ("resid_mid",)
    sites = ("resid_pre", "z", "q", "k", "v", "attn_out", *middle, "mlp_out", "resid_post")
    return [(site, layer) for layer in range(handle.n_layers) for site in sites]


def reads(handle: ModelHandle, sender: Node, receiver: Node) -> bool:
    """Whether a receiver reads what a sender writes."""
    if receiver == LOGITS or sender.site == "resid_pre" or receiver.layer > sender.layer:
        return True
    inside = sender.site == "z" and receiver.site == "mlp_out" and not handle.arch.parallel
    return inside and receiver.layer == sender.layer


def project(
    handle: ModelHandle, layer: int, site: str, resid: Float[Tensor, "*batch pos d_model"]
) -> Float[Tensor, "*batch pos heads d_head"]:
    """Q, k or v of a layer on a residual stream, by the model's own norm and projection."""
    family = handle.arch.family
    norm = handle.arch.part(layer, family.attn_norm) if family.attn_norm else None
    access = handle.arch.site(site, layer)
    raw = access.module.forward(resid if norm is None else norm.forward(resid))  # past all hooks: one of them may call
    return access.layout.read(raw, batch=raw.shape[0])


def receiver_gradients(
    handle: ModelHandle, slope: Slope, positions: list[int]
) -> tuple[list[Node], Float[Tensor, "receiver position d_model"]]:
    """The gradient of the metric through each receiver, at some of the prompt's tokens.

    Raises:
        RunError: The parts do not add up to the gradient in front of the block.
    """
    nodes: list[Node] = []
    parts: list[Tensor] = []
    for layer in range(handle.n_layers):
        before, after = (slope.grad((site, layer))[positions] for site in ("resid_pre", "resid_post"))
        heads = []
        for site in ("q", "k", "v"):
            found = _backwards(handle, layer, site, slope, positions)
            nodes += [Node(site, layer, head) for head in range(len(found))]
            heads.append(found)
        parts += heads
        attention = torch.cat(heads).sum(0)
        if handle.arch.parallel:
            mlp = before - after - attention
        else:
            middle = slope.grad(("resid_mid", layer))[positions]
            _agree(attention, before - middle, layer)
            mlp = middle - after
        nodes.append(Node("mlp_out", layer))
        parts.append(mlp[None])
    nodes.append(LOGITS)
    parts.append(slope.grad(("resid_post", handle.n_layers - 1))[positions][None])
    return nodes, torch.cat(parts)


def _backwards(
    handle: ModelHandle, layer: int, site: str, slope: Slope, positions: list[int]
) -> Float[Tensor, "head position d_model"]:
    """The gradient at each head of q, k or v, taken back through its projection and the norm."""
    grad = slope.grad((site, layer))[positions]  # [position, head, d_head]
    n_heads = grad.shape[1]
    own = torch.arange(n_heads, device=grad.device)
    with torch.enable_grad():
        resid = slope.value(("resid_pre", layer))[positions].detach().repeat(n_heads, 1, 1).requires_grad_()
        value = project(handle, layer, site, resid)
        towards = torch.zeros_like(value)
        towards[own, :, own] = grad.transpose(0, 1).to(value)
        (found,) = torch.autograd.grad(value, resid, towards)
    return found


def _agree(ours: Tensor, truth: Tensor, layer: int) -> None:
    error, size = float((ours - truth).abs().max()), float(truth.abs().max())
    if error > _TOLERANCE * max(size, 1e-3) * (1 if truth.dtype == torch.float32 else 50):
        raise RunError(
            f"the gradients through queries, keys and values of layer {layer} do not add up",
            expected="the gradient in front of the block minus the one behind attention",
            found=f"a difference of {error:.3g} where the largest is {size:.3g}",
            fix="use node attribution, and report the model",
        )


def sender_changes(
    handle: ModelHandle, at: Slope, base: Slope, source: Slope, positions: tuple[list[int], list[int]]
) -> tuple[list[Node], Float[Tensor, "sender position d_model"]]:
    """What each sender adds to the residual stream in the source run more than in the base run.

    Args:
        handle: The model.
        at: The run at which a norm behind attention is linearised.
        base: The base run.
        source: The source run.
        positions: Positions in the base run and their partners in the source run.
    """
    ours, theirs = positions

    def change(key: SiteKey) -> Tensor:
        return source.value(key)[theirs] - base.value(key)[ours]

    nodes: list[Node] = [Node("resid_pre", 0)]
    parts: list[Tensor] = [change(("resid_pre", 0))[None]]
    for layer in range(handle.n_layers):
        writes = torch.einsum("phd,hdm->hpm", change(("z", layer)), handle.arch.out_weight(layer))
        parts += [
            _behind_attention(handle, layer, at.value(("z", layer))[ours])(writes),
            change(("mlp_out", layer))[None],
        ]
        nodes += [*(Node("z", layer, head) for head in range(handle.n_heads)), Node("mlp_out", layer)]
    return nodes, torch.cat(parts)


def _behind_attention(
    handle: ModelHandle, layer: int, z: Float[Tensor, "position head d_head"]
) -> Callable[[Tensor], Tensor]:
    """The linear map from a change of attention's output to what is added: the norm behind it, where there is one."""
    if not handle.arch.post_norms:
        return lambda change: change
    norm = read_norm(handle.arch.part(layer, handle.arch.family.attn_added))
    bias = getattr(handle.arch.out_proj(layer), "bias", None)
    whole = torch.einsum("phd,hdm->pm", z, handle.arch.out_weight(layer)) + (0 if bias is None else bias)
    centred = whole - whole.mean(-1, keepdim=True) if norm.centred else whole
    scale = norm.scale(whole)

    def through(change: Tensor) -> Tensor:
        change = change - change.mean(-1, keepdim=True) if norm.centred else change
        grown = (centred * change).mean(-1, keepdim=True) / scale
        return norm.gain * (change / scale - centred * grown / scale**2)

    return through
