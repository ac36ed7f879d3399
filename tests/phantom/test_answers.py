"""Files of answers: strict to read, nothing lost."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from latentkt.errors import DataError
from latentkt.phantom.answers import answers_frame, read_answers, write_answers
from tests.phantom.making_answers import an_answer


def test_what_is_written_is_read(tmp_path):
    answers = [
        an_answer(meta={"tokens": 7}, thinking_budget="low", thinking_tokens=3),
        an_answer("", prompt_id="p2", finished=False, truncated="thinking", reasoning="So"),
        an_answer("No.", prompt_id="p3", judgement="abstained", judge="j", kind="uncertainty", finished=None),
    ]
    write_answers(answers, tmp_path / "a.jsonl")
    assert read_answers(tmp_path / "a.jsonl") == answers
    frame = answers_frame(answers)
    assert frame["thinking_budget"].tolist() == ["low", None, None]
    assert frame["finished"].isna().tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"judgement": "maybe", "judge": "j"}, "judgement is wrong"),
        ({"judgement": "abstained"}, "judged by nobody"),
        ({"judgement": "answered", "judge": "j", "kind": "context"}, "a kind of abstention without one"),
        ({"truncated": "somewhere"}, "truncated is wrong"),
        ({"existence": "real"}, "existence is wrong"),
        ({"thinking_tokens": -1}, "thinking_tokens is wrong"),
        ({"finished": "yes"}, "finished is wrong"),
        ({"answr": "x"}, "no answer"),
    ],
)
def test_wrong_rows_are_refused_by_file_line_and_question(wrong, message, tmp_path):
    rows = [asdict(an_answer(prompt_id="p0")), {**asdict(an_answer()), **wrong}]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError, match=message) as refusal:
        read_answers(path)
    assert "line 2" in str(refusal.value)


def test_two_answers_of_one_key_are_refused(tmp_path):
    with pytest.raises(DataError, match="a second answer to 't1/meaning/0'"):
        write_answers([an_answer(), an_answer("Other.")], tmp_path / "a.jsonl")
    write_answers([an_answer(), an_answer(judgement="answered", judge="j")], tmp_path / "a.jsonl")  # another judge
