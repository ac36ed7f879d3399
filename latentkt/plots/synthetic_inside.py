"""Inside trained networks: both answers by layer, and what each role's outputs move, one panel a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latentkt.plots.series import layer_axis, legend_above, reference_line
from latentkt.plots.style import Y_CORRECT, Y_SHORTCUT, look, panels, styled

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["answers_by_layer", "outputs_by_role"]

NETWORKS = "One mark a network (mean over its traps and both orders); the line is their mean."


@styled
def answers_by_layer(lens: pd.DataFrame, *, caption: str = "") -> Figure:
    """Log-probability of y* and y_s after each layer on traps, one panel a cluster.

    Args:
        lens: Table `lens` of a run of `latentkt.synthetic.run_inside`.
        caption: What the table cannot tell.

    Returns:
        The figure; y is in nats, −1 is the embedding.
    """
    items = lens[lens["which"] == "item"]
    kinds = sorted(items["kind"].unique(), reverse=True)
    figure, all_axes = panels(
        len(kinds), height=2.0, title="Which answer forms, and where?", caption=f"{caption} {NETWORKS}", sharey=True
    )
    for axes, kind in zip(all_axes, kinds, strict=True):
        part = items[items["kind"] == kind]
        for column, name, label in (
            ("logp_correct", "constraint", Y_CORRECT),
            ("logp_shortcut", "shortcut", Y_SHORTCUT),
        ):
            _by_network(axes, part, "layer", column, name, label)
        axes.set_title(f"cluster {kind}")
        axes.set_ylabel("log-probability (nats)")
    layer_axis(all_axes[-1])
    legend_above(figure, all_axes[0])
    return figure


@styled
def outputs_by_role(patch: pd.DataFrame, *, title: str, caption: str = "") -> Figure:
    """Effect of replacing attention and MLP outputs at a role, one panel a cluster.

    Args:
        patch: Table `patch` or `patch_shortcut` of a run of `latentkt.synthetic.run_inside`.
        title: What was replaced.
        caption: What the table cannot tell.

    Returns:
        The figure; y is the change of the log-odds of y* over y_s, in nats.
    """
    kinds = sorted(patch["kind"].unique(), reverse=True)
    figure, all_axes = panels(len(kinds), height=2.0, title=title, caption=f"{caption} {NETWORKS}", sharey=True)
    places = [
        (site, layer) for layer in sorted(patch["layer"].unique()) for site in ("attn_out", "mlp_out")
        if ((patch["site"] == site) & (patch["layer"] == layer)).any()
    ]  # fmt: skip
    order = {place: position for position, place in enumerate(places)}
    numbered = patch.assign(place=[order[place] for place in zip(patch["site"], patch["layer"], strict=True)])
    for axes, kind in zip(all_axes, kinds, strict=True):
        for role in ("shortcut", "constraint", "last"):
            part = numbered[(numbered["kind"] == kind) & (numbered["role"] == role)]
            _by_network(axes, part, "place", "effect", role, role)
        reference_line(axes)
        axes.set_title(f"cluster {kind}")
        axes.set_ylabel("effect (nats)")
        axes.set_xticks(range(len(places)), [f"{site} {layer}" for site, layer in places])
    legend_above(figure, all_axes[0])
    return figure


def _by_network(axes: Axes, part: pd.DataFrame, x: str, y: str, name: str, label: str) -> None:
    means = part.groupby(["family", x], observed=True)[y].mean().unstack(x)
    drawn = look(name)
    if means.empty:
        return
    for row in means.to_numpy():
        axes.plot(means.columns, row, linestyle="", marker=drawn.marker, color=drawn.color, alpha=0.45, markersize=3)
    axes.plot(means.columns, np.mean(means.to_numpy(), axis=0), drawn.dash, color=drawn.color, label=label)
