"""The pattern file of an item set: how the keys and tasks that its paths name are written in text.

`{"keys": {NAME: [forms]}, "tasks": {NAME: [forms]}, "exclude": {NAME: [forms]}, "pairs": [[KEY, KEY], …]}`. A form is
literal text unless it is written `{"regex": "…"}`. Counting with the forms is the work of `latentkt.corpus`; here the
file is checked, and the names are looked up.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from latentkt.errors import DataError

__all__ = ["Form", "Patterns", "Regex", "parse_patterns"]


@dataclass(frozen=True, slots=True)
class Regex:
    """A form that is a regular expression."""

    pattern: str


Form = str | Regex
Forms = Mapping[str, tuple[Form, ...]]
_FIELDS = ("keys", "tasks", "exclude", "pairs")


@dataclass(frozen=True)
class Patterns:
    """Forms of keys and tasks.

    Attributes:
        keys: Key -> its forms (one at least).
        tasks: Task -> its forms (one at least).
        exclude: Key or task -> forms whose matches do not count.
        pairs: Pairs of keys whose common occurrence is counted too.
    """

    keys: Forms = field(default_factory=dict)
    tasks: Forms = field(default_factory=dict)
    exclude: Forms = field(default_factory=dict)
    pairs: tuple[tuple[str, str], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The patterns as the JSON object that they are read from."""
        kinds = {"keys": self.keys, "tasks": self.tasks, "exclude": self.exclude}
        forms = {kind: {name: [_form_json(f) for f in names[name]] for name in names} for kind, names in kinds.items()}
        return {**forms, "pairs": [list(pair) for pair in self.pairs]}

    def union(self, other: Patterns) -> Patterns:
        """Both together.

        Raises:
            DataError: A name stands in both with unequal forms.
        """
        merged: dict[str, Forms] = {}
        for kind in ("keys", "tasks", "exclude"):
            mine, theirs = getattr(self, kind), getattr(other, kind)
            for name in mine.keys() & theirs.keys():
                if set(mine[name]) != set(theirs[name]):
                    raise DataError(
                        f"two pattern files disagree on {kind} {name!r}", expected=mine[name], found=theirs[name]
                    )
            merged[kind] = {**theirs, **mine}
        return Patterns(**merged, pairs=tuple(dict.fromkeys((*self.pairs, *other.pairs))))


def _form_json(form: Form) -> Any:
    return {"regex": form.pattern} if isinstance(form, Regex) else form


def parse_patterns(record: object, *, where: str) -> Patterns:
    """Check a pattern object and make `Patterns` of it.

    Args:
        record: The decoded JSON.
        where: The file, for messages.

    Raises:
        DataError: Unknown fields, names or forms that cannot be used.

    Example:
        >>> parse_patterns({"keys": {"pauli": ["Pauli"]}, "tasks": {"nobel": ["Nobel Prize"]}}, where="x").pairs
        ()
    """
    if not isinstance(record, dict):
        raise DataError(f"{where}: not a pattern file", expected="a JSON object", found=type(record).__name__)
    unknown = sorted(record.keys() - set(_FIELDS))
    if unknown:
        raise DataError(f"{where}: unknown fields", expected=", ".join(_FIELDS), found=", ".join(unknown))
    keys, tasks, exclude = (_named_forms(record.get(kind, {}), f"{where}: {kind}") for kind in _FIELDS[:3])
    both = sorted(keys.keys() & tasks.keys())
    if both:
        raise DataError(f"{where}: a name is both a key and a task", expected="different names", found=", ".join(both))
    stray = sorted(exclude.keys() - keys.keys() - tasks.keys())
    if stray:
        raise DataError(f"{where}: exclude names what is neither a key nor a task", found=", ".join(stray))
    return Patterns(keys, tasks, exclude, _pairs(record.get("pairs", []), keys, where))


def _named_forms(record: object, where: str) -> dict[str, tuple[Form, ...]]:
    if not isinstance(record, dict):
        raise DataError(f"{where} is wrong", expected="an object {NAME: [forms]}", found=type(record).__name__)
    for name in record:
        if not re.fullmatch(r"[^\s:](?:[^:]*[^\s:])?", name):
            raise DataError(f"{where}: bad name {name!r}", expected="a name without ':' and without space around it")
    return {name: _forms(forms, f"{where}.{name}") for name, forms in record.items()}


def _forms(record: object, where: str) -> tuple[Form, ...]:
    if not isinstance(record, list) or not record:
        raise DataError(f"{where} has no forms", expected="a list with at least one form", found=record)
    return tuple(_form(form, where) for form in record)


def _form(record: object, where: str) -> Form:
    if isinstance(record, str) and record.strip():
        return record
    if isinstance(record, dict) and record.keys() == {"regex"} and isinstance(record["regex"], str) and record["regex"]:
        try:
            re.compile(record["regex"])
        except re.error as error:
            raise DataError(f"{where}: not a regular expression: {error}", found=record["regex"]) from error
        return Regex(record["regex"])
    raise DataError(f"{where}: bad form", expected='text that is not blank, or {"regex": "…"}', found=record)


def _pairs(record: object, keys: Forms, where: str) -> tuple[tuple[str, str], ...]:
    expected = "a list of pairs of two different keys"
    if not isinstance(record, list):
        raise DataError(f"{where}: pairs is wrong", expected=expected, found=type(record).__name__)
    for pair in record:
        if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(key, str) for key in pair)):
            raise DataError(f"{where}: bad pair", expected=expected, found=pair)
        if pair[0] == pair[1] or not set(pair) <= keys.keys():
            raise DataError(f"{where}: bad pair", expected=f"{expected}, both in keys", found=pair)
    return tuple((first, second) for first, second in record)
