"""Is an item what it claims to be? Rules that look at the finished item and decide everything anew.

Nothing is taken over from the plan: the statement, the facts and the gold answers stand in the item's `meta`, and are
looked up again in the profiles and the closed lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from latentkt.trapqa.build.lists import ClosedList
from latentkt.trapqa.build.log import StageLog
from latentkt.trapqa.build.masking import mentions
from latentkt.trapqa.build.profiles import Profile, year_of
from latentkt.trapqa.build.questions import said
from latentkt.trapqa.build.statements import Statement, decide, holds_value
from latentkt.trapqa.build.wording import QUESTIONS
from latentkt.trapqa.items import TrapItem

__all__ = ["broken_rules", "prove"]

STAGE = "proof"
_ORDINALS = {"sixteenth": 16, "seventeenth": 17, "eighteenth": 18, "nineteenth": 19, "twentieth": 20}
_AN = re.compile(r"\b[Aa] (?=[aeio]\w)|\b[Aa]n (?=[bcdfgjklmnpqrtvwyz]\w)")
_BAD = {
    "a double space": re.compile(r"\s\s"),
    "space before a sign": re.compile(r"\s[,;.?!]"),
    "a place that was not filled": re.compile(r"[{}\[\]_|*]"),
    "a word twice": re.compile(r"\b(\w+) \1\b", re.I),
    "a or an": _AN,
    "two signs": re.compile(r"[,;.?!]{2}"),
    "a tail in brackets": re.compile(r"\([^)]*\)"),
}


def prove(
    items: Sequence[TrapItem],
    people: Mapping[str, Profile],
    lists: Sequence[ClosedList],
    log: StageLog,
    *,
    unverified: bool = False,
) -> list[TrapItem]:
    """The items that break no rule; each of the others goes into the log with the first rule that it breaks.

    Args:
        items: The items.
        people: Profiles by id.
        lists: Closed lists.
        log: Gets the removals (stage `proof`).
        unverified: Keep items whose constraint rests on what a profile does not say. They stay marked.
    """
    kept = []
    seen: dict[tuple[str, str], str] = {}
    for item in items:
        broken = next(iter(broken_rules(item, people, lists, unverified=unverified)), None)
        key = (item.text, item.correct.text)
        if broken is None and key in seen:
            broken = ("the same question twice", seen[key])
        if broken is None:
            seen[key] = item.id
            kept.append(item)
        else:
            log.remove(STAGE, item.id, *broken)
    log.count(STAGE, kept=len(kept))
    return kept


def broken_rules(
    item: TrapItem, people: Mapping[str, Profile], lists: Sequence[ClosedList], *, unverified: bool = False
) -> Iterator[tuple[str, str]]:
    """Rules that an item breaks, with what was found."""
    correct, shortcut = (people[item.meta["people"][side]] for side in ("correct", "shortcut"))
    yield from _survivor(item, correct, shortcut, lists, unverified)
    yield from _leaks(item, correct, shortcut)
    for fact in item.meta["facts"]:
        lacking = [p.name for p in (correct, shortcut) if not _has(p, fact)]
        if lacking:
            yield "the description does not fit both", f"{fact['attribute']} {fact['value']!r}: not of {lacking}"
    yield from _grammar(item)


def _survivor(
    item: TrapItem, correct: Profile, shortcut: Profile, lists: Sequence[ClosedList], unverified: bool
) -> Iterator[tuple[str, str]]:
    """Exactly one candidate survives the constraint, the other one survives the control's, and the probes agree."""
    statement = Statement(**item.meta["statement"])
    truths = {}
    for side, person in (("correct", correct), ("shortcut", shortcut)):
        decision = decide(statement, person, lists)
        truth = decision.truth
        if truth is None and unverified and statement.kind == "attribute":
            truth = False
        if truth is None:
            yield "undecided", f"{person.name}: {decision.why}"
            return
        truths[side] = truth
    asserted = item.meta["asserted"]
    survivors = [side for side, truth in truths.items() if truth is asserted]
    if survivors != ["correct"]:
        yield "not exactly one candidate survives", f"asserted {asserted}, true of {truths}"
    if asserted is not (item.polarity == "affirmed"):
        yield "polarity and assertion differ", item.polarity
    for probe in item.probe_questions:
        side = "shortcut" if probe.role == "eliminative" else "correct"
        if probe.answer is not (truths[side] is item.meta["asked"]):
            yield "a probe question has the wrong answer", probe.text
        person = correct if side == "correct" else shortcut
        if person.name not in probe.text:
            yield "a probe question asks of nobody", probe.text
        elif statement.kind != "attribute" and probe.text not in _asked(statement, person, item.meta["asked"]):
            yield "a probe question is not worded in its sense", probe.text


def _asked(statement: Statement, person: Profile, sense: bool) -> list[str]:
    """The ways to ask of a person whether a statement holds, or (`sense` false) whether it does not."""
    return [
        said(statement, ways[0 if sense else 1]).replace("{name}", person.name) for ways in QUESTIONS[statement.kind]
    ]


def _leaks(item: TrapItem, correct: Profile, shortcut: Profile) -> Iterator[tuple[str, str]]:
    for text in (item.text, item.control.text):
        for person in (correct, shortcut):
            found = mentions(text, person.names)
            if found:
                yield "the text names a candidate", f"{found!r} of {person.name}"


def _has(person: Profile, fact: Mapping[str, Any]) -> bool:
    if fact["attribute"] in ("born", "died"):
        year = year_of(getattr(person, fact["attribute"]))
        return year is not None and (year - 1) // 100 + 1 == _ORDINALS[fact["value"].split()[1]]
    return holds_value(person, fact["attribute"], fact["value"])


def _grammar(item: TrapItem) -> Iterator[tuple[str, str]]:
    for text in (item.text, item.control.text):
        yield from ((f"grammar: {name}", text) for name, pattern in _BAD.items() if pattern.search(text))
        if not (text[0].isupper() and text.endswith("?")):
            yield "grammar: beginning or end", text
        if len(text) > 600:
            yield "too long", f"{len(text)} characters"
    for fact in item.meta["facts"]:
        if fact["topic"] not in item.text:
            yield "a fact is not in the text", fact["topic"]
