"""Patching attention probabilities: exactly what they make of the heads' outputs.

A query's probabilities reach the rest of the model through one vector only: z = Σ over keys of probability × value,
with the base run's own values. So a patch of the pattern is a patch of z with that vector, on every engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from latentkt.internals.engines.base import FromRun, SiteKey

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from latentkt.internals.engines.base import Engine
    from latentkt.internals.places import Place
    from latentkt.internals.sources import Fetched
    from latentkt.models import Pair

__all__ = ["pattern_as_z", "weighted_values"]


def weighted_values(
    pattern: Float[Tensor, "position n_heads key"], values: Float[Tensor, "key n_kv d_head"]
) -> Float[Tensor, "position n_heads d_head"]:
    """Z of a pattern: each head's probabilities times the values of its key/value head."""
    group = pattern.shape[1] // values.shape[1]
    return torch.einsum("phk,khd->phd", pattern, values.repeat_interleave(group, dim=1))


def pattern_as_z(engine: Engine, pair: Pair, fetched: Fetched, keys: Sequence[SiteKey]) -> Fetched:
    """`fetched`, with patterns turned into the z that they make of the base run's values."""
    layers = [layer for site, layer in keys if site == "pattern"]
    if not layers:
        return fetched
    values = engine.values(pair.base.ids, [("v", layer) for layer in layers])

    def at(key: SiteKey, place: Place) -> Tensor | FromRun | None:
        found = fetched(key, place)
        if key[0] != "pattern" or found is None or isinstance(found, FromRun):
            return found
        if found.shape[-1] != len(pair.base.ids):  # its keys are other tokens
            return None
        return weighted_values(found, values["v", key[1]])

    return at
