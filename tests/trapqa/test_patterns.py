from __future__ import annotations

import json

import pytest

from latentkt.errors import DataError
from latentkt.trapqa import Patterns, load_items
from latentkt.trapqa.patterns import union

GOOD = {
    "keys": {"pauli": ["Pauli", {"regex": "W(olfgang)?[.] Pauli"}], "bohr": ["Bohr"]},
    "tasks": {"nobel": ["Nobel Prize"]},
    "exclude": {"bohr": ["Aage Bohr"], "nobel": ["Nobel Peace Prize"]},
    "pairs": [["pauli", "bohr"]],
}


def test_patterns_are_read_and_written_unchanged():
    assert Patterns.from_dict(GOOD).to_dict() == GOOD


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([], "not a pattern file"),
        ({"key": {}}, "unknown fields"),
        ({"keys": []}, "keys is wrong"),
        ({"keys": {"a:b": ["x"]}}, "bad name 'a:b'"),
        ({"keys": {" a": ["x"]}}, "bad name ' a'"),
        ({"tasks": {"nobel": []}}, "tasks.nobel has no forms"),
        ({"tasks": {"nobel": "Nobel"}}, "tasks.nobel has no forms"),
        ({"tasks": {"nobel": [" . "]}}, "bad form"),
        ({"tasks": {"nobel": [{"regex": "("}]}}, "not a regular expression"),
        ({"tasks": {"nobel": [{"regex": "x", "flags": "i"}]}}, "bad form"),
        ({"exclude": {"curie": ["Curie"]}}, "neither a key nor a task"),
        ({"pairs": {}}, "pairs is wrong"),
        ({"pairs": [["pauli"]]}, "bad pair"),
        ({"pairs": [["pauli", "pauli"]]}, "bad pair"),
        ({"pairs": [["pauli", "nobel"]]}, "bad pair"),
    ],
)
def test_a_broken_pattern_file_is_refused(changes, message):
    with pytest.raises(DataError, match=message) as refusal:
        Patterns.from_dict({**GOOD, **changes} if isinstance(changes, dict) else changes, where="my.patterns.json")
    assert "my.patterns.json" in str(refusal.value)


def test_the_file_of_the_name_comes_before_the_common_one(records, tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps(records["act-flip"]), encoding="utf-8")
    with pytest.raises(DataError, match="there is no pattern file"):
        load_items(path)
    own = {"keys": {"screw": ["s"], "hammer": ["h"]}, "tasks": {"turning": ["t"], "hitting": ["b"]}}
    (tmp_path / "patterns.json").write_text(json.dumps(own), encoding="utf-8")
    assert load_items(path).patterns == Patterns.from_dict(own)
    (tmp_path / "mine.patterns.json").write_text(json.dumps({"keys": {"screw": ["s"]}}), encoding="utf-8")
    with pytest.raises(DataError, match=r"item 'act-flip': paths.correct has no pattern"):
        load_items(path)


def test_a_broken_pattern_file_is_named(records, tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps(records["act-neutral"]), encoding="utf-8")
    (tmp_path / "patterns.json").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match=r"patterns\.json: not JSON"):
        load_items(path)


def test_the_patterns_of_two_sets_together():
    other = {"keys": {"bohr": ["Bohr"], "curie": ["Curie"]}, "pairs": [["bohr", "curie"]]}
    both = union(Patterns.from_dict(GOOD), Patterns.from_dict(other))
    assert sorted(both.keys) == ["bohr", "curie", "pauli"]
    assert both.pairs == (("pauli", "bohr"), ("bohr", "curie"))
    with pytest.raises(DataError, match="disagree on 'bohr' in keys"):
        union(Patterns.from_dict(GOOD), Patterns.from_dict({"keys": {"bohr": ["Niels Bohr"]}}))
