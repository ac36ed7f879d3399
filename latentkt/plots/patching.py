"""Which tokens carry what the answer turns on, and in which layers: effects of patching by role."""

from __future__ import annotations

from typing import TYPE_CHECKING

from latentkt.errors import DataError
from latentkt.plots.columns import require
from latentkt.plots.series import band, caption_of, layer_axis, legend_above, reference_line
from latentkt.plots.style import look, panels, styled
from latentkt.plots.summaries import intervals, items_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["DIRECTIONS", "patch_by_role"]

DIRECTIONS = {"control_to_item": "control patched into item", "item_to_control": "item patched into control"}
# Roles in the order of the prompt's argument; others follow by name.
ROLES = ("shortcut", "constraint", "last")


@styled
def patch_by_role(patch: pd.DataFrame, *, site: str | None = None, caption: str = "") -> Figure:
    """Effect of patching the tokens of each role, layer by layer, one panel a direction.

    Args:
        patch: Table `patch` of `latentkt.plots.columns`.
        site: Which site to show; needed only where the table holds several.
        caption: What the table cannot tell: preset, model.

    Returns:
        The figure; y is the change of the log-odds of y* over y_s in nats, bands are 95 % intervals of the mean over
        families.

    Raises:
        DataError: A column is missing, there are no rows, or the site is not in the table.
    """
    require(patch, "patch")
    sites = sorted(patch["site"].unique())
    chosen = sites[0] if site is None and len(sites) == 1 else site
    if chosen not in sites:
        raise DataError("site of the patch figure", expected=f"one of {', '.join(sites)}", found=site)
    table = patch[patch["site"] == chosen]
    directions = [name for name in DIRECTIONS if name in set(table["direction"])]
    roles = sorted(table["role"].unique(), key=lambda role: (ROLES.index(role) if role in ROLES else len(ROLES), role))
    figure, all_axes = panels(
        max(1, len(directions)),
        height=2.3,
        title=f"Which tokens move the answer? ({chosen})",
        caption=caption_of(
            items_of(table), caption, "Means over option orders. Bands: 95 % intervals of the mean over families"
        ),
    )
    means = intervals(table, "effect", ["direction", "role", "layer"])
    for axes, direction in zip(all_axes, directions, strict=False):
        for position, role in enumerate(roles):
            rows = means[(means["direction"] == direction) & (means["role"] == role)]
            band(axes, rows["layer"], rows, look(role, position), label=role)
        reference_line(axes)
        axes.set_title(DIRECTIONS[direction])
        axes.set_ylabel("change of log-odds\n(nats)")
    layer_axis(all_axes[-1])
    legend_above(figure, all_axes[0])
    return figure
