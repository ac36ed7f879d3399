"""Entities: patterns and items against a slow definition, where items are put, and how numbers come back."""

from __future__ import annotations

import random
import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latentkt.errors import DataError
from latentkt.phantom import EntityRules, PatternRules, Seeds, concept_key, make_concepts
from latentkt.phantom.patterns import Shapes, find_parts, shape
from latentkt.phantom.words import english

CITIES = ("Geneva", "Porto", "Lyon", "Oslo", "Cape Town", "Graz", "Turin", "Leeds", "Kyiv", "Aarhus")
NAMES = (
    *(f"{city} International Film Festival" for city in CITIES),
    *(f"Battle of {city}" for city in CITIES),
    *(f"{year} Winter Games" for year in range(1924, 1960, 4)),
    *(f"{n} Congress of the Blue Cross" for n in ("1st", "2nd", "3rd", "11th", "12th")),
    "Wagner vs Verdi", "battle of Ypres", "Great Fire of London",
    *(f"{c} Prize and Medal" for c in ("Ural", "Alps", "Etna", "Ruhr")),
    "The Great Storm", "Rally '98 Monza,",
)  # fmt: skip


def slow_frequency(gram, names):
    """Names that hold an n-gram, numbers as placeholders."""
    return sum(f" {gram} " in f" {' '.join(map(shape, name.split()))} " for name in names)


def test_patterns_are_the_frequent_ngrams_that_no_rule_discards():
    parts = find_parts("events", NAMES, PatternRules(thresholds={"events": 3}))
    words = english().function_words
    grams = {
        " ".join(map(shape, name.split()[at : at + n]))
        for name in NAMES
        for n in (2, 3)
        for at in range(len(name.split()) - n + 1)
    }
    frequent = {gram for gram in grams if slow_frequency(gram, NAMES) > 3}
    kept = {
        gram
        for gram in frequent
        if not all(w in words or not re.search("[a-z]", w.replace("num", "")) for w in gram.split())
    }
    loose = {gram for gram in kept if {gram.split()[0], gram.split()[-1]} & (words - english().openers)}
    assert loose == {"prize and", "and medal"}
    assert {" ".join(pattern).lower() for pattern in parts.patterns} == kept - loose
    assert {("International", "Film", "Festival"), ("Battle", "of"), ("_NUM4_", "Winter", "Games")} <= set(
        parts.patterns
    )
    frequencies = [slow_frequency(" ".join(pattern).lower(), NAMES) for pattern in parts.patterns]
    assert frequencies == sorted(frequencies, reverse=True)


def test_items_are_what_patterns_leave_over():
    parts = find_parts("events", NAMES, PatternRules(thresholds={"events": 3}))
    assert {"Geneva", "Cape Town", "Ypres", "Wagner", "Verdi", "Great Fire", "London"} <= set(parts.items)
    for wrong in ("Cape", "Town", "vs", "Festival", "Winter", "'98", "Monza,", "of", "1st", "Great"):
        assert wrong not in parts.items
    loose = find_parts("events", NAMES, PatternRules(thresholds={"events": 3}, whole_runs=False))
    assert {"Cape", "Town", "Fire"} <= set(loose.items) and "Festival" not in loose.items


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.sampled_from(["of", "the", "a", "Cup", "cup", "Rio", "7", "12", "&", "x", "War", "vs"]),
                         min_size=1, max_size=5).map(" ".join), min_size=1, max_size=25))  # fmt: skip
def test_the_discard_rules_hold_on_any_names(names):
    parts = find_parts("x", names, PatternRules(thresholds={"x": 1}, whole_runs=False))
    lists = english()
    for pattern in parts.patterns:
        words = [word.lower() for word in pattern]
        assert len(words) in (2, 3) and slow_frequency(" ".join(words), names) > 1
        assert all(len(word) > 1 and word != "&" for word in words)
        assert not all(word in lists.function_words or word.startswith("_num") for word in words)
    in_patterns = {word.lower() for pattern in parts.patterns for word in pattern}
    for item in parts.items:
        words = item.lower().split()
        assert slow_frequency(" ".join(words), names) <= 1
        assert all(w.isalpha() and len(w) > 1 and w not in lists.function_words | lists.rejected for w in words)
        assert len(words) > 1 or words[0] not in in_patterns
    # The casing is the most frequent one.
    for text in [" ".join(pattern) for pattern in parts.patterns] + list(parts.items):
        if not any(char.isdigit() for char in text):
            seen = Counter(m for name in names for m in re.findall(rf"(?<!\S)(?={re.escape(text)}(?!\S))", name, re.I))
            spelled = sum(len(re.findall(rf"(?<!\S)(?={re.escape(text)}(?!\S))", name)) for name in names)
            assert 2 * spelled >= sum(seen.values()) or text.lower().count("cup") > 1


