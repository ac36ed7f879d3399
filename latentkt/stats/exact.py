"""Exact tests of counts, and the Mantel–Haenszel odds ratio over strata."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from latentkt.errors import InputError
from latentkt.stats.interval import Interval, check_level

if TYPE_CHECKING:
    from jaxtyping import Int
    from numpy.typing import ArrayLike

__all__ = ["ExactTest", "MantelHaenszel", "binomial_test", "fisher_test", "mantel_haenszel", "mcnemar_test"]

Alternative = Literal["two-sided", "greater", "less"]


@dataclass(frozen=True, slots=True)
class ExactTest:
    """Result of an exact test.

    Attributes:
        statistic: What is estimated: a share (binomial), an odds ratio (Fisher: the sample's; McNemar: b / c).
        p: p value.
        n: Trials that the test rests on (McNemar: discordant pairs).
        method: Name of the test.
    """

    statistic: float
    p: float
    n: int
    method: str


@dataclass(frozen=True, slots=True)
class MantelHaenszel:
    """The odds ratio common to several 2 × 2 tables.

    Attributes:
        odds_ratio: Mantel and Haenszel's estimate with the interval of Robins, Breslow and Greenland (1986).
        statistic: Cochran–Mantel–Haenszel χ², 1 degree of freedom, without continuity correction.
        p: Its p value.
        strata: Tables that carry information.
        strata_empty: Tables left out because a row or a column is empty.
    """

    odds_ratio: Interval
    statistic: float
    p: float
    strata: int
    strata_empty: int


def binomial_test(successes: int, n: int, *, chance: float = 0.5, alternative: Alternative = "two-sided") -> ExactTest:
    """Exact test of a share against `chance`.

    Example:
        >>> round(binomial_test(60, 100).p, 4)
        0.0569
    """
    from scipy.stats import binomtest

    if not 0 <= successes <= n:
        raise InputError("a share", expected="0 ≤ successes ≤ n", found=f"{successes} of {n}")
    if n == 0:
        return ExactTest(math.nan, math.nan, 0, "exact binomial")
    p = binomtest(int(successes), int(n), chance, alternative=alternative).pvalue
    return ExactTest(successes / n, float(p), int(n), "exact binomial")


def mcnemar_test(only_first: int, only_second: int) -> ExactTest:
    """Exact test of two paired yes/no answers, from the pairs in which they differ.

    Args:
        only_first: Pairs where only the first is yes.
        only_second: Pairs where only the second is yes.

    Example:
        >>> mcnemar_test(8, 1).p
        0.0390625
    """
    both = only_first + only_second
    result = binomial_test(only_first, both)
    ratio = only_first / only_second if only_second else (math.inf if only_first else math.nan)
    return ExactTest(ratio, 1.0 if both == 0 else result.p, both, "McNemar exact")


def fisher_test(table: ArrayLike, *, alternative: Alternative = "two-sided") -> ExactTest:
    """Fisher's exact test of a 2 × 2 table [[a, b], [c, d]].

    Example:
        >>> round(fisher_test([[8, 2], [1, 5]]).p, 4)
        0.035
    """
    from scipy.stats import fisher_exact

    counts = _tables(table, (2, 2))
    found = fisher_exact(counts, alternative=alternative)
    return ExactTest(float(found.statistic), float(found.pvalue), int(counts.sum()), "Fisher exact")


def mantel_haenszel(tables: ArrayLike, *, level: float = 0.95) -> MantelHaenszel:
    """The odds ratio common to 2 × 2 tables [[a, b], [c, d]], one a stratum (family, option order).

    Args:
        tables: Counts, shape `[strata, 2, 2]`.
        level: Confidence level of the odds ratio.

    Raises:
        InputError: Another shape, or counts that are negative or not whole.

    Example:
        >>> f"{mantel_haenszel([[[10, 5], [5, 10]], [[8, 2], [4, 6]]]).odds_ratio:.1f}"
        '4.6 [1.4, 15.5]'
    """
    counts = _tables(tables, (None, 2, 2)).astype(float)
    informative = (counts.sum(axis=1).min(axis=1) > 0) & (counts.sum(axis=2).min(axis=1) > 0)
    kept = counts[informative]
    (a, b), (c, d) = kept.transpose(1, 2, 0)
    n = a + b + c + d
    r, s = a * d / n, b * c / n
    ratio, log_error = _robins_breslow_greenland(a, b, c, d, n, r, s)
    interval = _ratio_interval(ratio, log_error, check_level(level), int(kept.sum()), len(kept))
    variance = ((a + b) * (c + d) * (a + c) * (b + d) / (n**2 * np.maximum(n - 1, 1))).sum()
    excess = (a - (a + b) * (a + c) / n).sum()
    statistic = float(excess**2 / variance) if variance > 0 else math.nan
    from scipy.stats import chi2

    return MantelHaenszel(interval, statistic, float(chi2.sf(statistic, 1)), len(kept), int((~informative).sum()))


def _robins_breslow_greenland(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray, n: np.ndarray, r: np.ndarray, s: np.ndarray
) -> tuple[float, float]:
    """Common odds ratio Σr / Σs and the standard error of its logarithm."""
    total_r, total_s = float(r.sum()), float(s.sum())
    if total_s == 0.0 or total_r == 0.0:
        ratio = math.nan if total_r == total_s else (math.inf if total_s == 0.0 else 0.0)
        return ratio, math.nan
    p, q = (a + d) / n, (b + c) / n
    variance = (
        (p * r).sum() / (2 * total_r**2)
        + (p * s + q * r).sum() / (2 * total_r * total_s)
        + (q * s).sum() / (2 * total_s**2)
    )
    return total_r / total_s, math.sqrt(float(variance))


def _ratio_interval(ratio: float, log_error: float, level: float, n: int, strata: int) -> Interval:
    from scipy.stats import norm

    factor = math.exp(float(norm.ppf((1 + level) / 2)) * log_error)
    method = "Mantel-Haenszel, Robins-Breslow-Greenland"
    return Interval(ratio, ratio / factor, ratio * factor, level, method, n, strata)


def _tables(tables: ArrayLike, shape: tuple[int | None, ...]) -> Int[np.ndarray, "..."]:
    counts = np.asarray(tables)
    fits = counts.ndim == len(shape) and all(
        want is None or want == have for want, have in zip(shape, counts.shape, strict=True)
    )
    if not fits or (counts < 0).any() or (counts != np.round(counts)).any():
        raise InputError("a table of counts", expected=f"whole numbers ≥ 0 of shape {shape}", found=counts.tolist())
    return counts.astype(int)
