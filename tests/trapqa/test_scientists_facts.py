"""The built-in scientist items: what the closed lists say about them, and the balance of the set.

The files are read as plain JSON, so that these checks share no code with the loader.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import latentkt

DATA = Path(latentkt.__file__).parent / "trapqa" / "data"
SCIENCES = ("Physics", "Chemistry", "Physiology or Medicine")
SIDES = ("correct", "shortcut")
ROLE_SIDE = {"eliminative": "shortcut", "compatibility": "correct"}
FACT_KINDS = {"nobel", "nobel_year", "nobel_shared", "nobel_unshared", "birth_year", "death_year"}

ITEMS: list[dict[str, Any]] = [json.loads(line) for line in (DATA / "scientists.jsonl").read_text("utf-8").splitlines()]
PATTERNS: dict[str, Any] = json.loads((DATA / "scientists.patterns.json").read_text("utf-8"))
CASES = [(item, side) for item in ITEMS for side in SIDES]


@dataclass(frozen=True)
class Lists:
    """The closed lists: rows of science laureates, and physicists by id."""

    laureates: list[dict[str, str]]
    physicists: dict[str, dict[str, Any]]

    def prizes(self, ref: dict[str, Any]) -> list[tuple[str, int, int]]:
        """Category, year and number of laureates of every science prize of a person."""
        rows = [row for row in self.laureates if _id(row) == ref["laureate_id"]]
        together = Counter((row["category"], row["award_year"]) for row in self.laureates)
        return [(r["category"], int(r["award_year"]), together[r["category"], r["award_year"]]) for r in rows]

    def years(self, ref: dict[str, Any], which: str) -> set[int]:
        """The birth or death years that the lists give (two where they differ)."""
        found = {_year(row[f"{which}_date"]) for row in self.laureates if _id(row) == ref["laureate_id"]}
        if ref["physicist_id"]:
            found.add(_year(self.physicists[ref["physicist_id"]][f"{which}_date"]))
        return {year for year in found if year is not None}


def _id(row: dict[str, str]) -> int:
    return int(float(row["laureate_id"]))


def _year(date: str | None) -> int | None:
    """The year of `1879-03-14` or `3/14/1905`."""
    match = re.match(r"(\d{3,4})-|.*/(\d{4})$", (date or "").strip())
    return int(match[1] or match[2]) if match else None


@pytest.fixture(scope="module")
def lists(data_dir: Path) -> Lists:
    with (data_dir / "nobel" / "nobel_science_laureates_1901_2025.csv").open(encoding="utf-8") as file:
        laureates = [row for row in csv.DictReader(file) if row["category"] in SCIENCES]
    lines = (data_dir / "physicists" / "physicists.jsonl").read_text("utf-8").splitlines()
    return Lists(laureates, {row["id"]: row for row in map(json.loads, lines)})


def _holds(fact: dict[str, Any], ref: dict[str, Any], lists: Lists) -> bool | None:
    """Whether the relation holds of a person; None where the lists cannot say."""

    def inside(year: int) -> bool:
        return (fact["from"] or -9999) <= year <= (fact["to"] or 9999)

    prizes = [prize for prize in lists.prizes(ref) if fact.get("category") in (None, prize[0])]
    match fact["kind"]:
        case "nobel":
            return bool(prizes)
        case "nobel_year":
            return any(inside(year) for _, year, _ in prizes)
        case "nobel_shared":
            return any(number > 1 for *_, number in prizes)
        case "nobel_unshared":
            return any(number == 1 for *_, number in prizes)
    verdicts = {inside(year) for year in lists.years(ref, fact["kind"].removesuffix("_year"))}
    return verdicts.pop() if len(verdicts) == 1 else None


def test_decisive_facts_agree_with_the_closed_lists(lists: Lists) -> None:
    open_cases = []
    for item, side in CASES:
        fact = item["meta"]["fact"]
        verdict = _holds(fact, item["meta"]["refs"][side], lists)
        if verdict is None:
            open_cases.append(f"{item['id']}: {item[side]['text']}")
        else:
            assert verdict is fact["truth"][side], f"{item['id']}: {item[side]['text']}"
    decided = len(CASES) - len(open_cases)
    print(f"{decided} of {len(CASES)} decided by the lists, undecided: {open_cases or 'none'}")  # noqa: T201
    assert len(open_cases) <= 0.1 * len(CASES)


def test_exactly_one_candidate_satisfies_item_and_control() -> None:
    for item in ITEMS:
        fact = item["meta"]["fact"]
        fits = {side: fact["truth"][side] is fact["asserted"] for side in SIDES}
        assert fits == {"correct": True, "shortcut": False}, item["id"]
        assert item["polarity"] == ("affirmed" if fact["asserted"] else "negated"), item["id"]
        assert item["control"]["kind"] == "flip"


def test_probe_answers_follow_from_the_facts() -> None:
    for item in ITEMS:
        fact, probes = item["meta"]["fact"], item["probe_questions"]
        assert [probe["role"] for probe in probes] == ["eliminative", "compatibility"]
        for probe in probes:
            side = ROLE_SIDE[probe["role"]]
            assert item[side]["text"] in probe["text"], item["id"]
            assert probe["answer"] is (fact["truth"][side] is fact["asked"]), f"{item['id']}: {probe['text']}"


def test_references_name_the_candidates(lists: Lists) -> None:
    """A laureate's or physicist's row bears the candidate's name; a non-laureate's name is in no row."""
    for item, side in CASES:
        ref, person = item["meta"]["refs"][side], item[side]
        tokens = set(re.findall(r"\w+", " ".join([person["text"], *person["aliases"]])))
        first, last = person["text"].split()[0], person["text"].split()[-1]
        if ref["laureate_id"] is None:
            for row in lists.laureates:
                words = re.findall(r"[\w-]+", f"{row['known_name']} {row['full_name']}")
                assert not (last in words and first in words), f"{item['id']}: {person['text']} is a laureate"
        else:
            (row, *_) = [row for row in lists.laureates if _id(row) == ref["laureate_id"]]
            assert len(tokens & set(re.findall(r"\w+", row["full_name"]))) >= 2, person["text"]
        if ref["physicist_id"] is not None:
            label = lists.physicists[ref["physicist_id"]]["label"]
            assert len(tokens & set(re.findall(r"\w+", label))) >= 2, person["text"]


def test_profiles_tell_prizes_and_years_as_the_lists_do(lists: Lists) -> None:
    span = re.compile(r"\((\d{4})–(\d{4})\)")
    told = re.compile(r"Nobel Prize in (Physics|Chemistry|Physiology or Medicine) for (\d{4})")
    unknown = set()
    for item, side in CASES:
        ref, profile = item["meta"]["refs"][side], item[side]["profile"]
        kind, name = item["meta"]["fact"]["kind"], item[side]["text"]
        prizes = {(category, year) for category, year, _ in lists.prizes(ref)}
        found = {(category, int(year)) for category, year in told.findall(profile)}
        assert found <= prizes, name
        if kind.startswith("nobel"):
            assert found == prizes, name
            assert prizes or re.search(r"Nobel|first Nobel Prizes were awarded", profile), name
        for born, died in span.findall(profile):
            for which, year in (("birth", int(born)), ("death", int(died))):
                known = lists.years(ref, which)
                assert not known or year in known, f"{name}: {which} {year}, lists {known}"
                unknown |= set() if known else {f"{name} ({which})"}
        if kind in ("birth_year", "death_year"):
            years = lists.years(ref, kind.removesuffix("_year"))
            assert any(str(year) in profile for year in years), f"{name}: {years} not in the profile"
    print(f"{len(unknown)} life years of profiles are in no list: {', '.join(sorted(unknown)) or 'none'}")  # noqa: T201


def test_years_named_in_constraints_and_probes_are_the_bounds_of_the_fact() -> None:
    for item in ITEMS:
        fact = item["meta"]["fact"]
        bounds = {fact[end] + step for end in ("from", "to") if fact.get(end) for step in (-1, 0, 1)}
        spans = [item["text"][start:end] for pairs in item["spans"].values() for start, end in pairs]
        said = spans if item["polarity"] == "negated" else [probe["text"] for probe in item["probe_questions"]]
        for year in re.findall(r"\d{4}", " ".join(said)):
            assert int(year) in bounds, f"{item['id']}: {year} with {fact}"


def test_no_name_of_a_candidate_in_texts_and_own_profile() -> None:
    for item in ITEMS:
        for side in SIDES:
            last = item[side]["text"].split()[-1]
            for text in (item["text"], item["control"]["text"], item[side]["profile"]):
                assert not re.search(rf"\b{re.escape(last)}\b", text), f"{item['id']}: {last}"


def test_balance() -> None:
    assert len(ITEMS) >= 40
    assert len({item["id"] for item in ITEMS}) == len(ITEMS)
    assert len({frozenset(item[side]["text"] for side in SIDES) for item in ITEMS}) == len(ITEMS)
    polarity = Counter(item["polarity"] for item in ITEMS)
    assert polarity["negated"] == polarity["affirmed"] == len(ITEMS) / 2
    golds: dict[str, Counter[bool]] = defaultdict(Counter)
    for item in ITEMS:
        answers = [probe["answer"] for probe in item["probe_questions"]]
        assert sorted(answers) == [False, True], item["id"]
        for probe in item["probe_questions"]:
            golds[probe["role"]][probe["answer"]] += 1
    assert all(count[True] == count[False] for count in golds.values())
    families = Counter(item["family"] for item in ITEMS)
    assert len(families) >= 6
    assert min(families.values()) >= 5
    by_family = Counter((item["family"], item["polarity"]) for item in ITEMS)
    assert all(by_family[family, "negated"] == by_family[family, "affirmed"] for family in families)
    assert {item["meta"]["fact"]["kind"] for item in ITEMS} == FACT_KINDS


def _outside(text: str, spans: dict[str, list[list[int]]]) -> list[str]:
    """What stands between the spans, in order."""
    parts, position = [], 0
    for start, end in sorted(pair for pairs in spans.values() for pair in pairs):
        assert position <= start < end <= len(text)
        parts.append(text[position:start])
        position = end
    return [*parts, text[position:]]


def test_spans_lie_in_the_text_and_item_and_control_differ_inside_them_only() -> None:
    for item in ITEMS:
        control = item["control"]
        for part in (item, control):
            assert set(part["spans"]) == {"shortcut", "constraint"}
            assert all(part["spans"].values()), item["id"]
            for start, end in (pair for pairs in part["spans"].values() for pair in pairs):
                assert part["text"][start:end] == part["text"][start:end].strip(), item["id"]
        assert _outside(item["text"], item["spans"]) == _outside(control["text"], control["spans"]), item["id"]
        words = {
            role: [[part["text"][a:b] for a, b in part["spans"][role]] for part in (item, control)]
            for role in ("shortcut", "constraint")
        }
        assert words["shortcut"][0] == words["shortcut"][1], item["id"]
        assert words["constraint"][0] != words["constraint"][1], item["id"]


def _masked(sentence: str) -> str:
    """A sentence without what a template would fill in: names (words with capitals inside it) and years."""
    first, *rest = re.sub(r"\d{3,4}s?", "YEAR", sentence).split()
    return " ".join([first.lower(), *(re.sub(r"^[A-Z][\w’'.-]*", "NAME", word) for word in rest)])


def test_no_sentence_stands_in_more_than_three_items() -> None:
    where: dict[str, set[str]] = defaultdict(set)
    for item in ITEMS:
        for sentence in re.split(r"(?<=[.!?])\s+", item["text"]):
            where[_masked(sentence)].add(item["id"])
    often = {sentence: sorted(ids) for sentence, ids in where.items() if len(ids) > 3}
    assert not often


def test_every_path_and_pair_has_its_patterns() -> None:
    keys, tasks = PATTERNS["keys"], PATTERNS["tasks"]
    for item in ITEMS:
        for side in SIDES:
            key, task = item["paths"][side].split(":")
            assert keys[key] and tasks[task], item["id"]
            assert any(form.casefold() in item[side]["text"].casefold() for form in keys[key]), key
    named = {tuple(item["paths"][side].split(":")[0] for side in SIDES) for item in ITEMS}
    assert named == {tuple(pair) for pair in PATTERNS["pairs"]}
    assert {key for pair in named for key in pair} == set(keys)


def test_an_exclusion_holds_a_form_that_it_takes_back() -> None:
    """Matching ignores case; an exclusion in which no form of its entry stands would never act."""
    forms = PATTERNS["keys"] | PATTERNS["tasks"]
    for name, excluded in PATTERNS["exclude"].items():
        for text in excluded:
            assert any(form.casefold() in text.casefold() for form in forms[name]), f"{name}: {text}"


@pytest.mark.smollm2
def test_item_and_control_are_of_equal_length_in_tokens() -> None:
    from latentkt.models import open_model

    tokenizer = open_model("smollm2").tokenizer
    lengths = [[len(tokenizer(text)["input_ids"]) for text in (i["text"], i["control"]["text"])] for i in ITEMS]
    equal = sum(one == other for one, other in lengths)
    print(f"{equal} of {len(ITEMS)} pairs of equal length")  # noqa: T201
    assert equal >= 0.9 * len(ITEMS)
