"""What adds up to the answer: contributions of embedding, attention and MLPs, and their sum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from latentkt.errors import DataError
from latentkt.plots.series import caption_of
from latentkt.plots.style import GREY, INK, LOOKS, PALE, panels, styled
from latentkt.plots.summaries import intervals, items_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["attribution_bars", "grouped"]

NAMES = {
    "embedding": "embedding",
    "head": "attention heads",
    "attention_bias": "attention biases",
    "mlp": "MLPs",
    "norm_bias": "bias of the final norm",
    "unembedding_bias": "bias of the unembedding",
    "norm_remainder": "norm remainder",
    "softcap_remainder": "softcap remainder",
}


def grouped(attribution: pd.DataFrame, *, blocks: int = 5) -> pd.DataFrame:
    """Contributions summed by part, heads and MLPs in `blocks` groups of layers; the rows of a run still add up.

    Args:
        attribution: Table of `latentkt.internals.attribute`.
        blocks: Groups of neighbouring layers.

    Returns:
        One row a run and part: `item`, `family`, `which`, `order`, `part`, `rank` (its place), `contribution` (nats).

    Raises:
        DataError: A column is missing or there are no rows.
    """
    needed = ["item", "family", "which", "order", "component", "layer", "contribution"]
    missing = [column for column in needed if column not in attribution.columns]
    if missing or attribution.empty:
        raise DataError("table of an attribution", expected=", ".join(needed), found=", ".join(attribution.columns))
    table = attribution.copy()
    n_layers = int(table["layer"].max()) + 1
    blocks = min(blocks, n_layers)
    layered = table["component"].isin(["head", "mlp"])
    block = ((table["layer"] * blocks) // n_layers).where(layered, 0).astype(int)
    edges = [-(-b * n_layers // blocks) for b in range(blocks + 1)]
    names = [NAMES[component] for component in table["component"]]
    spans = [f", {_layers(edges[b], edges[b + 1] - 1)}" if deep else "" for b, deep in zip(block, layered, strict=True)]
    table["part"] = [name + span for name, span in zip(names, spans, strict=True)]
    order = list(NAMES)
    table["rank"] = [order.index(name) * 100 + b for name, b in zip(table["component"], block, strict=True)]
    keys = ["item", "family", "which", "order", "part", "rank"]
    return table.groupby(keys, observed=True)["contribution"].sum().reset_index()


def _layers(first: int, last: int) -> str:
    return f"layer {first}" if first == last else f"layers {first}–{last}"


@styled
def attribution_bars(attribution: pd.DataFrame, *, blocks: int = 5, caption: str = "") -> Figure:
    """Direct contributions to logit(y*) − logit(y_s), items and controls apart; each panel's bars sum to its last bar.

    Args:
        attribution: Table of `latentkt.internals.attribute`.
        blocks: Groups of neighbouring layers.
        caption: What the table cannot tell: preset, model.

    Returns:
        The figure; lines are 95 % intervals of the mean over families. The bars of means sum exactly where every family
        has as many items; each run's do always.

    Raises:
        DataError: A column is missing or there are no rows.
    """
    parts = grouped(attribution, blocks=blocks)
    whiches = [which for which in ("item", "control") if which in set(parts["which"])]
    n_parts = parts["part"].nunique()
    figure, all_axes = panels(
        max(1, len(whiches)),
        height=0.7 + 0.21 * n_parts,
        title="What adds up to the answer?",
        caption=caption_of(
            items_of(parts), caption, "Direct effects only: what a part does through later parts is not in its bar"
        ),
    )
    for axes, which in zip(all_axes, whiches, strict=False):
        inside = parts[parts["which"] == which]
        rows = intervals(inside, "contribution", ["rank", "part"]).sort_values("rank")
        sums = inside.groupby(["item", "family", "order"], observed=True)["contribution"].sum().reset_index()
        total = intervals(sums.assign(part="sum = logit difference"), "contribution", ["part"]).iloc[0]
        places = [*range(len(rows)), len(rows) + 0.4]
        values = [*rows["value"], total["value"]]
        lows, highs = [*rows["low"], total["low"]], [*rows["high"], total["high"]]
        colours = [LOOKS["shortcut"].color if value < 0 else LOOKS["constraint"].color for value in rows["value"]]
        axes.barh(places, values, color=[*colours, INK], height=0.72, alpha=0.85)
        axes.hlines(places, lows, highs, color=PALE, linewidth=2.6, zorder=3)
        axes.hlines(places, lows, highs, color=GREY, linewidth=1.2, zorder=4)
        axes.axvline(0, color=GREY, linewidth=0.8)
        axes.set_yticks(places, [*rows["part"], "sum = logit difference"], fontsize=7.5)
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        axes.set_title(f"{which}s")
    all_axes[-1].set_xlabel("contribution to logit(y*) − logit(y_s) (nats)")
    return figure
