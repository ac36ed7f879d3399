"""Sentences of the report, held against tables small enough to work out by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from latentkt.plots.summaries import first_option, interval_of, right_answers, share_of
from latentkt.report.sections.answers import _accuracy, _all_four
from latentkt.report.sections.lens import _layers
from latentkt.report.sections.phantom import _rates
from latentkt.report.sections.position import _beside
from latentkt.report.sections.probes import _finding
from latentkt.stats import sign_flip_max_t


def asked(constraint: float, bias: float, *, spread: float = 0.0, families: int = 6) -> pd.DataFrame:
    """log-odds = ± half the constraint's worth ± the bias of the first option, one item a family."""
    rows = []
    for number, which, order in itertools.product(
        range(families), ("item", "control"), ("correct_first", "shortcut_first")
    ):
        side, first = (1 if which == "item" else -1), (1 if order == "correct_first" else -1)
        worth = constraint + spread * (number - (families - 1) / 2)
        rows.append(
            {
                "item": f"i{number}",
                "family": f"f{number}",
                "kind": "action",
                "which": which,
                "order": order,
                "log_odds": side * worth / 2 + first * bias,
            }
        )
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("constraint", "bias", "said"),
    [(1.0, 0.8, "more than"), (2.0, 0.8, "less than"), (-1.0, -0.8, "more than"), (2.0, -0.8, "less than")],
)
def test_position_is_held_against_the_constraint_like_with_like(constraint, bias, said):
    """Exchanging the options is worth 2 × bias = 1.6 nats; half of it would be compared with the whole constraint."""
    table = asked(constraint, bias, spread=0.01)
    text = _beside(table, first_option(table))[0].text
    assert said in text and f"1.60 against {abs(constraint):.2f}" in text


def test_position_and_constraint_that_cannot_be_told_apart_are_called_alike():
    table = asked(1.6, 0.8, spread=0.5)
    assert "about as much" in _beside(table, first_option(table))[0].text


def test_shares_stay_between_none_and_all_and_a_few_families_prove_little():
    table = pd.DataFrame({"item": list("abcd"), "family": list("wxyz"), "is_right": [1.0, 1.0, 1.0, 0.9]})
    assert interval_of(table, "is_right").interval.high > 1.0
    assert share_of(table, "is_right").high == 1.0
    two = pd.DataFrame({"item": ["a", "b"], "family": ["x", "y"], "which": ["item"] * 2, "is_right": [1.0, 1.0]})
    assert share_of(two, "is_right").low < 0.5 < share_of(two, "is_right").high
    assert "not distinguishable from chance" in _accuracy(two)[0].text


def test_four_coins_are_spoken_of_only_where_four_prompts_have_a_right_answer():
    table = right_answers(asked(1.0, 0.0).query("which == 'item'"))
    assert _all_four(table) == []
    assert "6 of 6 items" in _all_four(right_answers(asked(1.0, 0.0)))[0].text


def test_layers_are_not_called_equal_where_no_layer_could_differ():
    """With three families no sign-flip p is under 1/4, whatever the effect."""
    values = pd.DataFrame(np.full((3, 4), 5.0) + np.arange(3)[:, None], columns=range(4))
    finding = _layers(values, sign_flip_max_t(values.to_numpy(), list("abc")))
    assert finding.found is None and "no layer can reach" in finding.text


@pytest.mark.parametrize(
    ("score", "bag", "said", "found"),
    [
        (0.9, 0.6, "reads more than a bag of tokens", True),
        (0.5, 0.2, "no more than the commoner answer, which is right in 55 %", False),  # the bag lies below chance
        (0.3, 0.6, "reads less than a bag of tokens", False),
    ],
)
def test_a_probe_above_a_bag_that_lies_below_chance_reads_nothing(score, bag, said, found):
    rng = np.random.default_rng(0)
    folds = [
        {"fold": fold, "layer": layer, "score": score + rng.normal(0, 0.01), "bag_score": bag + rng.normal(0, 0.01)}
        for fold, layer in itertools.product(range(5), range(4))
    ]
    layers = [
        {"split": "generalisation", "layer": layer, "score": score, "chance": 0.55, "majority_score": 0.4}
        for layer in range(4)
    ]
    finding = _finding("answer_side", pd.DataFrame(layers), pd.DataFrame(folds))
    assert said in finding.text and finding.found is found


@pytest.mark.parametrize(
    ("exists", "said", "found"),
    [(20, "fewer than", True), (60, "not distinguishable from", False), (95, "more than", False)],
)
def test_what_is_affirmed_is_held_against_the_highest_property_either_way(exists, said, found):
    about = {"convention": "all", "by": "property", "existence": "phantom", "n": 50, "concepts": 50, "unparsable": 0}
    rates = {"existence": exists, "date": 40, "meaning": 62}
    rows = [
        {**about, "property": name, "rate_pct": rate, "rate_pct_low": rate - 10, "rate_pct_high": rate + 10}
        for name, rate in rates.items()
    ]
    finding = _rates(pd.DataFrame(rows), "")[-1]
    assert f"{said} what it answers about their meaning" in finding.text and finding.found is found
    assert "the highest of 2 properties" in finding.text
