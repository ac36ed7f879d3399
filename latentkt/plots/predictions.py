"""Predictions from gradients against the exact patches that were run to check them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latentkt.errors import DataError
from latentkt.plots.columns import require
from latentkt.plots.series import caption_of
from latentkt.plots.style import GREY, Look, look, panels, styled
from latentkt.plots.summaries import items_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["predicted_against_exact"]

METHODS = {
    "atp": "attribution patching",
    "ig": "integrated gradients",
    "eap": "edge attribution",
    "eap_ig": "edge attribution, integrated gradients",
}


@styled
def predicted_against_exact(table: pd.DataFrame, *, caption: str = "") -> Figure:
    """Exact effect against prediction, one panel a method: the largest predictions, and the sample of all cells.

    Args:
        table: Rows of `latentkt.internals.atp` and/or `edge_attribution`; those that were not run are left out.
        caption: What the table cannot tell: preset, model.

    Returns:
        The figure; both axes in nats, with the line on which predictions are right. Points of the sample near 0 on the
        horizontal axis and far from it on the other are what a screen by prediction misses.

    Raises:
        DataError: A column is missing, or nothing was run.
    """
    require(table, "predictions")
    run = table[table["exact"].notna() & table["predicted"].notna()]
    if run.empty:
        raise DataError("table of predictions", expected="rows with an exact effect", found="none was run")
    methods = [name for name in METHODS if name in set(run["method"])]
    figure, all_axes = panels(
        len(methods),
        height=3.0,
        title="Predicted and exact effects",
        caption=caption_of(items_of(run), caption, "One point a patch that was run. Dashed: the prediction is right"),
        sharex=False,
    )
    for axes, method in zip(all_axes, methods, strict=True):
        _scatter(axes, run[run["method"] == method])
        axes.set_title(METHODS[method])
        axes.set_xlabel("predicted (nats)")
        axes.set_ylabel("exact (nats)")
        axes.legend(loc="upper left")
    return figure


def _scatter(axes: Axes, rows: pd.DataFrame) -> None:
    kinds: dict[str, tuple[pd.DataFrame, Look]] = {
        "sampled over all sizes": (rows[~rows["is_top"]], look("bag")),
        "largest predictions": (rows[rows["is_top"]], look("probe")),
    }
    for label, (points, drawn) in kinds.items():
        if points.empty:
            continue  # edges are not sampled
        axes.scatter(
            points["predicted"],
            points["exact"],
            s=22,
            marker=drawn.marker,
            color=drawn.color,
            alpha=0.75,
            linewidth=0.4,
            edgecolor="white",
            label=f"{label} ({len(points)})",
        )
    both = rows[["predicted", "exact"]].to_numpy(dtype=float)
    low, high = min(float(both.min()), 0.0), max(float(both.max()), 0.0)
    margin = 0.06 * max(high - low, 1e-3)
    ends = np.array([low - margin, high + margin])
    axes.plot(ends, ends, color=GREY, linewidth=1, linestyle=(0, (2, 2)), zorder=1)
