"""How often the right answer is preferred, and what being listed first is worth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latentkt.plots.series import caption_of, legend_above, point, reference_line
from latentkt.plots.style import Y_CORRECT, Y_SHORTCUT, look, panels, styled
from latentkt.plots.summaries import first_option, intervals, items_of, right_answers
from latentkt.stats import wilson

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["accuracy_by_kind", "position_bias"]

ORDERS = {"correct_first": f"{Y_CORRECT} listed first", "shortcut_first": f"{Y_SHORTCUT} listed first"}


@styled
def accuracy_by_kind(answers: pd.DataFrame, *, caption: str = "") -> Figure:
    """Share of prompts in which the model prefers the right answer, by kind and option order, items and controls apart.

    Args:
        answers: Table `answers` of `latentkt.plots.columns`.
        caption: What the table cannot tell: preset, model.

    Returns:
        The figure, one panel a kind; bars are Wilson's 95 % intervals over the items of that cell.

    Raises:
        DataError: A column is missing or there are no rows.
    """
    table = right_answers(answers)
    kinds = sorted(table["kind"].unique())
    figure, all_axes = panels(
        max(1, len(kinds)),
        height=1.75,
        title="How often is the right answer preferred?",
        caption=caption_of(items_of(table), caption, "Bars: Wilson 95 % intervals over items. Dashed: chance"),
        sharey=True,
    )
    for axes, kind in zip(all_axes, kinds, strict=False):
        _accuracy_panel(axes, table[table["kind"] == kind])
        axes.set_title(str(kind))
        axes.set_ylabel("right answers (%)")
        axes.set_ylim(-4, 104)
        axes.set_yticks(range(0, 101, 25))
    legend_above(figure, all_axes[0])
    return figure


def _accuracy_panel(axes: Axes, table: pd.DataFrame) -> None:
    for offset, which in ((-0.1, "item"), (0.1, "control")):
        cells = table[table["which"] == which].groupby("order", observed=True)["is_right"]
        right, asked = cells.sum().to_dict(), cells.size().to_dict()
        for x, order in enumerate(ORDERS):
            share = wilson(int(right.get(order, 0)), int(asked.get(order, 0)))
            ends = (100 * share.value, 100 * share.low, 100 * share.high)
            point(axes, x + offset, ends, look(which), label=f"{which}s" if x == 0 else None)
    reference_line(axes, 50)
    axes.set_xticks(range(len(ORDERS)), list(ORDERS.values()))
    axes.set_xlim(-0.6, len(ORDERS) - 0.4)
    axes.grid(axis="x", visible=False)


def _in_reading_order(column: pd.Series) -> pd.Series:
    """Items before their controls before neutral prompts."""
    return column.replace({"item": "0", "control": "1", "neutral": "2"})


@styled
def position_bias(answers: pd.DataFrame, *, caption: str = "") -> Figure:
    """What being listed first is worth, by kind and prompt.

    Args:
        answers: Table `answers` of `latentkt.plots.columns`, with both option orders.
        caption: What the table cannot tell: preset, model.

    Returns:
        The figure; y is in nats of log-odds for whichever option is listed first, 0 for a model that does not care.

    Raises:
        DataError: A column is missing or there are no rows.
    """
    bias = first_option(answers)
    rows = intervals(bias, "bias", ["kind", "which"])
    rows = rows.sort_values(["kind", "which"], key=_in_reading_order)
    figure, (axes,) = panels(
        1,
        height=2.4,
        title="What is it worth to be listed first?",
        caption=caption_of(items_of(bias), caption, "Dots: items. Bars: mean over families with its 95 % interval"),
    )
    rng = np.random.default_rng(0)
    for x, row in enumerate(rows.to_dict("records")):
        dots = bias.loc[(bias["kind"] == row["kind"]) & (bias["which"] == row["which"]), "bias"].to_numpy()
        drawn = look(str(row["which"]), x)
        spread = x + rng.uniform(-0.16, 0.16, len(dots))
        axes.scatter(spread, dots, s=8, color=drawn.color, alpha=0.3, linewidth=0, zorder=2)
        point(axes, x, (row["value"], row["low"], row["high"]), drawn)
    reference_line(axes)
    axes.set_xticks(range(len(rows)), [f"{row['kind']}\n{row['which']}" for row in rows.to_dict("records")])
    axes.set_xlim(-0.6, len(rows) - 0.4)
    axes.grid(axis="x", visible=False)
    axes.set_ylabel("gain of the first option (nats)")
    return figure
