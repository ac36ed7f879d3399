"""Drawing that several figures share: a line with its band, a zero line, an axis of layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from latentkt.plots.style import GREY, TITLE, Look

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "band",
    "caption_of",
    "dot_across",
    "layer_axis",
    "legend_above",
    "point",
    "reference_line",
    "with_bar",
]


def band(axes: Axes, x: pd.Series, table: pd.DataFrame, appearance: Look, *, label: str) -> None:
    """A line of `value` with the band from `low` to `high`."""
    axes.fill_between(x, table["low"], table["high"], color=appearance.color, alpha=0.18, linewidth=0)
    axes.plot(
        x, table["value"], color=appearance.color, marker=appearance.marker, linestyle=appearance.dash, label=label
    )


def point(
    axes: Axes, x: float, ends: tuple[float, float, float], appearance: Look, *, label: str | None = None
) -> None:
    """A marker with the bar of its interval; `ends` are value, low and high. No bar where they are NaN."""
    value, low, high = ends
    axes.errorbar(
        x,
        value,
        yerr=[[value - low], [high - value]],
        color=appearance.color,
        marker=appearance.marker,
        markersize=6.5,
        capsize=3,
        linestyle="none",
        label=label,
        zorder=3,
    )


def with_bar(row: Mapping[Any, Any], key: str) -> tuple[float, list[list[float]]]:
    """A value of a table's row, and how far the ends of its interval (`…_low`, `…_high`) lie from it."""
    value, low, high = (float(row[f"{key}{end}"]) for end in ("", "_low", "_high"))
    return value, [[value - low], [high - value]]


def dot_across(
    axes: Axes, y: float, row: Mapping[Any, Any], key: str, appearance: Look, label: str | None = None
) -> None:  # fmt: skip
    """A marker with the bar of its interval, lying on its side at height `y`."""
    value, error = with_bar(row, key)
    axes.errorbar(
        value,
        y,
        xerr=error,
        color=appearance.color,
        marker=appearance.marker,
        markersize=5,
        capsize=2,
        linestyle="none",
        label=label,
        zorder=3,
    )


def reference_line(axes: Axes, at: float = 0.0, *, label: str | None = None) -> None:
    """A thin line across: no effect, no preference, chance."""
    axes.axhline(at, color=GREY, linewidth=1, linestyle=(0, (2, 2)), label=label, zorder=1)


def layer_axis(axes: Axes) -> None:
    """Layers are whole numbers; −1 is the embedding."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=10))
    axes.set_xlabel("layer (−1: embedding)" if axes.get_xlim()[0] < -0.9 else "layer")


def caption_of(units: str, given: str, *sentences: str) -> str:
    """What was measured and under which preset, then how to read the figure.

    Example:
        >>> caption_of("12 items in 3 families", "preset quick", "Bars: 95 % intervals")
        '12 items in 3 families · preset quick. Bars: 95 % intervals.'
    """
    first = " · ".join(part.rstrip(".") for part in (units, given) if part)
    return " ".join(f"{part.rstrip('.')}." for part in (first, *sentences) if part)


def legend_above(figure: Figure, axes: Axes, *, columns: int = 4) -> None:
    """One legend for all panels, between title and panels, where no data are."""
    handles, labels = axes.get_legend_handles_labels()
    # Empty lines below the title make the layout keep the room that the legend takes.
    lines = -(-len(labels) // columns)
    figure.suptitle(figure.get_suptitle() + "\n " * max(1, lines), **TITLE)
    below_title = 1 - 0.19 / figure.get_figheight()
    figure.legend(
        handles,
        labels,
        loc="upper left",
        bbox_to_anchor=(0.0, below_title),
        ncols=columns,
        columnspacing=1.2,
        handlelength=2.2,
        borderaxespad=0.2,
    )
