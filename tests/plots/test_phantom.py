"""Figures of concepts that do not exist: drawn from their tables, strict about them, the same each time."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from latentkt import plots
from latentkt.errors import DataError
from latentkt.phantom.analysis import analyse
from tests.phantom.making_answers import judged_answers


@pytest.fixture(scope="module")
def tables():
    answers = [
        *judged_answers("one", {"phantom": 0.3, "common": 0.1}),
        *judged_answers("two", {"phantom": 0.6, "common": 0.5}),
    ]
    return analyse(answers).tables


def _probe():
    layers = np.arange(-1, 4)
    columns = {name: 0.6 + 0.05 * layers for name in ("score", "low", "high", "bag_score", "bag_low", "bag_high")}
    more = {"embedding_score": 0.5, "gain": 0.1, "gain_low": 0.0, "gain_high": 0.2, "evidence": True}
    return pd.DataFrame({"target": "recombined", "layer": layers, **columns, **more, "n_rows": 80, "n_groups": 40})


def _abstention():
    rows = [
        {"scope": scope, "property": "all", "layer": layer, "n": 40, "n_abstained": 12, "auc": 0.6, "auc_low": 0.5,
         "auc_high": 0.7}
        for scope in ("phantom", "all") for layer in range(-1, 3)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def _steering():
    rows = [
        {"concept_id": f"c{n}", "direction": name, "layer": 2, "dose": dose, "change": dose * (0.1 + 0.01 * n)}
        for name in ("made", "random 0") for n in range(4) for dose in (-2.0, 0.0, 2.0)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_each_figure_is_drawn_and_is_the_same_each_time(tables):
    for draw in (
        lambda: plots.phantom_rates(tables["rates"], setting="two", caption="two"),
        lambda: plots.phantom_selectivity(tables["selectivity"]),
        lambda: plots.phantom_kinds(tables["kinds"], setting="one"),
        lambda: plots.phantom_probe(_probe(), title="Recombined"),
        lambda: plots.phantom_abstention(_abstention()),
        lambda: plots.phantom_steering(_steering()),
    ):
        first = plots.to_svg(draw())
        assert first == plots.to_svg(draw()) and len(first) > 5000


def test_points_stand_where_the_table_says(tables):
    figure = plots.phantom_rates(tables["rates"], setting="one")
    drawn = {(round(float(line.get_xdata()[0]))) for line in figure.axes[0].lines if len(line.get_xdata()) == 1}
    assert {70, 90} <= drawn
    axes = plots.phantom_selectivity(tables["selectivity"]).axes[0]
    points = {(round(float(x)), round(float(y))) for line in axes.lines for x, y in line.get_xydata()}
    assert {(10, 30), (50, 60)} <= points


@pytest.mark.parametrize(
    ("draw", "table"),
    [
        (plots.phantom_rates, pd.DataFrame({"setting": ["a"]})),
        (plots.phantom_probe, _probe().drop(columns="bag_score")),
        (plots.phantom_abstention, _abstention().assign(auc=np.nan)),
        (plots.phantom_steering, _steering().head(0)),
    ],
)
def test_tables_that_lack_something_are_refused(draw, table):
    with pytest.raises(DataError):
        draw(table)
