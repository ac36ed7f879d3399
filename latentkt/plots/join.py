"""Measured dominance against the log prior ratio, item by item."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latentkt.errors import InputError
from latentkt.plots.series import caption_of
from latentkt.plots.style import BLUE, GREY, SKY, VERMILION, Y_CORRECT, Y_SHORTCUT, panels, styled

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["dominance_scatter"]


@styled
def dominance_scatter(table: pd.DataFrame, *, slope: float, intercept: float, caption: str = "") -> Figure:
    """Scatter of dominance on log prior ratio with both errors, the fitted line, and the predicted slope of +1.

    Args:
        table: Columns log_prior_ratio, low, high, dominance, dominance_se, plotted, censored.
        slope: Slope of the fitted line.
        intercept: Its intercept.
        caption: What the table cannot tell: preset, model.

    Returns:
        A matplotlib figure; items with ``plotted`` False are left out and counted in the caption. Items of which a
        count is 0 are hollow, and their bars run off the figure where the interval has no end.

    Raises:
        InputError: No item can be plotted.
    """
    shown = table[table["plotted"].astype(bool)]
    if shown.empty:
        raise InputError("no item can be plotted", expected="items with 5 or more supporting clusters", found="none")
    hollow = shown["censored"].to_numpy(bool)
    words = [f"Hollow, {hollow.sum()}: a count is 0, so the prior is bounded on one side only"] if hollow.any() else []
    figure, (axes,) = panels(
        1,
        height=3.9,
        title="Does the prior explain dominance?",
        caption=caption_of(
            f"{len(shown)} items, {len(table) - len(shown)} listed only",
            caption,
            "Across: 95 % intervals; up: one standard error over the two option orders",
            *words,
        ),
    )
    x = shown["log_prior_ratio"].to_numpy(float)
    edges = x.min() - 0.08 * np.ptp(x) - 0.5, x.max() + 0.08 * np.ptp(x) + 0.5
    _points(axes, shown, hollow, edges)
    ends = np.array([x.min(), x.max()])
    axes.plot(ends, intercept + slope * ends, color=VERMILION, label=f"fit, slope {slope:+.2f}".replace("-", "−"))
    middle = shown["dominance"].mean() - x.mean()
    axes.plot(ends, middle + ends, color=GREY, linewidth=1.2, linestyle="--", label="predicted slope +1")
    axes.set_xlim(edges)
    axes.set_xlabel("log prior ratio, shortcut over correct (nats)")
    axes.set_ylabel(f"dominance, log P({Y_SHORTCUT}) − log P({Y_CORRECT}) (nats)")
    axes.legend(loc="upper left", fontsize=8)
    return figure


def _points(axes: Axes, shown: pd.DataFrame, hollow: np.ndarray, edges: tuple[float, float]) -> None:
    x, y = (shown[name].to_numpy(float) for name in ("log_prior_ratio", "dominance"))
    low, high = np.clip([shown["low"].to_numpy(float), shown["high"].to_numpy(float)], *edges)
    up = shown["dominance_se"].fillna(0.0).to_numpy(float)
    for some, face in ((~hollow, BLUE), (hollow, "white")):
        bars = np.maximum([x - low, high - x], 0.0)[:, some]
        axes.errorbar(x[some], y[some], xerr=bars, yerr=up[some], fmt="none", ecolor=SKY, elinewidth=0.5, zorder=2)
        axes.plot(x[some], y[some], "o", markersize=3.6, color=BLUE, markerfacecolor=face, zorder=3)
