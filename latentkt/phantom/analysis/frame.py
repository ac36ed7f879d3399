"""Judged answers as the table that every analysis starts from.

Two conventions run through all tables (Section 5.3 of the paper uses the second for models that reason):

- `all`: every reply counts. One that did not come to an answer did not abstain.
- `answered`: replies that came to an answer, cut off at its end or not.

Calls that failed are no replies; verdicts that cannot be read are no verdicts. Both are counted beside each rate, and
`rate_pct_min` and `rate_pct_max` say where the rate would lie if all unreadable verdicts had been one or the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from latentkt.errors import InputError
from latentkt.phantom.answers import Answer, answers_frame
from latentkt.stats import clustered_share

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CONVENTIONS", "counted", "judged_frame", "percent", "share_row"]

CONVENTIONS = ("all", "answered")


def judged_frame(answers: Sequence[Answer]) -> pd.DataFrame:
    """One row an answer: its fields, and `abstains` (1, 0, or NaN where the verdict cannot be read).

    Raises:
        InputError: There are no answers, one is not judged yet, or a setting was judged by several judges.
    """
    if not answers:
        raise InputError("no answers to analyse", expected="at least one")
    bare = [answer for answer in answers if answer.judgement is None]
    if bare:
        raise InputError(
            f"{len(bare)} answers are not judged",
            expected="a verdict each",
            found=f"none for {bare[0].prompt_id!r} of {bare[0].setting!r}",
            fix="run `latentkt phantom judge` first",
        )
    frame = answers_frame(answers)
    judges = frame.groupby("setting")["judge"].nunique()
    if (judges > 1).any():
        name = str(judges.idxmax())
        found = ", ".join(sorted(frame.loc[frame["setting"] == name, "judge"].unique()))
        raise InputError(
            f"setting {name!r} was judged by several judges",
            expected="one judge a setting",
            found=found,
            fix="analyse the files of one judge at a time",
        )
    verdict = frame["judgement"].map({"abstained": 1.0, "answered": 0.0, "no_answer": 0.0})
    return frame.assign(abstains=verdict, failed=frame["error"].notna())


def counted(frame: pd.DataFrame, convention: str) -> pd.DataFrame:
    """The replies that a convention counts, unreadable verdicts among them.

    Raises:
        InputError: Another convention.
    """
    if convention not in CONVENTIONS:
        raise InputError("convention", expected=" or ".join(CONVENTIONS), found=convention)
    replies = frame[~frame["failed"]]
    return replies if convention == "all" else replies[replies["judgement"] != "no_answer"]


def share_row(rows: pd.DataFrame, name: str = "rate", *, of: str = "answers") -> dict[str, float]:
    """The share of replies that do not abstain (`of="abstains"`: that do), with its interval.

    Replies of one group (a seed and what was made of it) are one cluster.
    """
    read = rows[rows["abstains"].notna()]
    values = read["abstains"] if of == "abstains" else 1 - read["abstains"]
    found = percent(values.to_numpy(float), read["group"].tolist(), name)
    hidden, total = len(rows) - len(read), len(rows)
    low, high = (100 * (values.sum() + extra) / total if total else np.nan for extra in (0, hidden))
    return {
        "n": len(read),
        "concepts": int(read["concept_id"].nunique()),
        "unparsable": hidden,
        **found,
        f"{name}_pct_min": float(low),
        f"{name}_pct_max": float(high),
    }


def percent(values: np.ndarray, clusters: Sequence[object], name: str) -> dict[str, float]:
    """A clustered share in percent, under `NAME_pct`, `NAME_pct_low`, `NAME_pct_high`."""
    interval = clustered_share(values, list(clusters))
    return {
        f"{name}_pct": 100 * interval.value,
        f"{name}_pct_low": 100 * interval.low,
        f"{name}_pct_high": 100 * interval.high,
    }
