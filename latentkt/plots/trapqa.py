"""TrapQA's tables as figures: errors by condition, probe state, fame, confidence, and in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latentkt.plots.columns import require
from latentkt.plots.series import caption_of, dot_across, legend_above
from latentkt.plots.style import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, SKY, TITLE, VERMILION, Look, panels, styled

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "trapqa_calibration",
    "trapqa_consensus",
    "trapqa_errors",
    "trapqa_everyday",
    "trapqa_fame",
    "trapqa_probe_states",
]

Series = dict[str, tuple[str, Look]]
BARS = "Bars: 95 % intervals"

CONDITIONS: Series = {
    "names_rate_pct": ("names only", Look(VERMILION, "o", "-")),
    "profiles_rate_pct": ("profiles in context", Look(BLUE, "s", "--")),
}
STATES: Series = {
    "both_wrong_rate_pct": ("knows both", Look(BLUE, "o", "-")),
    "one_wrong_rate_pct": ("knows one", Look(ORANGE, "s", "--")),
    "neither_wrong_rate_pct": ("knows neither", Look(VERMILION, "^", ":")),
}
FAME: Series = {
    "hall_wrong_more_famous_pct": ("wrong candidate more famous", Look(VERMILION, "o", "-")),
    "hall_wrong_not_more_famous_pct": ("not more famous", Look(BLUE, "s", "--")),
}
SETTINGS = [
    Look(VERMILION, "o", "-"),
    Look(BLUE, "s", "--"),
    Look(GREEN, "^", "-."),
    Look(PURPLE, "D", ":"),
    Look(ORANGE, "P", "-"),
    Look(SKY, "v", "--"),
    Look(INK, "X", "-."),
    Look(GREY, "d", ":"),
]


@styled
def trapqa_errors(table1: pd.DataFrame, *, caption: str = "") -> Figure:
    """Error rates by condition, one row a setting.

    Args:
        table1: Table `trapqa_table1` of `latentkt.plots.columns`.
        caption: What the table cannot tell.

    Raises:
        DataError: A column is missing or there are no rows.
    """
    require(table1, "trapqa_table1")
    answers = int(table1[["names_n", "profiles_n"]].max().max())
    return _dots(
        table1, CONDITIONS, "Errors by condition", caption, f"up to {answers:,} answers a setting and condition"
    )


@styled
def trapqa_probe_states(table4: pd.DataFrame, *, caption: str = "") -> Figure:
    """Error rates by how many of the two probes were answered rightly, one row a setting.

    Args:
        table4: Table `trapqa_table4` of `latentkt.plots.columns`.
        caption: What the table cannot tell.

    Raises:
        DataError: A column is missing or there are no rows.
    """
    require(table4, "trapqa_table4")
    return _dots(table4, STATES, "Errors by what the probes show to be known", caption, "names only")


@styled
def trapqa_fame(table9: pd.DataFrame, *, caption: str = "") -> Figure:
    """Error rates by whether the wrong candidate is the more famous one, one row a setting.

    Args:
        table9: Table `trapqa_table9` of `latentkt.plots.columns`.
        caption: What the table cannot tell.

    Raises:
        DataError: A column is missing or there are no rows.
    """
    require(table9, "trapqa_table9")
    note = f"names only, up to {int(table9['n'].max()):,} answers a setting"
    return _dots(table9, FAME, "Errors by direction of fame", caption, note)


@styled
def trapqa_everyday(everyday: pd.DataFrame, *, by: str | None = None, caption: str = "") -> Figure:
    """Error rates on everyday items by family, aspect or kind of constraint, one series a setting.

    Args:
        everyday: Table `trapqa_everyday` of `latentkt.plots.columns`.
        by: `family`, `aspect` or `constraint_kind`; default: the first of them that the table has.
        caption: What the table cannot tell.

    Raises:
        DataError: A column is missing or there are no rows.
    """
    require(everyday, "trapqa_everyday")
    by = by or next((name for name in ("family", "aspect", "constraint_kind") if name in set(everyday["by"])), "family")
    kept = everyday[everyday["by"] == by]
    require(kept, "trapqa_everyday")
    labels = sorted(kept["value"].unique())
    figure, (axes,) = _figure(
        len(labels), f"Errors on everyday items by {by.replace('_', ' ')}", caption, f"{int(kept['n'].sum()):,} answers"
    )
    settings = list(dict.fromkeys(kept["setting"]))
    for number, setting in enumerate(settings):
        rows = {row["value"]: row for row in kept[kept["setting"] == setting].to_dict("records")}
        for place, label in enumerate(labels):
            if label in rows:
                y = place + _shift(number, len(settings))
                dot_across(
                    axes, y, rows[label], "rate_pct", SETTINGS[number % len(SETTINGS)], setting if place == 0 else None
                )
    _percent_axis(axes, [str(label).replace("_", " ") for label in labels])
    _legend_of_settings(figure, axes)
    return figure


@styled
def trapqa_calibration(calibration: pd.DataFrame, *, caption: str = "") -> Figure:
    """Share of right answers against stated confidence, one curve a setting; on the diagonal the two agree.

    Args:
        calibration: Table `trapqa_calibration` of `latentkt.plots.columns`.
        caption: What the table cannot tell.

    Raises:
        DataError: A column is missing or there are no rows.
    """
    require(calibration, "trapqa_calibration")
    note = f"{int(calibration['n'].sum()):,} answers in {calibration['setting'].nunique()} settings"
    words = "One point: ten points of confidence. Below the diagonal: more confident than right"
    figure, (axes,) = panels(
        1, height=3.6, title="Does confidence tell?", caption=caption_of(note, caption, words, BARS)
    )
    axes.plot([0, 100], [0, 100], color=GREY, linewidth=1, linestyle=(0, (2, 2)), zorder=1)
    for number, (setting, rows) in enumerate(calibration.groupby("setting", sort=False)):
        drawn = SETTINGS[number % len(SETTINGS)]
        ends = rows[["accuracy_pct", "accuracy_pct_low", "accuracy_pct_high"]].to_numpy().T
        axes.errorbar(
            rows["confidence"],
            ends[0],
            yerr=[ends[0] - ends[1], ends[2] - ends[0]],
            color=drawn.color,
            marker=drawn.marker,
            linestyle=drawn.dash,
            capsize=2,
            label=str(setting),
        )
    axes.set(xlim=(-3, 103), ylim=(-3, 103), xlabel="confidence (points of 100)", ylabel="right answers (%)")
    _legend_of_settings(figure, axes)
    return figure


@styled
def trapqa_consensus(consensus: pd.DataFrame, *, caption: str = "") -> Figure:
    """How many questions are missed by 0, 1, … all settings, and how many would be by chance.

    Args:
        consensus: Table `trapqa_consensus` of `latentkt.plots.columns`.
        caption: What the table cannot tell.

    Raises:
        DataError: A column is missing or there are no rows.
    """
    require(consensus, "trapqa_consensus")
    settings, questions = int(consensus["settings_wrong"].max()), int(consensus["observed"].sum())
    words = "Independent: each setting errs at its own rate. One difficulty: questions also differ in how hard they are"
    figure, (axes,) = panels(
        1,
        height=2.8,
        title="Do settings miss the same questions?",
        caption=caption_of(f"{questions:,} questions asked of all {settings} settings", caption, words),
    )
    series = {
        "observed": ("observed", Look(VERMILION, "o", "-")),
        "expected_independent": ("independent", Look(GREY, "^", ":")),
        "expected_one_difficulty": ("one difficulty a question", Look(BLUE, "s", "--")),
    }
    for column, (label, drawn) in series.items():
        # A logarithmic axis has no place for none.
        counts = consensus[column].where(consensus[column] >= 0.01)
        line = drawn.dash if column != "observed" else "none"
        axes.plot(
            consensus["settings_wrong"], counts, color=drawn.color, marker=drawn.marker, linestyle=line, label=label
        )
    axes.set_yscale("log")
    axes.set_xticks(consensus["settings_wrong"])
    axes.set(xlabel="settings that miss the question", ylabel="questions")
    legend_above(figure, axes)
    return figure


def _dots(table: pd.DataFrame, series: Series, title: str, caption: str, note: str) -> Figure:
    figure, (axes,) = _figure(len(table), title, caption, note)
    for number, (key, (label, drawn)) in enumerate(series.items()):
        for place, row in enumerate(table.to_dict("records")):
            dot_across(axes, place + _shift(number, len(series)), row, key, drawn, label if place == 0 else None)
    _percent_axis(axes, [str(name) for name in table["setting"]])
    legend_above(figure, axes)
    return figure


def _legend_of_settings(figure: Figure, axes: Axes) -> None:
    """A legend with lines of its own between title and panel: names of settings are long, and there may be many."""
    handles, labels = axes.get_legend_handles_labels()
    columns = 2 if max(map(len, labels)) < 30 else 1
    lines = -(-len(labels) // columns)
    figure.set_figheight(figure.get_figheight() + 0.19 * lines)
    # Empty lines of the title make the layout keep the room that the legend takes.
    figure.suptitle(figure.get_suptitle() + "\n " * (lines + lines // 3), **TITLE)
    top = 1 - 0.19 / figure.get_figheight()
    figure.legend(handles, labels, loc="upper left", bbox_to_anchor=(0.0, top), ncols=columns, borderaxespad=0.2)


def _figure(rows: int, title: str, caption: str, note: str) -> tuple[Figure, list[Axes]]:
    return panels(1, height=0.7 + 0.34 * rows, title=title, caption=caption_of(note, caption, BARS))


def _shift(number: int, count: int) -> float:
    """Place of a series within its row, symmetric about the middle."""
    return 0.22 * (number - (count - 1) / 2) * min(1.0, 3 / count)


def _percent_axis(axes: Axes, labels: list[str]) -> None:
    axes.set_yticks(np.arange(len(labels)), labels, fontsize=8)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)
    axes.set_xlim(left=min(0.0, axes.get_xlim()[0]))
    axes.set_xlabel("errors (%)")
