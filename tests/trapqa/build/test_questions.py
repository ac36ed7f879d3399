from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import Any

import pytest

from latentkt.errors import InputError
from latentkt.trapqa.build.facts import Facts
from latentkt.trapqa.build.log import StageLog
from latentkt.trapqa.build.patterning import patterns_for
from latentkt.trapqa.build.phrases import Phrases
from latentkt.trapqa.build.planning import choose, plans_for
from latentkt.trapqa.build.profiles import Profile
from latentkt.trapqa.build.proof import broken_rules, prove
from latentkt.trapqa.build.questions import Style, Writer
from latentkt.trapqa.build.wording import CLAUSES, QUESTIONS, read_wordings
from latentkt.trapqa.items import ItemSet, TrapItem
from latentkt.trapqa.schema import parse_item
from tests.trapqa.build.people import great_prize, people

EVERYBODY = people()
GREAT = great_prize(EVERYBODY)
PAIRS = [pair for pair in combinations(EVERYBODY, 2) if len({p.attributes["alma_mater"] for p in pair}) == 1][:400]


@cache
def all_twins() -> tuple[tuple[Any, ...], StageLog]:
    log = StageLog()
    return tuple(plans_for(PAIRS, Facts(EVERYBODY), [GREAT], log)), log


def made(seed: int = 0, **options: Any) -> tuple[list[TrapItem], StageLog]:
    log = StageLog()
    twins, _ = all_twins()
    writer = Writer(Style("painter", "art"), [GREAT], seed=seed)
    return [writer.write(plan, n) for n, plan in enumerate(choose(twins, log, seed=seed, **options), start=1)], log


@pytest.fixture(scope="module")
def items() -> list[TrapItem]:
    return made(limit=120)[0]


def test_every_item_is_proved(items: list[TrapItem]) -> None:
    log = StageLog()
    assert prove(items, {p.id: p for p in EVERYBODY}, [GREAT], log) == items
    assert len(items) == 120 and not len(log)
    assert {item.constraint_kind for item in items} == {
        "award",
        "award_year",
        "birth_year",
        "death_year",
        "birth_place",
    }


def test_everything_is_balanced(items: list[TrapItem]) -> None:
    polarity = Counter((item.family, item.polarity) for item in items)
    for family in {item.family for item in items}:
        assert abs(polarity[family, "negated"] - polarity[family, "affirmed"]) <= 1
    golds = Counter((item.polarity, p.role, p.answer) for item in items for p in item.probe_questions)
    assert max(golds.values()) - min(golds.values()) <= 2 * len({item.family for item in items})
    shortcut_first = sum(
        item.text.index(_cue(item)) < item.spans["constraint"][0][0] for item in items if item.polarity == "affirmed"
    )
    assert 0.35 < shortcut_first / 60 < 0.65


def _cue(item: TrapItem) -> str:
    start, end = item.spans["shortcut"][0]
    return item.text[start:end]


def test_the_twin_has_the_same_words_and_the_other_answer() -> None:
    twins, log = all_twins()
    assert twins and log.table()[0]["given"] == len(PAIRS)
    for negated, affirmed in twins:
        assert (negated.correct, negated.shortcut) == (affirmed.shortcut, affirmed.correct)
        assert (negated.statement, negated.facts) == (affirmed.statement, affirmed.facts)
        assert affirmed.shortcut.fame >= affirmed.correct.fame, (
            "an affirmed description must point to the better known one"
        )  # type: ignore[operator]


def test_same_seed_same_items() -> None:
    one, two, other = (json.dumps([i.to_dict() for i in made(seed, limit=40)[0]]) for seed in (3, 3, 4))
    assert one == two != other


def test_bounds() -> None:
    found, log = made(per_person=2)
    held = Counter(item.meta["people"][side] for item in found for side in ("correct", "shortcut"))
    assert max(held.values()) == 2
    pairs = Counter((item.meta["pair"], item.family) for item in found)
    assert max(pairs.values()) == 1
    assert log.table()[-1]["rules"]["left over by the bounds"] > 0
    with pytest.raises(InputError, match="bound"):
        made(per_person=0)


def test_what_differs_between_item_and_control_is_as_long(items: list[TrapItem]) -> None:
    for clauses in CLAUSES.values():
        assert all(len(c.no.split()) == len(c.yes.split()) for c in clauses)
    for item in items:
        assert len(item.text.split()) == len(item.control.text.split())


def broken(item: TrapItem, **changes: Any) -> list[str]:
    record = json.loads(json.dumps({**item.to_dict(), **changes}))
    changed = parse_item(record, where="test")
    return [rule for rule, _ in broken_rules(changed, {p.id: p for p in EVERYBODY}, [GREAT])]


