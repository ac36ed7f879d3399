"""Every table against a second count, and every comparison against what was planted."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, fisher_exact, hypergeom

from latentkt.trapqa.analysis import analyse, records_from_frame
from latentkt.trapqa.analysis.rates import one_a_question
from tests.trapqa.analysis.rows import records, slow_tables


def analysed(rows, **options):
    return analyse(records_from_frame(pd.DataFrame(rows)), **options)


@pytest.mark.parametrize("missing, seed", [(0.0, 0), (0.2, 1), (0.0, 2), (0.3, 4)])
def test_tables_are_those_of_plain_counting(missing, seed):
    rows = records(missing=missing, seed=seed)
    found = analysed(rows, only=["table1", "table2", "table4", "table5", "table7", "table8", "table9", "table10", "h6"])
    for setting in found.settings:
        for table, cells in slow_tables(rows, setting).items():
            for key, value in cells.items():
                assert found.to_json()[setting][table][key] == pytest.approx(value), (setting, table, key)


def test_every_rate_has_an_interval_around_it():
    tables = analysed(records()).tables
    for name, table in tables.items():
        for key in [column for column in table.columns if f"{column}_low" in table.columns]:
            low, value, high = (table[column].to_numpy(dtype=float) for column in (f"{key}_low", key, f"{key}_high"))
            there = ~np.isnan(low)
            assert ((low <= value + 1e-9) & (value <= high + 1e-9))[there].all(), (name, key)
    rates = [k for k in tables["table2"].columns if k.endswith("_pct")]
    assert rates and all(f"{k}_low" in tables["table2"].columns for k in rates)


def test_what_a_table_leaves_out_is_listed_by_question():
    rows = records(n=30)
    rows[0]["answer"] = None
    rows[2]["probe_eliminative_correct"] = rows[2]["probe_eliminative_predicted"] = None
    found = analysed(rows)
    lines = {(line.table, line.setting, line.reason): line.questions for line in found.ledger.lines}
    assert lines["table1", "m/low", "no answer is recorded"] == ("q000",)
    assert lines["table4", "m/low", "an answer to one of the two probes is missing"] == ("q001",)
    assert found.to_json()["m/low"]["table4"]["both_correct"] is not None
    sums = found.tables["table4"].set_index("setting")
    cells = ["both_correct", "both_wrong", "one_correct", "one_wrong", "neither_correct", "neither_wrong"]
    assert sums.loc["m/low", cells].sum() == 28 and sums.loc["m/high", cells].sum() == 30
    frame = found.ledger.frame()
    assert set(frame.columns) == {"table", "setting", "question_id", "reason"}


def test_a_setting_without_probes_says_so_and_has_the_rest():
    rows = records(settings=("m", "bare"))
    for row in rows:
        if row["setting"] == "bare":
            row.update({key: None for key in row if key.startswith("probe_")})
    found = analysed(rows).to_json()
    assert found["bare"]["table5"] == {"not_available": "an answer to one of the two probes is missing"}
    assert found["bare"]["table1"]["names_n"] == 60 and "n" in found["bare"]["table9"]
    assert found["m"]["table5"]["n_missing_elim"] > 0


def test_probes_of_records_of_their_own_are_joined():
    rows = records(settings=("m",))
    moved = []
    for row in rows:
        if row["condition"] == "names":
            probes = {key: row.pop(key) for key in list(row) if key.startswith("probe_")}
            moved.append({key: row[key] for key in ("question_id", "setting")} | {"condition": "probes", **probes})
    together = analysed(records(settings=("m",)), only=["table4"]).to_json()
    assert analysed(rows + moved, only=["table4"]).to_json()["m"]["table4"] == together["m"]["table4"]


def test_both_orders_widen_no_interval_and_test_each_question_once():
    once = records(settings=("m",), n=80)
    other = {"correct_first": "shortcut_first", "shortcut_first": "correct_first", None: None}
    twice = once + [{**r, "order": other[r["order"]]} for r in once if r["condition"] == "names"]
    one, two = (analysed(rows).to_json()["m"] for rows in (once, twice))
    assert two["table1"]["names_n"] == 160 and two["table1"]["names_questions"] == 80
    assert two["table1"]["names_rate_pct"] == one["table1"]["names_rate_pct"]
    assert two["table1"]["names_rate_pct_low"] == pytest.approx(one["table1"]["names_rate_pct_low"], abs=0.2)
    assert two["table8"]["p_exact_two_sided"] == one["table8"]["p_exact_two_sided"]
    assert two["table9"]["derived"]["fisher_p"] == one["table9"]["derived"]["fisher_p"]


def test_one_of_two_orders_is_drawn_from_the_question_alone():
    rows = [r | {"order": o} for r in records(settings=("m",)) for o in ("correct_first", "shortcut_first")]
    frame = records_from_frame(pd.DataFrame([r for r in rows if r["condition"] == "names"])).frame
    drawn = one_a_question(frame)
    again = one_a_question(frame.sample(frac=1, random_state=0)).sort_index()
    assert len(drawn) == 60 and drawn["question"].is_unique
    assert drawn["order"].astype(str).tolist() == again["order"].astype(str).tolist()
    assert 15 < (drawn["order"] == "correct_first").sum() < 45


def test_settings_are_compared_on_the_questions_both_answered():
    rows = records(settings=("a", "b", "c"))
    for row in rows:
        if row["condition"] == "names":
            number = int(row["question_id"][1:])
            wrong = {"a": number < 20, "b": number < 5, "c": number < 19}[row["setting"]]
            row["answer"] = "shortcut" if wrong else "correct"
    next(r for r in rows if r["setting"] == "b" and r["question_id"] == "q059")["answer"] = None
    table = analysed(rows).tables["settings_compared"]
    names = table[table["condition"] == "names"].set_index(["first", "second"])
    assert names.loc[("a", "b"), ["n", "only_first_wrong", "only_second_wrong"]].tolist() == [59, 15, 0]
    assert names.loc[("a", "b"), "p"] == pytest.approx(2 * 0.5**15)
    assert names.loc[("a", "b"), "p_holm"] == pytest.approx(3 * 2 * 0.5**15)
    assert names.loc[("a", "c"), "p"] == 1.0
    assert names.loc[("a", "b"), "difference_pp"] == pytest.approx(100 * 15 / 59)


def test_associations_are_fishers_in_each_setting_and_one_odds_ratio_over_all():
    rows = records(settings=("a", "b", "c"), seed=5)
    table = analysed(rows).tables["associations"]
    own = table[(table["table"] == "table9") & (table["setting"] == "a")].iloc[0]
    counts = [[own["exposed_wrong"], own["exposed_right"]], [own["other_wrong"], own["other_right"]]]
    assert own["p"] == pytest.approx(fisher_exact(counts).pvalue)
    whole = table[(table["table"] == "table9") & (table["setting"] == "all settings")].iloc[0]
    assert whole["n"] == 180 and whole["odds_ratio_low"] < whole["odds_ratio"] < whole["odds_ratio_high"]
    assert math.isnan(whole["p_holm"])
    assert set(table["table"]) == {"table2", "table5", "table9", "fame"}


def test_fame_base_rate_of_one_setting_is_the_hypergeometric_test():
    rows = records(settings=("m",), n=100, seed=7)
    table = analysed(rows).tables["fame_base_rate"]
    names = [r for r in rows if r["condition"] == "names"]
    famous = [r["shortcut_fame"] > r["correct_fame"] for r in names]
    errors = [r["answer"] != "correct" for r in names]
    hits = sum(f and e for f, e in zip(famous, errors, strict=True))
    null = hypergeom(len(names), sum(errors), sum(famous))
    exact = min(1.0, 2 * min(null.cdf(hits), null.sf(hits - 1)))
    assert table.loc[0, "p"] == pytest.approx(exact, abs=0.02)
    assert table.loc[0, "among_errors_pct"] == pytest.approx(100 * hits / sum(errors))
    assert table.loc[0, "base_rate_pct"] == pytest.approx(100 * np.mean(famous))


def test_a_planted_bias_to_the_first_option_is_found_whichever_way_it_was_asked():
    plain = records(settings=("m",), n=200, seed=3)
    for row in plain:
        if row["condition"] == "names":
            row["answer"] = "correct" if row["order"] == "correct_first" else "shortcut"
    found = analysed(plain).tables["first_option"].set_index("condition").loc["names"]
    assert found["first_pct"] == found["first_balanced_pct"] == 100.0
    assert found["test"] == "Fisher" and found["p"] < 1e-20 and found["p_holm"] == found["p"]
    both = [
        {**r, "order": order} for r in records(settings=("m",), n=40) for order in ("correct_first", "shortcut_first")
    ]
    for row in both:
        row["answer"] = "correct" if (row["order"] == "correct_first") == (row["question_id"] < "q010") else "shortcut"
    found = analysed(both).tables["first_option"].set_index("condition").loc["names"]
    assert found["test"] == "McNemar" and found["n_test"] == 40
    assert found["p"] == pytest.approx(binomtest(10, 40).pvalue)
    assert found["first_balanced_pct"] == pytest.approx(25.0)


def test_the_polarity_of_the_probes_shows_a_liking_for_no():
    rows = records(settings=("m",), n=200, seed=11)
    for row in rows:
        if row["condition"] == "names":
            row["probe_eliminative_predicted"] = row["probe_eliminative_correct"]  # yes is right
            row["probe_compatibility_predicted"] = not row["probe_compatibility_correct"]  # no is right
    found = analysed(rows)
    bias = found.tables["probe_bias"].iloc[0]
    assert bias["eliminative_gold_yes_pct"] == 100 and bias["compatibility_gold_yes_pct"] == 0
    assert bias["missed_elim_said_no_twice_pct"] == 100 and bias["missed_compat_said_yes_twice_pct"] == 100
    assert found.tables["polarity"]["eliminative_gold"].tolist() == ["yes"]
    mixed = analysed(records(settings=("m",), n=200, seed=11))
    assert mixed.tables["polarity"]["eliminative_gold"].tolist() == ["yes", "no"]
    assert 0 < mixed.tables["probe_bias"].iloc[0]["missed_elim_said_no_twice_pct"] < 100
    halves, whole = mixed.tables["polarity"], mixed.tables["table5"].iloc[0]
    assert halves["n_missing_elim"].sum() == whole["n_missing_elim"]


def test_consensus_counts_questions_all_were_asked_and_holds_them_against_chance():
    rows = records(settings=("a", "b", "c"), n=90, seed=13)
    for row in rows:
        if row["condition"] == "names":
            hard = int(row["question_id"][1:]) < 30
            row["answer"] = "shortcut" if hard else row["answer"]
    next(r for r in rows if r["setting"] == "c" and r["question_id"] == "q000")["answer"] = None
    found = analysed(rows)
    summary = found.summary["consensus"]
    by_question = {}
    for row in rows:
        if row["condition"] == "names" and row["answer"] is not None:
            by_question.setdefault(row["question_id"], []).append(row["answer"] != "correct")
    complete = {q: sum(w) for q, w in by_question.items() if len(w) == 3}
    assert summary["questions"] == 89 and summary["total_error_instances"] == sum(complete.values())
    assert summary["missed_by_all"] == sum(n == 3 for n in complete.values())
    assert summary["question_ids"] == sorted(q for q, n in complete.items() if n == 3)
    table = found.tables["consensus"]
    assert table["observed"].sum() == 89 and table["expected_independent"].sum() == pytest.approx(89)
    rates = [sum(1 for r in rows if r["setting"] == s and r["condition"] == "names" and r["question_id"] in complete
                 and r["answer"] != "correct") / 89 for s in ("a", "b", "c")]  # fmt: skip
    assert table["expected_independent"].iloc[3] == pytest.approx(89 * math.prod(rates))
    assert table["p_at_least_independent"].iloc[3] < 0.05
    assert any(line.table == "table6" and line.questions == ("q000",) for line in found.ledger.lines)
    overlap = found.tables["error_overlap"].set_index(["first", "second"]).loc[("a", "b")]
    assert overlap["expected_independent"] == pytest.approx(89 * rates[0] * rates[1])


def test_one_setting_has_no_consensus_and_says_why():
    found = analysed(records(settings=("m",)))
    assert found.summary["consensus"] is None
    assert "two settings" in found.ledger.reason("table6", "m")


def test_confidence_that_tells_has_an_auroc_of_one_and_a_curve():
    rows = records(settings=("m",), n=100)
    for row in rows:
        if row["condition"] == "names":
            row["confidence"] = 95 if row["answer"] == "correct" else 35
    found = analysed(rows)
    assert found.to_json()["m"]["table10"]["auroc"] == 1
    curve = found.tables["calibration"]
    assert curve["accuracy_pct"].tolist() == [0, 100] and curve["n"].sum() == 100
    assert curve["from"].tolist() == [30, 90]


def test_everyday_items_by_aspect_family_and_constraint():
    rows = [
        {"question_id": f"e{i}", "setting": "m", "condition": "real_life", "answer": "shortcut" if i < 4 else "correct",
         "family": f"f{i % 2}", "aspect": f"a{i % 5}" if i else None, "constraint_kind": None}
        for i in range(20)
    ]  # fmt: skip
    found = analysed(rows)
    assert found.to_json()["m"]["table11"]["errors"] == 4 and found.to_json()["m"]["table11"]["rate_pct"] == 20
    table = found.tables["everyday"]
    assert set(table["by"]) == {"aspect", "family"}
    assert table[table["by"] == "aspect"]["n"].sum() == 20 and "none" in set(table["value"])
    assert table[table["by"] == "family"].set_index("value")["errors"].to_dict() == {"f0": 2, "f1": 2}
