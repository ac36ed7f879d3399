"""Measured dominance against the log prior ratio, item by item."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latentkt.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["dominance_scatter"]


def dominance_scatter(table: pd.DataFrame, *, slope: float, intercept: float) -> Figure:
    """Scatter of dominance on log prior ratio with both errors, the fitted line, and the predicted slope of +1.

    Args:
        table: Columns log_prior_ratio, low, high, dominance, dominance_se, plotted, censored.
        slope: Slope of the fitted line.
        intercept: Its intercept.

    Returns:
        A matplotlib figure; items with ``plotted`` False are left out and counted in the title.

    Raises:
        InputError: No item can be plotted.
    """
    from matplotlib.figure import Figure as NewFigure

    shown = table[table["plotted"].astype(bool)]
    if shown.empty:
        raise InputError("no item can be plotted", expected="items with 5 or more supporting clusters", found="none")
    x, y = shown["log_prior_ratio"].to_numpy(float), shown["dominance"].to_numpy(float)
    low, high = (shown[name].replace([-np.inf, np.inf], np.nan).to_numpy(float) for name in ("low", "high"))
    figure = NewFigure(figsize=(5.2, 4.2), layout="constrained")
    axes = figure.add_subplot()
    errors = np.nan_to_num(np.stack([x - low, high - x]))
    axes.errorbar(x, y, xerr=errors, yerr=shown["dominance_se"].fillna(0.0), fmt="o", ms=3.5, lw=0.7, color="#28527a")
    ends = np.array([x.min(), x.max()])
    axes.plot(ends, intercept + slope * ends, color="#c0392b", lw=1.5, label=f"fit, slope {slope:+.2f}")
    middle = y.mean() - x.mean()
    axes.plot(ends, middle + ends, color="0.5", lw=1, ls="--", label="predicted slope +1")
    axes.set_xlabel("log prior ratio, shortcut over correct (nats)")
    axes.set_ylabel("dominance, log P(y_s) − log P(y*) (nats)")
    axes.set_title(f"{len(shown)} items, {len(table) - len(shown)} listed only", fontsize=9)
    axes.legend(frameon=False, fontsize=8)
    return figure
