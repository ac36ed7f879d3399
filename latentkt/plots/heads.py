"""Heads as a grid: one square a layer and head, the mean over items; and the largest of them as a table of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latentkt.errors import DataError
from latentkt.plots.series import caption_of
from latentkt.plots.style import INK, panels, styled
from latentkt.plots.summaries import intervals, items_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["head_grid", "largest_heads"]


@styled
def head_grid(table: pd.DataFrame, *, value: str = "direct_effect", title: str = "", caption: str = "") -> Figure:
    """Mean over items of one number a head: `head_table` or `attribute` (heads), or `patch` with `heads=True`.

    Args:
        table: Rows with `item`, `family`, `layer`, `head` (−1 is left out) and the column `value`; filter it to one
            role, site and direction first.
        value: What is shown, in nats; colours are symmetric around 0.
        title: What is shown.
        caption: What the table cannot tell: preset, model.

    Returns:
        The figure; heads that do not exist are hatched. The three largest are written in.

    Raises:
        DataError: A column is missing or there are no heads.
    """
    means = _means(table, value).pivot(index="head", columns="layer", values="mean")
    values = means.to_numpy(dtype=float)
    largest = float(np.nanmax(np.abs(values))) if np.isfinite(values).any() else 1.0
    figure, (axes,) = panels(
        1,
        height=0.9 + 0.2 * len(means),
        title=title or f"{value.replace('_', ' ')} by head",
        caption=caption_of(items_of(table), caption, "Means over items. Hatched: no such head"),
    )
    axes.set_facecolor("#e4e4e4")
    axes.patch.set_hatch("////")
    axes.patch.set_edgecolor("#c8c8c8")
    image = axes.imshow(
        np.ma.masked_invalid(values), aspect="auto", cmap="RdBu_r", vmin=-largest, vmax=largest, interpolation="nearest"
    )
    flat = np.argsort(-np.abs(np.nan_to_num(values)), axis=None)[:3]
    for head, layer in zip(*np.unravel_index(flat, values.shape), strict=True):
        dark = abs(values[head, layer]) > 0.6 * largest
        number = f"{values[head, layer]:+.1f}"
        axes.text(layer, head, number, ha="center", va="center", fontsize=6, color="white" if dark else INK)
    axes.grid(visible=False)
    layers = [int(layer) for layer in means.columns]
    step = max(1, len(layers) // 10)
    axes.set_xticks(range(0, len(layers), step), [str(layer) for layer in layers[::step]])
    axes.set_yticks(range(len(means)), [str(int(head)) for head in means.index])
    axes.set_xlabel("layer")
    axes.set_ylabel("head")
    bar = figure.colorbar(image, ax=axes, shrink=0.8, pad=0.02)
    bar.set_label("nats")
    bar.outline.set_visible(False)
    return figure


def _means(table: pd.DataFrame, value: str) -> pd.DataFrame:
    needed = ["item", "family", "layer", "head", value]
    missing = [column for column in needed if column not in table.columns]
    heads = table if missing else table[table["head"] >= 0]
    if missing or heads.empty:
        raise DataError("table of heads", expected=", ".join(needed), found=", ".join(map(str, table.columns)))
    units = heads.groupby(["layer", "head", "item"], observed=True)[value].mean()
    return units.groupby(["layer", "head"], observed=True).mean().rename("mean").reset_index()


def largest_heads(heads: pd.DataFrame, *, count: int = 12) -> pd.DataFrame:
    """The rows of the head table with the largest mean contributions, with intervals over families.

    Args:
        heads: Table of `latentkt.internals.head_table`.
        count: How many rows (head and role).

    Returns:
        `layer`, `head`, `role`, `attention` (share), `ov_effect` (nats), `value`, `low`, `high` (contribution, nats)
        and the fields of the interval, largest first. They are picked for their size: read them as a description.
    """
    keys = ["layer", "head", "role"]
    units = heads.groupby([*keys, "item"], observed=True)["contribution"].mean().groupby(keys, observed=True).mean()
    chosen = units.abs().sort_values(ascending=False).index[:count]
    kept = heads.set_index(keys).loc[lambda frame: frame.index.isin(chosen)].reset_index()
    rows = intervals(kept, "contribution", keys).set_index(keys)
    means = kept.groupby(keys, observed=True)[["attention", "ov_effect"]].mean()
    return means.join(rows).loc[chosen].reset_index()
