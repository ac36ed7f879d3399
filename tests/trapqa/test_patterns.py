"""The patterns of a set: which file it is, and the patterns of several sets together."""

from __future__ import annotations

import json

import pytest

from latentkt.corpus import Patterns
from latentkt.errors import DataError
from latentkt.trapqa import load_items
from latentkt.trapqa.patterns import union


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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ("[]", "not a pattern file"),
        ('{"keys": {"a": ["a"], "a": ["b"]}}', "a field occurs twice: a"),
        ('{"keys": {"a": []}}', "a non-empty list of forms"),
        ('{"keys": {"a": ["a"]}, "task": {}}', "wrong sections"),
    ],
)
def test_a_broken_pattern_file_is_named(content, message, records, tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps(records["act-neutral"]), encoding="utf-8")
    (tmp_path / "patterns.json").write_text(content, encoding="utf-8")
    with pytest.raises(DataError) as refusal:
        load_items(path)
    assert message in str(refusal.value)
    assert str(tmp_path / "patterns.json") in str(refusal.value)


def test_the_patterns_of_two_sets_together():
    one = Patterns.from_dict({"keys": {"pauli": ["Pauli"], "bohr": ["Bohr"]}, "pairs": [["pauli", "bohr"]]})
    two = Patterns.from_dict(
        {
            "keys": {"bohr": ["Bohr"], "curie": ["Curie"]},
            "tasks": {"nobel": ["Nobel"]},
            "exclude": {"bohr": ["Aage Bohr"]},
            "pairs": [["bohr", "curie"], ["curie", "bohr"]],
        }
    )
    both = union([one, two])
    assert list(both.keys) == ["pauli", "bohr", "curie"]
    assert (list(both.tasks), list(both.exclude)) == (["nobel"], ["bohr"])
    assert both.pairs == (("pauli", "bohr"), ("bohr", "curie"), ("curie", "bohr"))
    with pytest.raises(DataError, match="two pattern files disagree on 'bohr'"):
        union([one, Patterns.from_dict({"keys": {"bohr": ["Niels Bohr"]}})])
