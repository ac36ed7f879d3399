"""Statements about a person that can be decided, and what decides them.

A statement is true, false, or open. Closed lists decide awards; two dates decide years; two places that exclude each
other decide where somebody was born. An attribute that a profile does not have is open: the profile may be incomplete.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from latentkt.trapqa.build.lists import ClosedList
from latentkt.trapqa.build.places import cities_of
from latentkt.trapqa.build.profiles import Profile, bare, year_of

__all__ = ["Decision", "Statement", "decide", "holds_value", "statements_for"]

Kind = Literal["award", "award_year", "birth_year", "death_year", "birth_place", "attribute"]
Side = Literal["before", "after"]
_MARGIN = 2


@dataclass(frozen=True, slots=True)
class Statement:
    """What is said of a person.

    Attributes:
        kind: What it is about.
        value: The award, the city, or an attribute's value; None for years of life.
        attribute: Name of the attribute, for kind `attribute`.
        side: `before` or `after` the year, for the kinds about years.
        year: The year.
    """

    kind: Kind
    value: str | None = None
    attribute: str | None = None
    side: Side | None = None
    year: int | None = None

    @property
    def family(self) -> str:
        """The statistical family: statements of one relation."""
        tail = {"award": self.value, "attribute": self.attribute}.get(self.kind)
        return re.sub(r"\W+", "_", f"{self.kind} {tail}" if tail else self.kind).lower()

    def to_dict(self) -> dict[str, Any]:
        """As JSON, without what does not exist."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a statement holds of a person.

    Attributes:
        truth: True, False, or None where nothing decides it.
        why: What decides it, or why nothing does.
    """

    truth: bool | None
    why: str


def decide(statement: Statement, profile: Profile, lists: Sequence[ClosedList]) -> Decision:
    """Decide a statement about one person.

    Example:
        >>> ohm = Profile("Q1", "Georg Ohm", born="1789-03-16")
        >>> decide(Statement("birth_year", side="before", year=1800), ohm, []).truth
        True
        >>> print(decide(Statement("death_year", side="before", year=1800), ohm, []).truth)
        None
    """
    if statement.kind in ("award", "award_year"):
        return _award(statement, profile, lists)
    if statement.kind == "birth_place":
        return _born_in(str(statement.value), profile)
    if statement.kind == "attribute":
        held = holds_value(profile, str(statement.attribute), str(statement.value))
        return Decision(True, "its profile") if held else Decision(None, "not in its profile, which may be incomplete")
    return _life(statement, profile)


def _life(statement: Statement, profile: Profile) -> Decision:
    date = profile.born if statement.kind == "birth_year" else profile.died
    year = year_of(date)
    if year is None:
        return Decision(None, "no date in its profile")
    if profile.text and not re.search(rf"(?<!\d){abs(year)}(?!\d)", profile.text):
        return Decision(None, f"the year {year} is not in its text")
    return _compared(year, statement, f"date {date} in its profile")


def _compared(year: int, statement: Statement, why: str) -> Decision:
    assert statement.year is not None
    if year == statement.year:
        return Decision(None, "in that very year")
    return Decision((year < statement.year) == (statement.side == "before"), why)


def _award(statement: Statement, profile: Profile, lists: Sequence[ClosedList]) -> Decision:
    closed = next((each for each in lists if statement.value in each.awards), None)
    if closed is None:
        return Decision(None, f"no closed list of {statement.value}")
    found = closed.look_up(profile)
    if found.doubt:
        return Decision(None, found.doubt)
    years = [entry.year for entry in found.entries if entry.award == statement.value]
    died = year_of(profile.died)
    first = closed.first_years[str(statement.value)]
    if died is not None and died < first:
        return Decision(None, f"died in {died}, before the first {statement.value} ({first})")
    why = f"{closed.name}, complete up to {closed.last_year}" + (f": {years[0]}" if years else ": not listed")
    if statement.kind == "award":
        return Decision(bool(years), why)
    if len(years) != 1:
        return Decision(None, f"{len(years)} awards, not one")
    return _compared(years[0], statement, why)


def _born_in(city: str, profile: Profile) -> Decision:
    found = cities_of(profile)
    if found == {city}:
        return Decision(True, f"place of birth {city} in its profile")
    if len(found) == 1 and city not in found:
        return Decision(False, f"place of birth {next(iter(found))} in its profile")
    return Decision(None, "no place of birth that excludes others" if not found else f"several: {sorted(found)}")


def holds_value(profile: Profile, attribute: str, value: str) -> bool:
    """Whether an attribute has a value, disambiguating tails and case apart."""
    return bare(value).casefold() in {bare(held).casefold() for held in profile.attributes.get(attribute, ())}


def statements_for(
    one: Profile, other: Profile, lists: Sequence[ClosedList], attributes: Sequence[str] = ()
) -> Iterator[Statement]:
    """Statements that might separate two people; what does not is seen by deciding them.

    Args:
        one: A person.
        other: The other.
        lists: Closed lists.
        attributes: Attributes whose values are statements too (open where a profile lacks them).
    """
    for closed in lists:
        for award in closed.awards:
            yield Statement("award", award)
            years = [[e.year for e in closed.look_up(p).entries if e.award == award] for p in (one, other)]
            if all(len(each) == 1 for each in years):
                yield from _between("award_year", years[0][0], years[1][0], award)
    yield from _between("birth_year", year_of(one.born), year_of(other.born))
    yield from _between("death_year", year_of(one.died), year_of(other.died))
    for city in sorted(cities_of(one) | cities_of(other)):
        yield Statement("birth_place", city)
    for name in attributes:
        values = dict.fromkeys((*one.attributes.get(name, ()), *other.attributes.get(name, ())))
        for value in values:
            if holds_value(one, name, value) != holds_value(other, name, value):
                yield Statement("attribute", value, attribute=name)


def _between(kind: Kind, one: int | None, other: int | None, value: str | None = None) -> Iterator[Statement]:
    """A round year that lies well between the two, as a bound from either side."""
    if one is None or other is None:
        return
    low, high = sorted((one, other))
    rounds = [year for year in range(low + _MARGIN, high - _MARGIN + 1) if year % 10 == 0]
    if rounds:
        middle = min(rounds, key=lambda year: abs(2 * year - low - high))
        yield Statement(kind, value, side="before", year=middle)
        yield Statement(kind, value, side="after", year=middle)
