"""Figures of TrapQA's tables show their numbers, and refuse what they cannot show."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from latentkt import plots
from latentkt.errors import DataError

SETTINGS = ["m/low", "a model with a rather long name, thinking"]


def rates(**columns):
    table = {"setting": SETTINGS}
    for key, values in columns.items():
        table[key] = values
        if key.endswith("_pct"):
            table |= {f"{key}_low": np.array(values) - 2, f"{key}_high": np.array(values) + 3}
    return pd.DataFrame(table)


TABLES = {
    "trapqa_errors": rates(
        names_rate_pct=[20.0, 5.0], names_n=[50, 50], profiles_rate_pct=[3.0, np.nan], profiles_n=[9, 0]
    ),
    "trapqa_probe_states": rates(
        both_wrong_rate_pct=[4.0, 3.0], one_wrong_rate_pct=[30.0, 25.0], neither_wrong_rate_pct=[np.nan, 50.0]
    ),
    "trapqa_fame": rates(
        n=[50, 50], hall_wrong_more_famous_pct=[9.0, 8.0], hall_wrong_not_more_famous_pct=[14.0, 12.0]
    ),
    "trapqa_calibration": rates(n=[30, 20], confidence=[85.0, 95.0], accuracy_pct=[60.0, 70.0]),
    "trapqa_consensus": pd.DataFrame(
        {
            "settings_wrong": [0, 1, 2],
            "observed": [30, 0, 10],
            "expected_independent": [22.5, 15.0, 2.5],
            "expected_one_difficulty": [28.0, 4.0, 8.0],
        }
    ),
    "trapqa_everyday": rates(by=["aspect", "aspect"], value=["cooking", "travel"], n=[9, 4], rate_pct=[11.0, 50.0]),
}
each = pytest.mark.parametrize("name", TABLES)


@each
def test_a_figure_has_title_caption_and_axes_with_units(name):
    figure = getattr(plots, name)(TABLES[name], caption="preset quick")
    assert isinstance(figure, Figure) and figure.get_suptitle().strip() and "preset quick" in figure.get_supxlabel()
    labels = " ".join(axes.get_xlabel() + axes.get_ylabel() for axes in figure.axes)
    assert "%" in labels or "questions" in labels
    assert plots.to_svg(getattr(plots, name)(TABLES[name])) == plots.to_svg(getattr(plots, name)(TABLES[name]))


@each
def test_a_missing_column_or_row_is_refused(name):
    with pytest.raises(DataError, match="lacks columns"):
        getattr(plots, name)(
            TABLES[name].drop(columns=TABLES[name].columns[-1].removesuffix("_high").removesuffix("_low"))
        )
    with pytest.raises(DataError, match="no rows"):
        getattr(plots, name)(TABLES[name].head(0))


def test_points_stand_at_their_rates_and_nothing_at_what_is_absent():
    axes = plots.trapqa_errors(TABLES["trapqa_errors"]).axes[0]
    points = [container.lines[0].get_xdata()[0] for container in axes.containers]
    assert points[:3] == [20.0, 5.0, 3.0] and np.isnan(points[3])
    bars = [container.lines[2][0].get_segments()[0][:, 0].tolist() for container in axes.containers[:2]]
    assert bars == [[18.0, 23.0], [3.0, 8.0]]


def test_none_missed_is_no_point_on_a_logarithmic_axis():
    lines = plots.trapqa_consensus(TABLES["trapqa_consensus"]).axes[0].lines
    assert np.isnan(lines[0].get_ydata()[1]) and lines[1].get_ydata()[1] == 15.0
