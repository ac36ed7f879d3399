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
from latentkt.stats import benjamini_hochberg, cluster_interval
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
    assert find_donor(mine, "shortcut", pool_of(longer)) is None, "its span has another number of tokens"


def test_donors_are_drawn_by_seed_pair_and_role():
    handle = tiny_handle("llama")
    mine = pair_of(handle, CHEMIST, "a")
    pool = pool_of(*(pair_of(handle, PLUMBER, f"b{n}") for n in range(4)))
    drawn = [find_donor(mine, "constraint", pool, seed=seed).meta["item"] for seed in range(20)]
    assert len(set(drawn)) == 4 and find_donor(mine, "constraint", pool[::-1], seed=3).meta["item"] == drawn[3]


def test_a_table_by_hand():
    """Family f has items of 3 and 1 nats, g one of 4, h one of 3; placebos are half a nat throughout."""
    values = {"f": [3.0, 1.0], "g": [4.0], "h": [3.0]}
    fixed = {"direction": "control_to_item", "site": "resid_post", "window": 1, "role": "last", "head": -1}
    rows = [
        {**fixed, "family": f, "item": f"{f}{n}", "order": order, "layer": layer, "effect": x * (1 + layer)}
        for f, numbers in values.items()
        for n, x in enumerate(numbers)
        for order in ("correct_first", "shortcut_first")
        for layer in (0, 1)
    ]
    effects = pd.DataFrame(rows).assign(base_value=0.0)
    table = effects_against_placebo(effects, effects.assign(effect=0.5)).set_index(["role", "layer"])
    row = table.loc["last", 0]
    assert row["effect"] == pytest.approx(3) and row["placebo"] == 0.5 and row["difference"] == pytest.approx(2.5)
    both = cluster_interval([2.5, 0.5, 3.5, 2.5], ["f", "f", "g", "h"])
    assert (row["low"], row["high"]) == pytest.approx((both.interval.low, both.interval.high))
    conditional = (row["conditional_low"], row["conditional_high"])
    assert conditional == pytest.approx((both.conditional.low, both.conditional.high)) and row["n_items"] == 4
    p = table.loc["last"]["p"]
    np.testing.assert_allclose(table.loc["last"]["q"], benjamini_hochberg(p.to_numpy()))


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


BUILT_IN = Counter(item.family for item in builtin_items())
SETS = {
    "4 families": dict(list(BUILT_IN.items())[:4]),
    "8 scientist families": Counter(item.family for item in builtin_items("scientist")),
    "16 built-in families": BUILT_IN,
    "24 families": {**BUILT_IN, **{f"other {n}": 4 for n in range(8)}},
}


def simulated(rng, families=BUILT_IN, *, planted=0.0, orders=("correct_first", "shortcut_first"), n_cells=8):
    """Effects and placebos with a family component and noise; `planted` nats in cell 0 beyond the placebo."""
    keys, values = [], []
    for family, count in families.items():
        shared = rng.normal(0, 0.5, n_cells)
        for number in range(count):
            own = shared + rng.normal(0, 0.5, n_cells)
            own[0] += planted
            for order in orders:
                noise = rng.normal(0, 0.3, (2, n_cells))
                keys += [(family, f"{family} {number}", order, cell) for cell in range(n_cells)]
                values.append(np.stack([own + noise[0], noise[1]], -1))
    table = pd.DataFrame(keys, columns=["family", "item", "order", "layer"])
    table[["effect", "placebo"]] = np.concatenate(values)
    fixed = {"direction": "control_to_item", "site": "resid_post", "window": 1, "role": "last", "head": -1}
    table = table.assign(**fixed, base_value=0.2)
    return table.drop(columns="placebo"), table.assign(effect=table["placebo"]).drop(columns="placebo")


def test_the_built_in_set_has_sixteen_families():
    assert len(BUILT_IN) == 16


@pytest.mark.parametrize("name", SETS)
def test_null_and_planted_effects_cover_and_keep_their_level(name):
    """Intervals cover the truth in 95 of 100, and under the null any cell is named in at most 5 of 100."""
    rng, families = np.random.default_rng(0), SETS[name]
    runs, covered, false_alarms, found, high_enough = 16, [], 0, 0, []
    for _ in range(runs):
        cells = effects_against_placebo(*simulated(rng, families)).query("role == 'last'")
        false_alarms += (cells["verdict"] == "differs").any()
        covered += list((cells["low"] <= 0) & (cells["high"] >= 0))
        cells = effects_against_placebo(*simulated(rng, families, planted=1.5)).query("role == 'last'")
        first = cells.set_index("layer").loc[0]
        found += first["verdict"] == "differs"
        high_enough.append(first["low"] <= 1.5 <= first["high"])
        method = "cluster bootstrap-t" if len(families) >= 20 else "student-t on cluster means"
        assert set(cells["method"]) == {method} and set(cells["n_families"]) == {len(families)}
        assert (cells["conditional_high"] - cells["conditional_low"] < cells["high"] - cells["low"]).mean() > 0.5
    # Binomial bounds at three standard errors around the nominal 5 % and 95 %.
    assert false_alarms <= runs * 0.05 + 3 * np.sqrt(runs * 0.05 * 0.95)
    assert abs(np.mean(covered) - 0.95) < 3 * np.sqrt(0.05 * 0.95 / len(covered))
    assert np.mean(high_enough) >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / runs)
    if len(families) < 6:
        assert found == 0, "with so few families no sign flip reaches 5 %"
    else:
        assert found > 0.9 * runs


def test_q_is_p_adjusted_over_all_cells_that_are_tested_together():
    cells = effects_against_placebo(*simulated(np.random.default_rng(3), planted=1.5)).query("role == 'last'")
    np.testing.assert_allclose(cells["q"], benjamini_hochberg(cells["p"].to_numpy()))
    assert (cells["q"] > cells["p"]).sum() > 1


def test_one_order_gives_no_verdict_and_position_is_a_row_of_its_own():
    rng = np.random.default_rng(1)
    effects, placebo = simulated(rng, planted=3.0, orders=("correct_first",))
    table = effects_against_placebo(effects, placebo)
    assert set(table[table["role"] == "last"]["verdict"]) == {"one order only"}
    effects, placebo = simulated(rng)
    effects["base_value"] = np.where(effects["order"] == "correct_first", 1.0, -0.4)
    bias = effects_against_placebo(effects, placebo).query("role == 'option position'")
    assert bias["effect"].item() == pytest.approx(0.7) and bias["n_items"].item() == len(builtin_items())
    alone = (effects["item"] == effects["item"].iloc[0]) & (effects["order"] == "shortcut_first")
    bias = effects_against_placebo(effects[~alone], placebo).query("role == 'option position'")
    assert bias["effect"].item() == pytest.approx(0.7) and bias["n_items"].item() == len(builtin_items()) - 1


def test_a_cell_that_stands_twice_is_refused():
    effects, placebo = simulated(np.random.default_rng(2))
    with pytest.raises(DataError, match="a cell twice"):
        effects_against_placebo(pd.concat([effects, effects]), placebo)
    with pytest.raises(DataError, match="lacks columns"):
        effects_against_placebo(effects.drop(columns="role"), placebo)
