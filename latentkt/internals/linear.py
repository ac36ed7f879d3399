"""A run's metric as a linear function of its activations: gradients at the base run, or averaged towards the source.

`atp`: the gradient at the base run (attribution patching). `ig`: the mean gradient at the midpoints of so many equal
steps from the base run's input embeddings to the source run's (integrated gradients). Value and gradient of a node are
always those of one and the same tensor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import torch

from latentkt.errors import InputError
from latentkt.internals.gradient import Rows, Slope, slopes
from latentkt.internals.metrics import Metric, Scorer, scorer_of
from latentkt.internals.places import role_positions

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from jaxtyping import Float
    from torch import Tensor

    from latentkt.internals.engines.base import Edit, Engine, Patch, SiteKey
    from latentkt.models import Pair

__all__ = ["EMBEDDING", "METHODS", "Linear", "along_the_path", "check_method", "linearise"]

EMBEDDING: SiteKey = ("resid_pre", 0)
METHODS = ("atp", "ig")
MIN_STEPS = 5
_ROWS_AT_ONCE = 8


@dataclass(frozen=True, eq=False)
class Linear:
    """Both runs of a pair, and the gradient that predicts what a change of the base run does.

    Attributes:
        pair: The pair.
        base: The base run; `grads` are those of the method.
        source: The source run, without gradients.
        steps: Gradients that were averaged.
    """

    pair: Pair
    base: Slope
    source: Slope
    steps: int
    _by_token: dict[SiteKey, Float[np.ndarray, "position head"]] = field(default_factory=dict, repr=False)

    def predict(self, patch: Patch) -> float:
        """What the metric changes by when a patch goes in, to first order, in nats."""
        at, key = list(patch.positions), (patch.site, patch.layer)
        own, grad = self.base.value(key)[at], self.base.grad(key)[at]
        if patch.head is not None:
            own, grad = own[:, patch.head], grad[:, patch.head]
        return float(((patch.given.to(own) - own) * grad).sum())

    def by_token(self, key: SiteKey) -> Float[np.ndarray, "position head"]:
        """The same for the source run's value at each token and head (one where the site has none)."""
        if key not in self._by_token:
            partner = torch.as_tensor(self.pair.alignment.base_to_source.clip(min=0))
            own = self.base.value(key)
            change = self.source.value(key)[partner.to(own.device)] - own
            product = (change * self.base.grad(key)).sum(-1).double().cpu().numpy()
            self._by_token[key] = product if product.ndim == 2 else product[:, None]
        return self._by_token[key]

    @property
    def gap(self) -> float:
        """Metric of the source run minus that of the base run, in nats."""
        return self.source.score.value - self.base.score.value

    @property
    def completeness_error(self) -> float:
        """Nats by which the embeddings' predictions together miss the gap; NaN where not every token has a partner."""
        alignment = self.pair.alignment
        if alignment.shifted or alignment.unmapped:
            return float("nan")
        at, change = _way(self.pair, self.base, self.source)
        return float((change * self.base.grad(EMBEDDING)[at]).sum()) - self.gap


def check_method(method: str, steps: int) -> None:
    """Refuse an unknown method and too few steps.

    Raises:
        InputError: One of the two.
    """
    if method not in METHODS:
        raise InputError("method of the attribution", expected=" or ".join(METHODS), found=method)
    if method == "ig" and steps < MIN_STEPS:
        raise InputError("steps of integrated gradients", expected=f"{MIN_STEPS} or more", found=steps)


def linearise(
    engine: Engine,
    pairs: Sequence[Pair],
    keys: Sequence[SiteKey],
    *,
    method: str = "atp",
    steps: int = MIN_STEPS,
    metric: str | Metric | None = None,
) -> list[Linear]:
    """Run pairs together and take their gradients: with `atp` two forward passes and one backward pass.

    Args:
        engine: What runs the model.
        pairs: Pairs of one batch.
        keys: (site, layer) pairs that will be asked for; the embedding is added.
        method: `atp` or `ig`.
        steps: Steps of `ig`.
        metric: As in `patch`.
    """
    check_method(method, steps)
    wanted = list(dict.fromkeys([EMBEDDING, *keys]))
    bases = [scorer_of(pair, pair.base.ids, metric) for pair in pairs]
    sources = slopes(engine, [scorer_of(pair, pair.source.ids, metric) for pair in pairs], wanted, gradient=False)
    if method == "atp":
        found = slopes(engine, bases, wanted)
        return [Linear(*three, 1) for three in zip(pairs, found, sources, strict=True)]
    plain = slopes(engine, bases, wanted, gradient=False)
    linear = []
    for pair, scorer, base, source in zip(pairs, bases, plain, sources, strict=True):
        grads: dict[SiteKey, Tensor] = {}
        for slope in along_the_path(engine, pair, scorer, base, source, wanted, steps=steps):
            for key, grad in slope.grads.items():
                grads[key] = grads.get(key, 0) + grad / steps
        linear.append(Linear(pair, replace(base, grads=grads), source, steps))
    return linear


def along_the_path(
    engine: Engine,
    pair: Pair,
    scorer: Scorer,
    base: Slope,
    source: Slope,
    keys: Sequence[SiteKey],
    *,
    steps: int,
) -> Iterator[Slope]:
    """Values and gradients at the midpoints of equal steps between the embeddings of both runs, base to source."""
    at, change = _way(pair, base, source)
    shares = [(step + 0.5) / steps for step in range(steps)]
    size = max(1, _ROWS_AT_ONCE // len(set(scorer.branches.sequences)))
    for start in range(0, steps, size):
        here = shares[start : start + size]
        scorers = [scorer] * len(here)
        edits: Mapping[SiteKey, Edit] = {EMBEDDING: _Move(Rows.of(scorers).spans, here, at, change)}
        yield from slopes(engine, scorers, keys, edits=edits)


def _way(pair: Pair, base: Slope, source: Slope) -> tuple[list[int], Tensor]:
    """Positions whose embeddings differ, and source minus base there."""
    place = role_positions(pair, "all").behind(pair.alignment.first_difference)
    change = source.value(EMBEDDING)[list(place.source)] - base.value(EMBEDDING)[list(place.base)]
    return list(place.base), change


@dataclass(frozen=True, eq=False)
class _Move:
    """An edit that moves each run's embeddings a share of the way."""

    spans: Sequence[tuple[int, int]]
    shares: Sequence[float]
    positions: list[int]
    change: Tensor

    def __call__(self, value: Tensor) -> Tensor:
        whole = torch.zeros_like(value)
        for (start, stop), share in zip(self.spans, self.shares, strict=True):
            whole[start:stop, self.positions] = share * self.change.to(value)
        return value + whole
