"""The pattern file of a set of people: how each key (a person) and each task (a relation, a topic) is written."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from latentkt.corpus.patterns import Patterns
from latentkt.trapqa.build.facts import Fact
from latentkt.trapqa.build.masking import surname
from latentkt.trapqa.build.places import CITIES
from latentkt.trapqa.build.planning import Plan
from latentkt.trapqa.build.profiles import Profile, bare, latin, plain
from latentkt.trapqa.build.statements import Statement

__all__ = ["patterns_for", "person_key", "statement_task", "topic_task"]

_LIFE = {
    "birth_year": ("birth", ("born", "birth", "birthplace", "birthday")),
    "death_year": ("death", ("died", "dies", "death", "passed away")),
}
_UNITS = {
    "ampere", "volt", "ohm", "watt", "joule", "newton", "kelvin", "pascal", "hertz", "henry", "weber", "tesla", "curie",
    "gauss", "maxwell", "gray", "coulomb", "franklin", "angstrom", "fermi", "born", "stern", "wien", "hall", "bell",
}  # fmt: skip


def person_key(person: Profile) -> str:
    """Name of the key of a person."""
    return person.name.replace(":", " ")


def statement_task(statement: Statement) -> str:
    """Name of the task of a statement: the relation, without years."""
    if statement.kind in _LIFE:
        return _LIFE[statement.kind][0]
    return str(statement.value).replace(":", " ")


def topic_task(fact: Fact) -> str:
    """Name of the task of a shared fact."""
    return bare(fact.value).replace(":", " ")


def patterns_for(plans: Iterable[tuple[Plan, Fact]], everybody: Sequence[Profile]) -> Patterns:
    """The patterns of the paths of plans, each with the fact that is its cue.

    A person is written with a full name, with or without middle names. The bare surname is a form as well where
    nobody else among all profiles bears it, no text writes it small and it is no unit; then things named after
    the person ("Planck constant") are excluded.

    Args:
        plans: Plan and cue.
        everybody: All profiles.
    """
    chosen = list(plans)
    people = {person.id: person for plan, _ in chosen for person in (plan.correct, plan.shortcut)}
    alone = _lone_surnames(everybody)
    named_after = _eponyms(everybody)
    keys: dict[str, list[str]] = {}
    exclude: dict[str, list[str]] = {}
    for person in people.values():
        last = surname(person.name)
        key = person_key(person)
        keys[key] = [last] if plain(last) in alone else _full_names(person)
        things = sorted(named_after.get(plain(last), ())) if plain(last) in alone else []
        if things:
            exclude[key] = things
    tasks: dict[str, Sequence[str]] = {}
    for plan, cue in chosen:
        tasks.setdefault(statement_task(plan.statement), _statement_forms(plan.statement))
        if plan.polarity == "affirmed":
            tasks.setdefault(topic_task(cue), _topic_forms(cue))
    pairs = dict.fromkeys((person_key(plan.correct), person_key(plan.shortcut)) for plan, _ in chosen)
    data: Mapping[str, Any] = {
        "keys": keys,
        "tasks": tasks,
        "exclude": exclude,
        "pairs": [list(pair) for pair in pairs],
    }
    return Patterns.from_dict(data)


def _full_names(person: Profile) -> list[str]:
    """Names of two words and more, also without what stands between the first and the last; none inside another."""
    forms = [name for name in person.names if latin(name) and len(name.split()) > 1] or [person.name]
    forms += [f"{words[0]} {words[-1]}" for words in map(str.split, forms) if len(words) > 2 and len(words[0]) > 2]
    distinct = sorted(dict.fromkeys(forms), key=len)
    kept: list[str] = []
    for form in distinct:
        if not any(re.search(rf"(?<!\w){re.escape(short)}(?!\w)", form, re.I) for short in kept):
            kept.append(form)
    return kept


def _lone_surnames(everybody: Sequence[Profile]) -> set[str]:
    """Surnames that mean one person among all profiles, and no thing."""
    bearers = Counter(name for person in everybody for name in {plain(surname(n)) for n in person.names})
    forenames = {plain(name.split()[0]) for person in everybody for name in person.names}
    text = "\n".join(person.text or "" for person in everybody)
    small = set(re.findall(r"\b[^\W\d_A-Z][\w'’-]*", text))
    return {
        name
        for name, n in bearers.items()
        if n == 1 and len(name) > 4 and name not in forenames | _UNITS | small and name.isalpha()
    }


def _eponyms(everybody: Sequence[Profile]) -> dict[str, set[str]]:
    """Surname -> values of attributes that begin with it and say more ("Planck constant")."""
    found: dict[str, set[str]] = {}
    for person in everybody:
        for value in (bare(v) for values in person.attributes.values() for v in values):
            first, _, rest = value.partition(" ")
            if rest and rest[0].islower():
                found.setdefault(plain(re.sub(r"['’]s?$", "", first)), set()).add(value)
    return found


def _statement_forms(statement: Statement) -> list[str]:
    if statement.kind in _LIFE:
        return list(_LIFE[statement.kind][1])
    value = str(statement.value)
    if statement.kind == "birth_place":
        return [value, *(form for form in CITIES[value] if value not in form)]
    return list(dict.fromkeys((value, value.replace(" in ", " for "), value.replace(" for ", " in "))))


def _topic_forms(cue: Fact) -> list[str]:
    value = bare(cue.value)
    words = re.sub(r"^(?:the|an?) ", "", cue.topic)
    return [value] if value.casefold() == words.casefold() else [value, words]
