"""Rows of TrapQA, whose fields are not known: aliases, a field map, and refusals that say which fields were seen."""

from __future__ import annotations

import json

import pytest

from latentkt.errors import DataError, InputError
from latentkt.trapqa.running import load_rows, load_source, plan_questions
from latentkt.trapqa.running.sources import HUB_FILES

NAMES = {
    "question_id": "question_0001",
    "question": "Who?",
    "correct": "Arthur Eddington",
    "distractor": "Albert Einstein",
}
PROBE = {
    "id": "p1",
    "question_id": "question_0001",
    "probe_type": "eliminative",
    "question": "Did he?",
    "answer": "Yes",
}
LIFE = {"id": "life_1", "scenario": "My car is dirty.", "options": ["drive", "walk"], "label": 0, "domain": "cleaning"}


def _write(path, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_usual_names_of_fields_are_found(tmp_path):
    row = {**NAMES, "relation_family": "nobel", "answer_aliases": ["Eddington"], "correct_fame": 0.25}
    given = load_rows(_write(tmp_path / "r.jsonl", row), "names")[0]
    item = given.item
    assert (item.id, item.text, item.family, item.kind) == ("question_0001", "Who?", "nobel", "scientist")
    assert (item.correct.text, item.correct.aliases, item.shortcut.text) == (
        "Arthur Eddington",
        ("Eddington",),
        "Albert Einstein",
    )
    assert item.meta == {"correct_fame": 0.25} and given.prompt is None and given.order is None


def test_a_field_map_names_others(tmp_path):
    path = _write(tmp_path / "r.jsonl", {"k": "q", "frage": "Who?", "right": "A B", "falsch": "C D"})
    fields = {"id": "k", "question": "frage", "correct": "right", "shortcut": "falsch"}
    assert load_rows(path, "names", fields=fields)[0].item.shortcut.text == "C D"
    with pytest.raises(DataError, match="no field for 'id'") as refusal:
        load_rows(path, "names")
    assert "k, frage, right, falsch" in str(refusal.value) and "id=FIELD" in str(refusal.value)
    with pytest.raises(InputError, match="cannot be read so"):
        load_rows(path, "names", fields={"frage": "question"})


@pytest.mark.parametrize(
    ("row", "answers"),
    [
        ({"options": ["A B", "C D"], "answer": "C D"}, ("C D", "A B")),
        ({"options": {"A": "A B", "B": "C D"}, "answer": "B"}, ("C D", "A B")),
        ({"candidate_a": "A B", "candidate_b": "C D", "label": 0}, ("A B", "C D")),
        ({"option_a": "A B", "option_b": "C D", "answer": "(b)"}, ("C D", "A B")),
    ],
)
def test_answers_are_named_or_placed_among_the_options(row, answers, tmp_path):
    item = load_rows(_write(tmp_path / "r.jsonl", {"id": "q", "question": "Who?", **row}), "names")[0].item
    assert (item.correct.text, item.shortcut.text) == answers


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([NAMES, NAMES], "stands twice"),
        ([{**NAMES, "distractor": "arthur eddington"}], "both answers are the same"),
        ([{"id": "q", "question": "Who?", "options": ["A", "B"], "answer": "C"}], "not among the options"),
        ([{**NAMES, "prompt": "Who is it?"}], "does not show both answers"),
        ([{"id": "q", "question": "Who?", "answer": "A"}], "no field for 'shortcut'"),
        ([[1]], "not an object"),
    ],
)
def test_wrong_rows_are_refused_by_line(rows, words, tmp_path):
    with pytest.raises(DataError, match=words) as refusal:
        load_rows(_write(tmp_path / "r.jsonl", *rows), "names")
    assert f"line {len(rows)}" in str(refusal.value)


def test_a_prompt_of_the_row_is_asked_word_for_word_in_its_order(tmp_path):
    prompt = "Choose.\n1. Albert Einstein\n2. Arthur Eddington\nQuestion: who?"
    source = load_source(_write(tmp_path / "r.jsonl", {**NAMES, "prompt": prompt}), ["names"])
    (question,) = plan_questions(source.given, orders="both").questions
    assert question.order == "shortcut_first"
    (rendered,) = question.prompts(template="plain")
    assert rendered.messages[0]["content"] == f"{prompt}\nAnswer:" == rendered.text
    assert (rendered.correct, rendered.order, rendered.condition) == ("Arthur Eddington", "shortcut_first", "names")


