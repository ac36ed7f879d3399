"""Record files: what is written is read again, and what is wrong is refused by line and id."""

from __future__ import annotations

import json
from dataclasses import asdict

import pandas as pd
import pytest

from latentkt.errors import DataError, InputError
from latentkt.trapqa.running import Record, evidence, join_probes, read_records, records_frame, write_records

ONE = {"question_id": "q1", "setting": "m low", "condition": "names", "order": "correct_first", "answer": "correct"}


def _write(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_records_come_back_as_they_were(tmp_path):
    records = [
        Record(
            "q1",
            "m",
            "names",
            "correct_first",
            "off",
            confidence=80,
            log_odds=-0.1234567890123,
            raw='„a"\n',
            meta={"x": [1]},
        ),
        Record("q1", "m", "probes", None, None, True, False, True, None),
    ]
    write_records(records, tmp_path / "r.jsonl")
    assert read_records(tmp_path / "r.jsonl") == records
    assert list(json.loads((tmp_path / "r.jsonl").read_text(encoding="utf-8").split("\n")[0])) == list(
        asdict(records[0])
    )


def test_missing_fields_are_none_and_the_papers_word_is_read(tmp_path):
    path = _write(tmp_path / "r.jsonl", {**ONE, "answer": "distractor"}, {**ONE, "question_id": "q2"})
    first, second = read_records(path)
    assert (first.answer, second.answer) == ("shortcut", "correct")
    assert first.confidence is None and first.log_odds is None and first.meta == {}


@pytest.mark.parametrize(
    "wrong",
    [
        {"confidence": "about 80%"},
        {"confidence": 101},
        {"confidence": True},
        {"answer": "right"},
        {"answer": 1},
        {"condition": "name"},
        {"condition": None},
        {"order": "a_first"},
        {"setting": ""},
        {"setting": None},
        {"question_id": ""},
        {"probe_eliminative_correct": 1},
        {"probe_compatibility_predicted": "yes"},
        {"log_odds": "0.1"},
        {"correct_fame": float("nan")},
        {"raw": 3},
        {"meta": None},
        {"model": "m"},
    ],
)
def test_a_wrong_value_is_refused_by_line_and_id(wrong, tmp_path):
    path = _write(tmp_path / "r.jsonl", {**ONE, "question_id": "q0"}, {**ONE, **wrong})
    with pytest.raises(DataError, match="line 2") as refusal:
        read_records(path)
    assert next(iter(wrong)) in str(refusal.value)
    assert "q1" in str(refusal.value) or "question_id" in wrong


def test_two_answers_to_one_question_are_refused(tmp_path):
    path = _write(tmp_path / "r.jsonl", ONE, {**ONE, "order": "shortcut_first"}, {**ONE, "answer": "off"})
    with pytest.raises(DataError, match="line 3: a second record of question 'q1'") as refusal:
        read_records(path)
    assert "line 1" in str(refusal.value)
    with pytest.raises(DataError, match="second record"):
        write_records([Record(**ONE), Record(**ONE)], tmp_path / "w.jsonl")
    assert not (tmp_path / "w.jsonl").exists()


def test_half_written_and_foreign_lines_are_refused(tmp_path):
    path = _write(tmp_path / "r.jsonl", ONE)
    with path.open("a") as file:
        file.write('{"question_id": "q2", "set')
    with pytest.raises(DataError, match="line 2: not JSON") as refusal:
        read_records(path)
    assert "--resume" in str(refusal.value)
    for line in ("[1]\n", "3\n"):
        path.write_text(line)
        with pytest.raises(DataError, match="no record"):
            read_records(path)
    with pytest.raises(InputError, match="cannot read"):
        read_records(tmp_path / "none.jsonl")


def test_unknown_settings_are_refused_where_they_are_named(tmp_path):
    path = _write(tmp_path / "r.jsonl", ONE)
    assert read_records(path, settings=["m low", "m high"])
    with pytest.raises(DataError, match="'q1': setting is wrong"):
        read_records(path, settings=["m high"])


def test_probes_are_joined_by_question_and_setting():
    probe = Record("q1", "m low", "probes", None, None, True, False, True, True)
    own = Record("q1", "m low", "profiles", "correct_first", probe_eliminative_correct=False)
    other = Record("q1", "m high", "names", "correct_first")
    joined = join_probes([Record(**ONE), probe, own, other])
    assert (joined[0].probe_eliminative_correct, joined[0].probe_compatibility_correct) == (True, False)
    assert joined[1] == probe and joined[3] == other
    assert joined[2].probe_eliminative_correct is False and joined[2].probe_compatibility_correct is False


def test_the_table_has_every_field_even_without_rows():
    frame = records_frame([Record(**ONE, meta={"rule": "exact", "truncated": True, "ids": [1]})])
    assert frame["rule"].tolist() == ["exact"] and "ids" not in frame and "meta" not in frame
    assert frame["log_odds"].dtype == "float64" and frame["probe_eliminative_correct"].isna().all()
    assert set(records_frame([]).columns) == set(asdict(Record(**ONE))) - {"meta"}


def _scored(question, condition, order, log_odds):
    return Record(question, "m", condition, order, "correct", family="f", log_odds=log_odds)


def test_evidence_is_neutral_minus_full_dominance_in_the_same_order():
    frame = records_frame(
        [
            _scored("q1", "neutral", "correct_first", 2.0),
            _scored("q1", "neutral", "shortcut_first", -1.0),
            _scored("q1", "names", "correct_first", 2.5),
            _scored("q1", "names", "shortcut_first", 1.0),
            _scored("q2", "names", "shortcut_first", 1.0),
            _scored("q2", "neutral", "correct_first", 9.0),
            Record("q3", "m", "names", "correct_first", "off"),
        ]
    )
    table = evidence(frame).set_index("item")
    assert table.loc["q1", "evidence"] == pytest.approx((0.5 + 2.0) / 2)
    assert table.loc["q1", "neutral_dominance"] == pytest.approx(-0.5)
    assert table.loc["q1", "dominance"] == pytest.approx(-1.75)
    assert table.loc["q1", "n_orders"] == 2
    assert pd.isna(table.loc["q2", "evidence"]) and "q3" not in table.index
    with pytest.raises(DataError, match="no record has log-odds"):
        evidence(frame[frame["log_odds"].isna()])
