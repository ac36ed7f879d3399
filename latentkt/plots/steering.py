"""What a change along a direction does to the answer, beside changes of the same length that point elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from latentkt.errors import DataError
from latentkt.plots.series import caption_of, legend_above
from latentkt.plots.style import GREY, Look, look, panels, styled
from latentkt.stats import cluster_interval

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["SHOWN", "steering_effects"]

NEEDED = ("item", "family", "how", "strength", "control", "effect", "model", "axis")
SHOWN = {"": "direction", "arbitrary labels": "arbitrary", "read": "read part", "unread": "unread"}
"""Controls that are shown one by one; random directions are pooled."""


@styled
def steering_effects(steer: pd.DataFrame, *, model: str = "trained", caption: str = "") -> Figure:
    """Effect of every way to steer, the direction and each control, means over items.

    Args:
        steer: Table `steer` of `latentkt.internals.steer_left_out`.
        model: `trained` or `random weights`.
        caption: What the table cannot tell: preset, model.

    Returns:
        The figure; bars are 95 % intervals over families, grey dots single items and random directions.

    Raises:
        DataError: A column is missing, or there are no rows of the model.
    """
    missing = [column for column in NEEDED if column not in steer.columns]
    rows = steer if missing else steer[(steer["model"] == model) & steer["effect"].notna()]
    if missing or rows.empty:
        raise DataError("table 'steer'", expected=f"rows of {model} with {', '.join(NEEDED)}", found=missing or "none")
    ways = list(dict.fromkeys(zip(rows["how"], rows["strength"], strict=True)))
    names = [name for name in SHOWN if (rows["control"] == name).any()]
    figure, (axes,) = panels(
        1,
        height=0.55 + 0.62 * len(ways),
        title=f"Steering along {rows['axis'].iloc[0]!r}",
        caption=caption_of(
            f"{rows['item'].nunique()} items in {rows['family'].nunique()} families",
            caption,
            "Grey ticks: random directions; arbitrary: of shuffled labels; both of the same length. Read, unread: parts"
            " of the change. Bars: 95 % intervals over families",
        ),
    )
    _no_effect(axes)
    for place, (how, strength) in enumerate(reversed(ways)):
        here = rows[(rows["how"] == how) & (rows["strength"] == strength)]
        random = here[here["control"].str.startswith("random")]
        axes.plot(random["effect"], [place - 0.28] * len(random), "|", color=GREY, markersize=9, alpha=0.6)
        for number, name in enumerate(names):
            mine = here[here["control"] == name]
            appearance = look("item") if not name else look(name, number)
            _point(axes, mine, place + 0.3 - 0.16 * number, appearance, SHOWN[name] if place == 0 else None)
    axes.set_yticks(range(len(ways)), [_label(*way) for way in reversed(ways)])
    axes.set_xlabel("effect on the log-odds (nats)")
    axes.grid(axis="y", visible=False)
    legend_above(figure, axes)
    return figure


def _no_effect(axes: object) -> None:
    """A thin line down at no effect."""
    axes.axvline(0.0, color=GREY, linewidth=1, linestyle=(0, (2, 2)), zorder=1)  # type: ignore[attr-defined]


def _point(axes: object, rows: pd.DataFrame, height: float, appearance: Look, label: str | None) -> None:
    if rows.empty:
        return
    both = cluster_interval(rows["effect"].to_numpy(dtype=float), rows["family"].tolist()).interval
    ends = [[both.value - both.low], [both.high - both.value]] if both.low == both.low else None
    axes.errorbar(  # type: ignore[attr-defined]
        both.value, height, xerr=ends, color=appearance.color, marker=appearance.marker, markersize=5.5, capsize=2.5,
        linestyle="none", label=label, zorder=3,
    )  # fmt: skip


def _label(how: str, strength: float) -> str:
    return f"{how} {strength:+g}" if how == "add" else how
