"""Verdicts are right where they are known, and none is given where the mechanism is gone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from latentkt.errors import DataError
from latentkt.internals import answer_lens, dose_response, patch, placebo_draws, verdict_table
from tests.internals.planted_traps import FAMILIES, trap_handle, traps

NOTHING = pd.DataFrame()


def measured(handle, *, per_family=6):
    runs, pairs = traps(handle, per_family=per_family)
    lens, _ = answer_lens(handle, runs.values())
    placebo = placebo_draws(handle, pairs, list(runs.values()))
    patches = patch(handle, pairs, where=("constraint",), check=False)
    answers = lens[lens["layer"] == lens["layer"].max()]
    return answers, lens, patches, placebo


@pytest.fixture(scope="module")
def tables():
    return measured(trap_handle())


def test_the_planted_verdicts_are_found(tables):
    verdicts = verdict_table(*tables)
    expected = verdicts["family"].map({family: rest[-1] for family, rest in FAMILIES.items()})
    right = (verdicts["answer"] == expected.str[0]) & (verdicts["constraint"] == expected.str[1])
    assert right.mean() >= 0.95, verdicts[~right].to_string()
    assert (verdicts["n_combinations"] == 20).all() and (verdicts["null"] == "by donor").all()
    assert verdicts["sureness"].between(0.25, 1).all() and verdicts["sureness"].median() == 1
    decided = verdicts[verdicts["family"] != "silent"]
    assert (decided["decision_layer"] == 1).all()  # both heads sit there
    assert (verdicts.loc[verdicts["family"] == "silent", "constraint_effect"].abs() < 0.3).all()


@pytest.mark.parametrize("gone", [{"constraint": False}, {"constraint": False, "shortcut": False}])
def test_without_the_mechanism_nothing_is_measurable(gone):
    verdicts = verdict_table(*measured(trap_handle(**gone), per_family=3))
    assert (verdicts["constraint"] == "not measurable").all()
    assert verdicts["reason"].str.contains("moves the answer").all()
    if "shortcut" in gone:
        assert (verdicts["answer"] == "undecided").all() and verdicts["decision_layer"].isna().sum() == 0
    else:
        assert (verdicts["answer"] == "shortcut followed").mean() > 0.6


def test_placebo_donors_are_different_and_matched(tables):
    placebo = tables[3]
    per_pair = placebo.groupby(["item", "order", "direction"])
    assert (per_pair["donor"].nunique() == 5).all()
    assert not (placebo["donor"] == placebo["item"]).any()
    assert (placebo["donor"].str.split("-").str[0] == placebo["family"]).all()


def table(log_odds, orders=("correct_first", "shortcut_first")):
    rows = [
        {"item": "a", "family": "f", "which": "item", "order": order, "log_odds": value}
        for order, value in zip(orders, log_odds, strict=True)
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("log_odds", "answer"),
    [
        ((1.0, 0.4), "solved"),
        ((-1.0, -0.4), "shortcut followed"),
        ((0.6, 0.3), "undecided"),  # under half a nat in the mean
        ((9.0, -0.1), "undecided"),  # the orders disagree
        ((9.0, np.nan), "undecided"),
    ],
)
def test_the_answer_of_both_orders(log_odds, answer):
    row = verdict_table(table(log_odds), NOTHING, NOTHING, NOTHING).iloc[0]
    assert row["answer"] == answer and row["constraint"] == "not measurable"
    assert row["reason"] == "no patch was measured" and np.isnan(row["sureness"])


def test_one_order_gives_no_answer():
    assert verdict_table(table((5.0,), ("correct_first",)), NOTHING, NOTHING, NOTHING)["answer"].item() == "undecided"


def patches(effect, *, base=1.0, layers=(0, 1), family="f", item="a", **more):
    rows = [
        {"item": item, "family": family, "order": "correct_first", "direction": "control_to_item", "role": "constraint",
         "site": "resid_post", "layer": layer, "effect": effect / (1 + layer), "base_value": base, "head": -1, **more}
        for layer in layers
    ]  # fmt: skip
    return pd.DataFrame(rows)


def nulls(values):
    return pd.concat([patches(-value, draw=0, item=f"i{n}") for n, value in enumerate(values)], ignore_index=True)


@pytest.mark.parametrize(
    ("effect", "null", "reading", "reason"),
    [
        (-2.0, np.linspace(0, 1, 40), "read and decisive", ""),
        (-0.98, np.linspace(0, 0.5, 40), "read but outweighed", ""),
        (-0.9, np.linspace(0, 1, 40), "unread", ""),
        (2.0, np.linspace(0, 1, 40), "unread", ""),  # away from what the control says
        (-2.0, np.linspace(0, 1, 7), "not measurable", "7 placebo effects"),
        (-5e-4, np.linspace(0, 5e-4, 40), "not measurable", "moves the answer"),
    ],
)
def test_the_reading_of_one_cell(effect, null, reading, reason):
    row = verdict_table(table((1.0, 1.0)), NOTHING, patches(effect), nulls(null)).iloc[0]
    assert row["constraint"] == reading and reason in row["reason"]
    assert row["sureness"] == 0.25  # one order and direction of two
    assert row["effect"] == pytest.approx(-effect if effect < 0 else -effect / 2)


def test_an_effect_away_from_the_source_is_not_read_because_placebos_go_further():
    """In the layers asked for, effect and placebos may all go against the source run's answer."""
    row = verdict_table(table((1.0, 1.0)), NOTHING, patches(0.1), nulls(np.linspace(-2, -1, 40))).iloc[0]
    assert row["effect"] < 0 and row["constraint"] == "unread"
    tiny = verdict_table(table((1.0, 1.0)), NOTHING, patches(-1e-5), nulls([0.0] * 39 + [0.5])).iloc[0]
    assert tiny["effect"] > tiny["threshold"] and tiny["constraint"] == "unread"


