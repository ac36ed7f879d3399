"""Figures show the numbers of their tables, with units, counts and intervals, and refuse what they cannot show."""

from __future__ import annotations

import io

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image

from latentkt import plots
from latentkt.errors import DataError
from latentkt.plots.summaries import first_option, interval_of, intervals, item_minus_control, right_answers
from latentkt.stats import cluster_interval
from latentkt.trapqa.running import evidence
from tests import result_tables

FIGURES = [
    (plots.accuracy_by_kind, "answers"),
    (plots.item_against_control, "answers"),
    (plots.differences_by_family, "answers"),
    (plots.position_bias, "answers"),
    (plots.lens_trajectory, "lens"),
    (plots.patch_by_role, "patch"),
    (plots.probe_by_layer, "probe_layers"),
    (plots.evidence_by_item, "evidence"),
]
each_figure = pytest.mark.parametrize("function, name", FIGURES, ids=lambda value: getattr(value, "__name__", value))


@pytest.fixture(scope="module")
def tables() -> dict[str, pd.DataFrame]:
    made = {name: make() for name, make in result_tables.TABLES.items()}
    return {**made, "evidence": evidence(made["trapqa"])}


@each_figure
def test_a_figure_has_title_caption_and_axes_with_units(function, name, tables):
    figure = function(tables[name], caption="preset quick")
    assert isinstance(figure, Figure)
    assert figure.get_suptitle() and "preset quick" in figure.get_supxlabel()
    assert any(word in figure.get_supxlabel() for word in ("items in", "held-out rows"))
    labels = " ".join(axes.get_ylabel() + axes.get_xlabel() for axes in figure.axes)
    assert any(unit in labels for unit in ("nats", "%", "layer"))
    assert all(axes.get_xlabel() for axes in figure.axes[-1:]) or function in (
        plots.accuracy_by_kind,
        plots.position_bias,
    )


@each_figure
def test_a_figure_has_painted_pixels(function, name, tables):
    figure = function(tables[name])
    pixels = np.asarray(Image.open(io.BytesIO(plots.to_png(figure, dpi=60))).convert("RGB")).astype(int)
    assert (np.ptp(pixels, axis=2) > 60).mean() > 0.001


def test_a_figure_repeats_to_the_byte(tables):
    """The one with scattered points."""
    first, again = (plots.to_svg(plots.position_bias(tables["answers"])) for _ in range(2))
    assert first == again


@each_figure
def test_a_missing_column_is_named_and_more_columns_do_not_matter(function, name, tables):
    needed = {
        "answers": "log_odds",
        "lens": "position",
        "patch": "effect",
        "probe_layers": "bag_score",
        "evidence": "dominance",
    }[name]
    with pytest.raises(DataError, match=f"table '{name}' lacks columns: {needed}"):
        function(tables[name].drop(columns=needed))
    with pytest.raises(DataError, match="no rows"):
        function(tables[name].head(0))
    function(tables[name].assign(more=1))


def test_the_users_settings_are_left_alone(tables):
    before = dict(mpl.rcParams)
    plots.to_svg(plots.probe_by_layer(tables["probe_layers"]))
    assert dict(mpl.rcParams) == before


def test_right_is_yes_for_y_star_in_items_and_y_s_in_controls(tables):
    table = right_answers(tables["answers"])
    assert set(table["which"]) == {"item", "control"}
    items = table[table["which"] == "item"]
    assert (items["is_right"] == (items["log_odds"] > 0)).all()
    controls = table[table["which"] == "control"]
    assert (controls["is_right"] == (controls["log_odds"] < 0)).all()
    without = right_answers(tables["answers"].drop(columns="right"))
    assert (without["is_right"] == table["is_right"]).all()


def test_a_neutral_control_has_no_right_answer(tables):
    table = tables["answers"].copy()
    neutral = (table["which"] == "control") & (table["kind"] == "action")
    table.loc[neutral, "right"] = None
    assert set(right_answers(table).query("which == 'control'")["kind"]) == {"scientist"}


