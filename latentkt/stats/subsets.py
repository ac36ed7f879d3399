"""Is a part of the units unlike the whole? Exact up to sampling: whole units are drawn, whatever they hold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latentkt.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["SubsetTest", "subset_test"]


@dataclass(frozen=True, slots=True)
class SubsetTest:
    """Result of comparing a marked part of the units with random parts of its size.

    Attributes:
        total: Sum over the marked units.
        expected: Its mean over random parts: marked units × mean over all units.
        p: Two-sided p value: twice the smaller tail, at most 1. Sampled, so never 0.
        units: Units in all.
        marked: Units marked.
        draws: Random parts drawn.
    """

    total: float
    expected: float
    p: float
    units: int
    marked: int
    draws: int


def subset_test(
    counts: ArrayLike, marked: ArrayLike, *, rng: np.random.Generator | int = 0, draws: int = 9999
) -> SubsetTest:
    """Test whether marked units hold more, or less, than units drawn at random.

    A unit is a question, its count the number of settings that miss it, its mark whether the wrong candidate is the
    more famous one. Drawing questions rather than answers keeps what settings have in common on one question.

    Args:
        counts: Whole number of each unit, shape `[units]`.
        marked: Whether each unit is marked, shape `[units]`.
        rng: Generator or seed.
        draws: Random parts.

    Raises:
        InputError: Shapes differ, or counts are negative or not whole.

    Example:
        >>> test = subset_test([3, 3, 2, 0, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0, 0, 0])
        >>> test.total, test.expected, test.p < 0.1  # 1 of the 56 parts of three units holds as much
        (8.0, 3.0, True)
    """
    values, flags = np.asarray(counts), np.asarray(marked, dtype=bool)
    if values.shape != flags.shape or values.ndim != 1 or (values < 0).any() or (values != np.round(values)).any():
        raise InputError("counts by unit", expected="whole numbers, one mark each", found=f"shape {values.shape}")
    units, size = len(values), int(flags.sum())
    total = float(values[flags].sum())
    if units == 0 or size in (0, units):
        return SubsetTest(total, total, math.nan, units, size, 0)
    # Which units are drawn does not matter, only how many of each count: a multivariate hypergeometric draw.
    kinds, numbers = np.unique(values, return_counts=True)
    drawn = np.random.default_rng(rng).multivariate_hypergeometric(numbers, size, size=draws) @ kinds
    tails = ((drawn <= total).sum(), (drawn >= total).sum())
    p = min(1.0, 2 * (int(min(tails)) + 1) / (draws + 1))
    return SubsetTest(total, size * float(values.mean()), p, units, size, draws)
