"""Shares and odds ratios whose units repeat: one question asked twice, one question asked of several models."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from latentkt.errors import InputError
from latentkt.stats.interval import Interval, check_level

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float
    from numpy.typing import ArrayLike

__all__ = ["clustered_mantel_haenszel", "clustered_ratio", "clustered_share", "wilson_ends"]


def clustered_share(values: ArrayLike, clusters: Sequence[object] | np.ndarray, *, level: float = 0.95) -> Interval:
    """Share of values that are 1, where several may come from one cluster.

    Wilson's interval with the effective number of trials of Korn and Graubard (1998): p(1 − p) over the variance of
    the share between clusters, never more than the values there are; the number of clusters where all values are
    equal. Where no cluster repeats it is Wilson's interval itself.

    Args:
        values: 0 or 1, shape `[values]`.
        clusters: Cluster of each.
        level: Confidence level.

    Raises:
        InputError: Values other than 0 and 1, or not one cluster each.

    Example:
        >>> f"{clustered_share([1, 1, 0, 0], ['a', 'a', 'b', 'b']):.2f}", f"{clustered_share([1, 0], ['a', 'b']):.2f}"
        ('0.50 [0.05, 0.95]', '0.50 [0.09, 0.91]')
    """
    array = np.asarray(values, dtype=float)
    if array.ndim != 1 or not np.isin(array, (0.0, 1.0)).all() or len(array) != len(clusters):
        raise InputError("values of a share", expected="0 or 1, one cluster each", found=f"shape {array.shape}")
    index = np.unique(np.asarray(clusters), return_inverse=True)[1]
    n, count = len(array), int(index.max()) + 1 if len(array) else 0
    if n == 0:
        return Interval(math.nan, math.nan, math.nan, check_level(level), "wilson", 0)
    share = float(array.mean())
    if count == n:
        return Interval(share, *wilson_ends(share, n, check_level(level)), level, "wilson", n)
    ends = wilson_ends(share, _effective(array, index, count), check_level(level))
    return Interval(share, *ends, level, "wilson with effective trials", n, count)


def _effective(array: Float[np.ndarray, " values"], index: np.ndarray, count: int) -> float:
    """Independent trials that would give the share the variance it has between clusters."""
    n, share = len(array), float(array.mean())
    if share in (0.0, 1.0) or count == 1:
        return float(count)
    residuals = np.bincount(index, array - share, minlength=count)
    variance = count / (count - 1) * float((residuals**2).sum()) / n**2
    return min(float(n), share * (1 - share) / variance) if variance > 0 else float(n)


def wilson_ends(share: float, trials: float, level: float = 0.95) -> tuple[float, float]:
    """Ends of Wilson's interval for a number of trials that need not be whole."""
    from scipy.special import ndtri

    z = float(ndtri((1 + level) / 2))
    centre = (share + z**2 / (2 * trials)) / (1 + z**2 / trials)
    half = z / (1 + z**2 / trials) * math.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2))
    low = 0.0 if share == 0.0 else max(0.0, centre - half)
    return low, 1.0 if share == 1.0 else min(1.0, centre + half)


def clustered_ratio(
    numerator: ArrayLike,
    denominator: ArrayLike,
    *,
    level: float = 0.95,
    rng: np.random.Generator | int = 0,
    n_resamples: int = 999,
) -> Interval:
    """Σ numerator / Σ denominator over clusters, with the percentile bootstrap that draws whole clusters.

    Args:
        numerator: Total of each cluster, shape `[clusters]`.
        denominator: Total of each cluster, shape `[clusters]`.
        level: Confidence level.
        rng: Generator or seed.
        n_resamples: Bootstrap resamples.

    Example:
        >>> print(f"{clustered_ratio([1, 0, 2, 1], [2, 2, 2, 2]):.2f}")
        0.50 [0.12, 0.88]
    """
    top, bottom = np.asarray(numerator, dtype=float), np.asarray(denominator, dtype=float)
    if top.shape != bottom.shape or top.ndim != 1:
        raise InputError("totals by cluster", expected="two arrays of one shape", found=f"{top.shape}, {bottom.shape}")
    value = float(top.sum() / bottom.sum()) if bottom.sum() else math.nan
    sums = _resampled(np.column_stack([top, bottom]), np.random.default_rng(rng), n_resamples)
    with np.errstate(invalid="ignore", divide="ignore"):
        low, high = _ends(sums[:, 0] / sums[:, 1], level)
    return Interval(value, low, high, level, "bootstrap over clusters", int(bottom.sum()), len(top))


def clustered_mantel_haenszel(
    cells: Float[np.ndarray, "clusters strata 2 2"],
    *,
    level: float = 0.95,
    rng: np.random.Generator | int = 0,
    n_resamples: int = 999,
) -> Interval:
    """The Mantel–Haenszel odds ratio over strata that share their units, as settings share their questions.

    The closed-form interval of `mantel_haenszel` takes strata as independent; this one draws whole clusters, with all
    they contribute to every stratum (percentile bootstrap).

    Args:
        cells: What each cluster adds to [[a, b], [c, d]] of each stratum.
        level: Confidence level.
        rng: Generator or seed.
        n_resamples: Bootstrap resamples.

    Example:
        >>> one = np.array([[[1, 0], [0, 1]]] * 6 + [[[0, 1], [1, 0]]] * 2)[:, None]  # one stratum, eight clusters
        >>> clustered_mantel_haenszel(one).value
        9.0
    """
    array = np.asarray(cells, dtype=float)
    if array.ndim != 4 or array.shape[2:] != (2, 2):
        raise InputError("cells", expected="shape [clusters, strata, 2, 2]", found=f"shape {array.shape}")
    whole = _odds_ratio(array.sum(axis=0)[None])[0]
    flat = array.reshape(len(array), -1)
    sums = _resampled(flat, np.random.default_rng(rng), n_resamples).reshape(-1, *array.shape[1:])
    low, high = _ends(_odds_ratio(sums), level)
    return Interval(
        float(whole), low, high, level, "Mantel-Haenszel, bootstrap over clusters", int(array.sum()), len(array)
    )


def _odds_ratio(tables: Float[np.ndarray, "sets strata 2 2"]) -> Float[np.ndarray, " sets"]:
    total = tables.sum(axis=(2, 3))
    with np.errstate(invalid="ignore", divide="ignore"):
        r = np.nansum(tables[:, :, 0, 0] * tables[:, :, 1, 1] / total, axis=1)
        s = np.nansum(tables[:, :, 0, 1] * tables[:, :, 1, 0] / total, axis=1)
        return r / s


def _resampled(
    totals: Float[np.ndarray, "clusters cells"], rng: np.random.Generator, n_resamples: int
) -> Float[np.ndarray, "resamples cells"]:
    """Sums over clusters drawn with replacement, in blocks that stay small."""
    count = len(totals)
    block = max(1, 1_000_000 // max(count, 1))
    parts = []
    for start in range(0, n_resamples, block):
        rows = min(block, n_resamples - start)
        drawn = rng.integers(count, size=(rows, count)) + count * np.arange(rows)[:, None]
        times = np.bincount(drawn.ravel(), minlength=rows * count).reshape(rows, count)
        parts.append(times @ totals)
    return np.concatenate(parts)


def _ends(drawn: Float[np.ndarray, " resamples"], level: float) -> tuple[float, float]:
    tail = (1 - check_level(level)) / 2
    if np.isnan(drawn).any():
        return math.nan, math.nan
    low, high = np.quantile(drawn, [tail, 1 - tail], method="inverted_cdf")
    return float(low), float(high)
