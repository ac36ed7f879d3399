"""One number of each item against another, with the line on which both are equal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from latentkt.plots.style import GREY, look

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["against"]


def against(axes: Axes, table: pd.DataFrame, x: str, y: str, *, by: str) -> None:
    """Points of `y` against `x`, in the look of each value of `by`, and the diagonal on which nothing changes.

    Args:
        axes: Where to draw.
        table: One row a point.
        x: Column of the horizontal axis.
        y: Column of the vertical axis, in the same unit.
        by: Column that colours the points.
    """
    for position, (name, group) in enumerate(table.groupby(by, sort=True, observed=True)):
        drawn = look(str(name), position)
        axes.scatter(
            group[x],
            group[y],
            s=26,
            marker=drawn.marker,
            color=drawn.color,
            alpha=0.75,
            linewidth=0.4,
            edgecolor="white",
            label=f"{name} ({len(group)})",
        )
    both = table[[x, y]].to_numpy(dtype=float)
    low, high = (float(both.min()), float(both.max())) if len(both) else (-1.0, 1.0)
    margin = 0.06 * max(high - low, 1e-3)
    limits = (low - margin, high + margin)
    axes.plot(limits, limits, color=GREY, linewidth=1, linestyle=(0, (2, 2)), zorder=1)
    axes.set(xlim=limits, ylim=limits, aspect="equal")
    axes.text(limits[0] + margin, limits[0] + 0.3 * margin, "  no effect", color=GREY, va="bottom", fontsize=8)
