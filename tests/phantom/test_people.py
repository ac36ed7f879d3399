"""Judges held against people: labels, several annotators, ratings, claims."""

from __future__ import annotations

import csv
import itertools
import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from latentkt.errors import DataError, InputError, RunError
from latentkt.phantom.judging import (
    agreement,
    alternative_annotator_test,
    compare_ratings,
    read_annotations,
    read_claims,
    read_labels,
    read_ratings,
    write_claims_sheet,
)
from latentkt.phantom.judging.claims import claims_table
from tests.phantom.making_answers import an_answer, judged_answers


def test_agreement_counts_what_there_is():
    verdicts = ["abstained"] * 6 + ["answered"] * 3 + ["unparsable", "no_answer"]
    answers = [an_answer(prompt_id=f"p{n}", judgement=v, judge="j") for n, v in enumerate(verdicts)]
    labels = {(f"p{n}", "m"): "abstained" if n in (0, 1, 2, 3, 6, 9) else "answered" for n in range(10)}
    found = agreement(answers, labels)
    assert (found.n, found.unparsable, found.unlabelled) == (9, 1, 1)
    assert found.agree.value == pytest.approx(6 / 9) and found.disagreements == ("p4", "p5", "p6")
    assert found.found.value == pytest.approx(4 / 5) and found.right.value == pytest.approx(4 / 6)
    observed, chance = 6 / 9, (5 * 6 + 4 * 3) / 81
    assert found.kappa == pytest.approx((observed - chance) / (1 - chance))
    assert found.to_frame()["abstained_as_answered"].item() == 1
    with pytest.raises(InputError, match="of one judge"):
        agreement([*answers, an_answer(prompt_id="x", judgement="answered", judge="k")], labels)
    with pytest.raises(InputError, match="no answer has a label"):
        agreement(answers, {("p0", "other"): "abstained"})


@pytest.mark.parametrize("row", ["p1,m,maybe", "p0,m,answered"])
def test_wrong_labels_are_refused(row, tmp_path):
    path = tmp_path / "l.csv"
    path.write_text(f"prompt_id,setting,label\np0,m,abstained\n{row}\n")
    with pytest.raises(DataError, match="line 3"):
        read_labels(path)


def _by_hand(annotations, judge, name, epsilon):
    """The test of one left-out annotator, written out."""
    differences = []
    for item, mine in annotations[name].items():
        others = [labels[item] for other, labels in annotations.items() if other != name and item in labels]
        if not others:
            continue
        of_judge = np.mean([judge.get(item) == label for label in others])
        of_person = np.mean([mine == label for label in others])
        differences.append(float(of_person >= of_judge) - float(of_judge >= of_person))
    values = np.array(differences)
    t = (values.mean() - epsilon) / (values.std(ddof=1) / math.sqrt(len(values)))
    return t, scipy_stats.t.cdf(t, len(values) - 1), len(values)


def _people(rng, *, noise, n=60):
    truth = rng.integers(0, 2, n)
    return truth, {
        name: {item: str(value ^ (rng.random() < noise)) for item, value in enumerate(truth) if rng.random() < 0.9}
        for name in ("ann", "bob", "cat", "dan")
    }


def test_the_annotator_test_is_the_one_written_out():
    rng = np.random.default_rng(3)
    truth, people = _people(rng, noise=0.15)
    judge = {item: str(value ^ (rng.random() < 0.2)) for item, value in enumerate(truth) if item != 5}
    found = alternative_annotator_test(people, judge, epsilon=0.1)
    p = []
    for each in found.comparisons:
        t, value, n = _by_hand(people, judge, each.annotator, 0.1)
        assert (each.n, each.statistic, each.p) == (n, pytest.approx(t), pytest.approx(value))
        p.append(value)
    adjusted = scipy_stats.false_discovery_control(p, method="by")
    assert [each.p_adjusted for each in found.comparisons] == pytest.approx(list(adjusted))
    assert found.winning_rate == np.mean(adjusted <= 0.05)
    assert found.to_frame()["epsilon"].unique().tolist() == [0.1]


def test_a_good_judge_wins_and_a_coin_does_not():
    rng = np.random.default_rng(0)
    truth, people = _people(rng, noise=0.1, n=120)
    good = alternative_annotator_test(people, {item: str(value) for item, value in enumerate(truth)})
    coin = alternative_annotator_test(people, {item: str(rng.integers(0, 2)) for item in range(120)})
    silent = alternative_annotator_test(people, {})  # no verdict at all agrees with nobody
    assert good.winning_rate == 1.0 and good.passes and good.advantage > 0.9
    assert coin.winning_rate == 0.0 and not coin.passes
    assert silent.winning_rate == 0.0 and silent.advantage < coin.advantage


