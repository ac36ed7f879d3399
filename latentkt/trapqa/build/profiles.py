"""People as profiles: names, dates, attributes as lists; and which of them can be used.

A profile says what its source says, in the source's words. What it does not say is not thereby false.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from latentkt.errors import DataError
from latentkt.results import read_json_lines, write_json_lines
from latentkt.trapqa.build.log import StageLog

__all__ = ["Profile", "bare", "latin", "load_profiles", "plain", "save_profiles", "usable", "year_of"]

_DAY = re.compile(r"([+-]?\d{1,6})(?:-(\d{1,2}))?(?:-(\d{1,2}))?")
_MONTH_FIRST = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})$")
_YOUNGEST, _OLDEST = 10, 115
_TAIL = re.compile(r"\s*\([^()]*\)$")


@dataclass(frozen=True)
class Profile:
    """One person.

    Attributes:
        id: The source's id: a Wikidata QID, a page, a row. For bookkeeping only.
        name: The usual name, without a disambiguating tail such as "(physicist)".
        aliases: Other names.
        attributes: Name of each attribute -> its values, as the source writes them; no empty lists.
        born: Date of birth as YYYY, YYYY-MM or YYYY-MM-DD, or None.
        died: Date of death, likewise; None says nothing about being alive.
        text: Running text about the person, or None.
        fame: How much is written on the person (in-links, page views), or None.
    """

    id: str
    name: str
    aliases: tuple[str, ...] = ()
    attributes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    born: str | None = None
    died: str | None = None
    text: str | None = None
    fame: float | None = None

    @property
    def tag_count(self) -> int:
        """The number of attribute fields, TC of Equation 1."""
        return len(self.attributes)

    @property
    def names(self) -> tuple[str, ...]:
        """The name and the aliases, each once."""
        return tuple(dict.fromkeys((self.name, *self.aliases)))

    def to_dict(self) -> dict[str, Any]:
        """The JSON object that `from_dict` reads."""
        return {
            "id": self.id,
            "name": self.name,
            "aliases": list(self.aliases),
            "born": self.born,
            "died": self.died,
            "fame": self.fame,
            "attributes": {name: list(values) for name, values in self.attributes.items()},
            "text": self.text,
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Profile:
        """Read what `to_dict` made."""
        lists = {name: tuple(values) for name, values in record["attributes"].items()}
        return cls(**{**record, "aliases": tuple(record["aliases"]), "attributes": lists})


def bare(value: str) -> str:
    """A value without its disambiguating tail.

    Example:
        >>> bare("Don Page (physicist)")
        'Don Page'
    """
    return _TAIL.sub("", value).strip()


def plain(text: str) -> str:
    """Text for comparing names: accents, case, points and runs of space taken away.

    Example:
        >>> plain("Röntgen,  W. C.")
        'rontgen w c'
    """
    parts = unicodedata.normalize("NFKD", text.casefold().replace("ł", "l").replace("ø", "o"))
    kept = "".join(c if c.isalnum() or c in "-'" else " " for c in parts if not unicodedata.combining(c))
    return " ".join(kept.split())


def latin(text: str) -> bool:
    """Whether all letters are Latin ones, accents and all; False where there is no letter.

    Example:
        >>> latin("Dvořák"), latin("Дмитрий")
        (True, False)
    """
    letters = [c for c in text if c.isalpha()]
    return bool(letters) and all("LATIN" in unicodedata.name(c, "") for c in letters)


def day(value: object) -> str | None:
    """A date in one spelling, or None where it cannot be read.

    Reads ISO dates with or without padding, Wikidata's time stamps (years before the era are negative) and
    month/day/year.

    Example:
        >>> day("1879-3-14"), day("+1879-03-14T00:00:00Z"), day("-0287-01-01"), day("3/1/1911"), day("about 1400")
        ('1879-03-14', '1879-03-14', '-0287-01-01', '1911-03-01', None)
    """
    text = str(value or "").strip().split("T")[0]
    if match := _MONTH_FIRST.fullmatch(text):
        month, number, year = match.groups()
        text = f"{year}-{month}-{number}"
    match = _DAY.fullmatch(text)
    if match is None:
        return None
    year, *rest = match.groups()
    sign = "-" if year.startswith("-") else ""
    return "-".join(
        [f"{sign}{int(year.lstrip('+-')):04d}", *(f"{int(part):02d}" for part in rest if part and int(part))]
    )


def year_of(date: str | None) -> int | None:
    """The year of a date of a profile.

    Example:
        >>> year_of("-0287-01-01"), year_of(None)
        (-287, None)
    """
    if date is None:
        return None
    sign, digits = (-1, date[1:]) if date.startswith("-") else (1, date)
    return sign * int(digits.split("-")[0])


def usable(profiles: Iterable[Profile], log: StageLog) -> list[Profile]:
    """The profiles that pairs can be made of; each of the others goes into the log.

    Rows of one person (one id, or one name and one full date of birth) are merged. A profile without attributes cannot
    be compared. Names that two people bear are no answers, so all who bear one go.

    Args:
        profiles: As read.
        log: Gets the removals (stage `profiles`).
    """
    merged = _dated(_merged(profiles, log), log)
    bearers = Counter(name for profile in merged for name in {plain(name) for name in (profile.name,)})
    kept = []
    for profile in merged:
        if not profile.name or not any(c.isalpha() for c in profile.name):
            log.remove("profiles", profile.id, "no name", repr(profile.name))
        elif not profile.attributes:
            log.remove("profiles", profile.id, "no attributes")
        elif bearers[plain(profile.name)] > 1:
            log.remove("profiles", profile.id, "two people of one name", profile.name)
        else:
            kept.append(profile)
    log.count("profiles", kept=len(kept))
    return kept


def _dated(profiles: Sequence[Profile], log: StageLog) -> list[Profile]:
    """Without dates of death that no life can have (stage `dates`, whose unit is the date)."""
    checked = []
    for profile in profiles:
        born, died = year_of(profile.born), year_of(profile.died)
        if born is not None and died is not None and not _YOUNGEST <= died - born <= _OLDEST:
            log.remove("dates", profile.id, "born and died at impossible dates", f"{profile.born}, {profile.died}")
            profile = replace(profile, born=None, died=None)
        checked.append(profile)
    log.count("dates", kept=sum(p.born is not None for p in checked) + sum(p.died is not None for p in checked))
    return checked


def _merged(profiles: Iterable[Profile], log: StageLog) -> list[Profile]:
    people: dict[str, Profile] = {}
    ids: dict[str, str] = {}
    for profile in profiles:
        known = profile.born is not None and profile.born.count("-") >= 2
        person = f"{plain(profile.name)}, {profile.born}" if known else profile.id
        first = ids.get(profile.id) or ids.get(person)
        if first is None:
            people[profile.id] = profile
            ids[profile.id] = ids[person] = profile.id
        else:
            log.remove("profiles", profile.id, "same person as another row", f"{profile.name}: merged into {first}")
            people[first] = _joined(people[first], profile)
            ids[profile.id] = first
    return list(people.values())


def _joined(one: Profile, other: Profile) -> Profile:
    names = tuple(name for name in dict.fromkeys((*one.names, *other.names)) if name != one.name)
    lists = {
        name: tuple(dict.fromkeys((*one.attributes.get(name, ()), *other.attributes.get(name, ()))))
        for name in dict.fromkeys((*one.attributes, *other.attributes))
    }
    fames = [fame for fame in (one.fame, other.fame) if fame is not None]
    return Profile(
        one.id,
        one.name,
        names,
        lists,
        one.born or other.born,
        one.died or other.died,
        one.text or other.text,
        max(fames, default=None),
    )


def save_profiles(profiles: Sequence[Profile], path: str | Path) -> None:
    """Write profiles as JSON lines that `load_profiles` reads."""
    write_json_lines((profile.to_dict() for profile in profiles), path)


def load_profiles(path: str | Path) -> list[Profile]:
    """Read what `save_profiles` wrote.

    Raises:
        InputError: There is no such file.
        DataError: A line holds something else; the message names it.
    """
    return list(read_json_lines(path, _profile))


def _profile(row: dict[str, Any], where: str) -> Profile:
    try:
        return Profile.from_dict(row)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{where}: no profile", expected="a line that `pairs` wrote") from error
