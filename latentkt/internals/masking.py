"""Attention probabilities without some of the keys, and the tokens that should not be taken away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from latentkt.models import Encoded

__all__ = ["cut_pattern", "sink_positions"]

SINK_SHARE, SINK_HEADS, SINK_READERS = 0.3, 1 / 3, 8
"""A sink gets more than this share of the later tokens' attention in at least this part of all heads, and at least so
many tokens stand behind it (with fewer, any neighbour would pass)."""
_SMALLEST = 1e-30  # far above where float32 loses digits


def cut_pattern(
    pattern: Float[Tensor, "n_heads query key"], queries: Sequence[int], keys: Sequence[int]
) -> Float[Tensor, "position n_heads key"]:
    """The probabilities of some queries when some keys are masked before the softmax.

    A token's attention to itself is never cut, so that something is left to read.

    Args:
        pattern: Attention probabilities.
        queries: Positions whose rows are wanted.
        keys: Positions that are masked.

    Returns:
        The rows; each sums to 1. NaN where too little is left for its parts to be told apart.

    Example:
        >>> pattern = torch.tensor([[[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.2, 0.3, 0.5]]])
        >>> cut_pattern(pattern, [2], [1])
        tensor([[[0.2857, 0.0000, 0.7143]]])
    """
    at = torch.as_tensor(list(queries), device=pattern.device)
    kept = pattern[:, at].transpose(0, 1).float()
    gone = torch.zeros(len(queries), pattern.shape[-1], dtype=torch.bool, device=pattern.device)
    gone[:, list(keys)] = True
    gone[torch.arange(len(queries)), at] = False
    kept = kept.masked_fill(gone[:, None], 0.0)
    whole = kept.sum(-1, keepdim=True)
    return kept / whole.where(whole > _SMALLEST, torch.nan)


def sink_positions(prompt: Encoded, patterns: Sequence[Float[Tensor, "n_heads query key"]]) -> set[int]:
    """Positions that gather attention whatever they say: the first, special tokens, and those that most heads look at.

    Args:
        prompt: The prompt.
        patterns: Its attention probabilities, layer by layer.
    """
    n = len(prompt)
    every = torch.cat([pattern.float() for pattern in patterns])  # [layer and head, query, key]
    later = torch.ones(n, n, device=every.device).tril(-1)
    received = (every * later).sum(1) / later.sum(0).clamp(min=1)
    heads = (received > SINK_SHARE).float().mean(0)
    heavy = {p for p in range(n - SINK_READERS) if float(heads[p]) >= SINK_HEADS}
    return {0} | {p for p, special in enumerate(prompt.is_special) if special} | heavy
