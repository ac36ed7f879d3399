"""The log ratio of two counts, with its uncertainty: independent units, or clusters that hold many of them.

Counts of one path come in bursts: one book holds half the mentions of a person. An interval that takes every unit for
independent is then far too narrow, and a bootstrap of few clusters collapses; `auto` takes the wider of the two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from latentkt.corpus.tally import REPLICATES, SKETCH, Tally
from latentkt.errors import InputError

__all__ = ["METHODS", "LogRatio", "log_ratio"]

METHODS = ("auto", "multinomial", "cluster")
BOOTSTRAP = 1000
FEW_CLUSTERS = 10
Ends = tuple[float, float]
_MIDDLE = 100 * special.ndtr([-1.0, 1.0])  # percentiles between which a normal law has one standard deviation each way


@dataclass(frozen=True, slots=True)
class LogRatio:
    """log(a/b) of two counts, natural logarithm.

    Attributes:
        estimate: ψ(a + ½) − ψ(b + ½): the posterior mean under Jeffreys' prior; finite for zero counts.
        low: Lower end of the interval; minus infinity where only an upper bound exists (a is 0).
        high: Upper end; infinity where only a lower bound exists (b is 0).
        method: ``multinomial`` or ``cluster``: what the interval rests on (for ``auto`` the wider one).
        level: Nominal coverage.
        se_multinomial: Standard error if units were independent.
        se_cluster: Standard error by resampling clusters; NaN where there are no clusters.
        degrees: Degrees of freedom of `se_cluster`: those of Student's critical value; NaN where there are no clusters.
        design_effect: (se_cluster / se_multinomial)², NaN without clusters.
        numerator: a.
        denominator: b.
        clusters: Clusters that hold any of the units; at most 16 where clusters were dissolved.
        censored: Whether a count is 0, so that one end is a one-sided bound at the same level.
        few_clusters: Whether fewer than 10 clusters support the ratio: its interval is then not to be trusted.
    """

    estimate: float
    low: float
    high: float
    method: str
    level: float
    se_multinomial: float
    se_cluster: float
    degrees: float
    design_effect: float
    numerator: int
    denominator: int
    clusters: int
    censored: bool
    few_clusters: bool


def log_ratio(
    tally: Tally, top: int, bottom: int, *, method: str = "auto", level: float = 0.95, clustered: bool = True
) -> LogRatio:
    """Log of the ratio of two cells of a tally.

    Args:
        tally: The counts.
        top: Cell of the numerator.
        bottom: Cell of the denominator.
        method: ``multinomial``, ``cluster`` or ``auto`` (the wider).
        level: Nominal coverage of the interval.
        clustered: Whether the clusters of the tally mean something.

    Raises:
        InputError: An unknown method or level, or ``cluster`` without clusters.
    """
    if method not in METHODS or not 0 < level < 1:
        raise InputError("bad interval", expected=f"{' | '.join(METHODS)} and 0 < level < 1", found=(method, level))
    if method == "cluster" and not clustered:
        raise InputError("no clusters were counted", expected="counts with clusters", found="--cluster none")
    a, b = tally.total(top), tally.total(bottom)
    clusters = tally.supporting_clusters([top, bottom]) if clustered else 0
    found = _cluster_error(tally, top, bottom) if clustered else _Clustered(math.nan, math.nan, math.nan)
    se_multinomial = math.sqrt(float(special.polygamma(1, a + 0.5) + special.polygamma(1, b + 0.5)))
    estimate = float(special.digamma(a + 0.5) - special.digamma(b + 0.5))
    if a == 0 or b == 0:
        chosen, (low, high) = _one_sided(a, b, level, found.units, method)
    else:
        half = float(stats.t.ppf((1 + level) / 2, found.degrees)) * found.error
        chosen, (low, high) = _two_sided(
            {"multinomial": _multinomial_interval(a, b, level), "cluster": (estimate - half, estimate + half)}, method
        )
    effect = (found.error / se_multinomial) ** 2 if clustered else math.nan
    return LogRatio(
        estimate, low, high, chosen, level, se_multinomial, found.error, found.degrees, effect, a, b, clusters,
        a == 0 or b == 0, clustered and clusters < FEW_CLUSTERS,
    )  # fmt: skip


def _two_sided(intervals: dict[str, Ends], method: str) -> tuple[str, Ends]:
    """The interval of a method, and for ``auto`` the wider one (multinomial where there are no clusters)."""
    if method == "auto":
        cluster, plain = (high - low for low, high in (intervals["cluster"], intervals["multinomial"]))
        method = "cluster" if cluster > plain else "multinomial"
    return method, intervals[method]


def _multinomial_interval(a: int, b: int, level: float) -> tuple[float, float]:
    """Equal-tailed under Jeffreys' prior: a/(a+b) ~ Beta(a + ½, b + ½), so the ratio is the odds of it."""
    tail = (1 - level) / 2
    ends = stats.beta.ppf([tail, 1 - tail], a + 0.5, b + 0.5)
    low, high = special.logit(np.clip(ends, 1e-300, 1 - 1e-16))
    return float(low), float(high)


