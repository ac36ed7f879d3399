"""Dose and response: what becomes of answer, constraint effect and verdict as a question is asked more openly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latentkt.errors import DataError
from latentkt.stats import cluster_interval, clustered_share

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.stats import Interval

__all__ = ["dose_response"]

NEEDED = ("item", "group", "level", "answer", "constraint", "log_odds", "constraint_effect")
SHARES = {
    "solved": ("answer", ("solved",)),
    "shortcut followed": ("answer", ("shortcut followed",)),
    "undecided": ("answer", ("undecided",)),
    "read": ("constraint", ("read but outweighed", "read and decisive")),
    "decisive": ("constraint", ("read and decisive",)),
    "not measurable": ("constraint", ("not measurable",)),
}
"""Measure -> the verdict's column, and the values that count; `read` and `decisive`: of what is measurable."""
MEANS = ("log_odds", "constraint_effect")


def dose_response(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Shares and means by level of explicitness, and how they change from level to level inside the same group.

    Args:
        verdicts: Table of `verdict_table` with `group` and `level`; items without a level are left out.

    Returns:
        `measure`, `level` (0 implicit … 3 explicit; NaN in the rows `change`), `statistic` (`share`, `mean` in nats, or
        `change`: mean over groups of the slope on the level, a level), `value`, `low`, `high` (95 %; the unit is the
        group, which has one item a level), `n_items`, `n_groups`.

    Raises:
        DataError: A column is missing, or no item has a level.
    """
    import pandas as pd

    missing = [name for name in NEEDED if name not in verdicts.columns]
    known = verdicts if missing else verdicts[verdicts["level"].notna()]
    if missing or known.empty:
        raise DataError(
            "verdicts by level",
            expected=f"columns {', '.join(NEEDED)}, and items with a level",
            found=missing or "none",
        )
    rows = []
    for name, (column, values) in SHARES.items():
        right = known[column].isin(values).astype(float)
        if name in ("read", "decisive"):
            right = right.mask(known["constraint"] == "not measurable")
        rows += _measure(name, "share", known.assign(value=right))
    for name in MEANS:
        rows += _measure(name, "mean", known.assign(value=known[name]))
    return pd.DataFrame(rows)


def _measure(name: str, statistic: str, table: pd.DataFrame) -> list[dict[str, object]]:
    rows = []
    for level, part in table.groupby("level", sort=True):
        here = part.dropna(subset=["value"])
        groups = here["group"].tolist()
        if statistic == "share":
            interval = clustered_share(here["value"], groups)
        else:
            interval = cluster_interval(here["value"].to_numpy(dtype=float), groups).interval
        rows.append(_row(name, float(level), statistic, interval, len(here), len(set(groups))))  # type: ignore[arg-type]
    slopes = [_slope(part) for _, part in table.dropna(subset=["value"]).groupby("group", sort=True)]
    slopes = [slope for slope in slopes if slope == slope]
    change = cluster_interval(np.array(slopes), range(len(slopes))).interval
    return [*rows, _row(name, float("nan"), "change", change, len(slopes), len(slopes))]


def _row(name: str, level: float, statistic: str, interval: Interval, n_items: int, n_groups: int) -> dict[str, object]:
    ends = {"value": interval.value, "low": interval.low, "high": interval.high}
    return {"measure": name, "level": level, "statistic": statistic, **ends, "n_items": n_items, "n_groups": n_groups}


def _slope(part: pd.DataFrame) -> float:
    """Least squares on the level; NaN for a group with one level."""
    level, value = part["level"].to_numpy(dtype=float), part["value"].to_numpy(dtype=float)
    spread = ((level - level.mean()) ** 2).sum()
    return float(((level - level.mean()) * value).sum() / spread) if spread > 0 else float("nan")
