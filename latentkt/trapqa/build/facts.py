"""What two people have in common, in words: the shared description of a question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from latentkt.trapqa.build.masking import mentions
from latentkt.trapqa.build.phrases import Phrases
from latentkt.trapqa.build.places import PLACES, cities_of
from latentkt.trapqa.build.profiles import Profile, bare, plain
from latentkt.trapqa.build.statements import Statement, holds_value
from latentkt.trapqa.build.wording import WORDINGS, Wording

__all__ = ["ATTESTED", "Fact", "Facts", "suits"]

ATTESTED = ("workplace", "employer")
"""Attributes that sources fill loosely: used only where the texts of both people speak of the value too."""
_GENERIC = {
    "university", "of", "the", "institute", "for", "college", "and", "technology", "state", "school", "academy",
    "laboratory", "national", "in", "at",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fact:
    """An attribute's value that both people have.

    Attributes:
        attribute: The attribute.
        value: The value, as the first person's profile writes it.
        topic: Its words in a sentence.
        forms: Verb phrases with a place for the words.
        holders: How many people of all profiles have it: the fewer, the more it says.
    """

    attribute: str
    value: str
    topic: str
    forms: tuple[str, ...]
    holders: int


class Facts:
    """Finds shared facts; knows how rare each is among all profiles.

    Args:
        profiles: All profiles.
        wordings: How attributes are said.
    """

    def __init__(self, profiles: Sequence[Profile], wordings: Mapping[str, Wording] = WORDINGS) -> None:
        self.profiles, self.wordings = profiles, wordings
        self.phrases = Phrases(profile.text for profile in profiles if profile.text)
        self.unusable: Counter[tuple[str, str]] = Counter()
        self._holders = Counter(key for p in profiles for key in {_key(*entry) for entry in _entries(p)})

    def shared(self, one: Profile, other: Profile) -> list[Fact]:
        """Facts that hold of both, can be said, and name neither; each topic once, rarest first."""
        found: dict[str, Fact] = {}
        for attribute, value in _entries(one):
            if holds_value(other, attribute, value) and self._credible(attribute, value, (one, other)):
                fact = self._fact(attribute, value)
                if fact is not None and not any(mentions(fact.topic, p.names) for p in (one, other)):
                    found.setdefault(plain(fact.topic), fact)
        return sorted(found.values(), key=lambda fact: (fact.holders, fact.attribute, fact.value))

    def words(self, attribute: str, value: str) -> str | None:
        """A value in words, or None where no sentence takes it."""
        wording = self.wordings.get(attribute)
        return None if wording is None else self.phrases.of(value, wording.shape).text

    def _credible(self, attribute: str, value: str, people: Sequence[Profile]) -> bool:
        """Whether a value can be relied on for all of these people, as far as their texts and other values say."""
        if attribute in ATTESTED and not all(_speaks_of(person, value) for person in people if person.text):
            self.unusable[attribute, "not in both texts"] += 1
            return False
        city = cities_of(Profile("", "", attributes={attribute: (value,)}))
        if city and any(cities_of(person) != city for person in people):
            self.unusable[attribute, "a city beside another place"] += 1
            return False
        return True

    def _fact(self, attribute: str, value: str) -> Fact | None:
        wording = self.wordings.get(attribute)
        if wording is None:
            self.unusable[attribute, "no wording for the attribute"] += 1
            return None
        phrase = self.phrases.of(value, wording.shape)
        if phrase.text is None:
            self.unusable[attribute, phrase.why] += 1
            return None
        elected = wording.shape == "award" and value.startswith(("Fellow of", "Member of", "Foreign Member of"))
        forms = self.wordings["fellowship"].facts if elected and "fellowship" in self.wordings else wording.facts
        return Fact(attribute, value, phrase.text, forms, self._holders[_key(attribute, value)])


def _speaks_of(person: Profile, value: str) -> bool:
    """Whether the telling words of a value stand in a person's text."""
    words = [word for word in plain(bare(value)).split() if word not in _GENERIC]
    said = set(plain(person.text or "").split())
    return bool(words) and all(word in said for word in words)


def _entries(profile: Profile) -> list[tuple[str, str]]:
    return [(name, value) for name, values in profile.attributes.items() for value in values]


def _key(attribute: str, value: str) -> tuple[str, str]:
    return attribute, bare(value).casefold()


def suits(fact: Fact, statement: Statement) -> bool:
    """Whether a fact may stand beside a decisive statement: it must not speak of the same relation.

    Example:
        >>> prize = Fact("award", "Nobel Prize for Physics", "the Nobel Prize for Physics", (), 3)
        >>> suits(prize, Statement("award", "Nobel Prize in Physics")), suits(prize, Statement("birth_year"))
        (False, True)
    """
    if statement.kind in ("award", "award_year"):
        stem = " ".join(str(statement.value).split()[:2]).casefold()
        return stem not in fact.value.casefold()
    if statement.kind == "birth_place":
        return fact.attribute not in PLACES
    return not (statement.kind == "attribute" and fact.attribute == statement.attribute)
