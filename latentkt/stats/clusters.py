"""Means over items that come in families, where the family is what was sampled.

Items of one family share wording and facts, so they are not independent. The quantity is the mean of the family means
(every family weighs the same). With under 20 families its interval is Student's t on the family means; from 20 on it is
the bootstrap-t, which makes fewer assumptions and needs that many to work. The usual interval over items is given
beside it and labelled for what it is: conditional on just these families.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from latentkt.errors import InputError
from latentkt.stats.interval import Interval, check_level
from latentkt.stats.means import student

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from jaxtyping import Float
    from numpy.typing import ArrayLike

__all__ = ["BOOTSTRAP_FROM", "ClusterInterval", "cluster_interval", "cluster_means", "paired_interval"]

# Below this many clusters a bootstrap of cluster means undercovers; Student's t holds its level.
BOOTSTRAP_FROM = 20
CONDITIONAL = "student-t over items, conditional on these clusters"


@dataclass(frozen=True, slots=True)
class ClusterInterval:
    """The mean over clusters, and beside it the mean over items.

    Attributes:
        interval: Mean of cluster means; speaks of clusters like these.
        conditional: Mean of items as if they were independent; speaks of these clusters only.
    """

    interval: Interval
    conditional: Interval


def cluster_interval(
    values: ArrayLike,
    clusters: Sequence[object] | np.ndarray,
    *,
    level: float = 0.95,
    rng: np.random.Generator | int = 0,
    n_resamples: int = 4999,
) -> ClusterInterval:
    """Mean over clusters with an interval that counts clusters, not items.

    Args:
        values: One value an item, shape `[items]`; NaN are left out and counted.
        clusters: The cluster of each item, shape `[items]`, of any hashable kind.
        level: Confidence level.
        rng: Generator or seed of the bootstrap; not used under 20 clusters.
        n_resamples: Bootstrap resamples.

    Returns:
        The interval, and the conditional one beside it. Ends are NaN for a single cluster.

    Raises:
        InputError: Shapes differ, or values are infinite.

    Example:
        >>> both = cluster_interval([1, 1, 3, 3], ["a", "a", "b", "b"])
        >>> f"{both.interval:.1f}", f"{both.conditional:.1f}"
        ('2.0 [-10.7, 14.7]', '2.0 [0.2, 3.8]')
    """
    import numpy as np

    check_level(level)
    array = np.asarray(values, dtype=float)
    if array.ndim != 1 or np.isinf(array).any():
        raise InputError("values by cluster", expected="one finite number or NaN an item", found=f"shape {array.shape}")
    means = cluster_means(array[:, None], clusters)[0][:, 0]
    means = means[~np.isnan(means)]
    kept = array[~np.isnan(array)]
    missing = len(array) - len(kept)
    conditional = student(kept, level=level, n=len(kept), missing=missing, method=CONDITIONAL)
    if len(means) < BOOTSTRAP_FROM:
        method = "student-t on cluster means"
        interval = student(means, level=level, n=len(kept), missing=missing, clusters=len(means), method=method)
        return ClusterInterval(interval, conditional)
    low, high = _bootstrap_t(means, level, np.random.default_rng(rng), n_resamples)
    interval = Interval(float(means.mean()), low, high, level, "cluster bootstrap-t", len(kept), len(means), missing)
    return ClusterInterval(interval, conditional)


def paired_interval(
    first: ArrayLike,
    second: ArrayLike,
    clusters: Sequence[object] | np.ndarray,
    *,
    level: float = 0.95,
    rng: np.random.Generator | int = 0,
) -> ClusterInterval:
    """Mean of first − second over pairs, by cluster; a pair with a NaN on either side is left out and counted.

    Example:
        >>> f"{paired_interval([3, 4, 5], [1, 1, 1], ['a', 'b', 'c']).interval:.1f}"
        '3.0 [0.5, 5.5]'
    """
    import numpy as np

    one, other = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if one.shape != other.shape:
        raise InputError("paired values", expected=f"the same shape, {one.shape}", found=other.shape)
    return cluster_interval(one - other, clusters, level=level, rng=rng)


def cluster_means(
    values: Float[np.ndarray, "items cells"], clusters: Sequence[object] | np.ndarray
) -> tuple[Float[np.ndarray, "clusters cells"], list[object]]:
    """Mean of each cell over the items of each cluster that have it; NaN where none has.

    Returns:
        The means, and the clusters in order of first appearance.

    Raises:
        InputError: There is not one cluster an item.
    """
    import numpy as np

    labels = list(clusters)
    if len(labels) != len(values):
        raise InputError("clusters", expected=f"one for each of {len(values)} values", found=len(labels))
    order = {label: index for index, label in enumerate(dict.fromkeys(labels))}
    index = np.array([order[label] for label in labels], dtype=int)
    there = ~np.isnan(values)
    totals = np.zeros((len(order), values.shape[1]))
    counts = np.zeros_like(totals)
    np.add.at(totals, index, np.where(there, values, 0.0))
    np.add.at(counts, index, there)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(counts > 0, totals / counts, math.nan), list(order)


def _bootstrap_t(
    means: Float[np.ndarray, " clusters"], level: float, rng: np.random.Generator, n_resamples: int
) -> tuple[float, float]:
    """Ends of the bootstrap-t interval (Efron and Tibshirani 1993, ch. 12) of the mean of `means`."""
    import numpy as np

    count, centre = len(means), means.mean()
    error = means.std(ddof=1) / math.sqrt(count)
    if error == 0.0:
        return float(centre), float(centre)
    pivots = []
    rows = max(1, 4_000_000 // count)
    for start in range(0, n_resamples, rows):
        drawn = means[rng.integers(count, size=(min(rows, n_resamples - start), count))]
        errors = drawn.std(axis=1, ddof=1) / math.sqrt(count)
        with np.errstate(divide="ignore", invalid="ignore"):
            # A resample of one value only has no spread: its pivot is infinite, or 0 where it hits the centre.
            pivots.append(np.nan_to_num((drawn.mean(axis=1) - centre) / errors, nan=0.0, posinf=np.inf, neginf=-np.inf))
    tail = (1 - level) / 2
    lower, upper = np.quantile(np.concatenate(pivots), [tail, 1 - tail], method="inverted_cdf")
    return float(centre - upper * error), float(centre - lower * error)
