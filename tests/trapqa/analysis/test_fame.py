"""Fame from a table of pages, and priors: what is missing is not available, never zero."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from latentkt.errors import DataError, InputError
from latentkt.trapqa import builtin_items
from latentkt.trapqa.analysis import (
    analyse,
    fame_scores,
    join_fame,
    join_names,
    join_priors,
    read_fame,
    read_priors,
    records_from_frame,
)
from tests.trapqa.analysis.rows import records

HEADER = "name,page_length,page_views,external_links\n"


def csv(tmp_path, text, header=HEADER):
    path = tmp_path / "pages.csv"
    path.write_text(header + text, encoding="utf-8")
    return path


def test_fame_is_the_mean_of_three_normalised_numbers(tmp_path):
    pages = read_fame(csv(tmp_path, "A,100,0,5\nB,300,1000,0\nC,200,10,10\nNaN,150,,3\n"))
    assert pages["name"].tolist() == ["A", "B", "C", "NaN"]
    fame = fame_scores(pages)
    assert fame["fame"].tolist()[:3] == pytest.approx([(0 + 0 + 0.5) / 3, (1 + 1 + 0) / 3, (0.5 + 0.01 + 1) / 3])
    assert math.isnan(fame["fame"].iloc[3]) and math.isnan(fame["rank"].iloc[3])
    assert fame["rank"].tolist()[:3] == [3, 1, 2]
    ranked = fame_scores(pages, norm="rank")["fame"].tolist()
    assert ranked[:3] == pytest.approx([(0 + 0 + 2 / 3) / 3, (1 + 1 + 0) / 3, (2 / 3 + 0.5 + 1) / 3])


@pytest.mark.parametrize(
    "text, header, message",
    [
        ("A,1,2\n", "name,page_length,page_views\n", "lacks columns: external_links"),
        ("A,1,2,3\n a ,1,2,3\n", HEADER, "names stand more than once"),
        ("A,1,many,3\n", HEADER, "column page_views"),
        ("A,1,-2,3\n", HEADER, "column page_views"),
    ],
)
def test_a_bad_table_of_pages_is_refused(tmp_path, text, header, message):
    with pytest.raises(DataError, match=message):
        read_fame(csv(tmp_path, text, header))


def test_a_column_that_cannot_be_normalised_is_refused(tmp_path):
    with pytest.raises(InputError, match="page_views"):
        fame_scores(read_fame(csv(tmp_path, "A,1,2,3\nB,2,2,5\n")))
    with pytest.raises(InputError, match="norm"):
        fame_scores(read_fame(csv(tmp_path, "A,1,2,3\nB,2,3,5\n")), norm="z")


@pytest.fixture
def built_in():
    items = builtin_items(kind="scientist")
    rows = [
        {"question_id": item.id, "setting": "m", "condition": "names", "answer": "shortcut" if i % 3 else "correct"}
        for i, item in enumerate(items)
    ]
    return items, records_from_frame(pd.DataFrame([*rows, {**rows[0], "question_id": "elsewhere"}]))


def scores_of(items, known):
    names = list(dict.fromkeys(side.text for item in items for side in (item.correct, item.shortcut)))
    values = [known(i) for i in range(len(names))]
    return pd.DataFrame({"name": [name.upper() for name in names], "fame": values}), dict(
        zip(names, values, strict=True)
    )


def test_fame_is_joined_by_name_whatever_its_spelling_and_missing_for_both_sides_where_one_is(built_in):
    items, rows = built_in
    scores, known = scores_of(items, lambda i: math.nan if i % 7 == 0 else i / 100)
    joined = join_fame(rows, scores, items)
    by_id = joined.frame.set_index(joined.frame["question_id"].astype(str))
    for item in items:
        pair = (known[item.correct.text], known[item.shortcut.text])
        found = tuple(by_id.loc[item.id, ["correct_fame", "shortcut_fame"]])
        assert found == pytest.approx(pair) if not np.isnan(pair).any() else np.isnan(found).all()
    reasons = {line.reason: line.questions for line in joined.ledger.lines}
    gone = [item.id for item in items if np.isnan([known[item.correct.text], known[item.shortcut.text]]).any()]
    assert gone and set(reasons["fame is not available for a candidate"]) == set(gone)
    assert reasons["fame: the question is not in the item file"] == ("elsewhere",)
    assert not rows.ledger.lines


def test_the_bar_of_the_top_percent_is_over_all_names_of_the_table(built_in):
    items, rows = built_in
    scores, _ = scores_of(items, lambda i: i / 1000)
    more = pd.DataFrame({"name": [f"x{i}" for i in range(300)], "fame": np.linspace(0.5, 1, 300)})
    joined = join_fame(rows, pd.concat([scores, more]), items)
    count = int(0.01 * (len(scores) + 300))
    assert joined.frame["top_fame"].iloc[0] == np.sort(more["fame"])[-count]
    assert analyse(joined, only=["fame"]).to_json()["m"]["fame"]["n_top1pct"] == 0


def test_table_6_names_the_candidates_of_questions_that_all_miss(built_in):
    items, rows = built_in
    both = pd.concat([rows.frame, rows.frame.assign(setting="n")])[["question_id", "setting", "condition", "answer"]]
    table = analyse(join_names(records_from_frame(both.reset_index(drop=True)), items)).tables["table6"]
    named = table.set_index("question_id")
    for item in items:
        if item.id in named.index:
            assert tuple(named.loc[item.id, ["correct_name", "shortcut_name"]]) == (
                item.correct.text,
                item.shortcut.text,
            )
    assert len(named) > 10


def test_few_candidates_have_no_top_percent():
    found = analyse(records_from_frame(pd.DataFrame(records(settings=("m",), n=20)))).to_json()["m"]["fame"]
    assert found["n_top1pct"] is None and found["top1"]["in_top1_pct"] is None and found["pct"] is not None


def priors_csv(tmp_path, text):
    path = tmp_path / "priors.csv"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "text", ["question_id,count\nq,1\n", "question_id,cooccurrence\nq,1\nq,2\n", "question_id,cooccurrence\nq,a\n",
             "question_id,cooccurrence\nq,-1\n"]
)  # fmt: skip
def test_bad_priors_are_refused(tmp_path, text):
    with pytest.raises(DataError):
        read_priors(priors_csv(tmp_path, text))


def test_errors_beside_cooccurrence_and_priors(tmp_path):
    rows = records(settings=("m",), n=90, seed=4)
    lines = ["question_id,cooccurrence,log_prior_ratio"]
    for i in range(85):
        lines.append(f"q{i:03d},{0 if i < 25 else i},{(-1) ** i * 0.5 if i != 3 else ''}")
    for row in rows:
        if row["condition"] == "names":
            # The shortcut is followed exactly where its path has the larger prior: even questions.
            row["answer"] = "shortcut" if int(row["question_id"][1:]) % 2 == 0 else "correct"
    priors = read_priors(priors_csv(tmp_path, "\n".join(lines)))
    found = analyse(join_priors(records_from_frame(pd.DataFrame(rows)), priors))
    table = found.tables["cooccurrence"]
    assert table["n"].tolist() == [25, 20, 20, 20] and table["from"].iloc[0] == table["to"].iloc[0] == 0
    assert table["errors"].sum() == sum(i % 2 == 0 for i in range(85))
    ranking = found.tables["ranking_of_errors"].set_index("predictor")
    assert ranking.loc["log_prior_ratio", "auroc"] == 1 and ranking.loc["log_prior_ratio", "n"] == 84
    assert 0.3 < ranking.loc["fame of wrong - fame of right", "auroc"] < 0.7
    beside = found.tables["fame_beside_priors"].set_index("predictor")
    assert math.isinf(beside.loc["shortcut path has the larger prior", "odds_ratio_within"])
    assert beside.loc["shortcut path has the larger prior", "p_within"] < 1e-10
    assert beside.loc["wrong more famous", "p"] > 0.01
    noted = {line.reason: line.questions for line in found.ledger.lines if line.table == "records"}
    assert len(noted["priors: the question is not in the file"]) == 5