def test_differences_and_bias_are_taken_within_items():
    rows = [
        {"item": "a", "kind": "action", "family": "f", "which": which, "order": order, "log_odds": value}
        for which, order, value in [
            ("item", "correct_first", 3.0),
            ("item", "shortcut_first", 1.0),
            ("control", "correct_first", 2.0),
            ("control", "shortcut_first", -2.0),
        ]
    ]
    table = pd.DataFrame(rows)
    assert item_minus_control(table)["difference"].tolist() == [2.0]
    assert dict(first_option(table)[["which", "bias"]].to_numpy().tolist()) == {"item": 1.0, "control": 2.0}
    # An order that only the item has does not enter the difference.
    assert item_minus_control(table[:3])["difference"].tolist() == [1.0]
    assert first_option(table[:3])["which"].tolist() == ["item"]


def test_orders_are_averaged_before_families_are_counted(tables):
    table = tables["patch"].query("role == 'last' and layer == 11 and direction == 'item_to_control'")
    means = table.groupby(["family", "item"])["effect"].mean().reset_index()
    expected = cluster_interval(means["effect"], means["family"].tolist()).interval
    assert interval_of(table, "effect").interval == expected
    assert expected.clusters == 14 and expected.n == 28


def test_absent_cells_are_left_out_and_counted(tables):
    rows = intervals(tables["patch"], "effect", ["direction", "role", "layer"])
    cell = rows.query("direction == 'item_to_control' and role == 'constraint' and layer == 0").iloc[0]
    assert (cell["n"], cell["missing"], cell["clusters"]) == (27, 1, 14)


def test_the_lines_of_a_figure_are_the_means_of_the_table(tables):
    figure = plots.patch_by_role(tables["patch"])
    drawn = {line.get_label(): line.get_ydata() for line in figure.axes[0].lines}
    table = tables["patch"].query("direction == 'control_to_item' and role == 'last'")
    by_item = table.groupby(["layer", "family", "item"])["effect"].mean()
    expected = by_item.groupby(["layer", "family"]).mean().groupby("layer").mean()
    np.testing.assert_allclose(drawn["last"], expected.to_numpy())


def test_a_table_of_several_sites_or_targets_needs_a_choice(tables):
    two = pd.concat([tables["patch"], tables["patch"].assign(site="attn_out")])
    with pytest.raises(DataError, match="one of attn_out, resid_post"):
        plots.patch_by_role(two)
    assert "attn_out" in plots.patch_by_role(two, site="attn_out").get_suptitle()
    with pytest.raises(DataError, match="target of the probe"):
        plots.probe_by_layer(tables["probe_layers"], target="other")


def test_one_item_or_one_family_is_drawn_without_an_interval(tables):
    one = tables["answers"][tables["answers"]["item"] == "nobel_physics-0"]
    for function, name in FIGURES[:4]:
        plots.to_svg(function(one if name == "answers" else tables[name]))
    plots.to_svg(plots.lens_trajectory(tables["lens"][tables["lens"]["item"] == "nobel_physics-0"]))
    plots.to_svg(plots.patch_by_role(tables["patch"][tables["patch"]["item"] == "timing_order-0"]))
    layers = tables["probe_layers"]
    plots.to_svg(plots.probe_by_layer(layers[layers["split"] == "selectivity"]))


def test_points_below_the_diagonal_are_items_whose_question_speaks_for_y_star(tables):
    table = tables["evidence"]
    figure = plots.evidence_by_item(table)
    below = int((table["dominance"] < table["neutral_dominance"]).sum())
    assert f"{below} of {len(table)} points lie below the diagonal" in figure.get_supxlabel().replace("\n", " ")
    drawn = np.concatenate([np.asarray(points.get_offsets()) for points in figure.axes[0].collections])
    np.testing.assert_allclose(np.sort(drawn[:, 0] - drawn[:, 1]), np.sort(table["evidence"]))
