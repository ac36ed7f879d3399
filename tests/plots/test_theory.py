"""The figures of the theory show what the numbers say."""

from __future__ import annotations

import numpy as np
import pytest

from latentkt.errors import InputError
from latentkt.keytask import Limits, critical_key_evidence, parse_case
from latentkt.plots.theory import dominance_map, draw_case, term_waterfall

SILENT = Limits(alpha_s=0.9, alpha_0=0.8, B_0=0.0, C_1=0.0, C_2=0.0)


def test_map_draws_the_critical_line_and_the_certified_region():
    figure = dominance_map(tau_s=0.8, tau_0=0.4, margin_s=0.72, margin_0=-0.32, limits=SILENT, point=(1.0, 0.5))
    (ax,) = figure.axes
    line, point = ax.get_lines()
    x, y = line.get_data()
    assert np.allclose(y, critical_key_evidence(x, 0.72, -0.32).nats) and np.allclose(np.diff(y), np.diff(x))
    assert [value[0] for value in point.get_data()] == [1.0, 0.5]
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == [
        "shortcut answer wins",
        "correct answer wins",
        "certified",
        "critical line (slope 1)",
        "this case",
    ]
    assert "log prior ratio" in ax.get_xlabel() and "nats" in ax.get_ylabel()


def test_map_of_a_saturated_case_has_no_certified_region_and_one_without_threshold_no_line():
    blind = Limits.blind(alpha_s=0.9, alpha_0=0.9)
    figure = dominance_map(tau_s=0.3, tau_0=0.4, margin_s=0.3, margin_0=0.2, limits=blind)
    (ax,) = figure.axes
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["shortcut answer wins", "correct answer wins"]
    assert not ax.get_lines()


def test_waterfall_adds_up():
    terms = {"key_prior_ratio": 1.5, "pair_normaliser": -2.0, "leakage": 0.25}
    figure = term_waterfall(terms, title="a case")
    (ax,) = figure.axes
    bars = [(bar.get_x(), bar.get_width()) for bar in ax.patches]
    assert bars == [(0.0, 1.5), (1.5, -2.0), (-0.5, 0.25), (0.0, -0.25)]  # the last is the dominance
    assert [label.get_text() for label in ax.get_yticklabels()] == [
        "key prior ratio",
        "pair normaliser",
        "leakage",
        "dominance",
    ]
    assert [note.get_text() for note in ax.texts] == ["+1.50", "-2.00", "+0.25", "-0.25"]
    with pytest.raises(InputError, match="term leakage is inf"):
        term_waterfall({"leakage": np.inf})


def test_axes_of_ones_own_are_used():
    from matplotlib.figure import Figure

    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert term_waterfall({"leakage": 1.0}, ax=left) is figure
    assert (
        dominance_map(tau_s=0.8, tau_0=0.4, margin_s=0.7, margin_0=-0.3, limits=SILENT, resolution=11, ax=right)
        is figure
    )


def test_only_model_cases_are_drawn(tmp_path):
    with pytest.raises(InputError, match="model cases only"):
        draw_case(parse_case({"a": 1, "b": 2}), tmp_path)
    same_key = {
        "pi_k": [1],
        "pi_t_given_k": [["1/5", "4/5"]],
        "lik_z_given_kt": [[1, 1]],
        "pred_y": [[[0, 1, 0], [1, 0, 0]]],
        **{"ks": 0, "ts": 1, "k0": 0, "t0": 0, "ys": 0, "y0": 1},
    }
    paths = draw_case(parse_case(same_key, name="same/key"), tmp_path / "new")
    assert [path.name for path in paths] == ["same-key-terms.svg"] and paths[0].read_text().count("<svg") == 1
    again = draw_case(parse_case(same_key, name="same/key"), tmp_path / "again")
    assert "Date" not in again[0].read_text() or again[0].read_text() == paths[0].read_text()
