"""Placebos are matched as defined; with the built-in families intervals cover and false positives stay at level."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from latentkt.errors import DataError
from latentkt.internals import effects_against_placebo, patch_roles, placebo_roles
from latentkt.internals.lens import LensRun
from latentkt.internals.placebo import find_donor
from latentkt.trapqa import builtin_items
from tests.internals.making import tiny_pair
from tests.models.tiny import tiny_handle

CHEMIST = ("The chemist did not win\nA:", "The chemist did the win\nA:")
PLUMBER = ("The chemise did not lose\nB:", "The chemise did the lose\nB:")  # as many tokens in both roles
LONGER = ("The extremely old did not win\nC:", "The extremely old did the win\nC:")


def pair_of(handle, texts, item, **meta):
    columns = {"polarity": "negated", "order": "correct_first", "template": "plain", "direction": "control_to_item"}
    columns |= {"base": "item", "source": "control", "base_right": "correct", "source_right": "shortcut", "item": item}
    return tiny_pair(
        handle, base_text=texts[0], source_text=texts[1], name=f"{item} control_to_item", **{**columns, **meta}
    )


def pool_of(*pairs):
    runs = []
    for pair in pairs:
        for which, prompt in (("item", pair.base), ("control", pair.source)):
            right = pair.meta["base_right" if which == "item" else "source_right"]
            runs.append(LensRun(prompt, pair.answers, {**pair.meta, "which": which, "right": right}))
    return runs


def test_a_donor_is_another_item_that_matches_in_all_that_the_definition_names():
    handle = tiny_handle("llama")
    mine, other = pair_of(handle, CHEMIST, "a"), pair_of(handle, PLUMBER, "b")
    donor = find_donor(mine, "constraint", pool_of(mine, other))
    assert donor is not None and donor.meta["item"] == "b" and donor.meta["which"] == "item"
    back = find_donor(pair_of(handle, CHEMIST[::-1], "a", base_right="shortcut"), "constraint", pool_of(other))
    assert back is not None and back.meta["which"] == "control"
    for changed in ({"family": "g"}, {"polarity": "affirmed"}, {"order": "shortcut_first"}, {"template": "chat"}):
        assert find_donor(mine, "constraint", pool_of(pair_of(handle, PLUMBER, "b", **changed))) is None
    assert find_donor(mine, "constraint", pool_of(mine)) is None
    longer = pair_of(handle, LONGER, "c")
    assert len(longer.base.positions("shortcut")) != len(mine.base.positions("shortcut"))
    assert find_donor(mine, "last", pool_of(longer)) is not None


def test_placebo_cells_without_a_donor_are_nan_and_counted():
    handle = tiny_handle("llama")
    mine, other = pair_of(handle, CHEMIST, "a"), pair_of(handle, PLUMBER, "b")
    alone = pair_of(handle, CHEMIST, "z", family="lonely")
    pairs = [mine, other, alone]
    effects, placebo = patch_roles(handle, pairs), placebo_roles(handle, pairs, pool_of(*pairs))
    assert (placebo["source_kind"] == "placebo").all() and len(placebo) == len(effects)
    mask = placebo["item"] == "z"
    assert placebo[mask]["effect"].isna().all() and placebo[mask]["donor"].isna().all()
    assert placebo[~mask & (placebo["role"] != "shortcut")]["effect"].notna().all()
    table = effects_against_placebo(effects, placebo)
    cells = table[table["role"].isin(["constraint", "last"])]
    assert (cells["without_placebo"] == 1).all() and (cells["n_items"] == 2).all()
    shortcut = table[table["role"] == "shortcut"]
    assert (shortcut["unchanged"] == 3).all() and shortcut["difference"].isna().all()
    assert (shortcut["verdict"] == "not tested").all() and (shortcut["effect"] == 0).all()
    bias = table[table["role"] == "option position"]
    assert len(bias) == 1 and bias["verdict"].item() == "described" and bias["n_items"].item() == 0


def simulated(rng, *, planted=0.0, orders=("correct_first", "shortcut_first"), n_cells=4):
    """Effects and placebos with a family component and noise; `planted` nats in cell 0 beyond the placebo."""
    families = Counter(item.family for item in builtin_items("scientist"))
    rows = []
    for family, count in families.items():
        shared = rng.normal(0, 0.5, n_cells)
        for number in range(count):
            own = rng.normal(0, 0.5, n_cells)
            for order in orders:
                noise = rng.normal(0, 0.3, (2, n_cells))
                for cell in range(n_cells):
                    row = {
                        "item": f"{family} {number}",
                        "family": family,
                        "order": order,
                        "direction": "control_to_item",
                    }
                    row |= {"site": "resid_post", "window": 1, "layer": cell, "role": "last", "head": -1}
                    effect = shared[cell] + own[cell] + noise[0, cell] + planted * (cell == 0)
                    rows.append({**row, "base_value": 0.2, "effect": effect, "placebo_effect": noise[1, cell]})
    table = pd.DataFrame(rows)
    placebo = table.assign(effect=table["placebo_effect"])
    return table, placebo


def test_null_and_planted_effects_with_the_built_in_sets_families():
    rng = np.random.default_rng(0)
    runs, covered, false_alarms, found = 30, [], 0, 0
    for _ in range(runs):
        table = effects_against_placebo(*simulated(rng))
        cells = table[table["role"] == "last"]
        false_alarms += (cells["verdict"] == "differs").any()
        covered.append(((cells["low"] <= 0) & (cells["high"] >= 0)).mean())
        planted = effects_against_placebo(*simulated(rng, planted=1.5)).set_index(["role", "layer"])
        found += planted["verdict"]["last", 0] == "differs"
    # Binomial bounds at three standard errors around the nominal 5 % and 95 %.
    assert false_alarms <= runs * 0.05 + 3 * np.sqrt(runs * 0.05 * 0.95)
    assert abs(np.mean(covered) - 0.95) < 3 * np.sqrt(0.05 * 0.95 / runs)
    assert found > 0.9 * runs


def test_one_order_gives_no_verdict_and_position_is_a_row_of_its_own():
    rng = np.random.default_rng(1)
    effects, placebo = simulated(rng, planted=3.0, orders=("correct_first",))
    table = effects_against_placebo(effects, placebo)
    assert set(table[table["role"] == "last"]["verdict"]) == {"one order only"}
    effects, placebo = simulated(rng)
    effects["base_value"] = np.where(effects["order"] == "correct_first", 1.0, -0.4)
    bias = effects_against_placebo(effects, placebo).query("role == 'option position'")
    assert bias["effect"].item() == pytest.approx(0.7)


def test_a_cell_that_stands_twice_is_refused():
    effects, placebo = simulated(np.random.default_rng(2))
    with pytest.raises(DataError, match="a cell twice"):
        effects_against_placebo(pd.concat([effects, effects]), placebo)
    with pytest.raises(DataError, match="lacks columns"):
        effects_against_placebo(effects.drop(columns="role"), placebo)
