"""Sign-flip tests of "the mean is zero", for one quantity and for many cells at once.

Under the null a cluster's mean is as likely as its negative. Signs are flipped by cluster: all combinations where there
are few (the test is then exact), a seeded sample else. For many cells the largest |t| over all cells is compared
(Westfall and Young 1993), which keeps the chance of any false positive at the level whatever the correlations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from latentkt.errors import InputError
from latentkt.stats.clusters import cluster_means

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float
    from numpy.typing import ArrayLike

__all__ = ["EXACT_UP_TO", "MaxT", "SignFlip", "sign_flip", "sign_flip_max_t"]

# 2 ** 14 sign vectors are all gone through; beyond that they are sampled.
EXACT_UP_TO = 14
Alternative = Literal["two-sided", "greater", "less"]
# Sums of the same numbers in another order differ in the last bits; ties must stay ties.
TIE = 1e-9


@dataclass(frozen=True, slots=True)
class SignFlip:
    """Result of one sign-flip test.

    Attributes:
        mean: Mean of the cluster means.
        p: p value; NaN for fewer than two clusters. With c clusters an exact one is never under 2 ** (1 - c) two-sided.
        n: Items.
        clusters: Clusters, the units of flipping.
        exact: Whether all sign vectors were gone through.
        flips: Sign vectors used.
        missing: Items left out because their value was NaN.
    """

    mean: float
    p: float
    n: int
    clusters: int
    exact: bool
    flips: int
    missing: int = 0


@dataclass(frozen=True, slots=True)
class MaxT:
    """Result of a sign-flip test over many cells, in the order and shape of the cells.

    Attributes:
        mean: Mean of the cluster means, shape `[cells]`.
        t: Its t statistic over clusters, shape `[cells]`.
        p: p value of the cell alone, shape `[cells]`.
        p_max_t: p value adjusted for all cells, shape `[cells]`; NaN for cells with fewer than two clusters.
        clusters: Clusters in all.
        cells_tested: Cells that had at least two clusters.
        exact: Whether all sign vectors were gone through.
        flips: Sign vectors used.
    """

    mean: Float[np.ndarray, " cells"]
    t: Float[np.ndarray, " cells"]
    p: Float[np.ndarray, " cells"]
    p_max_t: Float[np.ndarray, " cells"]
    clusters: int
    cells_tested: int
    exact: bool
    flips: int


def sign_flip(
    values: ArrayLike,
    clusters: Sequence[object] | np.ndarray | None = None,
    *,
    alternative: Alternative = "two-sided",
    rng: np.random.Generator | int = 0,
    n_flips: int = 9999,
) -> SignFlip:
    """Test whether the mean over clusters is zero, by flipping the signs of whole clusters.

    Args:
        values: One value an item, shape `[items]`; NaN are left out and counted.
        clusters: The cluster of each item; None: every item is its own.
        alternative: `"greater"` tests for a mean above zero.
        rng: Generator or seed; not used where the test is exact (up to 14 clusters).
        n_flips: Sign vectors sampled where there are more clusters.

    Raises:
        InputError: Shapes differ, or values are infinite.

    Example:
        >>> sign_flip([1.0, 2.0, 3.0, 4.0]).p  # 2 of the 16 sign vectors are as far out
        0.125
    """
    array = np.asarray(values, dtype=float)
    if array.ndim != 1:
        raise InputError("values of a sign-flip test", expected="one number an item", found=f"shape {array.shape}")
    many = sign_flip_max_t(array[:, None], clusters, alternative=alternative, rng=rng, n_flips=n_flips)
    missing = int(np.isnan(array).sum())
    return SignFlip(
        float(many.mean[0]), float(many.p[0]), len(array) - missing, many.clusters, many.exact, many.flips, missing
    )


def sign_flip_max_t(
    values: ArrayLike,
    clusters: Sequence[object] | np.ndarray | None = None,
    *,
    alternative: Alternative = "two-sided",
    rng: np.random.Generator | int = 0,
    n_flips: int = 9999,
) -> MaxT:
    """Test many cells (layers × roles, say) at once; `p_max_t` allows for having looked at all of them.

    Args:
        values: One row an item, one column a cell, shape `[items, cells]`; NaN: the item lacks the cell.
        clusters: The cluster of each item; None: every item is its own.
        alternative: `"greater"` tests for means above zero.
        rng: Generator or seed; not used where the test is exact (up to 14 clusters).
        n_flips: Sign vectors sampled where there are more clusters.

    Raises:
        InputError: Shapes differ, or values are infinite.

    Example:
        >>> shifted = np.column_stack([np.arange(1.0, 9.0), [1.0, -1.0] * 4])
        >>> sign_flip_max_t(shifted).p_max_t.round(3).tolist()
        [0.016, 1.0]
    """
    array = np.asarray(values, dtype=float)
    if array.ndim != 2 or np.isinf(array).any():
        raise InputError(
            "values of a sign-flip test", expected="finite numbers or NaN, [items, cells]", found=f"shape {array.shape}"
        )
    if alternative not in ("two-sided", "greater", "less"):
        raise InputError("alternative", expected="two-sided, greater or less", found=alternative)
    labels = range(len(array)) if clusters is None else clusters
    means = cluster_means(array, list(labels))[0]
    means = means[~np.isnan(means).all(axis=1)]
    cells = _Cells.of(means, -1.0 if alternative == "less" else 1.0, two_sided=alternative == "two-sided")
    exact = len(means) <= EXACT_UP_TO
    signs = _all_signs(len(means)) if exact else _sampled_signs(len(means), n_flips, np.random.default_rng(rng))
    return _compare(cells, signs, exact=exact)


@dataclass(frozen=True, slots=True)
class _Cells:
    """Cluster means with zeros where absent, and what the t statistic of a flip needs besides its sum."""

    filled: Float[np.ndarray, "clusters cells"]
    count: Float[np.ndarray, " cells"]
    sign: float
    two_sided: bool

    @classmethod
    def of(cls, means: Float[np.ndarray, "clusters cells"], sign: float, *, two_sided: bool) -> _Cells:
        there = ~np.isnan(means)
        return cls(np.where(there, means, 0.0), there.sum(axis=0).astype(float), sign, two_sided)

    def t(self, signs: Float[np.ndarray, "flips clusters"]) -> Float[np.ndarray, "flips cells"]:
        """Student's t of each cell after each flip. Flips leave Σx² alone, so t follows from the sum."""
        sums = signs @ self.filled
        squares = (self.filled**2).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(squares > 0, sums**2 / (self.count * squares), 0.0)
            # All means of one size and sign: t is infinite; the bound keeps such ties equal.
            share = np.minimum(share, 1 - 1e-12)
            t = np.sign(sums) * np.sqrt((self.count - 1) * share / (1 - share))
        return np.where(self.count >= 2, t, math.nan)

    def extremity(self, t: Float[np.ndarray, "... cells"]) -> Float[np.ndarray, "... cells"]:
        return np.abs(t) if self.two_sided else self.sign * t


