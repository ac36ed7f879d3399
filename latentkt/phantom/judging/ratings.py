"""Ratings of concepts by people: how plausible, how specific? Made concepts against real ones, by Mann and Whitney."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from latentkt.errors import DataError, InputError
from latentkt.phantom.judging.labels import sheet_rows
from latentkt.stats import auroc, holm

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SCALES", "Rating", "compare_ratings", "read_ratings"]

SCALES = ("plausibility", "specificity")
LOW, HIGH = 1, 5


@dataclass(frozen=True, slots=True)
class Rating:
    """What one person thinks of one concept.

    Attributes:
        concept: The concept.
        kind: `term` or `entity`.
        group: What is compared, such as `made` and `rare`.
        rater: Who.
        scores: Scale -> 1 to 5; a scale that was left blank is not in it.
    """

    concept: str
    kind: str
    group: str
    rater: str
    scores: dict[str, float]


def read_ratings(path: str | Path, *, scales: Sequence[str] = SCALES) -> list[Rating]:
    """Read ratings: a CSV with `concept`, `kind`, `group`, `rater` and a column a scale, whole numbers from 1 to 5.

    Raises:
        InputError: There is no such file.
        DataError: A column is missing, a rating is no whole number from 1 to 5, a concept stands in two groups, or
            somebody rated a concept twice.
    """
    ratings: list[Rating] = []
    seen: set[tuple[str, ...]] = set()
    groups: dict[tuple[str, str], str] = {}
    for number, row in enumerate(sheet_rows(path, ("concept", "kind", "group", "rater", *scales)), start=2):
        where = f"{path}, line {number}"
        concept, person = (row["kind"], row["concept"]), row["rater"]
        if (*concept, person) in seen or groups.setdefault(concept, row["group"]) != row["group"]:
            raise DataError(
                f"{where}: {row['concept']!r} again", expected="one group a concept, one rating a person", found=row
            )
        seen.add((*concept, person))
        scores = {scale: _score(row[scale], where, scale) for scale in scales if row[scale]}
        ratings.append(Rating(row["concept"], row["kind"], row["group"], person, scores))
    return ratings


def _score(text: str, where: str, scale: str) -> float:
    if text not in {str(score) for score in range(LOW, HIGH + 1)}:
        raise DataError(f"{where}: {scale} is wrong", expected=f"{LOW} to {HIGH}, or blank", found=repr(text))
    return float(text)


def compare_ratings(ratings: Sequence[Rating], *, made: str = "made", real: str = "rare") -> pd.DataFrame:
    """Compare two groups of concepts on each scale, kind by kind.

    The unit is the concept: its mean over raters. The two-sided Mann–Whitney test allows for ties; beside it stands the
    chance that a made concept is rated above a real one (½: none), with DeLong's interval. p values are adjusted by
    Holm over all rows.

    Args:
        ratings: See `read_ratings`.
        made: Name of the first group.
        real: Name of the second.

    Returns:
        One row a kind and scale: `n_made`, `n_real`, `mean_made`, `mean_real`, `u` (of the first group), `p`, `p_holm`,
        `above`, `above_low`, `above_high`, `raters`.

    Raises:
        InputError: A group is not among the ratings.
    """
    import pandas as pd
    from scipy.stats import mannwhitneyu

    groups = {rating.group for rating in ratings}
    if not {made, real} <= groups:
        raise InputError("groups of ratings", expected=f"{made} and {real}", found=", ".join(sorted(groups)))
    rows = []
    for kind in sorted({rating.kind for rating in ratings}):
        for scale in sorted({scale for rating in ratings for scale in rating.scores}):
            first, second = (_means(ratings, kind, group, scale) for group in (made, real))
            enough = len(first) > 0 and len(second) > 0
            test = mannwhitneyu(first, second, alternative="two-sided") if enough else None
            area = auroc(np.concatenate([first, second]), [True] * len(first) + [False] * len(second))
            rows.append(
                {
                    "kind": kind,
                    "scale": scale,
                    "n_made": len(first),
                    "n_real": len(second),
                    "mean_made": float(first.mean()) if len(first) else math.nan,
                    "mean_real": float(second.mean()) if len(second) else math.nan,
                    "u": float(test.statistic) if test else math.nan,
                    "p": float(test.pvalue) if test else math.nan,
                    "above": area.value,
                    "above_low": area.low,
                    "above_high": area.high,
                    "raters": len({rating.rater for rating in ratings if rating.kind == kind}),
                }
            )
    table = pd.DataFrame(rows)
    return table.assign(p_holm=holm(table["p"].to_numpy()))


def _means(ratings: Sequence[Rating], kind: str, group: str, scale: str) -> np.ndarray:
    scores: dict[str, list[float]] = {}
    for rating in ratings:
        if rating.kind == kind and rating.group == group and scale in rating.scores:
            scores.setdefault(rating.concept, []).append(rating.scores[scale])
    return np.array([float(np.mean(each)) for each in scores.values()])
