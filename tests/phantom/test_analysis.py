"""Tables of judged answers, held against counts made by hand, closed forms and simulation."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats

from latentkt.cli import main
from latentkt.errors import DataError, InputError
from latentkt.phantom.analysis import SettingFacts, analyse, judged_frame, read_setting_facts
from latentkt.phantom.analysis.kinds import distances, kinds
from latentkt.phantom.analysis.paper import paper_checks, paper_rates, possible
from latentkt.phantom.analysis.selectivity import correlations, difference_of_shares, williams_test
from latentkt.phantom.answers import write_answers
from latentkt.results import load_run
from latentkt.stats import mcnemar_test, wilson
from tests.phantom.making_answers import an_answer, judged_answers


def test_both_conventions_by_hand():
    """10 replies: 4 abstain, 3 answer, 2 never came to an answer, 1 verdict unreadable; one more call failed."""
    verdicts = ["abstained"] * 4 + ["answered"] * 3 + ["no_answer"] * 2 + ["unparsable"]
    answers = [
        an_answer(
            "" if v == "no_answer" else "x",
            prompt_id=f"p{n}",
            concept_id=f"c{n}",
            group=f"g{n}",
            judgement=v,
            judge="j",
            finished=v != "no_answer",
            truncated="thinking" if v == "no_answer" else None,
        )
        for n, v in enumerate(verdicts)
    ]
    answers.append(an_answer("", prompt_id="p10", error="refused", finished=False, judgement="no_answer", judge="j"))
    found = analyse(answers)
    whole = found.tables["rates"].query("by == 'all'").set_index("convention")
    assert whole.loc["all", ["n", "unparsable"]].tolist() == [9, 1]
    assert whole.loc["all", "rate_pct"] == pytest.approx(100 * 5 / 9)
    assert whole.loc["answered", "rate_pct"] == pytest.approx(100 * 3 / 7)
    assert whole.loc["all", ["rate_pct_min", "rate_pct_max"]].tolist() == pytest.approx([50.0, 60.0])
    ends = wilson(5, 9)
    assert whole.loc["all", ["rate_pct_low", "rate_pct_high"]].tolist() == pytest.approx(
        [100 * ends.low, 100 * ends.high]
    )
    done = found.tables["completion"].query("property == 'all'").iloc[0]
    assert done[["asked", "failed", "finished", "cut_answer", "cut_thinking"]].tolist() == [11, 1, 8, 0, 2]
    assert done["completion_pct"] == pytest.approx(80.0)
    assert (done["rate_all_pct"], done["rate_answered_pct"]) == pytest.approx((100 * 5 / 9, 100 * 3 / 7))
    texts = " ".join(found.ledger.texts())
    assert "the call failed" in texts and "cannot be read" in texts and "cut off in the reasoning" in texts


def test_replies_of_one_seed_widen_the_interval():
    apart = judged_answers("m", {"phantom": 0.5}, properties=("meaning",))
    together = [
        an_answer(**{**{f: getattr(a, f) for f in ("prompt_id", "concept_id", "judgement", "judge", "kind")},
                     "group": "one" if a.judgement == "abstained" else "two"})
        for a in apart
    ]  # fmt: skip
    width = []
    for answers in (apart, together):
        row = analyse(answers).tables["rates"].query("by == 'all' and convention == 'all'").iloc[0]
        width.append(row["rate_pct_high"] - row["rate_pct_low"])
    assert width[1] > 1.5 * width[0]


def test_selectivity_is_a_difference_with_newcombes_interval():
    answers = judged_answers("m", {"phantom": 0.8, "common": 0.2, "rare": 0.7})
    row = analyse(answers).tables["selectivity"].query("concept_kind == 'all' and convention == 'all'").iloc[0]
    assert (row["phantom_pct"], row["common_pct"], row["selectivity"]) == pytest.approx((80, 20, 60))
    sides = [tuple(row[f"{who}_pct{end}"] for end in ("", "_low", "_high")) for who in ("phantom", "common")]
    assert (row["selectivity"], row["selectivity_low"], row["selectivity_high"]) == difference_of_shares(*sides)
    assert row["selectivity_low"] > 0 > row["against_rare_low"]
    assert math.isnan(row["unattested_pct"])


def test_answers_that_are_not_judged_or_judged_twice_are_refused():
    with pytest.raises(InputError, match="not judged"):
        analyse([an_answer()])
    both = [an_answer(judgement="answered", judge=j) for j in ("a", "b")]
    with pytest.raises(InputError, match="several judges"):
        analyse(both)
    with pytest.raises(InputError, match="no answers"):
        analyse([])


def _cells(rng, settings=8, properties=8):
    rows = []
    for setting in range(settings):
        level = rng.uniform(20, 80)
        for prop in range(properties):
            phantom = level + rng.normal(0, 5)
            rows.append((f"s{setting}", "term", f"p{prop}", phantom, rng.uniform(0, 20), phantom + rng.normal(0, 8)))
    frame = pd.DataFrame(rows, columns=["setting", "concept_kind", "property", "phantom", "common", "rare"])
    return frame.assign(unattested=np.nan)


def test_correlations_are_scipys_with_an_interval_over_settings():
    cells = _cells(np.random.default_rng(0))
    table = correlations(cells, n_resamples=300).set_index("with")
    for other in ("rare", "common"):
        expected = scipy_stats.pearsonr(cells["phantom"], cells[other])
        assert (table.loc[other, "r"], table.loc[other, "p"]) == pytest.approx((expected.statistic, expected.pvalue))
        assert table.loc[other, "r_low"] <= table.loc[other, "r"] <= table.loc[other, "r_high"]
    assert table.loc["unattested", "reason"] == "fewer than three cells"
    assert table.loc["rare − common", "r"] == pytest.approx(table.loc["rare", "r"] - table.loc["common", "r"])
    few = correlations(cells[cells["setting"].isin(["s0", "s1"])]).set_index("with")
    assert math.isnan(few.loc["rare", "r_low"])
    flat = correlations(cells.assign(phantom=100.0)).set_index("with")
    assert flat.loc["rare", "reason"] == "one of the two does not vary"
    lone = cells.assign(**{name: [5.0, *[0.0] * 63] for name in ("phantom", "rare")})
    assert correlations(lone).set_index("with").loc["rare", "reason"] == "a single cell makes all the difference"


def test_williams_test_holds_its_level():
    rng = np.random.default_rng(0)
    root = np.linalg.cholesky(np.array([[1, 0.4, 0.4], [0.4, 1, 0.2], [0.4, 0.2, 1]]))
    p = []
    for _ in range(600):
        r = np.corrcoef(root @ rng.normal(size=(3, 40)))
        p.append(williams_test(r[0, 1], r[0, 2], r[1, 2], 40)[1])
    assert 0.03 < np.mean(np.array(p) < 0.05) < 0.075
    assert williams_test(0.5, 0.3, 0.2, 50)[0] == pytest.approx(-williams_test(0.3, 0.5, 0.2, 50)[0])


def test_settings_are_compared_on_the_questions_that_both_answered(tmp_path):
    answers = [
        *judged_answers("small", {"phantom": 0.2}),
        *judged_answers("large", {"phantom": 0.6}),
        *judged_answers("law", {"phantom": 0.1}),
    ]
    facts = [
        SettingFacts("small", "f", 1.0),
        SettingFacts("large", "f", 7.0),
        SettingFacts("law", domain="law", base="small", categories=("science",)),
    ]
    tables = analyse(answers, facts=facts).tables
    row = tables["pairs"].query("first == 'small' and second == 'large' and property == 'all'").iloc[0]
    assert (row["n"], row["only_first"], row["only_second"]) == (40, 16, 0)
    assert row["difference"] == pytest.approx(-40.0) and row["p"] == mcnemar_test(16, 0).p
    sizes = tables["sizes"].query("property == 'all'").set_index("setting")
    assert sizes["size"].tolist() == [1.0, 7.0] and sizes["rate_pct"].tolist() == pytest.approx([80.0, 40.0])
    assert math.isnan(sizes.loc["small", "step"]) and sizes.loc["large", "step"] == pytest.approx(-40.0)
    domain = tables["domains"].query("property == 'all'").iloc[0]
    assert (domain["first"], domain["second"], domain["difference"]) == ("small", "law", pytest.approx(10.0))
    path = tmp_path / "facts.csv"
    path.write_text("setting,family,size,domain,base,categories\nsmall,f,1,,,\nlaw,,,law,small,a; b\n")
    found = read_setting_facts(path)
    assert found[1] == SettingFacts("law", "", found[1].size, "law", "small", ("a", "b")) and found[0].size == 1.0
    path.write_text("setting,size\nsmall,big\n")
    with pytest.raises(DataError, match="line 2"):
        read_setting_facts(path)


def _with_kinds(shares, n=60):
    answers = []
    for existence, listed in shares.items():
        for number, kind in enumerate(listed * (n // len(listed))):
            about = {"prompt_id": f"{existence}{number}", "concept_id": f"{existence}{number}"}
            answers.append(
                an_answer(
                    existence=existence,
                    kind=kind,
                    judgement="abstained",
                    judge="j",
                    group=f"{existence}{number}",
                    **about,
                )
            )
    return judged_frame(answers)


def test_kinds_and_their_distance():
    frame = _with_kinds(
        {"phantom": ["uncertainty", "uncertainty", "context"], "common": ["presume"], "rare": ["uncertainty"]}
    )
    table = kinds(frame).set_index(["existence", "kind"])
    assert table.loc[("phantom", "uncertainty"), "share_pct"] == pytest.approx(100 * 2 / 3)
    assert table.loc[("common", "presume"), "count"] == 60
    apart = distances(frame, n_permutations=199).set_index("with")
    assert apart.loc["common", "distance"] == pytest.approx(1.0) and apart.loc["common", "p"] == pytest.approx(1 / 200)
    assert apart.loc["rare", "distance"] == pytest.approx(1 / 3)


def test_the_distance_of_equal_mixtures_is_significant_at_its_level():
    rng = np.random.default_rng(0)
    p = []
    for trial in range(60):
        words = {e: rng.choice(["uncertainty", "context", "presume"], 20).tolist() for e in ("phantom", "rare")}
        frame = _with_kinds(words, n=20)
        p.append(distances(frame, seed=trial, n_permutations=99)["p"].iloc[0])
    assert np.mean(np.array(p) <= 0.1) < 0.22


def test_the_papers_figures_are_there_and_its_errors_are_found():
    rates = paper_rates()
    assert len(rates) == 18 * 8 and rates["rate_pct"].between(0, 100).all()
    checks = {check.where: check for check in paper_checks()}
    assert (
        not checks["Section 4.1, number of entities"].fits
        and "25,510" in checks["Section 4.1, number of entities"].found
    )
    assert not checks["Section 4.1, size of Phantom-Legal"].fits
    assert checks["Section 4.1, number of terms"].fits and checks["Section 5.6, false claims of all abstentions"].fits
    sizes = [check.found for where, check in checks.items() if where.startswith("Tables 3 and 4")]
    assert "1,060 replies" in sizes[0] and "22.76" in sizes[0] and "1,200 replies" in sizes[1]
    assert possible(50.0, 2) and not possible(33.34, 3) and possible(33.33, 3)


def test_the_figures_agree_with_the_development_data(data_dir):
    import json

    given = json.loads((data_dir / "paper_tables.json").read_text())["phantombench"]
    ours = paper_rates().set_index(["table", "setting", "concept_kind", "property"])["rate_pct"]
    for table in ("table3", "table4"):
        for setting, row in given[f"{table}_pct"].items():
            for name, value in row.items():
                kind = {"T": "term", "E": "entity"}[name[0]]
                assert ours[table, setting, kind, name[2:]] == value


def test_the_command_writes_a_report(tmp_path, capsys):
    answers = [
        *judged_answers("one", {"phantom": 0.3, "common": 0.1, "rare": 0.3}),
        *judged_answers("two", {"phantom": 0.6, "common": 0.5, "rare": 0.5}),
    ]
    write_answers(answers, tmp_path / "j.jsonl")
    out, sheet = tmp_path / "run", tmp_path / "sheet.csv"
    argv = ["phantom", "analyse", str(tmp_path / "j.jsonl"), "--out", str(out), "--claims-sheet", str(sheet)]
    assert main(argv) == 0
    assert "no family with two sizes" in capsys.readouterr().out
    page = (out / "report.html").read_text()
    assert "hallucination rate" in page and "Abstention on concepts that do not exist minus that on common ones" in page
    run = load_run(out)
    assert {"phantom_rates", "phantom_completion", "phantom_paper_checks"} <= set(run.tables)
    assert (out / "tables.md").read_text().count("## ") > 8 and sheet.exists()
    assert main(argv) == 2  # the folder is there
