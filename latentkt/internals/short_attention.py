"""Attention of many variants of few tokens, as plain batched products.

A fused kernel walks through every head of every variant by itself; with ten tokens and thirty keys each walk is too
short to pay for its start. Here all query heads that share keys make one matrix, and the scores are written out: for
few tokens they fit into the cache, and it takes half the time. Runs of hundreds of tokens are left to the fused kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

__all__ = ["attend"]

_FUSED_FROM = 2**18
"""Scores of one variant above which the fused kernel is the faster one: 9 heads of 170 tokens that see as many."""

_AT_ONCE = 2**17
"""Scores that are written out at a time, half a megabyte."""


def attend(
    queries: Float[Tensor, "variant head token d_head"],
    keys: Float[Tensor, "variant n_kv key d_head"],
    values: Float[Tensor, "variant n_kv key d_head"],
    mask: Float[Tensor, "token key"],
    *,
    scale: float,
) -> Float[Tensor, "variant head token d_head"]:
    """What each head gathers for each token.

    Args:
        queries: Contiguous.
        keys: Each serves as many neighbouring query heads as there are; contiguous.
        values: Likewise.
        mask: Additive; the same for all variants.
        scale: Of the scores.
    """
    n_heads, n_tokens, d_head = queries.shape[1:]
    n_scores = n_heads * n_tokens * keys.shape[2]
    if n_scores > _FUSED_FROM:
        return functional.scaled_dot_product_attention(
            queries, keys, values, attn_mask=mask, scale=scale, enable_gqa=True
        )
    rows = n_tokens * (n_heads // keys.shape[1])  # of the query heads that share keys
    at_once = max(1, _AT_ONCE // n_scores) * keys.shape[1]
    found = torch.empty_like(queries)
    q, k, v, out = (
        queries.view(-1, rows, d_head),
        keys.flatten(0, 1),
        values.flatten(0, 1),
        found.view(-1, rows, d_head),
    )
    for first in range(0, out.shape[0], at_once):
        part = slice(first, first + at_once)
        _write_out(q[part], k[part], v[part], mask, scale, out[part])
    return found


def _write_out(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, scale: float, out: Tensor) -> None:
    """[batch, query, d_head] and [batch, key, d_head] twice into [batch, query, d_head]; the mask is [token, key]."""
    scores = torch.bmm(q, k.mT)
    masked = torch.add(mask, scores.view(-1, *mask.shape), alpha=scale)
    torch.bmm(masked.softmax(-1).view(scores.shape), v, out=out)
