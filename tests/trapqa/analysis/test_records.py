"""What contradicts itself is refused, or counted by question."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from latentkt.errors import DataError
from latentkt.trapqa.analysis import analyse, read_records, records_from_frame
from tests.trapqa.analysis.rows import records


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def base(**more):
    return {"question_id": "q1", "setting": "m", "condition": "names", "answer": "correct", **more}


def test_files_and_frames_give_the_same_records(tmp_path):
    rows = records(missing=0.2)
    first, second = write(tmp_path / "a.jsonl", rows[:70]), write(tmp_path / "b.jsonl", rows[70:])
    read, made = read_records([first, second]), records_from_frame(pd.DataFrame(rows))
    pd.testing.assert_frame_equal(read.frame, made.frame)
    assert [name for name, _ in read.sources] == ["a.jsonl", "b.jsonl"]
    assert read.settings == ["m/low", "m/high"]


def test_the_papers_words_are_read(tmp_path):
    rows = [base(answer="distractor", condition="prepend_names"), base(condition="prepend_profiles", raw="x", more=1)]
    frame = read_records(write(tmp_path / "a.jsonl", rows)).frame
    assert frame["answer"].tolist() == ["shortcut", "correct"]
    assert frame["condition"].tolist() == ["names", "profiles"]


@pytest.mark.parametrize(
    "row, message",
    [
        (
            base(confidence="about 80%"),
            "line 2: question 'q2': confidence is 'about 80%', expected a number from 0 to 100",
        ),
        (base(confidence=101), "expected a number from 0 to 100"),
        (base(confidence=True), "expected a number from 0 to 100"),
        (base(answer="Marie Curie"), "answer is 'Marie Curie', expected one of correct, shortcut, distractor, off"),
        (base(condition="open book"), "condition is 'open book'"),
        (base(order="seeded"), "order is 'seeded'"),
        (base(probe_eliminative_correct="yes"), "probe_eliminative_correct is 'yes', expected true or false"),
        (base(correct_fame=float("inf")), "correct_fame is inf, expected a finite number"),
        (base(setting=None), "setting is missing"),
        (base(setting=" "), "setting is ' ', expected text"),
    ],
)
def test_a_wrong_value_is_refused_by_line_and_question(tmp_path, row, message):
    path = write(tmp_path / "a.jsonl", [base(), row | {"question_id": "q2"}])
    with pytest.raises(DataError) as refused:
        read_records(path)
    assert message in str(refused.value) and "q2" in str(refused.value)


@pytest.mark.parametrize("text", ['{"question_id": "q2", "set', "[1]", '"q"'])
def test_a_line_that_is_no_record_is_refused(tmp_path, text):
    path = write(tmp_path / "a.jsonl", [base()])
    path.write_text(path.read_text() + text)
    with pytest.raises(DataError, match=r"a\.jsonl, line 2"):
        read_records(path)


def test_no_file_and_no_records_are_refused(tmp_path):
    with pytest.raises(DataError, match="cannot read"):
        read_records(tmp_path / "none.jsonl")
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(DataError, match="no records"):
        read_records(tmp_path / "empty.jsonl")


@pytest.mark.parametrize(
    "rows",
    [
        [base(), base(answer="shortcut")],
        [base(), base()],
        [base(order="correct_first"), base(order="correct_first", answer="off")],
        [base(order="correct_first"), base(answer="off")],
    ],
)
def test_two_answers_for_one_key_are_refused(rows):
    with pytest.raises(DataError, match="two answers for one key") as refused:
        records_from_frame(pd.DataFrame(rows))
    assert "question 'q1', setting 'm', condition 'names': 2 records" in str(refused.value)


def test_both_orders_are_two_keys():
    rows = [base(order="correct_first"), base(order="shortcut_first", answer="off")]
    assert records_from_frame(pd.DataFrame(rows)).frame["wrong"].tolist() == [0.0, 1.0]


def test_labels_are_shared_by_a_question_and_refused_where_they_differ():
    rows = [base(family="awards"), base(setting="n")]
    assert records_from_frame(pd.DataFrame(rows)).frame["family"].tolist() == ["awards", "awards"]
    with pytest.raises(DataError, match="question 'q1': more than one family"):
        records_from_frame(pd.DataFrame([base(family="awards"), base(setting="n", family="offices")]))


def reasons(found):
    return {(line.reason, line.setting): line.questions for line in found.ledger.lines}


def test_probe_answers_that_differ_within_a_setting_are_missing_and_counted():
    probes = {"probe_compatibility_correct": True, "probe_eliminative_predicted": True}
    rows = [
        base(probe_eliminative_correct=True, **probes),
        base(condition="profiles", probe_eliminative_correct=False, **probes),
        base(setting="n", probe_eliminative_correct=True, **probes),
    ]
    found = records_from_frame(pd.DataFrame(rows))
    assert reasons(found)["records of the question give different probe answers", "m"] == ("q1",)
    probes = found.frame.set_index("setting")[["probe_eliminative_correct", "probe_compatibility_correct"]]
    assert probes.loc["m"].isna().all(axis=None) and probes.loc["n"].notna().all()


def test_right_answers_to_a_probe_that_differ_between_settings_are_missing_and_counted():
    rows = [
        base(probe_eliminative_correct=True, probe_eliminative_predicted=True),
        base(setting="n", probe_eliminative_correct=True, probe_eliminative_predicted=False),
        base(setting="o", question_id="q2", probe_eliminative_correct=True, probe_eliminative_predicted=False),
    ]
    found = records_from_frame(pd.DataFrame(rows))
    ((reason, setting), questions) = next(iter(reasons(found).items()))
    assert "imply different right answers" in reason and setting == "" and questions == ("q1",)
    assert found.frame["probe_eliminative_correct"].notna().tolist() == [False, False, True]


def test_fame_of_one_side_or_that_differs_is_missing_for_both_and_counted():
    rows = [
        base(correct_fame=0.5),
        base(question_id="q2", correct_fame=0.5, shortcut_fame=0.25),
        base(question_id="q2", setting="n", correct_fame=0.5, shortcut_fame=0.125),
        base(question_id="q3", correct_fame=0.0, shortcut_fame=0.0),
    ]
    found = records_from_frame(pd.DataFrame(rows))
    assert found.frame["correct_fame"].notna().tolist() == [False, False, False, True]
    noted = {reason: questions for (reason, _), questions in reasons(found).items()}
    assert noted == {
        "records of the question give different fame": ("q2",),
        "fame is known for one candidate only": ("q1",),
    }
    lines = analyse(found, only=["table9"]).ledger.texts()
    assert any("q1" in text and "fame of the candidates is missing" in text for text in lines)
