"""A Llama block in fewer passes over memory: the same products, less that is written between them.

A sweep spends a quarter of its time between the matrix products: norms, rotary angles, masks and residual sums, each
written out by the model's own block as a tensor of its own. Here they are done in place where nobody else looks. Where
it may stand in for the model's block is said in `latentkt.internals.lean`. Weights are read where they lie, never
copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor, nn

__all__ = ["Span", "lean_block"]


@dataclass(frozen=True, eq=False)
class Span:
    """Rows of a lean block that attend alike: so many variants of the same tokens.

    Attributes:
        variants: How many.
        angles: Cosines and sines of the tokens' positions, [1, token, d_head] each.
        mask: Additive; its keys are those of `before`, then the tokens' own.
        before: Gives the keys and values that all variants share, [1, n_kv, key, d_head] each.
        keep: Is given the keys and values of the span, those of `before` included; the spans behind it ask for their
            own after that.
        asked: The tokens whose output is wanted, the others lend their keys and values only; None for all.
    """

    variants: int
    angles: tuple[Tensor, Tensor]
    mask: Float[Tensor, "1 1 token key"]
    before: Callable[[], tuple[Tensor, Tensor]]
    keep: Callable[[Tensor, Tensor], None] | None = None
    asked: Int[Tensor, "reader"] | None = None

    @property
    def rows(self) -> int:
        """Variants times tokens."""
        return self.variants * int(self.mask.shape[2])

    @property
    def asked_rows(self) -> int:
        """Variants times tokens whose output is wanted."""
        return self.rows if self.asked is None else self.variants * len(self.asked)

    def of_asked(self, x: Float[Tensor, "row width"]) -> Float[Tensor, "asked_row width"]:
        """The rows of `x` whose output is wanted."""
        return x if self.asked is None else x.view(self.variants, -1, x.shape[-1])[:, self.asked].flatten(0, 1)


def lean_block(
    layer: Any, h: Float[Tensor, "row d_model"], spans: Sequence[Span]
) -> Float[Tensor, "asked_row d_model"]:
    """Apply a Llama block to rows of several spans: its products are one for all, its attention is each span's own.

    Args:
        layer: The block; `is_lean_block` holds.
        h: What enters it, span by span, variant by variant, token by token; left as it is.
        spans: What the rows are.
    """
    attention, mlp = layer.self_attn, layer.mlp
    attended = _attended(attention, _normed(layer.input_layernorm, h), spans)
    out = _biased(torch.addmm(_asked(h, spans), attended, attention.o_proj.weight.T), attention.o_proj)
    normed = _normed(layer.post_attention_layernorm, out)
    inner = functional.silu(mlp.gate_proj(normed), inplace=True).mul_(mlp.up_proj(normed))
    return _biased(out.addmm_(inner, mlp.down_proj.weight.T), mlp.down_proj)  # the sum is in the product


def _asked(x: Float[Tensor, "row width"], spans: Sequence[Span]) -> Float[Tensor, "asked_row width"]:
    if all(span.asked is None for span in spans):
        return x
    parts = zip(spans, x.split([span.rows for span in spans]), strict=True)
    return torch.cat([span.of_asked(part) for span, part in parts])


def _biased(out: Tensor, linear: nn.Linear) -> Tensor:
    return out if linear.bias is None else out.add_(linear.bias)


def _normed(norm: Any, x: Tensor) -> Tensor:
    scale = torch.linalg.vector_norm(x, dim=-1, keepdim=True).square_().div_(x.shape[-1])
    return (x * scale.add_(norm.variance_epsilon).rsqrt_()).mul_(norm.weight)


def _attended(attention: Any, x: Float[Tensor, "row d_model"], spans: Sequence[Span]) -> Float[Tensor, "row heads"]:
    """What enters the output projection."""
    asked = [span.asked_rows for span in spans]
    queries = attention.q_proj(_asked(x, spans)).split(asked)
    keys, values = (project(x).split([span.rows for span in spans]) for project in (attention.k_proj, attention.v_proj))
    parts = [_of_span(attention, *each) for each in zip(spans, queries, keys, values, strict=True)]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _of_span(attention: Any, span: Span, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Attention of one span, whose projections are still row by row."""
    q, k, v = (one.view(span.variants, -1, one.shape[-1] // attention.head_dim, attention.head_dim)
               for one in (queries, keys, values))  # fmt: skip
    before = span.before()
    keys, values = _behind(before[0], _turned(k, span.angles)), _behind(before[1], v)
    if span.keep is not None:
        span.keep(keys, values)
    mask, angles = span.mask, span.angles
    if span.asked is not None:
        mask, angles = mask[:, :, span.asked], (angles[0][:, span.asked], angles[1][:, span.asked])
    attended = functional.scaled_dot_product_attention(
        _turned(q, angles).transpose(1, 2), keys, values, attn_mask=mask, scale=attention.scaling, enable_gqa=True
    )
    return attended.transpose(1, 2).reshape(span.asked_rows, -1)


def _turned(x: Float[Tensor, "variant token head d_head"], angles: tuple[Tensor, Tensor]) -> Tensor:
    """Rotary positions: the halves of each head turned against each other."""
    cos, sin = (angle[:, :, None] for angle in angles)
    half = x.shape[-1] // 2
    turned = x * cos
    turned[..., :half].addcmul_(x[..., half:], sin[..., :half], value=-1)
    turned[..., half:].addcmul_(x[..., :half], sin[..., half:])
    return turned


def _behind(before: Float[Tensor, "1 n_kv key d_head"], own: Float[Tensor, "variant token n_kv d_head"]) -> Tensor:
    """The shared keys or values, then the variants' own; one copy, laid out as attention reads it."""
    n_before, own = before.shape[2], own.transpose(1, 2)
    both = own.new_empty(*own.shape[:2], n_before + own.shape[2], own.shape[3])
    both[:, :, :n_before], both[:, :, n_before:] = before, own
    return both