def test_everyday_rows_list_their_options_where_the_question_does_not(tmp_path):
    named = {**LIFE, "id": "life_2", "scenario": "Do I walk or drive?"}
    source = load_source(_write(tmp_path / "r.jsonl", LIFE, named), ["real_life"])
    questions = plan_questions(source.given, orders="both").questions
    assert [(q.item.id, q.order) for q in questions] == [
        ("life_1", "correct_first"),
        ("life_1", "shortcut_first"),
        ("life_2", "shortcut_first"),
    ]
    texts = [q.prompts(template="plain")[0].text for q in questions]
    assert "1. drive\n2. walk" in texts[0] and "1. walk\n2. drive" in texts[1]
    assert "1." not in texts[2] and "Do I walk or drive?" in texts[2]
    assert questions[0].item.aspect == "cleaning"


def test_probe_rows_are_linked_by_their_question(tmp_path):
    rows = [PROBE, {**PROBE, "probe_type": "Compatibility", "answer": False}, {**PROBE, "question_id": "question_0002"}]
    first, second = load_rows(_write(tmp_path / "r.jsonl", *rows), "probes")
    assert first.item.id == "question_0001" and second.item.id == "question_0002"
    assert [(p.role, p.answer) for p in first.item.probe_questions] == [("eliminative", True), ("compatibility", False)]
    for wrong, words in (({"answer": "perhaps"}, "cannot be read"), ({}, "a second eliminative")):
        with pytest.raises(DataError, match=words):
            load_rows(_write(tmp_path / "r.jsonl", PROBE, {**PROBE, **wrong}), "probes")


def _folder(root):
    profiles = {**NAMES, "correct_profile": "English.", "distractor_profile": "German."}
    rows = {"names": NAMES, "profiles": profiles, "probes": PROBE, "real_life": LIFE}
    for condition, row in rows.items():
        _write(root / HUB_FILES[condition][1], row)
    return root


def test_a_folder_laid_out_as_the_data_set_serves_every_condition(tmp_path):
    conditions = ["names", "profiles", "neutral", "probes", "real_life"]
    source = load_source(_folder(tmp_path), conditions)
    plan = plan_questions(source.given)
    assert [q.condition for q in plan.questions] == conditions and not plan.skipped
    assert len(set(source.sha256.values())) == 4 and source.sha256["neutral"] == source.sha256["names"]
    assert all(q.prompts(template="plain")[0].text for q in plan.questions)
    assert "Who is this person?" in plan.questions[2].prompts(template="plain")[0].text


def test_a_hub_id_fetches_the_files_of_the_conditions_only(tmp_path, monkeypatch):
    import huggingface_hub

    root, fetched = _folder(tmp_path), []

    def download(repo, name, *, repo_type):
        fetched.append((repo, name, repo_type))
        return str(root / name)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    source = load_source("NeoHugh/TrapQA", ["names", "probes"])
    assert fetched == [("NeoHugh/TrapQA", HUB_FILES[name][1], "dataset") for name in ("names", "probes")]
    assert source.name == "NeoHugh/TrapQA"

    def broken(*args, **more):
        raise OSError("offline")

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", broken)
    with pytest.raises(InputError, match="cannot fetch"):
        load_source("NeoHugh/TrapQA", ["names"])


def test_sources_that_are_none_are_refused(tmp_path, small_path):
    with pytest.raises(InputError, match="no items nowhere"):
        load_source("nowhere", ["names"])
    rows = _write(tmp_path / "r.jsonl", NAMES)
    with pytest.raises(InputError, match="rows of one condition"):
        load_source(rows, ["names", "profiles"])
    with pytest.raises(InputError, match="conditions are wrong"):
        load_source(rows, ["all"])
    with pytest.raises(DataError, match="no rows"):
        load_source(_write(tmp_path / "e.jsonl"), ["names"], fields={"id": "id"})
    assert load_source(str(small_path), ["names", "real_life"]).sha256["names"]