def _one_sided(a: int, b: int, level: float, units: float, method: str) -> tuple[str, Ends]:
    """One-sided bound where a count is 0: exact binomial on the units, or on the fewer that clusters are worth.

    What was not seen may come in bursts as large as those of what was seen.
    """
    if a == 0 and b == 0:
        return "multinomial" if method == "auto" else method, (-math.inf, math.inf)
    clustered = method == "cluster" or (method == "auto" and units < a + b)
    n = max(units, 1.0) if clustered else float(a + b)
    limit = math.log(math.expm1(-math.log1p(-level) / n))  # log odds of 1 − (1 − level)^(1/n), a little above 3/n
    return "cluster" if clustered else "multinomial", (-math.inf, limit) if a == 0 else (-limit, math.inf)


@dataclass(frozen=True, slots=True)
class _Clustered:
    """What clusters say of a ratio: standard error, degrees of freedom, independent units that the counts are worth."""

    error: float
    degrees: float
    units: float


def _cluster_error(tally: Tally, top: int, bottom: int) -> _Clustered:
    """Standard error of the log ratio over Poisson resamples of the clusters, and what it rests on.

    The standard error is half the width of the middle 68 % of the replicates: the value of a replicate in which a path
    has lost all its clusters is set by the ½ alone, and must not weigh in.
    """
    cells = [top, bottom]
    clusters = tally.supporting_clusters(cells)
    if not clusters:
        return _Clustered(0.0, 1.0, 0.0)
    counts = None if tally.dissolved else tally.by_cluster(cells)
    sums = tally.replicate_sums(cells) if counts is None else _resample(counts)
    ratios = special.digamma(sums[:, 0] + 0.5) - special.digamma(sums[:, 1] + 0.5)
    low, high = np.percentile(ratios, _MIDDLE)
    error = float(high - low) / 2
    if counts is None:
        known = float(REPLICATES if clusters >= SKETCH else clusters)
        return _Clustered(error, max(known - 1, 1.0), 1 / error**2 if error else math.inf)
    shares = counts.sum(axis=1) / counts.sum()
    return _Clustered(error, max(_degrees(counts), 1.0), 1 / float((shares**2).sum()))


def _degrees(counts: NDArray[np.int64]) -> float:
    """Degrees of freedom of the variance of the log ratio: 2·V² / Var(V), at most one fewer than there are clusters.

    V = Σ d² over clusters, d being a cluster's share of the numerator less its share of the denominator; V itself
    varies by Σ d⁴. A path that rests on one cluster leaves about two, whatever number the other path has.
    """
    with np.errstate(invalid="ignore"):
        shares = np.nan_to_num(counts / counts.sum(axis=0))
    squares = (shares[:, 0] - shares[:, 1]) ** 2
    fourth = float((squares**2).sum())
    bound = float(len(counts) - 1)
    return min(2 * float(squares.sum()) ** 2 / fourth, bound) if fourth else bound


def _resample(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sums under Poisson(1) weights of the clusters; the same for the same counts."""
    rng = np.random.default_rng(BOOTSTRAP)
    weights = rng.poisson(1.0, (BOOTSTRAP, len(counts)))
    return weights @ counts
