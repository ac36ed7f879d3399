"""Exact residual patching at every layer in about half a forward pass a cell: the staircase.

A patch of the residual stream after layer l at some prompt positions changes nothing before the first of them and nothing
below layer l + 1. So the patched run is resumed there, on the suffix of the tokens only, with the unpatched run's keys and
values in front. The variants of layer l join those of layers below when layer l + 1 is applied: each layer's weights are
read once for a batch that grows like a staircase.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch

from latentkt.internals.metrics import AnswerScore, score_branches
from latentkt.internals.recording import Recording, Suffix

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float
    from torch import Tensor

    from latentkt.models import ModelHandle

__all__ = ["patch_residual"]


def patch_residual(
    handle: ModelHandle,
    base: Recording,
    *,
    positions: Sequence[int],
    values: Mapping[int, Float[Tensor, "position d_model"]],
    chunk_tokens: int = 512,
) -> dict[int, AnswerScore]:
    """Replace `resid_post` of one layer at `positions` and score both answers, for every layer in `values`.

    Args:
        handle: The model.
        base: The recorded run that is patched.
        positions: Prompt positions that are replaced, ascending.
        values: Layer -> what stands at `positions` after that layer.
        chunk_tokens: Rows of a matrix product inside a layer; bounds memory.

    Returns:
        Layer -> scores of the patched run.
    """
    suffix = Suffix(handle, base, min(positions), chunk_tokens=chunk_tokens)
    inside = torch.as_tensor(list(positions)) - min(positions)
    tokens = torch.as_tensor(suffix.tokens)
    order = sorted(values)
    with torch.inference_mode():
        h = base.resid[:1, tokens][:0]  # no variant yet
        for layer in range(order[0], handle.n_layers):
            if layer in values:
                block = base.resid[layer + 1, tokens].clone()
                block[inside] = values[layer].to(block)
                h = torch.cat([h, block[None]])
            if layer + 1 < handle.n_layers:
                h = suffix.layer(layer + 1, h)
        readers = torch.as_tensor(base.branches.readers) - min(positions)
        scores = score_branches(handle, base.branches, h[:, readers])
    return dict(zip(order, scores, strict=True))
