"""Dose and response: answers, constraint effect and verdicts by level of explicitness."""

from __future__ import annotations

from typing import TYPE_CHECKING

from latentkt.errors import DataError
from latentkt.plots.series import band, caption_of, legend_above, reference_line
from latentkt.plots.style import look, panels, styled

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["dose_response_by_level"]

NEEDED = ("measure", "level", "statistic", "value", "low", "high", "n_groups")
SHARES = {"solved": "control", "shortcut followed": "item", "read": "last", "decisive": "scientist"}
MEANS = {"constraint_effect": "constraint effect", "log_odds": "log-odds of the item"}


@styled
def dose_response_by_level(explicitness: pd.DataFrame, *, caption: str = "") -> Figure:
    """Shares of answers and readings, and nats, from implicit (0) to explicit (3).

    Args:
        explicitness: Table of `latentkt.internals.dose_response`.
        caption: What the table cannot tell: preset, model.

    Returns:
        The figure; bands are 95 % intervals over groups.

    Raises:
        DataError: A column is missing, or there are no rows.
    """
    missing = [column for column in NEEDED if column not in explicitness.columns]
    if missing or explicitness.empty:
        raise DataError("table 'explicitness'", expected=", ".join(NEEDED), found=missing or "no rows")
    by_level = explicitness[explicitness["level"].notna() & explicitness["value"].notna()]
    groups = int(explicitness["n_groups"].max())
    figure, (upper, lower) = panels(
        2,
        height=2.1,
        title="The same question, asked more and more openly",
        caption=caption_of(
            f"{groups} groups of items, one item a level",
            caption,
            "Level 0 leaves the goal unsaid, level 3 states it. Bands: 95 % intervals over groups",
        ),
    )
    for number, (measure, name) in enumerate(SHARES.items()):
        rows = by_level[by_level["measure"] == measure]
        if len(rows):
            shown = rows.assign(**{end: 100 * rows[end] for end in ("value", "low", "high")})
            band(upper, rows["level"], shown, look(name, number), label=measure)
    upper.set_ylim(0, 102)
    upper.set_ylabel("share (%)")
    for measure, name in (("constraint_effect", "constraint"), ("log_odds", "item")):
        rows = by_level[by_level["measure"] == measure]
        if len(rows):
            band(lower, rows["level"], rows, look(name), label=MEANS[measure])
    reference_line(lower)
    lower.set_ylabel("nats")
    lower.set_xticks(sorted(by_level["level"].unique()))
    lower.set_xlabel("level of explicitness")
    lower.legend(loc="best")
    legend_above(figure, upper)
    return figure
