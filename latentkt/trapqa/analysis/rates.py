"""Rates in percent with their intervals, and 2 × 2 tables of errors, from rows of one setting.

A row is an answer. Where a question was asked in both orders of its options it has two: rates then use both, with
intervals that count questions; exact tests use one of the two, drawn from a hash of the question's id.
"""

from __future__ import annotations

import math
import zlib
from typing import TYPE_CHECKING

import numpy as np

from latentkt.stats import Interval, clustered_share, fisher_test

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["fisher_cells", "interval_cells", "one_a_question", "rate", "ratio_of", "two_by_two"]

Cells = dict[str, float]


def rate(key: str, values: np.ndarray | pd.Series, questions: np.ndarray | pd.Series) -> Cells:
    """A share in percent under `key`, its interval under `key_low` and `key_high`; NaN for no values.

    Example:
        >>> cells = rate("hall_pct", np.array([1, 0, 0, 1]), np.array([*"abcd"]))
        >>> {key: round(value, 2) for key, value in cells.items()}
        {'hall_pct': 50.0, 'hall_pct_low': 15.0, 'hall_pct_high': 85.0}
    """
    array = np.asarray(values, dtype=float)
    if not len(array):
        return interval_cells(key, Interval(math.nan, math.nan, math.nan, 0.95, "wilson", 0))
    return interval_cells(key, clustered_share(array, np.asarray(questions)), 100.0)


def interval_cells(key: str, interval: Interval, factor: float = 1.0) -> Cells:
    """An estimate and the ends of its interval as three cells."""
    ends = {key: interval.value, f"{key}_low": interval.low, f"{key}_high": interval.high}
    return {name: factor * value for name, value in ends.items()}


def one_a_question(rows: pd.DataFrame) -> pd.DataFrame:
    """One row of each question of one setting; which one depends on the question's id alone."""
    if rows["question"].is_unique:
        return rows
    ordered = rows.sort_values("order", key=lambda column: column.astype(str), kind="stable")
    groups = ordered.groupby("question", sort=False)
    place, size = groups.cumcount().to_numpy(), groups["question"].transform("size").to_numpy()
    drawn = np.array([zlib.crc32(str(question).encode()) for question in ordered["question_id"]])
    return ordered[place == drawn % size].sort_index()


def two_by_two(rows: pd.DataFrame, exposed: np.ndarray) -> np.ndarray:
    """[[exposed wrong, exposed right], [other wrong, other right]]."""
    wrong = rows["wrong"].to_numpy() == 1.0
    flags = np.asarray(exposed, dtype=bool)
    return np.array(
        [[(flags & wrong).sum(), (flags & ~wrong).sum()], [(~flags & wrong).sum(), (~flags & ~wrong).sum()]]
    )


def ratio_of(table: np.ndarray) -> float:
    """The sample's odds ratio; NaN where a whole row or column is empty."""
    (a, b), (c, d) = table
    if b * c == 0:
        return math.inf if a * d else math.nan
    return float(a * d / (b * c))


def fisher_cells(rows: pd.DataFrame, exposed: np.ndarray, prefix: str, p_name: str) -> Cells:
    """Odds ratio of an error, exposed over not, and Fisher's exact p, on one row a question."""
    marked = one_a_question(rows.assign(_exposed=np.asarray(exposed, dtype=bool)))
    table = two_by_two(marked, marked["_exposed"].to_numpy())
    empty = not (table.sum(axis=0).all() and table.sum(axis=1).all())
    p = math.nan if empty else fisher_test(table).p
    return {f"{prefix}odds_ratio": math.nan if empty else ratio_of(table), f"{prefix}{p_name}": p}
