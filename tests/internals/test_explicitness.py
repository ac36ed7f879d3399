"""Dose and response: shares and slopes that are known, and what cannot be measured stays out of the shares."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from latentkt.internals import dose_response


def verdicts():
    """Five groups at four levels: log-odds −1 + level/2 + the group's own; read from level 1 on, decisive at 3."""
    rows = []
    for group in range(5):
        for level in range(4):
            odds = -1 + 0.5 * level + 0.1 * group
            reading = ["unread", "read but outweighed", "read but outweighed", "read and decisive"][level]
            rows.append(
                {
                    "item": f"{group}-{level}", "group": f"g{group}", "level": float(level), "log_odds": odds,
                    "constraint": "not measurable" if group == 4 else reading,
                    "answer": "solved" if level == 3 else "shortcut followed", "constraint_effect": 2.0 * level,
                }
            )  # fmt: skip
    alone = {**rows[0], "item": "alone", "group": None, "level": np.nan, "log_odds": 99.0}
    return pd.DataFrame([*rows, alone])


def test_shares_means_and_slopes_by_level():
    table = dose_response(verdicts())
    value = table.set_index(["measure", "level"])["value"].sort_index()
    assert [value["solved", n] for n in range(4)] == [0, 0, 0, 1]
    assert [value["read", n] for n in range(4)] == [0, 1, 1, 1] and value["decisive", 3] == 1
    assert [value["not measurable", n] for n in range(4)] == [0.2] * 4
    np.testing.assert_allclose([value["log_odds", n] for n in range(4)], -0.8 + 0.5 * np.arange(4))
    change = table[table["statistic"] == "change"].set_index("measure")
    assert change.loc["log_odds", "value"] == pytest.approx(0.5) and change.loc["log_odds", "n_groups"] == 5
    assert change.loc["constraint_effect", "value"] == pytest.approx(2.0)
    assert change.loc["read", "n_groups"] == 4 and change.loc["read", "value"] == pytest.approx(0.3)
    levels = table[table["statistic"] == "mean"]
    assert (levels["low"] < levels["value"]).iloc[:4].all()


def test_a_group_with_one_level_has_no_slope():
    few = verdicts()
    table = dose_response(few[(few["group"] != "g0") | (few["level"] == 2)])
    assert table.loc[(table["statistic"] == "change") & (table["measure"] == "log_odds"), "n_groups"].item() == 4
