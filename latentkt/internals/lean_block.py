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

from latentkt.internals.short_attention import attend

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor, nn

__all__ = ["Span", "lean_block"]


@dataclass(frozen=True, eq=False)
class Span:
    """Rows of a lean block that attend alike: so many variants of the same tokens.

    Attributes:
        variants: How many.
        angles: Cosines and sines of the tokens' positions, [token, d_head] each.
        mask: Additive; its keys are those of `before`, then the tokens' own.
        before: Gives the keys and values that all variants share, [1, n_kv, key, d_head] each.
        keep: Is given the keys and values of the span, those of `before` included; the spans behind it ask for their
            own after that.
        asked: The tokens whose output is wanted, the others lend their keys and values only; None for all.
    """

    variants: int
    angles: tuple[Tensor, Tensor]
    mask: Float[Tensor, "token key"]
    before: Callable[[], tuple[Tensor, Tensor]]
    keep: Callable[[Tensor, Tensor], None] | None = None
    asked: Int[Tensor, "reader"] | None = None

    @property
    def rows(self) -> int:
        """Variants times tokens."""
        return self.variants * len(self.mask)

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
        h: What enters it, span by span, variant by variant, token by token; where all of it is asked for, it is written
            over.
        spans: What the rows are.
    """
    attention, mlp = layer.self_attn, layer.mlp
    attended = _attended(attention, _normed(layer.input_layernorm, h), spans)
    out = _biased(_asked(h, spans).addmm_(attended, attention.o_proj.weight.T), attention.o_proj)  # sums in products
    normed = _normed(layer.post_attention_layernorm, out)
    inner = functional.silu(mlp.gate_proj(normed), inplace=True).mul_(mlp.up_proj(normed))
    return _biased(out.addmm_(inner, mlp.down_proj.weight.T), mlp.down_proj)


def _asked(x: Float[Tensor, "row width"], spans: Sequence[Span]) -> Float[Tensor, "asked_row width"]:
    if all(span.asked is None for span in spans):
        return x
    parts = zip(spans, x.split([span.rows for span in spans]), strict=True)
    return torch.cat([span.of_asked(part) for span, part in parts])


def _biased(out: Tensor, linear: nn.Linear) -> Tensor:
    return out if linear.bias is None else out.add_(linear.bias)


def _normed(norm: Any, x: Tensor) -> Tensor:
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    square = torch.addcmul(x.new_tensor(norm.variance_epsilon), length, length, value=1 / x.shape[-1])
    return (x * square.rsqrt_()).mul_(norm.weight)


def _attended(attention: Any, x: Float[Tensor, "row d_model"], spans: Sequence[Span]) -> Float[Tensor, "row heads"]:
    """What enters the output projection."""
    asked = [span.asked_rows for span in spans]
    rows = [span.rows for span in spans]
    queries = attention.q_proj(_asked(x, spans)).split_with_sizes(asked)
    keys, values = (project(x).split_with_sizes(rows) for project in (attention.k_proj, attention.v_proj))
    out = x.new_empty(sum(asked), queries[0].shape[-1])
    for span, into, *projected in zip(spans, out.split_with_sizes(asked), queries, keys, values, strict=True):
        found = _of_span(attention, span, *projected).transpose(1, 2)
        into.view(found.shape).copy_(found)
    return out


def _of_span(attention: Any, span: Span, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Attention of one span, whose projections are still row by row."""
    q, k, v = (one.view(span.variants, -1, one.shape[-1] // attention.head_dim, attention.head_dim).transpose(1, 2)
               for one in (queries, keys, values))  # fmt: skip
    (keys, own_keys), (values, own_values) = map(_room, span.before(), (k, v))
    _turn(k, span.angles, own_keys)
    own_values.copy_(v)
    if span.keep is not None:
        span.keep(keys, values)
    mask, angles = span.mask, span.angles
    if span.asked is not None:
        mask, angles = mask[span.asked], (angles[0][span.asked], angles[1][span.asked])
    q = _turn(q, angles, q.new_empty(q.shape))
    return attend(q, keys, values, mask, scale=attention.scaling)


def _turn(x: Float[Tensor, "variant head token d_head"], angles: tuple[Tensor, Tensor], out: Tensor) -> Tensor:
    """Rotary positions into `out`: the halves of each head turned against each other."""
    cos, sin = angles
    torch.mul(x, cos, out=out)
    low, high = out.chunk(2, -1)
    was_low, was_high = x.chunk(2, -1)
    of_low, of_high = sin.chunk(2, -1)
    low.addcmul_(was_high, of_low, value=-1)
    high.addcmul_(was_low, of_high)
    return out


def _room(
    before: Float[Tensor, "1 n_kv key d_head"], own: Float[Tensor, "variant n_kv token d_head"]
) -> tuple[Tensor, Tensor]:
    """Keys or values as attention reads them, the shared ones written already; and the room for the variants' own."""
    n_before, n_own = before.shape[2], own.shape[2]
    both = own.new_empty(*own.shape[:2], n_before + n_own, own.shape[3])
    both[:, :, :n_before] = before
    return both, both[:, :, n_before:]
