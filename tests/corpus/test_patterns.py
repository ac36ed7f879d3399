"""The pattern file: what is read, what is refused, and that nothing is lost on the way back."""

from __future__ import annotations

import json

import pytest

from latentkt.corpus import Form, Patterns, find_patterns, load_patterns, split_path
from latentkt.errors import DataError, InputError

GOOD = {
    "keys": {"darwin": ["Darwin", {"regex": r"C\. ?R\. Darwin"}], "wallace": ["Wallace"]},
    "tasks": {"evolution": ["evolution", "natural  selection"]},
    "exclude": {"darwin": ["Port Darwin"]},
    "pairs": [["darwin", "wallace"]],
}


def test_reads_and_writes_back(tmp_path):
    path = tmp_path / "set.patterns.json"
    path.write_text(json.dumps(GOOD))
    patterns = load_patterns(path)
    assert patterns.keys["darwin"] == (Form("Darwin"), Form(r"C\. ?R\. Darwin", regex=True))
    assert patterns.tasks["evolution"][1].text == "natural selection"
    assert patterns.paths() == ("darwin:evolution", "wallace:evolution")
    patterns.save(tmp_path / "again.json")
    again = load_patterns(tmp_path / "again.json")
    assert again == patterns and again.sha256 == patterns.sha256


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"keys": {}}, "no keys"),
        ({"keys": {"a": []}}, "non-empty list"),
        ({"keys": {"a": "text"}}, "non-empty list"),
        ({"keys": {"a": [" "]}}, "empty form"),
        ({"keys": {"a": ["--"]}}, "punctuation only"),
        ({"keys": {"a": [{"regex": "("}]}}, "does not compile"),
        ({"keys": {"a": [{"regex": "x*"}]}}, "matches empty text"),
        ({"keys": {"a": [{"rx": "x"}]}}, "not a form"),
        ({"keys": {"a:b": ["x"]}}, "without a colon"),
        ({"words": {}}, "wrong sections"),
        ({"exclude": {"nobody": ["x"]}}, "unknown name 'nobody'"),
        ({"pairs": [["darwin", "evolution"]]}, "unknown name 'evolution'"),
        ({"pairs": [["darwin", "darwin"]]}, "two different keys"),
    ],
)
def test_refuses(change, message):
    with pytest.raises(DataError, match=message):
        Patterns.from_dict({**GOOD, **change})


def test_refuses_a_name_that_stands_twice(tmp_path):
    path = tmp_path / "p.json"
    path.write_text('{"keys": {"a": ["x"], "a": ["y"]}}')
    with pytest.raises(DataError, match="stands twice"):
        load_patterns(path)


def test_missing_and_broken_files(tmp_path):
    with pytest.raises(DataError, match="no pattern file"):
        load_patterns(tmp_path / "none.json")
    (tmp_path / "broken.json").write_bytes(b"\xff{")
    with pytest.raises(DataError, match="UTF-8 JSON"):
        load_patterns(tmp_path / "broken.json")


def test_paths_are_checked():
    patterns = Patterns.from_dict(GOOD)
    assert patterns.check_path("darwin:evolution") == ("darwin", "evolution")
    for bad in ("darwin", "darwin:", ":evolution", "a:b:c"):
        with pytest.raises(InputError, match="not a path"):
            split_path(bad)
    with pytest.raises(InputError, match="unknown task 'geometry'"):
        patterns.check_path("darwin:geometry")


def test_finds_the_file_beside_the_items(tmp_path):
    items = tmp_path / "set.jsonl"
    assert find_patterns(items) is None
    (tmp_path / "patterns.json").write_text("{}")
    assert find_patterns(items) == tmp_path / "patterns.json"
    (tmp_path / "set.patterns.json").write_text("{}")
    assert find_patterns(items) == tmp_path / "set.patterns.json"