def test_an_order_that_was_not_measured_is_no_agreement():
    cells = [("correct_first", "control_to_item"), ("correct_first", "item_to_control")]
    cells += [("shortcut_first", way) for _, way in cells]
    sign = {"control_to_item": 1.0, "item_to_control": -1.0}  # of the base run's log-odds
    placed = [patches(-2.0 * sign[way], base=sign[way], order=order, direction=way) for order, way in cells]
    null = nulls(np.linspace(0, 0.5, 40))
    sure = [verdict_table(table((1.0, 1.0)), NOTHING, pd.concat(placed[:n]), null).iloc[0] for n in (4, 2)]
    assert [row["sureness"] for row in sure] == [1.0, 0.5] and [row["n_combinations"] for row in sure] == [4, 2]
    assert {row["constraint"] for row in sure} == {"read and decisive"}


def test_another_familys_placebos_do_not_count():
    row = verdict_table(table((1.0, 1.0)), NOTHING, patches(-2.0), nulls([0.1] * 40).assign(family="g")).iloc[0]
    assert row["constraint"] == "not measurable" and row["n_placebo"] == 0


def test_the_reason_why_a_pair_was_not_patched_is_kept():
    unpaired = pd.DataFrame({"item": ["a"], "order": ["correct_first"], "reason": ["the pair is shifted"]})
    row = verdict_table(table((1.0, 1.0)), NOTHING, NOTHING, NOTHING, unpaired=unpaired).iloc[0]
    assert row["reason"] == "the pair is shifted"


def test_the_decision_layer_and_when_the_lens_is_not_believed():
    def lens(odds, kl):
        about = {"item": "a", "which": "item", "order": "correct_first"}
        found = pd.DataFrame({"layer": range(len(odds)), "log_odds": odds, "kl_to_final": kl})
        return found.assign(**about)

    def layer(odds, kl):
        return verdict_table(table((1.0, 1.0)), lens(odds, kl), NOTHING, NOTHING)["decision_layer"].item()

    assert layer([1, -1, 1, 2], [3, 3, 0.9, 0]) == 2
    assert np.isnan(layer([1, -1, 1, 2], [3, 3, 1.1, 0]))
    assert layer([1, 1, 1], [0.5, 3, 0]) == 0


def test_tables_without_their_columns_are_refused():
    with pytest.raises(DataError, match="'answers' lacks columns: order"):
        verdict_table(table((1.0, 1.0)).drop(columns="order"), NOTHING, NOTHING, NOTHING)
    with pytest.raises(DataError, match="'placebos' lacks columns: draw"):
        verdict_table(table((1.0, 1.0)), NOTHING, patches(1.0), patches(1.0))
    with pytest.raises(DataError, match="verdicts by level"):
        dose_response(verdict_table(table((1.0, 1.0)), NOTHING, NOTHING, NOTHING))
