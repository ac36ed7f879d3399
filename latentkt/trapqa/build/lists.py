"""Closed lists: who has received an award, complete for a span of years. What is not in such a list is false.

A person is looked up by name and date of birth. Where the two do not settle it (a namesake, another spelling, no date),
the list does not decide.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from latentkt.errors import DataError, InputError
from latentkt.trapqa.build.log import lines_of
from latentkt.trapqa.build.masking import surname
from latentkt.trapqa.build.profiles import Profile, day, plain, year_of

__all__ = ["ClosedList", "Entry", "Lookup", "read_list"]

_NAMES = ("name", "known_name", "full_name", "label")
_BORN = ("born", "birth_date", "date_of_birth")
_YEARS = ("year", "award_year")


@dataclass(frozen=True, slots=True)
class Entry:
    """One award of one person.

    Attributes:
        names: The person's names.
        born: Date of birth, or None.
        award: What was awarded, as it is named in sentences ("Nobel Prize in Physics").
        year: The year that it was awarded for.
    """

    names: tuple[str, ...]
    born: str | None
    award: str
    year: int


@dataclass(frozen=True, slots=True)
class Lookup:
    """What a list says of a person.

    Attributes:
        entries: The person's entries; empty where the person is not in the list.
        doubt: Why the list does not decide, or None where it does.
    """

    entries: tuple[Entry, ...]
    doubt: str | None = None


@dataclass(frozen=True)
class ClosedList:
    """A complete list of awards.

    Attributes:
        name: What it is called in sources.
        licence: Its licence.
        entries: All of it.
        sha256: Hash of the file, or None.
    """

    name: str
    licence: str
    entries: tuple[Entry, ...]
    sha256: str | None = None

    @cached_property
    def awards(self) -> tuple[str, ...]:
        """Its awards, most frequent first."""
        counts: dict[str, int] = {}
        for entry in self.entries:
            counts[entry.award] = counts.get(entry.award, 0) + 1
        return tuple(sorted(counts, key=lambda award: (-counts[award], award)))

    @cached_property
    def first_years(self) -> Mapping[str, int]:
        """Award -> the first year in which somebody has it."""
        first: dict[str, int] = {}
        for entry in self.entries:
            first[entry.award] = min(entry.year, first.get(entry.award, entry.year))
        return first

    @cached_property
    def last_year(self) -> int:
        """The last year that it covers."""
        return max(entry.year for entry in self.entries)

    def look_up(self, profile: Profile) -> Lookup:
        """Find a person in the list.

        A full name with the same year of birth, or a surname with the same first letter of the forename and the same
        year, is the person. So is one without a date in the list, if the profile itself names the award. A likeness of
        less (same name without or with another date, same surname and year, same forename and day of birth) is a doubt;
        so is a profile that names an award of the list, and is not found in it.
        """
        found = self._known.get(profile.id)
        if found is None or found[0] is not profile:
            found = self._known[profile.id] = profile, self._find(profile)
        return found[1]

    @cached_property
    def _known(self) -> dict[str, tuple[Profile, Lookup]]:
        return {}

    def _find(self, profile: Profile) -> Lookup:
        groups: dict[tuple[tuple[str, ...], str | None], list[Entry]] = {}
        for entry in self._near(profile):
            groups.setdefault((entry.names, entry.born), []).append(entry)
        verdicts = {person: _alike(profile, *person) for person in groups}
        settled = "same" in verdicts.values()
        for person in [p for p, verdict in verdicts.items() if verdict == "undated" and not settled]:
            named = any(_names_award(profile, entry.award) for entry in groups[person])
            verdicts[person] = "same" if named else "doubt"
        same = [person for person, verdict in verdicts.items() if verdict == "same"]
        doubts = [person for person, verdict in verdicts.items() if verdict == "doubt"]
        if same and (len(same) == 1 or _one_person(same)):
            return Lookup(tuple(entry for person in same for entry in groups[person]))
        if same or doubts:
            names = "; ".join(f"{person[0][0]} ({person[1]})" for person in (*same, *doubts))
            return Lookup((), f"{self.name}: {profile.name} ({profile.born}) may be {names}")
        if any(_names_award(profile, award) for award in self.awards):
            return Lookup((), f"{self.name}: {profile.name} is not in it, but the profile speaks of such an award")
        return Lookup(())

    def _near(self, profile: Profile) -> Iterable[Entry]:
        """Entries that share a surname, a full name or a day of birth."""
        keys = {plain(surname(name)) for name in profile.names} | {plain(name) for name in profile.names}
        if profile.born:
            keys.add(profile.born)
        return dict.fromkeys(entry for key in keys for entry in self._index.get(key, ()))

    @cached_property
    def _index(self) -> Mapping[str, list[Entry]]:
        index: dict[str, list[Entry]] = {}
        for entry in self.entries:
            keys = {plain(surname(name)) for name in entry.names} | {plain(name) for name in entry.names}
            for key in keys | ({entry.born} if entry.born else set()):
                index.setdefault(key, []).append(entry)
        return index


def _one_person(people: Sequence[tuple[tuple[str, ...], str | None]]) -> bool:
    """Whether rows with unequal lists of names are one person: one date of birth, and a name in common."""
    shared = set.intersection(*({plain(name) for name in names} for names, _ in people))
    return bool(shared) and len({born for _, born in people}) == 1


def _alike(profile: Profile, names: tuple[str, ...], born: str | None) -> str | None:
    mine, theirs = {plain(n) for n in profile.names}, {plain(n) for n in names}
    same_name = bool(mine & theirs)
    surnames = {plain(surname(n)) for n in profile.names} & {plain(surname(n)) for n in names}
    initials = {n[:1] for n in mine} & {n[:1] for n in theirs}
    forenames = {n.split()[0] for n in mine} & {n.split()[0] for n in theirs}
    if profile.born is None or born is None:
        abbreviated = initials & {n.split()[0] for n in mine | theirs}
        return "undated" if same_name or (surnames and (forenames or abbreviated)) else None
    if year_of(profile.born) == year_of(born):
        if same_name or (surnames and initials):
            return "same"
        return "doubt" if surnames or (profile.born == born and forenames) else None
    return "doubt" if same_name else None


def _names_award(profile: Profile, award: str) -> bool:
    """Whether attributes or text speak of the award, "for" read as "in", or of awards of that name at large."""
    said = [profile.text or "", *(value for values in profile.attributes.values() for value in values)]
    whole = "\n".join(said).casefold().replace(" for ", " in ")
    stem = " ".join(award.split()[:2]).casefold()
    return award.casefold() in whole or stem in whole or f"{stem.split()[0]} laureate" in whole


def read_list(
    path: str | Path, *, award: str = "{award}", name: str | None = None, licence: str = "not stated"
) -> ClosedList:
    """Read a closed list: CSV or JSON lines, one award of one person a row.

    Args:
        path: The file. Names are read from the fields `name`, `known_name`, `full_name`, `label`; the date of birth
            from `born` or `birth_date`; the year from `year` or `award_year`.
        award: How the award is named, with fields in braces: `Nobel Prize in {category}`.
        name: What the list is called; default: its file's name.
        licence: For the data card.

    Raises:
        InputError: The file is absent, or `award` names a field that it lacks.
        DataError: A row lacks a name or a year.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"no closed list {path}: {error.strerror}", expected="a CSV or JSON-lines file") from error
    entries = tuple(_entry(row, award, f"{path}, row {number}") for number, row in enumerate(_rows(data, path), 1))
    if not entries:
        raise DataError(f"{path} is an empty list", expected="at least one row")
    return ClosedList(name or path.stem, licence, entries, hashlib.sha256(data).hexdigest())


