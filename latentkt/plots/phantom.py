"""Concepts that do not exist: what is said of them, and whether the network tells them apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latentkt.plots.columns import require
from latentkt.plots.series import band, caption_of, dot_across, layer_axis, legend_above, reference_line, with_bar
from latentkt.plots.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    TITLE,
    VERMILION,
    Look,
    look,
    panels,
    styled,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = [
    "phantom_abstention",
    "phantom_kinds",
    "phantom_probe",
    "phantom_rates",
    "phantom_selectivity",
    "phantom_steering",
]

EXISTENCE: dict[str, tuple[str, Look]] = {
    "phantom": ("do not exist", Look(VERMILION, "o", "-")),
    "rare": ("rare", Look(BLUE, "s", "--")),
    "common": ("common", Look(GREEN, "^", "-.")),
    "unattested": ("real, not in the corpus", Look(GREY, "v", ":")),
}
KIND_COLORS = {
    "uncertainty": BLUE,
    "alternative": ORANGE,
    "context": GREEN,
    "decompose": PURPLE,
    "presume": SKY,
}
BARS = "Bars: 95 % intervals, a seed and what was made of it count once"


@styled
def phantom_rates(rates: pd.DataFrame, *, setting: str | None = None, caption: str = "") -> Figure:
    """Share of replies that answer as if the concept were known, by property, for made and for real concepts.

    Args:
        rates: Table `phantom_rates` of `latentkt.plots.columns`.
        setting: Which setting; needed only where the table holds several.
        caption: What the table cannot tell.

    Raises:
        DataError: A column is missing or there are no rows.
    """
    mine = _of_setting(rates, "phantom_rates", setting)
    mine = mine[(mine["convention"] == "all") & (mine["by"] == "property") & mine["existence"].isin(EXISTENCE)]
    require(mine, "phantom_rates")
    properties = list(dict.fromkeys(mine["property"]))
    figure, (axes,) = panels(
        1,
        height=0.8 + 0.42 * len(properties),
        title="How often is an answer given?",
        caption=caption_of(f"{int(mine['n'].sum()):,} replies", caption, BARS),
    )
    shown = [name for name in EXISTENCE if name in set(mine["existence"])]
    for number, existence in enumerate(shown):
        label, drawn = EXISTENCE[existence]
        for row in mine[mine["existence"] == existence].to_dict("records"):
            y = properties.index(row["property"]) + 0.2 * (number - (len(shown) - 1) / 2)
            dot_across(axes, y, row, "rate_pct", drawn, label if row["property"] == properties[0] else None)
    axes.set_yticks(np.arange(len(properties)), properties, fontsize=8)
    axes.set_ylim(len(properties) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)
    axes.set_xlim(-3, 103)
    axes.set_xlabel("replies that do not abstain (%)")
    legend_above(figure, axes)
    return figure


@styled
def phantom_selectivity(selectivity: pd.DataFrame, *, caption: str = "") -> Figure:
    """Abstention on concepts that do not exist against that on common ones; above the diagonal it is selective.

    Args:
        selectivity: Table `phantom_selectivity` of `latentkt.plots.columns`.
        caption: What the table cannot tell.

    Raises:
        DataError: A column is missing or there are no rows.
    """
    require(selectivity, "phantom_selectivity")
    rows = selectivity[(selectivity["convention"] == "all") & (selectivity["concept_kind"] == "all")]
    rows = rows.dropna(subset=["phantom_pct", "common_pct"])
    require(rows, "phantom_selectivity")
    words = "Above the diagonal: abstains more on what does not exist. Best: upper left corner"
    figure, (axes,) = panels(
        1,
        height=3.7,
        title="Is abstention selective?",
        caption=caption_of(f"{len(rows)} settings", caption, words, BARS),
    )
    axes.plot([0, 100], [0, 100], color=GREY, linewidth=1, linestyle=(0, (2, 2)), zorder=1)
    for number, row in enumerate(rows.to_dict("records")):
        drawn = look(str(row["setting"]), number)
        (x, x_error), (y, y_error) = (with_bar(row, name) for name in ("common_pct", "phantom_pct"))
        axes.errorbar(
            x,
            y,
            xerr=x_error,
            yerr=y_error,
            color=drawn.color,
            marker=drawn.marker,
            capsize=2,
            linestyle="none",
            label=str(row["setting"]),
        )
    axes.set(xlim=(-3, 103), ylim=(-3, 103), aspect="equal")
    axes.set_xlabel("abstains on common concepts (%)")
    axes.set_ylabel("abstains on concepts\nthat do not exist (%)")
    legend_above(figure, axes)
    return figure


@styled
def phantom_kinds(kinds: pd.DataFrame, *, setting: str | None = None, caption: str = "") -> Figure:
    """What abstentions are made of: shares of the five kinds, one bar an existence.

    Args:
        kinds: Table `phantom_kinds` of `latentkt.plots.columns`.
        setting: Which setting; needed only where the table holds several.
        caption: What the table cannot tell.

    Raises:
        DataError: A column is missing or there are no rows.
    """
    mine = _of_setting(kinds, "phantom_kinds", setting)
    mine = mine[mine["n"] > 0]
    require(mine, "phantom_kinds")
    groups = [name for name in EXISTENCE if name in set(mine["existence"])]
    totals = {name: int(mine.loc[mine["existence"] == name, "n"].iloc[0]) for name in groups}
    figure, (axes,) = panels(
        1,
        height=0.7 + 0.4 * len(groups),
        title="How does it abstain?",
        caption=caption_of(f"{sum(totals.values()):,} abstentions", caption, "In brackets: abstentions in each bar"),
    )
    for place, name in enumerate(groups):
        start = 0.0
        for kind, color in KIND_COLORS.items():
            found = mine.loc[(mine["existence"] == name) & (mine["kind"] == kind), "share_pct"]
            share = float(found.iloc[0]) if len(found) else 0.0
            axes.barh(place, share, left=start, height=0.6, color=color, label=kind if place == 0 else None)
            start += share
    axes.set_yticks(range(len(groups)), [f"{EXISTENCE[name][0]} ({totals[name]})" for name in groups], fontsize=8)
    axes.set_ylim(len(groups) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)
    axes.set_xlim(0, 100)
    axes.set_xlabel("share of abstentions (%)")
    # Two lines of legend: empty lines of the title make the layout keep their room.
    figure.set_figheight(figure.get_figheight() + 0.25)
    figure.suptitle(f"{figure.get_suptitle()}\n \n ", **TITLE)
    top = 1 - 0.19 / figure.get_figheight()
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper left", bbox_to_anchor=(0.0, top), ncols=3, borderaxespad=0.2)
    return figure


@styled
def phantom_probe(probe: pd.DataFrame, *, target: str | None = None, title: str = "", caption: str = "") -> Figure:
    """Held-out accuracy of a probe at the concept's last token by layer, beside its baselines.

    Args:
        probe: Table `phantom_probe` of `latentkt.plots.columns`.
        target: Which contrast; needed only where the table holds several.
        title: What is told apart.
        caption: What the table cannot tell.

    Raises:
        DataError: A column is missing or there are no rows.
    """
    require(probe, "phantom_probe")
    mine = probe[probe["target"] == (target or probe["target"].iloc[0])].sort_values("layer")
    require(mine, "phantom_probe")
    rows, groups = int(mine["n_rows"].iloc[0]), int(mine["n_groups"].iloc[0])
    figure, (axes,) = panels(
        1,
        height=2.7,
        title=title or f"Can {mine['target'].iloc[0]!r} be read?",
        caption=caption_of(
            f"{rows} concepts matched on category, tokens, words and frequency; folds leave out whole seeds ({groups})",
            caption,
            "Bag: of subwords. Embedding: mean over the concept's tokens. Bands: 95 % intervals over seeds",
        ),
    )
    for prefix, name, label in (("", "probe", "probe"), ("bag_", "bag", "bag")):
        drawn = {end: 100 * mine[f"{prefix}{column}"] for end, column in _ENDS.items()}
        band(axes, mine["layer"], mine.assign(**drawn), look(name), label=label)
    axes.plot(mine["layer"], 100 * mine["embedding_score"], color=GREY, linestyle=":", label="embedding")
    reference_line(axes, 50.0, label="chance")
    axes.set_ylim(30, 102)
    axes.set_ylabel("held-out accuracy (%)")
    layer_axis(axes)
    legend_above(figure, axes)
    return figure


_ENDS = {"value": "score", "low": "low", "high": "high"}


@styled
def phantom_abstention(abstention: pd.DataFrame, *, caption: str = "") -> Figure:
    """How well the direction from real to made tells on which concepts the model abstains, by layer.

    Args:
        abstention: Table `phantom_abstention` of `latentkt.plots.columns`.
        caption: What the table cannot tell.

    Raises:
        DataError: A column is missing, or no area could be given.
    """
    require(abstention, "phantom_abstention")
    mine = abstention[abstention["property"] == "all"].dropna(subset=["auc"]).sort_values("layer")
    require(mine, "phantom_abstention")
    words = "Area under the curve: chance that a concept on which it abstains more than on the median one scores higher"
    scopes = {"all": ("all concepts", "control"), "phantom": ("made concepts alone", "item")}
    units = "; ".join(
        f"{scopes[str(name)][0]}: {int(part['n'].iloc[0])}, {int(part['n_abstained'].iloc[0])} abstained on"
        for name, part in mine.groupby("scope")
    )
    figure, (axes,) = panels(
        1,
        height=2.6,
        title="Does the direction predict abstention?",
        caption=caption_of(units, caption, words, "Bands: 95 % intervals"),
    )
    for scope, part in mine.groupby("scope"):
        label, name = scopes[str(scope)]
        drawn = {"value": part["auc"], "low": part["auc_low"], "high": part["auc_high"]}
        band(axes, part["layer"], part.assign(**drawn), look(name), label=label)
    reference_line(axes, 0.5, label="no relation")
    axes.set_ylim(0, 1)
    axes.set_ylabel("area under the curve")
    layer_axis(axes)
    legend_above(figure, axes)
    return figure


@styled
def phantom_steering(steering: pd.DataFrame, *, caption: str = "") -> Figure:
    """Change of the log-odds of "No" over "Yes" with the dose, along the probe's direction and along random ones.

    Args:
        steering: Table `phantom_steering` of `latentkt.plots.columns`.
        caption: What the table cannot tell.

    Raises:
        DataError: A column is missing or there are no rows.
    """
    import pandas as pd

    from latentkt.stats import mean_interval

    require(steering, "phantom_steering")
    layer, concepts = int(steering["layer"].iloc[0]), steering["concept_id"].nunique()
    words = "One step: the distance between the means of real and made concepts. Band: 95 % interval over concepts"
    figure, (axes,) = panels(
        1,
        height=2.7,
        title="Does the direction move the answer?",
        caption=caption_of(f"{concepts} concepts, pushed after layer {layer}", caption, words),
    )
    for number, (name, mine) in enumerate(steering.groupby("direction", sort=False)):
        groups = mine.groupby("dose")["change"]
        rows = pd.DataFrame([{"dose": dose, **mean_interval(values).to_row()} for dose, values in groups])
        if name == "made":
            band(axes, rows["dose"], rows, look("item"), label="made − real")
        else:
            label = "random, same length" if number == 1 else None
            axes.plot(rows["dose"], rows["value"], color=GREY, linewidth=1, linestyle=":", label=label)
    reference_line(axes)
    axes.set_xlabel("dose (steps towards made)")
    axes.set_ylabel("change of log-odds,\nNo over Yes (nats)")
    legend_above(figure, axes)
    return figure


def _of_setting(table: pd.DataFrame, name: str, setting: str | None) -> pd.DataFrame:
    require(table, name)
    return table[table["setting"] == (setting or table["setting"].iloc[0])]