def swapped(item: TrapItem, old: str, new: str) -> dict[str, Any]:
    """Item and control with words replaced that lie outside the spans."""
    record = item.to_dict()
    for part in (record, record["control"]):
        at = part["text"].index(old)
        part["text"] = part["text"].replace(old, new, 1)
        shift = len(new) - len(old)
        part["spans"] = {
            role: [[s + shift * (s > at), e + shift * (s > at)] for s, e in ranges]
            for role, ranges in part["spans"].items()
        }
    return record


def test_each_rule_can_fail(items: list[TrapItem]) -> None:
    item = next(i for i in items if i.constraint_kind == "award" and i.polarity == "negated")
    meta = item.meta
    assert broken(item) == []
    assert "not exactly one candidate survives" in broken(item, meta={**meta, "asserted": True})
    assert "polarity and assertion differ" in broken(item, polarity="affirmed")
    assert "undecided" in broken(
        item, meta={**meta, "statement": {"kind": "attribute", "attribute": "club", "value": "Reds"}}
    )
    assert "a probe question has the wrong answer" in broken(item, meta={**meta, "asked": not meta["asked"]})
    probes = [{"role": p.role, "text": p.text, "answer": p.answer} for p in item.probe_questions]
    other = [{**probe, "text": f"Was {probe['text'].split()[1]} {item.correct.text} young?"} for probe in probes]
    assert "a probe question asks of nobody" in broken(item, probe_questions=[{**p, "text": "Was X?"} for p in probes])
    assert "a probe question is not worded in its sense" in broken(item, probe_questions=other)
    fact = {"attribute": "award", "value": "Wooden Spoon", "topic": meta["facts"][0]["topic"]}
    assert broken(item, meta={**meta, "facts": [fact]}) == ["the description does not fit both"]
    assert "a fact is not in the text" in broken(
        item, meta={**meta, "facts": [*meta["facts"], {**meta["facts"][0], "topic": "bees"}]}
    )
    person = item.correct.text.split()[1]
    for word, rule in (
        (f"of {person} that", "the text names a candidate"),
        ("painter  painter", "grammar: a double space"),
        ("painter painter", "grammar: a word twice"),
        ("painter (poet)", "grammar: a tail in brackets"),
        ("a old painter", "grammar: a or an"),
        ("painter ,", "grammar: space before a sign"),
        ("painter_", "grammar: a place that was not filled"),
        ("painter,;", "grammar: two signs"),
        ("painter " + "x" * 600, "too long"),
    ):
        if "painter" not in item.text:
            item = next(i for i in items if "painter" in i.text and i.polarity == "negated")
            person = item.correct.text.split()[1]
            word = word if "that" not in word else f"of {person} that"
        assert rule in broken(item, **swapped(item, "painter", word)), rule


def test_the_same_question_twice_is_removed(items: list[TrapItem]) -> None:
    log = StageLog()
    twice = replace(items[0], id="again")
    kept = prove([items[0], twice], {p.id: p for p in EVERYBODY}, [GREAT], log)
    assert kept == [items[0]] and [r.rule for r in log] == ["the same question twice"]


def test_pairs_that_give_nothing_are_counted_with_the_reason() -> None:
    def person(number: int, name: str, **more: Any) -> Profile:
        attributes = more.pop("attributes", {"award": ("Orchid Medal", "Iris Medal")})
        return Profile(f"X{number}", name, attributes=attributes, **more)

    alike = person(1, "Ann Lee", born="1900"), person(2, "Bo Ek", born="1901")
    bare = person(3, "Cy Orr", born="1800", attributes={"award": ("A Medal",)}), person(4, "Dee Fox", born="1900")
    undated = person(5, "Eve Gray"), person(6, "Fay Hill")
    script = person(7, "Дмитрий", born="1800"), person(8, "Gus Ivy", born="1900")
    thin = (
        person(9, "Hal Joy", born="1800", attributes={"award": ("Orchid Medal",)}),
        person(10, "Ida Kay", born="1900"),
    )
    open_place = tuple(
        person(n, name, attributes={"award": ("Orchid Medal", "Iris Medal"), "birth_place": (place,)})
        for n, name, place in ((11, "Jo Law", "Vienna"), (12, "Kim May", "Hamlet"))
    )
    log = StageLog()
    pairs = [alike, bare, undated, script, thin, open_place]
    everybody = [p for pair in pairs for p in pair] + EVERYBODY
    assert plans_for(pairs, Facts(everybody), [], log) == []
    assert {r.name: r.rule for r in log} == {
        "Ann Lee | Bo Ek": "no attribute separates the two",
        "Cy Orr | Dee Fox": "nothing to describe both with",
        "Eve Gray | Fay Hill": "no attribute separates the two",
        "Дмитрий | Gus Ivy": "a name in another script",
        "Hal Joy | Ida Kay": "what both have says too little",
        "Jo Law | Kim May": "undecided",
    }
    assert log.table() == [{"stage": "plans", "given": 6, "removed": 6, "kept": 0, "rules": log.table()[0]["rules"]}]


