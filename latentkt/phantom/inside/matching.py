"""Concepts matched so that length and frequency of their parts cannot tell them apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latentkt.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from jaxtyping import Float

__all__ = ["COVARIATES", "Matched", "balance", "covariates", "match_concepts"]

COVARIATES = ("tokens", "words", "log_frequency")


@dataclass(frozen=True, slots=True)
class Matched:
    """Pairs of rows, one of each side.

    Attributes:
        ones: Rows labelled 1.
        zeros: Their partners, in the same order.
        unmatched: Rows of the two sides for which there was no partner.
        caliper: Largest difference of mean log frequency within a pair, nats.
    """

    ones: tuple[int, ...]
    zeros: tuple[int, ...]
    unmatched: tuple[int, int]
    caliper: float


def covariates(
    texts: Sequence[str], tokens: Sequence[Sequence[int]], log_frequency: Sequence[float]
) -> Float[np.ndarray, "concept 3"]:
    """Number of tokens, number of words, mean log frequency of the tokens (nats), one row a concept."""
    return np.array(
        [[len(ids), len(text.split()), value] for text, ids, value in zip(texts, tokens, log_frequency, strict=True)]
    )


def match_concepts(
    values: Float[np.ndarray, "concept 3"],
    ones: Sequence[int],
    zeros: Sequence[int],
    *,
    strata: Sequence[object] | None = None,
    caliper: float = 0.25,
    limit: int | None = None,
    seed: int = 0,
) -> Matched:
    """Pair rows of two sides: the same number of tokens and of words, and nearly the same mean log frequency.

    Within each combination of the two numbers (and of `strata`) the pairs are those with the smallest sum of
    differences in frequency (an assignment, not a greedy choice); pairs further apart than the caliper are dropped.

    Args:
        values: See `covariates`.
        ones: Rows labelled 1.
        zeros: Rows labelled 0.
        strata: What else must be the same within a pair, such as the category; one a row.
        caliper: In nats of mean log frequency.
        limit: At most so many pairs, drawn by seed.
        seed: Of that draw.

    Raises:
        InputError: A side is empty, or the caliper is not above 0.

    Example:
        >>> rows = np.array([[2, 1, -5.0], [2, 1, -9.0], [2, 1, -5.1], [3, 1, -5.0]])
        >>> match_concepts(rows, [0, 1], [2, 3])
        Matched(ones=(0,), zeros=(2,), unmatched=(1, 1), caliper=0.25)
    """
    if not caliper > 0 or not len(ones) or not len(zeros):
        raise InputError(
            "concepts to match",
            expected="two sides, and a caliper above 0",
            found=f"{len(ones)}, {len(zeros)}, {caliper}",
        )
    pairs: list[tuple[int, int]] = []
    keys = [(*values[row, :2], "" if strata is None else str(strata[row])) for row in range(len(values))]
    for stratum in sorted({keys[row] for row in ones}):
        first, second = ([row for row in side if keys[row] == stratum] for side in (ones, zeros))
        pairs += _assigned(values[:, 2], first, second, caliper) if second else []
    kept = sorted(pairs)
    if limit is not None and len(kept) > limit:
        drawn = np.random.default_rng(seed).permutation(len(kept))[:limit]
        kept = [kept[at] for at in sorted(drawn)]
    left = (len(ones) - len(pairs), len(zeros) - len(pairs))
    return Matched(tuple(a for a, _ in kept), tuple(b for _, b in kept), left, caliper)


def _assigned(frequency: np.ndarray, ones: list[int], zeros: list[int], caliper: float) -> list[tuple[int, int]]:
    from scipy.optimize import linear_sum_assignment

    apart = np.abs(frequency[ones][:, None] - frequency[zeros][None, :])
    # What lies beyond the caliper costs the same wherever it lies: it is taken only where nothing else is left.
    first, second = linear_sum_assignment(np.where(apart <= caliper, apart, 1e3))
    return [(ones[a], zeros[b]) for a, b in zip(first, second, strict=True) if apart[a, b] <= caliper]


def balance(
    values: Float[np.ndarray, "concept 3"], ones: Sequence[int], zeros: Sequence[int], matched: Matched
) -> pd.DataFrame:
    """Means of the covariates on both sides, before and after matching.

    Returns:
        One row a covariate: `mean_one`, `mean_zero`, `difference` (standardised by the spread of all rows) before and,
        with `_matched`, after; `pairs`, `unmatched_one`, `unmatched_zero`.
    """
    import pandas as pd

    rows = []
    everything = [*ones, *zeros]
    for column, name in enumerate(COVARIATES):
        spread = float(values[everything, column].std()) or 1.0
        row: dict[str, object] = {"covariate": name}
        for suffix, first, second in (("", ones, zeros), ("_matched", matched.ones, matched.zeros)):
            means = [float(values[list(side), column].mean()) if len(side) else np.nan for side in (first, second)]
            row |= {f"mean_one{suffix}": means[0], f"mean_zero{suffix}": means[1]}
            row[f"difference{suffix}"] = (means[0] - means[1]) / spread
        row |= {"pairs": len(matched.ones)}
        row |= dict(zip(("unmatched_one", "unmatched_zero"), matched.unmatched, strict=True))
        rows.append(row)
    return pd.DataFrame(rows)