def test_numbers_come_back_as_numbers_of_their_shape():
    words = [word for name in NAMES for word in name.split()]
    shapes, rng = Shapes(words), random.Random(0)
    assert {shapes.restore("_NUM4_", rng) for _ in range(200)} == {str(year) for year in range(1924, 1960, 4)}
    assert {shapes.restore("_NUM2_th", rng) for _ in range(50)} == {"11th", "12th"}
    assert shapes.restore("Cup", rng) == "Cup"


@pytest.mark.parametrize(
    ("number", "expected"), [("2026", "_num4_"), ("21st", "_num2_st"), ("1914–18", "_num4_–_num2_"), ("F1", "f_num1_")]
)
def test_shapes(number, expected):
    assert shape(number) == expected


def test_every_made_entity_keeps_its_promises():
    rules = EntityRules(patterns=PatternRules(thresholds={"events": 3}))
    made = make_concepts(Seeds({"events": NAMES}), kind="entity", seed=2, rules=rules)
    parts = find_parts("events", NAMES, rules.patterns)
    uses = Counter(concept.parents[0] for concept in made.concepts)
    assert set(uses) == {" ".join(pattern) for pattern in parts.patterns} and max(uses.values()) <= 20
    assert len({concept_key(c.concept) for c in made.concepts} | {concept_key(n) for n in NAMES}) == len(
        made.concepts
    ) + len(NAMES)
    openers, prepositions = english().openers, english().prepositions
    sides = Counter()
    for concept in made.concepts:
        pattern, *items = concept.parents
        assert concept.method == "pattern" and set(items) <= set(parts.items) and "_NUM" not in concept.concept
        body = re.sub(r"_NUM\d+_", r"\\d+", re.escape(pattern))
        match = re.fullmatch(rf"(?P<before>.+ )?{body}(?P<after> .+)?", concept.concept)
        before, after = bool(match["before"]), bool(match["after"])
        first, last = pattern.split()[0].lower(), pattern.split()[-1].lower()
        if first in prepositions or last in openers:
            assert (before, after) == (first in prepositions, last in openers)
        else:
            sides[before, after] += 1
    assert sides[False, False] == 0 and sides[True, False] > 5 and sides[False, True] > 5 and sides[True, True] > 0


def test_uses_bound_what_is_made():
    rules = EntityRules(patterns=PatternRules(thresholds={"events": 3}), uses=2)
    made = make_concepts(Seeds({"events": NAMES}), kind="entity", n=1000, rules=rules)
    n_patterns = len(find_parts("events", NAMES, rules.patterns).patterns)
    assert len(made.concepts) <= 2 * n_patterns and made.shortfall == 1000 - len(made.concepts)
    five = make_concepts(Seeds({"events": NAMES}), kind="entity", n=5, rules=rules)
    assert len(five.concepts) == 5


def test_names_without_patterns_are_refused():
    with pytest.raises(DataError, match="no entity can be made"):
        make_concepts(Seeds({"x": ("Rome", "Oslo", "12", "a b")}), kind="entity")


def test_an_article_in_front_takes_nothing_before_it():
    names = (*(f"The Great {word}" for word in ("War", "Storm", "Game", "Wall")), "Rome", "Oslo", "Cup Final")
    rules = PatternRules(thresholds={"x": 2})
    made = make_concepts(Seeds({"x": names}), kind="entity", rules=EntityRules(patterns=rules))
    assert any(c.concept.startswith("The Great ") for c in made.concepts)
    loose = EntityRules(patterns=rules, before_articles=True)
    assert all(
        not c.concept.startswith("The Great")
        for c in make_concepts(Seeds({"x": names}), kind="entity", rules=loose).concepts
    )
