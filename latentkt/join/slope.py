"""A line through points that are uncertain in both coordinates: York's fit, with a bootstrap interval.

Ordinary least squares takes x for known; where log prior ratios are uncertain it pulls the slope towards 0. York's
method weighs each point by its own two errors (York et al. 2004, uncorrelated errors), and allows for scatter beyond
them: an extra variance of y, chosen so that the residuals are as large as their errors say.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from latentkt.errors import InputError

__all__ = ["Line", "errors_in_both"]

_LEAST = 4


@dataclass(frozen=True, slots=True)
class Line:
    """y = intercept + slope · x.

    Attributes:
        slope: Slope.
        slope_low: Lower end of its percentile bootstrap interval.
        slope_high: Upper end.
        intercept: Value at x = 0.
        intercept_low: Lower end.
        intercept_high: Upper end.
        scatter: Standard deviation of y beyond its errors.
        ordinary: Slope of ordinary least squares, for comparison.
        n: Points.
        level: Nominal coverage.
    """

    slope: float
    slope_low: float
    slope_high: float
    intercept: float
    intercept_low: float
    intercept_high: float
    scatter: float
    ordinary: float
    n: int
    level: float


def errors_in_both(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    x_error: NDArray[np.float64],
    y_error: NDArray[np.float64],
    *,
    cluster: NDArray[np.generic] | None = None,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
) -> Line:
    """Fit a line with errors in both coordinates.

    Args:
        x: Abscissas, shape (n,).
        y: Ordinates, shape (n,).
        x_error: Standard errors of x.
        y_error: Standard errors of y (0 where y is exact).
        cluster: Labels; clusters of points are resampled together. Points by themselves if None.
        level: Nominal coverage of the percentile bootstrap intervals.
        replicates: Bootstrap replicates.
        seed: Seed of the bootstrap.

    Raises:
        InputError: Fewer than 4 finite points, or all at one x.

    Example:
        >>> x = np.arange(12.0)
        >>> line = errors_in_both(x, 2 * x + 1, np.full(12, 0.1), np.full(12, 0.1), replicates=50)
        >>> round(line.slope, 6), round(line.intercept, 6)
        (2.0, 1.0)
    """
    table = np.stack([np.asarray(column, float) for column in (x, y, x_error, y_error)])
    if table.shape[1] < _LEAST or not np.isfinite(table).all() or np.ptp(table[0]) == 0:
        raise InputError(
            "no line through these points", expected="4 or more finite points at different x", found=table.shape
        )
    slope, intercept, scatter = _fit(table)
    labels = np.arange(table.shape[1]) if cluster is None else np.unique(cluster, return_inverse=True)[1]
    draws = _bootstrap(table, labels, replicates, np.random.default_rng(seed))
    tail = 100 * (1 - level) / 2
    lows, highs = np.nanpercentile(draws, [tail, 100 - tail], axis=0).tolist()
    ordinary = float(np.polyfit(table[0], table[1], 1)[0])
    return Line(slope, lows[0], highs[0], intercept, lows[1], highs[1], scatter, ordinary, table.shape[1], level)


def resamples(labels: NDArray[np.int64], replicates: int, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Rows of each bootstrap replicate: whole clusters, drawn with replacement.

    Args:
        labels: Cluster of each row, 0 … clusters − 1.
        replicates: How many.
        rng: Random numbers.
    """
    groups = [np.flatnonzero(labels == label) for label in range(labels.max() + 1)]
    for _ in range(replicates):
        yield np.concatenate([groups[i] for i in rng.integers(0, len(groups), len(groups))])


def _bootstrap(
    table: NDArray[np.float64], labels: NDArray[np.int64], replicates: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    draws = np.full((replicates, 2), np.nan)
    for row, chosen in enumerate(resamples(labels, replicates, rng)):
        sample = table[:, chosen]
        if np.ptp(sample[0]) > 0:
            draws[row] = _fit(sample)[:2]
    return draws


def _fit(table: NDArray[np.float64]) -> tuple[float, float, float]:
    """Slope, intercept and extra scatter: York's fit inside, the scatter by bisection outside."""
    x, y, x_error, y_error = table
    slope = float(np.polyfit(x, y, 1)[0])

    def excess(scatter: float, start: float) -> tuple[float, float, float]:
        slope, intercept = _york(x, y, x_error**2, y_error**2 + scatter**2, start)
        variance = y_error**2 + scatter**2 + slope**2 * x_error**2
        return float(((y - intercept - slope * x) ** 2 / variance).sum()) - (len(x) - 2), slope, intercept

    span = float(np.ptp(y))
    low, high = 1e-3 * span + 1e-9, span + 1e-9
    value, slope, intercept = excess(low, slope)
    if value <= 0:
        return slope, intercept, 0.0
    while high / low > 1.01:
        middle = math.sqrt(low * high)
        value, slope, intercept = excess(middle, slope)
        low, high = (middle, high) if value > 0 else (low, middle)
    return slope, intercept, middle


def _york(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    x_variance: NDArray[np.float64],
    y_variance: NDArray[np.float64],
    slope: float,
) -> tuple[float, float]:
    for _ in range(50):
        weight = 1 / (y_variance + slope**2 * x_variance)
        x_mean, y_mean = (weight @ x) / weight.sum(), (weight @ y) / weight.sum()
        u, v = x - x_mean, y - y_mean
        beta = weight * (u * y_variance + slope * v * x_variance)
        denominator = float((weight * beta) @ u)
        new = float((weight * beta) @ v) / denominator if denominator else slope
        slope, old = new, slope
        if abs(slope - old) <= 1e-7 * (1 + abs(old)):
            break
    return slope, float(y_mean - slope * x_mean)
