"""What the constraint does to the answer: item against control."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latentkt.plots.scatter import against
from latentkt.plots.series import caption_of
from latentkt.plots.style import GREY, INK, Y_CORRECT, Y_SHORTCUT, look, panels, styled
from latentkt.plots.summaries import intervals, item_minus_control, items_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["differences_by_family", "item_against_control"]


@styled
def item_against_control(answers: pd.DataFrame, *, caption: str = "") -> Figure:
    """Log-odds of y* over y_s in the item against those in its control, one point an item.

    Args:
        answers: Table `answers` of `latentkt.plots.columns`.
        caption: What the table cannot tell: preset, model.

    Returns:
        The figure. Both axes are in nats, means over option orders. On the diagonal the constraint changes nothing;
        above it the constraint moves the model towards y*.

    Raises:
        DataError: A column is missing or there are no rows.
    """
    pairs = item_minus_control(answers)
    above = int((pairs["difference"] > 0).sum())
    figure, (axes,) = panels(
        1,
        height=4.1,
        title="Does the constraint move the answer?",
        caption=caption_of(
            items_of(pairs), caption, f"{above} of {len(pairs)} lie above the diagonal. Means over option orders"
        ),
    )
    against(axes, pairs, "log_odds_control", "log_odds_item", by="kind")
    axes.set_xlabel(f"log-odds of {Y_CORRECT} over {Y_SHORTCUT} in the control (nats)")
    axes.set_ylabel(f"log-odds of {Y_CORRECT} over {Y_SHORTCUT} in the item (nats)")
    axes.legend(loc="upper left")
    return figure


@styled
def differences_by_family(answers: pd.DataFrame, *, caption: str = "") -> Figure:
    """Item − control difference of log-odds: every item, the mean of every family, the mean over families.

    Args:
        answers: Table `answers` of `latentkt.plots.columns`.
        caption: What the table cannot tell: preset, model.

    Returns:
        The figure; x is in nats, positive where the constraint moves the model towards y*.

    Raises:
        DataError: A column is missing or there are no rows.
    """
    pairs = item_minus_control(answers)
    families = (
        pairs.groupby(["kind", "family"], sort=True, observed=True)["difference"].mean().reset_index()
    ).sort_values(["kind", "difference"], ignore_index=True)
    figure, (axes,) = panels(
        1,
        height=0.6 + 0.24 * (len(families) + pairs["kind"].nunique()),
        title="Effect of the constraint, family by family",
        caption=caption_of(
            items_of(pairs),
            caption,
            "Small dots: items. Large: family means. Diamonds: mean over families with its 95 % interval",
        ),
    )
    overall = intervals(pairs, "difference", ["kind"])
    labels: list[str] = []
    for position, kind in enumerate(sorted(families["kind"].unique())):
        rows = families[families["kind"] == kind]
        for family, mean in zip(rows["family"], rows["difference"], strict=True):
            inside = pairs.loc[(pairs["family"] == family) & (pairs["kind"] == kind), "difference"]
            _family_row(axes, len(labels), inside.to_numpy(), float(mean), look(kind, position).color)
            labels.append(str(family).replace("_", " "))
        whole = overall[overall["kind"] == kind].iloc[0]
        _overall_row(axes, len(labels), whole["value"], whole["low"], whole["high"])
        labels.append(f"mean of {kind} families")
    axes.axvline(0, color=GREY, linewidth=1, linestyle=(0, (2, 2)), zorder=1)
    axes.set_yticks(range(len(labels)), labels, fontsize=8)
    axes.set_ylim(-0.6, len(labels) - 0.4)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel(f"log-odds of {Y_CORRECT} over {Y_SHORTCUT}, item − control (nats)")
    return figure


def _family_row(axes: Axes, y: int, values: np.ndarray, mean: float, color: str) -> None:
    spread = np.linspace(-0.16, 0.16, len(values)) if len(values) > 1 else np.zeros(len(values))
    axes.scatter(values, y + spread, s=9, color=color, alpha=0.4, linewidth=0)
    axes.scatter([mean], [y], s=34, color=color, edgecolor="white", linewidth=0.6, zorder=3)


def _overall_row(axes: Axes, y: int, value: float, low: float, high: float) -> None:
    axes.hlines(y, low, high, color=INK, linewidth=1.8, zorder=3)
    axes.scatter([value], [y], s=42, marker="D", color=INK, edgecolor="white", linewidth=0.6, zorder=4)
