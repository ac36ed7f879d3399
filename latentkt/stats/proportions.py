"""Intervals of a share: Wilson's score interval, and the exact one of Clopper and Pearson."""

from __future__ import annotations

import math
from typing import Literal

from latentkt.errors import InputError
from latentkt.stats.interval import Interval, check_level

__all__ = ["clopper_pearson", "wilson"]


def wilson(successes: int, n: int, *, level: float = 0.95) -> Interval:
    """Wilson's score interval of a share (Wilson 1927), for reports: its coverage is near the level on average.

    Args:
        successes: Trials that succeeded.
        n: Trials.
        level: Confidence level.

    Returns:
        The share and its interval; all NaN for no trials.

    Raises:
        InputError: The counts are not 0 ≤ successes ≤ n.

    Example:
        >>> f"{wilson(45, 90):.0%}"
        '50 % [40, 60]'
    """
    return _share(successes, n, level, "wilson")


def clopper_pearson(successes: int, n: int, *, level: float = 0.95) -> Interval:
    """The exact interval of a share (Clopper and Pearson 1934): its coverage is never under the level.

    Args, returns and errors are those of `wilson`.

    Example:
        >>> f"{clopper_pearson(0, 10):.3f}"
        '0.000 [0.000, 0.308]'
    """
    return _share(successes, n, level, "exact")


def _share(successes: int, n: int, level: float, method: Literal["wilson", "exact"]) -> Interval:
    from scipy.stats import binomtest

    name = {"wilson": "wilson", "exact": "clopper-pearson"}[method]
    if not 0 <= successes <= n:
        raise InputError("a share", expected="0 ≤ successes ≤ n", found=f"{successes} of {n}")
    if n == 0:
        return Interval(math.nan, math.nan, math.nan, level=check_level(level), method=name, n=0)
    ends = binomtest(int(successes), int(n)).proportion_ci(confidence_level=check_level(level), method=method)
    return Interval(successes / n, float(ends.low), float(ends.high), level=level, method=name, n=int(n))
