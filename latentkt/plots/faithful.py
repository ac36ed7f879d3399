"""Faithfulness curves: how much of the answer the top parts keep, and how much is lost without them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from latentkt.errors import DataError
from latentkt.plots.columns import require
from latentkt.plots.patching import DIRECTIONS
from latentkt.plots.series import band, caption_of, legend_above, reference_line
from latentkt.plots.style import BLUE, GREY, ORANGE, VERMILION, Look, panels, styled
from latentkt.plots.summaries import intervals, items_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["faithfulness_curve"]

CURVES = {"keep": "keep", "remove": "remove"}
_LOOKS = {("keep", False): Look(BLUE, "o", "-"), ("remove", False): Look(VERMILION, "s", "--"),
          ("keep", True): Look(GREY, "^", ":"), ("remove", True): Look(ORANGE, "v", ":")}  # fmt: skip
_LINEAR = 0.01


@styled
def faithfulness_curve(table: pd.DataFrame, *, of: str = "nodes", caption: str = "") -> Figure:
    """Mean faithfulness over items against the share of parts in the top set, one panel a direction.

    Args:
        table: Table of `latentkt.internals.faithfulness`.
        of: `nodes` or `edges`.
        caption: What the table cannot tell: preset, model.

    Returns:
        The figure; 1 is the base run, 0 the run in which every part is replaced. Bands are 95 % intervals over
        families. The axis of shares is logarithmic from 1 % on and linear below.

    Raises:
        DataError: A column is missing, or no pair has a gap of half a nat or more.
    """
    require(table, "faithfulness")
    shown = table[(table["of"] == of) & table["faithfulness"].notna()]
    if shown.empty:
        raise DataError(f"faithfulness of {of}", expected="pairs whose runs differ by half a nat or more", found="none")
    directions = [name for name in DIRECTIONS if name in set(shown["direction"])]
    ablations = ", ".join(sorted(shown["ablation"].unique())).replace("_", " ")
    figure, all_axes = panels(
        len(directions),
        height=2.3,
        title=f"Faithfulness of the top {of} (others: {ablations})",
        caption=caption_of(
            items_of(shown),
            caption,
            f"{int(shown['n_all'].max())} {of}. 1: the base run; 0: every part replaced. Bands: 95 % intervals over "
            "families",
        ),
    )
    means = intervals(shown, "faithfulness", ["direction", "ranking", "curve", "share"])
    for axes, direction in zip(all_axes, directions, strict=True):
        here = means[means["direction"] == direction]
        for (ranking, curve), rows in here.groupby(["ranking", "curve"], sort=True, observed=True):
            drawn = _LOOKS[str(curve), ranking == "random"]
            band(axes, rows["share"], rows, drawn, label=f"{curve} by {ranking}".replace("_", " "))
        reference_line(axes, 0.0)
        reference_line(axes, 1.0)
        axes.set_xscale("symlog", linthresh=_LINEAR, linscale=0.4)
        axes.set_title(DIRECTIONS[direction])
        axes.set_ylabel("faithfulness")
    ticks = [0, 0.01, 0.03, 0.1, 0.3, 1]
    all_axes[-1].set_xticks(ticks, [f"{100 * tick:g} %" for tick in ticks])
    all_axes[-1].set_xlabel(f"share of {of} in the top set")
    legend_above(figure, all_axes[0], columns=2)
    return figure