def _rows(data: bytes, path: Path) -> list[Mapping[str, Any]]:
    try:
        text = data.decode("utf-8-sig")
        if path.suffix != ".jsonl":
            return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
        rows = [json.loads(line) for line in lines_of(text) if line.strip()]
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8", found=error.reason) from error
    except (ValueError, csv.Error) as error:
        raise DataError(f"{path}: not a list", expected="CSV, or one JSON object a line", found=error) from error
    if not all(isinstance(row, dict) for row in rows):
        raise DataError(f"{path}: not a list", expected="one JSON object a line")
    return rows


def _entry(row: Mapping[str, Any], award: str, where: str) -> Entry:
    names = tuple(dict.fromkeys(str(row[field]).strip() for field in _NAMES if row.get(field)))
    years = [str(row[field]).strip() for field in _YEARS if row.get(field)]
    if not names or not years or not years[0].removesuffix(".0").isdigit():
        raise DataError(f"{where}: not an award", expected=f"a name ({', '.join(_NAMES)}) and a year", found=dict(row))
    born = next((day(row[field]) for field in _BORN if row.get(field)), None)
    try:
        named = award.format_map(row)
    except KeyError as error:
        raise InputError(
            f"the award {award!r} names a field that the list lacks",
            expected=f"fields of {', '.join(row)}",
            found=str(error),
            fix='for instance --list-award "Nobel Prize in {category}"',
        ) from error
    except (ValueError, IndexError, AttributeError) as error:
        raise InputError(
            f"the award {award!r} cannot be filled", expected="text with fields in braces", found=error
        ) from error
    return Entry(names, born, named, int(years[0].removesuffix(".0")))
