"""How well a score ranks yes above no."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from latentkt.errors import InputError
from latentkt.stats.interval import Interval, check_level

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["auroc"]


def auroc(scores: ArrayLike, positive: ArrayLike, *, level: float = 0.95) -> Interval:
    """Area under the ROC curve: the chance that a positive outranks a negative, ties counting half.

    The interval is DeLong's (1988) on the logit scale, so it stays inside 0 to 1.

    Args:
        scores: One number each, shape `[n]`.
        positive: Whether each is a positive, shape `[n]`.
        level: Confidence level.

    Returns:
        The area; NaN without both kinds, ends NaN where it is 0 or 1 or a kind has one member.

    Raises:
        InputError: Shapes differ, or a score is NaN.

    Example:
        >>> f"{auroc([1, 2, 3, 4, 5, 6], [0, 0, 1, 0, 1, 1]):.2f}"
        '0.89 [0.26, 0.99]'
    """
    from scipy.stats import norm, rankdata

    values, yes = np.asarray(scores, dtype=float), np.asarray(positive, dtype=bool)
    if values.shape != yes.shape or values.ndim != 1 or np.isnan(values).any():
        raise InputError("scores", expected="one number each, none of them NaN", found=f"shape {values.shape}")
    high, low = values[yes], values[~yes]
    m, n = len(high), len(low)
    check_level(level)
    if m == 0 or n == 0:
        return Interval(math.nan, math.nan, math.nan, level, "DeLong, logit", m + n)
    ranks = rankdata(np.concatenate([high, low]))
    # Negatives below each positive, and positives below each negative, as shares.
    above = (ranks[:m] - rankdata(high)) / n
    below = (ranks[m:] - rankdata(low)) / m
    area = float(above.mean())
    ends = (math.nan, math.nan)
    if min(m, n) > 1 and 0.0 < area < 1.0:
        error = math.sqrt(above.var(ddof=1) / m + below.var(ddof=1) / n)
        half = float(norm.ppf((1 + level) / 2)) * error / (area * (1 - area))
        logit = math.log(area / (1 - area))
        ends = (_expit(logit - half), _expit(logit + half))
    return Interval(area, *ends, level, "DeLong, logit", m + n)


def _expit(x: float) -> float:
    from scipy.special import expit

    return float(expit(x))
