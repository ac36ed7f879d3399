"""Figures of steering, verdicts and levels are drawn from their tables and refuse others."""

from __future__ import annotations

import numpy as np
import pytest

from latentkt import plots
from latentkt.errors import DataError
from tests import result_tables

FIGURES = [
    (plots.steering_effects, result_tables.steer, "effect"),
    (plots.verdict_by_item, result_tables.verdict, "threshold"),
    (plots.dose_response_by_level, result_tables.explicitness, "level"),
]


@pytest.mark.parametrize(("function", "make", "needed"), FIGURES, ids=lambda value: getattr(value, "__name__", value))
def test_a_figure_is_drawn_and_a_missing_column_named(function, make, needed):
    table = make()
    figure = function(table, caption="preset quick")
    assert figure.get_suptitle() and "preset quick" in figure.get_supxlabel()
    assert len(plots.to_svg(figure)) > 5000
    with pytest.raises(DataError, match=needed):
        function(table.drop(columns=needed))
    with pytest.raises(DataError):
        function(table.head(0))


def test_the_verdict_figure_shows_each_patched_item_at_its_effect():
    table = result_tables.verdict()
    axes = plots.verdict_by_item(table).axes[0]
    patched = table[table["effect"].notna()].sort_values("log_odds")
    assert [text.get_text() for text in axes.get_yticklabels()] == [f"{item} (90 %)" for item in patched["item"]]
    marks = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o"]
    np.testing.assert_allclose(marks, patched["effect"])
    with pytest.raises(DataError, match="patched items"):
        plots.verdict_by_item(table.assign(effect=np.nan))


def test_the_probe_figure_has_a_panel_for_each_split():
    layers = result_tables.probe_layers()
    both = plots.probe_by_layer(layers)
    assert [axes.get_ylabel() for axes in both.axes] == [
        "accuracy on families left out (%)", "accuracy on items seen (%)",
    ]  # fmt: skip
    labels = [text.get_text() for text in both.legends[0].get_texts()]
    assert {"probe", "bag of tokens", "untrained", "majority"} <= set(labels)
    nothing = layers.assign(score=np.nan, reason="every entity has one row")
    with pytest.raises(DataError, match="probe figure"):
        plots.probe_by_layer(nothing)
