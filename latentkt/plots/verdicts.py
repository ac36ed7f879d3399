"""Verdicts, one row an item: the log-odds in both orders, and the constraint's effect against its placebos."""

from __future__ import annotations

from typing import TYPE_CHECKING

from latentkt.errors import DataError
from latentkt.plots.series import caption_of, legend_above
from latentkt.plots.style import BLUE, GREY, PALE, VERMILION, WIDTH, panels, styled

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["verdict_by_item"]

NEEDED = (
    *("item", "answer", "constraint", "log_odds_correct_first", "log_odds_shortcut_first"),
    *("effect", "threshold", "sureness"),
)
COLOURS = {"unread": GREY, "read but outweighed": VERMILION, "read and decisive": BLUE, "not measurable": PALE}
MOST = 40


@styled
def verdict_by_item(verdict: pd.DataFrame, *, caption: str = "") -> Figure:
    """One row an item whose constraint was patched: its log-odds, and its constraint's effect beside the threshold.

    Args:
        verdict: Table of `latentkt.internals.verdict_table`.
        caption: What the table cannot tell: preset, model.

    Returns:
        The figure, of at most 40 items: the answer's log-odds in both orders (line), the effect of the constraint
        (marker, its colour the verdict) and the placebos' 95th percentile (tick).

    Raises:
        DataError: A column is missing, or no item was patched.
    """
    missing = [column for column in NEEDED if column not in verdict.columns]
    rows = verdict if missing else verdict[verdict["effect"].notna()].sort_values("log_odds").head(MOST)
    if missing or rows.empty:
        raise DataError("table 'verdict'", expected=f"{', '.join(NEEDED)}, patched items", found=missing or "none")
    figure, (axes,) = panels(
        1,
        height=0.8 + 0.24 * len(rows),
        title="What is answered, and what becomes of the constraint",
        caption=caption_of(
            f"{len(rows)} of {len(verdict)} items",
            caption,
            "Line: log-odds of the item in both option orders. Marker: effect of the constraint, tick: 95th percentile "
            "of placebo effects. In brackets: sureness",
        ),
    )
    axes.axvline(0.0, color=GREY, linewidth=1, linestyle=(0, (2, 2)), zorder=1)
    seen: set[str] = set()
    shown = rows.to_dict("records")
    for place, row in enumerate(shown):
        ends = [row["log_odds_correct_first"], row["log_odds_shortcut_first"]]
        axes.plot(ends, [place, place], color="black", linewidth=2, alpha=0.5)
        axes.plot(row["threshold"], place, "|", color="black", markersize=14)
        name = str(row["constraint"])
        label = None if name in seen else name
        seen.add(name)
        axes.plot(row["effect"], place, "o", color=COLOURS[name], markeredgecolor="black", markersize=10, label=label)
    labels = [f"{row['item']} ({100 * row['sureness']:.0f} %)" for row in shown]
    axes.set_yticks(range(len(rows)), labels, fontsize=7)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("nats (toward y*: right)")
    figure.set_figwidth(WIDTH)
    legend_above(figure, axes)
    return figure