def test_open_world_constraints_only_where_asked_for_and_marked() -> None:
    reds, blues = (
        Profile(f"X{n}", name, attributes={"award": ("Rare Medal", "Iris Medal"), "alma_mater": (value,)})
        for n, name, value in ((1, "Ann Lee", "University of Zorva"), (2, "Bo Ek", "Ember College"))
    )
    log, facts = StageLog(), Facts([reds, blues, *EVERYBODY])
    assert plans_for([(reds, blues)], facts, [], log) == []
    twins = plans_for([(reds, blues)], facts, [], StageLog(), attributes=["alma_mater"])
    assert twins and not any(plan.verified for pair in twins for plan in pair)
    item = Writer(Style("painter"), [], seed=0).write(twins[0][0], 1)
    assert item.meta["verified"] is False and "did not study at " in item.text
    people_of = {p.id: p for p in (reds, blues)}
    assert prove([item], people_of, [], StageLog()) == []
    assert prove([item], people_of, [], StageLog(), unverified=True) == [item]


def test_values_become_words() -> None:
    texts = ["She wrote on the Zeeman effect and quantum optics. In the Manhattan Project she led a group."]
    phrases = Phrases(texts)
    cases: list[tuple[str, Any, str | None]] = [
        ("Zeeman effect", "topic", "the Zeeman effect"),
        ("Quantum optics", "topic", "quantum optics"),
        ("Manhattan Project", "topic", "the Manhattan Project"),
        ("Ohm's law", "topic", "Ohm's law"),
        ("USSR", "topic", None),
        ("Blorb", "topic", None),
        ("Квант", "topic", None),
        ("Physicist", "field", None),
        ("Theoretical Physics", "field", "theoretical physics"),
        ("France", "field", None),
        ("Trinity College, Cambridge", "institution", "Trinity College, Cambridge"),
        ("University of Göttingen", "institution", "the University of Göttingen"),
        ("Madras", "institution", None),
        ("Fellow of the Royal Society", "award", "the Royal Society"),
        ("Albert Medal (Royal Society of Arts)", "award", "the Albert Medal"),
        ("Knight Bachelor", "award", None),
        ("Ernest Rutherford", "person", "Ernest Rutherford"),
        ("rutherford", "person", None),
        ("Bombay", "place", "Mumbai"),
        ("Lancashire", "place", None),
        ("opera singer", "role", "an opera singer"),
        ("a {b}", "plain", None),
    ]
    for value, shape, words in cases:
        assert phrases.of(value, shape).text == words, value
        assert (phrases.of(value, shape).why == "") is (words is not None)


def test_patterns_name_every_path(items: list[TrapItem]) -> None:
    log = StageLog()
    chosen = choose(all_twins()[0], log, seed=0, limit=40)
    everybody = [
        *EVERYBODY,
        Profile("E", "Eve Om", attributes={"known_for": (f"{chosen[0].correct.name.split()[1]} rule",)}),
    ]
    patterns = patterns_for([(plan, plan.facts[0]) for plan in chosen], everybody)
    surname = chosen[0].correct.name.split()[1]
    key = chosen[0].correct.name
    assert [form.text for form in patterns.keys[key]] == [surname], "a surname that nobody else bears"
    assert [form.text for form in patterns.exclude[key]] == [f"{surname} rule"]
    shared = Profile("S", f"Bea {surname}", attributes={"a": ("b",)})
    patterns = patterns_for([(plan, plan.facts[0]) for plan in chosen], [*everybody, shared])
    assert [form.text for form in patterns.keys[key]] == [key], "a surname that somebody else bears is no form"
    assert not patterns.nested()


def test_wordings_of_a_user() -> None:
    found = read_wordings({"club": {"shape": "plain", "facts": ["ran for {}"], "base": "run for {}"}})
    pair = tuple(Profile(f"X{n}", name, attributes={"club": ("Reds",)}) for n, name in ((1, "Ann Lee"), (2, "Bo Ek")))
    facts = Facts(pair, found)
    assert [fact.forms for fact in facts.shared(*pair)] == [("ran for {}",)]  # type: ignore[call-arg]
    assert Facts(pair).shared(*pair) == []  # type: ignore[call-arg]
    for bad in ({"club": {}}, {"club": 3}, {"club": {"shape": "plain", "facts": [], "base": "run for {}"}}):
        with pytest.raises(Exception, match="wording of 'club'"):
            read_wordings(bad)


def test_probe_pairs_ask_opposites() -> None:
    assert all(len(pair) == 2 and pair[0] != pair[1] for pairs in QUESTIONS.values() for pair in pairs)


def test_the_set_loads(items: list[TrapItem]) -> None:
    from latentkt.trapqa.check import check_items

    report = check_items(ItemSet(tuple(items)))
    assert report.n_items == 120
