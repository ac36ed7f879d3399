"""Asking: what is asked, what is recorded of reasoning and limits, and that a stopped run goes on."""

from __future__ import annotations

import json

import pytest

from latentkt.cli import main
from latentkt.errors import DataError, InputError, RunError
from latentkt.phantom import Concept, make_prompts
from latentkt.phantom.answers import read_answers
from latentkt.phantom.asking import AskOptions, ask, questions_of, render_question
from latentkt.phantom.asking import run as asking_run
from latentkt.phantom.builtin import builtin_concepts
from latentkt.trapqa.running.writing import Written
from tests.models.tiny import tiny_handle

CONCEPTS = [
    Concept.make("brine ohmage", kind="term", category="c", parents=("brine pump", "ohmage"), method="recombined"),
    Concept.make("Siege of Erd", kind="entity", category="c"),
]
OPTIONS = AskOptions(max_new_tokens=6, batch_size=3)


@pytest.fixture(scope="module")
def handle():
    return tiny_handle("llama")


@pytest.fixture(scope="module")
def whole(handle, tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "answers.jsonl"
    return ask(handle, questions_of(CONCEPTS, per_property=2), OPTIONS, path)


def test_every_question_has_an_answer_with_all_that_is_known_of_it(whole, handle):
    assert len(whole.answers) == 16 and whole.asked == 16 and not whole.skipped
    assert read_answers(whole.path) == list(whole.answers)
    first = whole.answers[0]
    assert (first.concept, first.group, first.method, first.existence) == (
        "brine ohmage",
        "brine pump",
        "recombined",
        "unverified",
    )
    assert first.model == first.setting == handle.name and first.thinking_tokens == 0
    assert {a.finished for a in whole.answers} <= {True, False}
    assert all((a.truncated is None) == a.finished for a in whole.answers)
    meta = json.loads(whole.path.with_suffix(".meta.json").read_text())
    assert meta["identity"]["options"]["max_new_tokens"] == 6 and meta["sessions"][0]["asked"] == 16


def test_a_stopped_run_goes_on_and_ends_as_an_unbroken_one(whole, handle, tmp_path):
    lines = whole.path.read_text().splitlines(keepends=True)
    torn = tmp_path / "torn.jsonl"
    torn.write_text("".join(lines[:4]) + lines[4][:50])
    torn.with_suffix(".meta.json").write_text(whole.path.with_suffix(".meta.json").read_text())
    found = ask(handle, questions_of(CONCEPTS, per_property=2), OPTIONS, torn, resume=True)
    assert (found.asked, found.dropped) == (12, 1) and torn.read_bytes() == whole.path.read_bytes()
    with pytest.raises(RunError, match="exists"):
        ask(handle, questions_of(CONCEPTS, per_property=2), OPTIONS, torn)
    with pytest.raises(RunError, match="questions"):
        ask(handle, questions_of(CONCEPTS), OPTIONS, torn, resume=True)
    with pytest.raises(RunError, match="options"):
        ask(handle, questions_of(CONCEPTS, per_property=2), AskOptions(max_new_tokens=7), torn, resume=True)


@pytest.mark.parametrize(
    ("raw", "ended", "answer", "finished", "truncated", "thinks"),
    [
        ("It is a sail.", True, "It is a sail.", True, None, False),
        ("It is a sai", False, "It is a sai", False, "answer", False),
        ("<think>a sail?</think>It is one.", True, "It is one.", True, None, True),
        ("<think>a sail? or", False, "", False, "thinking", True),
        ("<think>a sail?</think>It is", False, "It is", False, "answer", True),
    ],
)
def test_reasoning_and_limits_are_told_apart(
    raw, ended, answer, finished, truncated, thinks, handle, tmp_path, monkeypatch
):
    def write(handle, prompts, keys, decoding, *, chat):
        assert decoding.max_new_tokens == 6 + 50
        return [Written(raw, (1, 2), ended) for _ in prompts]

    monkeypatch.setattr(asking_run, "write_replies", write)
    options = AskOptions(max_new_tokens=6, thinking_budget=50)
    found = ask(handle, questions_of(CONCEPTS[:1], properties=["meaning"]), options, tmp_path / "a.jsonl")
    (got,) = found.answers
    assert (got.answer, got.finished, got.truncated) == (answer, finished, truncated)
    assert got.thinking_budget == 50 and (got.thinking_tokens > 0) is thinks


def test_prompts_hold_the_concept_where_the_span_says(handle):
    for prompt in make_prompts(CONCEPTS, per_property=3):
        for template in ("chat", "plain"):
            rendered = render_question(prompt, template=template, tokenizer=handle.tokenizer)
            start, end = rendered.span
            assert rendered.text[start:end] == prompt.concept and rendered.chat is (template == "chat")
            assert prompt.text in rendered.text


def test_what_a_model_cannot_read_is_skipped_and_listed(handle, tmp_path):
    long = Concept.make("brine " * 600 + "ohmage", kind="term", category="c")
    found = ask(handle, questions_of([*CONCEPTS, long], properties=["meaning"]), OPTIONS, tmp_path / "a.jsonl")
    assert len(found.answers) == 2 and len(found.skipped) == 1
    assert "longer than the context" in next(iter(found.skipped.values()))


def test_bad_requests_are_refused(handle, tmp_path):
    with pytest.raises(InputError, match="JSON lines"):
        ask(handle, questions_of(CONCEPTS), OPTIONS, tmp_path / "a.txt")
    with pytest.raises(InputError, match="limit"):
        questions_of(CONCEPTS, limit=0)
    with pytest.raises(DataError, match="not there"):
        questions_of(CONCEPTS[:1], make_prompts(CONCEPTS[1:]))
    for wrong in ({"max_new_tokens": 0}, {"thinking_budget": 0}, {"temperature": -1.0}, {"setting": " "}):
        with pytest.raises(InputError):
            AskOptions(**wrong)


def test_the_concepts_that_come_along_are_verified_ones():
    concepts = builtin_concepts()
    assert len(questions_of(concepts)) == 4 * len(concepts)
    assert {c.existence for c in concepts if c.made} == {"phantom"}
    assert all(c.search["tokens"] > 1e7 for c in concepts)


@pytest.mark.smollm2
def test_the_command_asks_smollm2(tmp_path, capsys):
    out = tmp_path / "a.jsonl"
    assert main(["phantom", "ask", "smollm2", "--limit", "2", "--max-new-tokens", "4", "--out", str(out)]) == 0
    assert "2 answers" in capsys.readouterr().out and len(read_answers(out)) == 2