def _compare(cells: _Cells, signs: Iterator[Float[np.ndarray, "flips clusters"]], *, exact: bool) -> MaxT:
    clusters = len(cells.filled)
    observed = cells.t(np.ones((1, clusters)))[0]
    tested = ~np.isnan(observed)
    bar = cells.extremity(observed)[tested]
    bar = bar - TIE * np.maximum(1.0, np.abs(bar))
    alone = np.zeros(int(tested.sum()))
    most = np.zeros_like(alone)
    flips = 0
    for block in signs:
        far = cells.extremity(cells.t(block)[:, tested])
        alone += (far >= bar).sum(axis=0)
        most += (far.max(axis=1, keepdims=True) >= bar).sum(axis=0) if far.size else 0
        flips += len(block)
    p, p_max_t = np.full(len(tested), math.nan), np.full(len(tested), math.nan)
    # A sampled test counts the observed signs among its own, so that p is never 0.
    extra = 0 if exact else 1
    p[tested], p_max_t[tested] = (alone + extra) / (flips + extra), (most + extra) / (flips + extra)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(cells.count > 0, cells.filled.sum(axis=0) / cells.count, math.nan)
    return MaxT(mean, observed, p, p_max_t, clusters, int(tested.sum()), exact, flips)


def _all_signs(clusters: int) -> Iterator[Float[np.ndarray, "flips clusters"]]:
    codes = np.arange(2**clusters)
    for block in np.array_split(codes, max(1, len(codes) // 1024)):
        yield np.where((block[:, None] >> np.arange(clusters)) & 1, -1.0, 1.0)


def _sampled_signs(
    clusters: int, flips: int, rng: np.random.Generator
) -> Iterator[Float[np.ndarray, "flips clusters"]]:
    for start in range(0, flips, 1024):
        yield rng.integers(0, 2, size=(min(1024, flips - start), clusters)) * 2.0 - 1.0
