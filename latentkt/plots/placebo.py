"""Effects beside the placebo effects that they are held against, layer by layer and role by role."""

from __future__ import annotations

from typing import TYPE_CHECKING

from latentkt.errors import DataError
from latentkt.plots.patching import DIRECTIONS
from latentkt.plots.series import caption_of, layer_axis, legend_above, reference_line
from latentkt.plots.style import GREY, look, panels, styled

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["effects_by_role"]

NEEDED = ("direction", "site", "layer", "role", "difference", "low", "high", "n_families", "verdict")


@styled
def effects_by_role(effects: pd.DataFrame, *, site: str, caption: str = "") -> Figure:
    """Effect minus placebo effect by layer, one panel a direction, one line a role; cells that differ are filled.

    Args:
        effects: Table of `latentkt.internals.effects_against_placebo`.
        site: The site.
        caption: What the table cannot tell: preset, model.

    Returns:
        The figure; y is in nats, bands are 95 % intervals over families. A role without a placebo has no line.

    Raises:
        DataError: A column is missing or the site is not in the table.
    """
    missing = [column for column in NEEDED if column not in effects.columns]
    shown = effects if missing else effects[(effects["site"] == site) & effects["difference"].notna()]
    if missing or shown.empty:
        raise DataError("table of effects against placebo", expected=f"{', '.join(NEEDED)}; rows of site {site!r}")
    directions = [name for name in DIRECTIONS if name in set(shown["direction"])]
    figure, all_axes = panels(
        len(directions),
        height=2.3,
        title=f"Effect beyond placebo ({site})",
        caption=caption_of(
            f"up to {int(shown['n_items'].max())} items in {int(shown['n_families'].max())} families",
            caption,
            "Bands: 95 % intervals over families. Rings: differs from placebo, all cells of a direction taken together",
        ),
    )
    for axes, direction in zip(all_axes, directions, strict=True):
        inside = shown[shown["direction"] == direction]
        for number, (role, rows) in enumerate(inside.groupby("role", sort=True, observed=True)):
            drawn, rows = look(str(role), number), rows.sort_values("layer")
            axes.fill_between(rows["layer"], rows["low"], rows["high"], color=drawn.color, alpha=0.16, linewidth=0)
            axes.plot(
                rows["layer"],
                rows["difference"],
                color=drawn.color,
                marker=drawn.marker,
                linestyle=drawn.dash,
                label=role,
            )
            named = rows[rows["verdict"] == "differs"]
            axes.scatter(named["layer"], named["difference"], s=48, facecolor="none", edgecolor=GREY, zorder=4)
        reference_line(axes)
        axes.set_title(DIRECTIONS[direction])
        axes.set_ylabel("effect − placebo\n(nats)")
    layer_axis(all_axes[-1])
    legend_above(figure, all_axes[0])
    return figure
