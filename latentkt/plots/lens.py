"""The answer as it forms: log-odds read from the residual stream, layer by layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from latentkt.plots.columns import require
from latentkt.plots.series import band, caption_of, layer_axis, legend_above, reference_line
from latentkt.plots.style import Y_CORRECT, Y_SHORTCUT, look, panels, styled
from latentkt.plots.summaries import intervals, items_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["READING", "lens_trajectory"]

READING = "first_token_log_odds"
"""What is drawn: whole answers sum several tokens, and at early layers that is hundreds of nats of noise."""


@styled
def lens_trajectory(lens: pd.DataFrame, *, caption: str = "") -> Figure:
    """Log-odds of the first token in which y* and y_s differ, by layer, items and controls, one panel a kind.

    Args:
        lens: Table `lens` of `latentkt.plots.columns`; rows at other positions are left out.
        caption: What the table cannot tell: preset, model.

    Returns:
        The figure; y is in nats, faint lines are items (means over option orders), bands are 95 % intervals of the mean
        over families.

    Raises:
        DataError: A column is missing or there are no rows.
    """
    require(lens, "lens")
    table = lens[(lens["position"] == "last") & lens["which"].isin(["item", "control"])]
    kinds = sorted(table["kind"].unique())
    figure, all_axes = panels(
        max(1, len(kinds)),
        height=2.3,
        title="Where along the layers does the answer form?",
        caption=caption_of(
            items_of(table),
            caption,
            "Logit lens at the last prompt token. Faint: items. Bands: 95 % intervals of the mean over families",
        ),
    )
    means = intervals(table, READING, ["kind", "which", "layer"])
    for axes, kind in zip(all_axes, kinds, strict=False):
        for which in ("item", "control"):
            inside = table[(table["kind"] == kind) & (table["which"] == which)]
            lines = inside.pivot_table(index="layer", columns="item", values=READING, aggfunc="mean", observed=True)
            axes.plot(lines.index, lines.to_numpy(), color=look(which).color, alpha=0.13, linewidth=0.8)
            rows = means[(means["kind"] == kind) & (means["which"] == which)]
            if len(rows):
                band(axes, rows["layer"], rows, look(which), label=which)
        reference_line(axes)
        axes.set_title(str(kind))
        axes.set_ylabel(f"log-odds of {Y_CORRECT} over {Y_SHORTCUT}\n(first differing token, nats)")
    layer_axis(all_axes[-1])
    legend_above(figure, all_axes[0])
    return figure
