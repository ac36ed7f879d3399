"""Attention knockout: which role must read which, as arcs between roles and layer by layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latentkt.errors import DataError
from latentkt.plots.columns import require
from latentkt.plots.series import caption_of, layer_axis, legend_above, reference_line
from latentkt.plots.style import BLUE, GREY, INK, PALE, VERMILION, Look, look, panels, styled
from latentkt.plots.summaries import intervals, items_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["WHICH", "edge_name", "knockout_by_layer", "knockout_edges", "strongest_cuts"]

WHICH = {"item": "items", "control": "controls", "neutral": "neutral prompts"}
ROLES = ("shortcut", "constraint", "rest", "option_correct", "option_shortcut", "answer", "last")
SHOWN = {"option_correct": "option $y^*$", "option_shortcut": "option $y_s$", "last": "last token"}
_SHOWN_LINES = 4
_UNDER = -0.3  # below the names of the roles


def edge_name(read: str, reading: str) -> str:
    """`constraint → last`.

    Example:
        >>> edge_name("option_correct", "last")
        'option correct → last'
    """
    return f"{read} → {reading}".replace("_", " ")


def strongest_cuts(knockout: pd.DataFrame) -> pd.DataFrame:
    """For each kind of prompt and edge the layer at which the mean effect over items is largest in size.

    Args:
        knockout: Table of `latentkt.internals.knockout`, heads taken together.

    Returns:
        `which`, `from_role`, `to_role`, `layer`, `value`, `low`, `high` (nats, interval over families), `n`; largest
        first. They are picked for their size: read them as a description.
    """
    require(knockout, "knockout")
    whole = knockout[(knockout["head"] == -1) & knockout["effect"].notna()]
    if whole.empty:
        raise DataError("table of knockouts", expected="edges that exist, heads cut together", found="none")
    means = intervals(whole, "effect", ["which", "from_role", "to_role", "layer"])
    means = means[means["value"].notna()]
    best = means.loc[means.groupby(["which", "from_role", "to_role"])["value"].apply(lambda x: x.abs().idxmax())]
    return best.sort_values("value", key=np.abs, ascending=False).reset_index(drop=True)


@styled
def knockout_edges(knockout: pd.DataFrame, *, caption: str = "") -> Figure:
    """Roles in a row, and an arc for every edge that was cut, as thick as its largest effect.

    Args:
        knockout: Table of `latentkt.internals.knockout`.
        caption: What the table cannot tell: preset, model.

    Returns:
        The figure, one panel for items and one for controls. Blue: without the edge y* loses; vermilion: it gains.
        Arcs above the row go forward in it, arcs below backward. The number is the effect in nats and its layer.

    Raises:
        DataError: A column is missing, or no edge exists.
    """
    best = strongest_cuts(knockout)
    whiches = [name for name in WHICH if name in set(best["which"])]
    present = set(best["from_role"]) | set(best["to_role"])
    roles = [role for role in ROLES if role in present]
    roles += sorted(present - set(roles))
    window = sorted({int(width) for width in knockout["window"]})
    figure, all_axes = panels(
        len(whiches),
        height=2.1,
        title=f"Cutting attention between roles (window {', '.join(map(str, window))})",
        caption=caption_of(
            items_of(knockout),
            caption,
            "Change of the log-odds when the reading role can no longer see the read one, at the layer (L) where the "
            "mean is largest in size; picked for it",
            "Blue: $y^*$ loses without the edge; vermilion: it gains",
        ),
    )
    largest = float(best["value"].abs().max()) or 1.0
    for axes, which in zip(all_axes, whiches, strict=True):
        _arcs(axes, best[best["which"] == which], roles, largest)
        axes.set_title(WHICH[which])
    return figure


def _arcs(axes: Axes, rows: pd.DataFrame, roles: list[str], largest: float) -> None:
    from matplotlib.patches import FancyArrowPatch

    for row in rows.sort_values("value", key=np.abs).to_dict("records"):
        start, stop = roles.index(row["from_role"]), roles.index(row["to_role"])
        forward, size = stop > start, abs(row["value"]) / largest
        color = BLUE if row["value"] < 0 else VERMILION
        height = 0.34 * abs(stop - start)
        axes.add_patch(
            FancyArrowPatch(
                (start, 0.06 if forward else _UNDER),
                (stop, 0.06 if forward else _UNDER),
                connectionstyle="arc3,rad=-0.55",  # turns to the left of its way: above going forward, below going back
                arrowstyle="-|>",
                mutation_scale=8,
                linewidth=0.5 + 4 * size,
                color=color,
                alpha=0.25 + 0.7 * size,
                shrinkA=4,
                shrinkB=4,
            )
        )
        if size > 0.15:
            at = 0.83 * height if forward else _UNDER - 0.83 * height
            text = f"{row['value']:+.1f} L{int(row['layer'])}"
            axes.text((start + stop) / 2, at, text, ha="center", va="center", fontsize=6.5, color=INK, zorder=5,
                      bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.8})  # fmt: skip
    reach = 0.34 * (len(roles) - 1) + 0.25
    back = max(roles.index(a) - roles.index(b) for a, b in zip(rows["from_role"], rows["to_role"], strict=True))
    axes.scatter(range(len(roles)), [0] * len(roles), s=46, color=PALE, edgecolor=GREY, zorder=4)
    axes.set(xlim=(-0.5, len(roles) - 0.5), ylim=(_UNDER - 0.34 * max(back, 0), reach), xticks=[], yticks=[])
    for place, role in enumerate(roles):
        name = SHOWN.get(role, role.replace("_", " "))
        axes.text(place, 0.5 * _UNDER, name, ha="center", va="center", fontsize=7.5, color=INK)
    axes.grid(visible=False)
    axes.spines[["left", "bottom"]].set_visible(False)


@styled
def knockout_by_layer(knockout: pd.DataFrame, *, caption: str = "", count: int = _SHOWN_LINES) -> Figure:
    """Effect of cutting an edge by layer, one panel for items and one for controls, the strongest edges.

    Args:
        knockout: Table of `latentkt.internals.knockout`.
        caption: What the table cannot tell: preset, model.
        count: How many edges.

    Returns:
        The figure; y in nats, bands are 95 % intervals over families.

    Raises:
        DataError: A column is missing, or no edge exists.
    """
    best = strongest_cuts(knockout)
    edges = list(dict.fromkeys(zip(best["from_role"], best["to_role"], strict=True)))[:count]
    whole = knockout[knockout["head"] == -1]
    means = intervals(whole, "effect", ["which", "from_role", "to_role", "layer"])
    whiches = [name for name in WHICH if name in set(means["which"])]
    window = sorted({int(width) for width in whole["window"]})
    figure, all_axes = panels(
        len(whiches),
        height=2.2,
        title=f"Cutting attention, layer by layer (window {', '.join(map(str, window))})",
        caption=caption_of(items_of(whole), caption, "Bands: 95 % intervals over families"),
        sharey=True,
    )
    for axes, which in zip(all_axes, whiches, strict=True):
        for number, (read, reading) in enumerate(edges):
            rows = means[(means["which"] == which) & (means["from_role"] == read) & (means["to_role"] == reading)]
            drawn = _look(read, reading, number)
            axes.fill_between(rows["layer"], rows["low"], rows["high"], color=drawn.color, alpha=0.15, linewidth=0)
            axes.plot(
                rows["layer"],
                rows["value"],
                color=drawn.color,
                marker=drawn.marker,
                linestyle=drawn.dash,
                label=edge_name(read, reading),
            )
        reference_line(axes)
        axes.set_title(WHICH[which])
        axes.set_ylabel("change of log-odds\n(nats)")
    all_axes[-1].set_xlim(left=-0.5)
    layer_axis(all_axes[-1])
    legend_above(figure, all_axes[0], columns=2)
    return figure


def _look(read: str, reading: str, number: int) -> Look:
    return look(read if reading == "last" else edge_name(read, reading), number)
