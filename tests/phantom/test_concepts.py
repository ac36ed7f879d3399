"""Rows of concepts: lossless, and strict about what they hold."""

from __future__ import annotations

import json

import pytest

from latentkt.errors import DataError, InputError
from latentkt.phantom import Concept, concept_key, load_concepts, save_concepts
from latentkt.phantom.concepts import concept_id

MADE = Concept.make("Ωmega wäve", kind="term", category="c", parents=["Ωmega rule", "wäve"], method="recombined")


def test_rows_come_back_as_they_were(tmp_path):
    real = Concept("x1", "Battle of Ypres", "entity", "war", (), "real", "rare", {"matches": 3, "tokens": None})
    assert save_concepts([MADE, real], tmp_path / "c.jsonl") == 2
    assert load_concepts(tmp_path / "c.jsonl") == [MADE, real]
    row = json.loads((tmp_path / "c.jsonl").read_text().splitlines()[0])
    assert {"concept", "kind", "parents", "method"} <= row.keys() and row["parents"] == ["Ωmega rule", "wäve"]


def test_the_id_follows_from_kind_and_text_alone():
    assert MADE.id == concept_id("term", "Ωmega wäve") != concept_id("entity", "Ωmega wäve")
    assert MADE.group == "Ωmega rule" and Concept.make("a", kind="term", category="").group == "a"


def test_a_short_row_is_a_real_unverified_concept(tmp_path):
    (tmp_path / "c.jsonl").write_text('\n{"concept": "cell", "kind": "term"}\n')
    assert load_concepts(tmp_path / "c.jsonl") == [Concept.make("cell", kind="term", category="")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "holds no concepts"),
        ("[1]", "line 1: not an object"),
        ('{"concept": "a"', "line 1: not JSON"),
        ('{"concept": " ", "kind": "term"}', "no concept"),
        ('{"concept": "a", "kind": "thing"}', "kind is wrong"),
        ('{"concept": "a", "kind": "term", "method": "magic"}', "method is wrong"),
        ('{"concept": "a", "kind": "term", "existence": "yes"}', "existence is wrong"),
        ('{"concept": "a", "kind": "term", "parents": "b"}', "parents"),
        ('{"concept": "a", "kind": "term", "colour": 1}', "unknown field 'colour'"),
        ('{"concept": "a", "kind": "term"}\n{"concept": "a", "kind": "term"}', "line 2: id .* stands twice"),
    ],
)
def test_what_is_no_concept_is_refused_by_its_place(tmp_path, line, message):
    (tmp_path / "c.jsonl").write_text(line)
    with pytest.raises(DataError, match=message):
        load_concepts(tmp_path / "c.jsonl")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="cannot read"):
        load_concepts(tmp_path / "none.jsonl")


def test_spellings_of_one_concept():
    assert len({concept_key(text) for text in ("Brain-Stem", "brain  stem", "brainstem", "BRAIN\u2010STEM")}) == 1
    assert concept_key("brain stems") != concept_key("brain stem")