def test_the_level_holds_at_the_edge_of_the_null():
    """A judge worse than a person by exactly ε passes in about 5 % of studies."""
    rng = np.random.default_rng(1)
    passed = []
    for _ in range(200):
        n = 80
        # Only one annotator is looked at; the others are all right, so ties are decided by the two alone.
        mine, judge = rng.random(n) < 0.8, rng.random(n) < 0.6
        people = {
            "mine": {i: "y" if good else "n" for i, good in enumerate(mine)},
            "a": dict.fromkeys(range(n), "y"),
            "b": dict.fromkeys(range(n), "y"),
        }
        said = {i: "y" if good else "n" for i, good in enumerate(judge)}
        found = alternative_annotator_test(people, said, epsilon=0.2)
        passed.append(found.comparisons[0].p <= 0.05)
    assert 0.01 <= np.mean(passed) <= 0.10


def test_equal_judges_and_too_few_people_or_items():
    people = {name: dict.fromkeys(range(40), "y") for name in ("a", "b", "c")}
    found = alternative_annotator_test(people, dict.fromkeys(range(40), "y"))
    assert found.winning_rate == 1.0 and {each.p for each in found.comparisons} == {0.0}
    with pytest.raises(InputError, match="three annotators"):
        alternative_annotator_test({"a": people["a"], "b": people["b"]}, {})
    with pytest.raises(InputError, match="too few items"):
        alternative_annotator_test({name: dict.fromkeys(range(10), "y") for name in "abc"}, {})
    with pytest.raises(InputError, match="epsilon"):
        alternative_annotator_test(people, {}, epsilon=1.2)
    lone = {**people, "a": dict.fromkeys(range(60), "y")}
    assert alternative_annotator_test(lone, {}).dropped == 20


def test_annotations_are_read_and_doubles_refused(tmp_path):
    path = tmp_path / "a.csv"
    rows = ["prompt_id,setting,annotator,label", "p,m,ann,abstained", "p,m,bob,answered"]
    path.write_text("\n".join(rows) + "\n")
    assert read_annotations(path) == {"ann": {("p", "m"): "abstained"}, "bob": {("p", "m"): "answered"}}
    path.write_text("\n".join([*rows, "p,m,ann,answered"]) + "\n")
    with pytest.raises(DataError, match="line 4"):
        read_annotations(path)
    path.write_text("\n".join([rows[0], "p,m,ann,Abstains"]) + "\n")
    with pytest.raises(DataError, match="line 2"):  # a word that no judge can agree with
        read_annotations(path)


def test_ratings_are_compared_by_concept_with_mann_whitney(tmp_path):
    rng = np.random.default_rng(0)
    rows = [["concept", "kind", "group", "rater", "plausibility", "specificity"]]
    for group, level in (("made", 3), ("rare", 4)):
        for n, rater in itertools.product(range(12), ("r1", "r2")):
            rows.append([f"{group} {n}", "term", group, rater, min(5, level + int(rng.integers(-1, 2))), ""])
    path = tmp_path / "r.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    table = compare_ratings(read_ratings(path))
    (row,) = table.to_dict("records")
    means = {g: [np.mean([r[4] for r in rows[1:] if r[0] == f"{g} {n}"]) for n in range(12)] for g in ("made", "rare")}
    test = scipy_stats.mannwhitneyu(means["made"], means["rare"])
    assert (row["u"], row["p"]) == (test.statistic, pytest.approx(test.pvalue))
    assert row["above"] == pytest.approx(test.statistic / 144) and row["raters"] == 2
    with pytest.raises(InputError, match="made and common"):
        compare_ratings(read_ratings(path), real="common")
    path.write_text(path.read_text() + "made 0,term,made,r1,3,\n")
    with pytest.raises(DataError, match="again"):
        read_ratings(path)
    path.write_text("concept,kind,group,rater,plausibility,specificity\nx,term,made,r,6,\n")
    with pytest.raises(DataError, match="plausibility is wrong"):
        read_ratings(path)


def test_the_sheet_of_claims_goes_out_and_comes_back(tmp_path):
    answers = [*judged_answers("a", {"phantom": 0.5, "rare": 1.0}), *judged_answers("b", {"phantom": 1.0})]
    path = tmp_path / "claims.csv"
    assert write_claims_sheet(answers, path, n=9) == 9
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["existence"] for row in rows} == {"phantom"}
    with pytest.raises(InputError, match="no abstention to check"):
        write_claims_sheet(judged_answers("c", {"common": 1.0}), tmp_path / "none.csv")
    assert {(row["setting"], row["property"]) for row in rows} == set(itertools.product("ab", ("existence", "meaning")))
    with pytest.raises(RunError, match="exists"):
        write_claims_sheet(answers, path)
    with pytest.raises(InputError, match="nothing is filled in"):
        read_claims(path)
    for number, row in enumerate(rows[:8]):
        row["makes_claim"] = "yes" if number < 4 else "No"
        row["claim_is_false"] = {0: "yes", 1: "no", 2: "no"}.get(number, "")
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=rows[0])
        writer.writeheader()
        writer.writerows(rows)
    table = claims_table(read_claims(path)).set_index("share")
    assert table["count"].tolist() == [4, 1, 1] and table["n"].tolist() == [8, 3, 7]
    rows[7]["claim_is_false"] = "yes"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=rows[0])
        writer.writeheader()
        writer.writerows(rows)
    with pytest.raises(DataError, match="line 9"):
        read_claims(path)
