"""The pattern file of an item set: how the keys and tasks that its paths name are written in text.

`{"keys": {NAME: [forms]}, "tasks": {NAME: [forms]}, "exclude": {NAME: [forms]}, "pairs": [[KEY, KEY], …]}`. A form is
literal text unless it is written `{"regex": "…"}`. Here the file is checked and its names are looked up; matching and
counting are the work of `latentkt.corpus`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from latentkt.errors import DataError

__all__ = ["Form", "Patterns", "find_patterns", "union"]

_SECTIONS = ("keys", "tasks", "exclude", "pairs")


@dataclass(frozen=True, slots=True)
class Form:
    """One way to write a key or a task.

    Attributes:
        text: Literal text, or a regular expression.
        regex: Whether `text` is a regular expression.
    """

    text: str
    regex: bool = False

    def to_json(self) -> str | dict[str, str]:
        """The form as it stands in the file."""
        return {"regex": self.text} if self.regex else self.text


Forms = Mapping[str, tuple[Form, ...]]


@dataclass(frozen=True)
class Patterns:
    """Forms of keys and tasks.

    Attributes:
        keys: Key -> its forms (one at least).
        tasks: Task -> its forms (one at least).
        exclude: Key or task -> forms whose matches do not count.
        pairs: Pairs of keys whose common occurrence is counted too.

    Example:
        >>> Patterns.from_dict({"keys": {"pauli": ["Pauli"]}, "tasks": {"nobel": ["Nobel Prize"]}}).keys["pauli"]
        (Form(text='Pauli', regex=False),)
    """

    keys: Forms = field(default_factory=dict)
    tasks: Forms = field(default_factory=dict)
    exclude: Forms = field(default_factory=dict)
    pairs: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_dict(cls, data: object, *, where: str = "patterns") -> Patterns:
        """Check the content of a pattern file.

        Args:
            data: The decoded JSON.
            where: The file, for messages.

        Raises:
            DataError: A section, name or form is unknown or cannot be used.
        """
        if not isinstance(data, dict):
            raise DataError(f"{where}: not a pattern file", expected="a JSON object", found=type(data).__name__)
        unknown = sorted(data.keys() - set(_SECTIONS))
        if unknown:
            raise DataError(f"{where}: unknown fields", expected=", ".join(_SECTIONS), found=", ".join(unknown))
        keys, tasks, exclude = (_section(data.get(name, {}), f"{where}: {name}") for name in _SECTIONS[:3])
        stray = sorted(exclude.keys() - keys.keys() - tasks.keys())
        if stray:
            raise DataError(f"{where}: exclude names what is neither a key nor a task", found=", ".join(stray))
        return cls(keys, tasks, exclude, _pairs(data.get("pairs", []), keys, where))

    def to_dict(self) -> dict[str, Any]:
        """The patterns as the JSON object that `from_dict` reads."""
        sections = (("keys", self.keys), ("tasks", self.tasks), ("exclude", self.exclude))
        forms = {name: {key: [form.to_json() for form in forms[key]] for key in forms} for name, forms in sections}
        return {**forms, "pairs": [list(pair) for pair in self.pairs]}


def _section(raw: object, where: str) -> dict[str, tuple[Form, ...]]:
    if not isinstance(raw, dict):
        raise DataError(f"{where} is wrong", expected="an object {NAME: [forms]}", found=type(raw).__name__)
    for name, forms in raw.items():
        if not name or name != name.strip() or ":" in name:
            raise DataError(f"{where}: bad name {name!r}", expected="a name without ':' and without space around it")
        if not isinstance(forms, list) or not forms:
            raise DataError(f"{where}.{name} has no forms", expected="a list with at least one form", found=forms)
    return {name: tuple(_form(form, f"{where}.{name}") for form in forms) for name, forms in raw.items()}


def _form(raw: object, where: str) -> Form:
    if isinstance(raw, str) and re.search(r"\w", raw):
        return Form(raw)
    if isinstance(raw, dict) and raw.keys() == {"regex"} and isinstance(raw["regex"], str) and raw["regex"]:
        try:
            re.compile(raw["regex"])
        except re.error as error:
            raise DataError(f"{where}: not a regular expression: {error}", found=raw["regex"]) from error
        return Form(raw["regex"], regex=True)
    raise DataError(f"{where}: bad form", expected='text with a letter or digit, or {"regex": "…"}', found=repr(raw))


def _pairs(raw: object, keys: Forms, where: str) -> tuple[tuple[str, str], ...]:
    expected = "a list of pairs of two different keys"
    if not isinstance(raw, list):
        raise DataError(f"{where}: pairs is wrong", expected=expected, found=type(raw).__name__)
    for pair in raw:
        if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(key, str) for key in pair)):
            raise DataError(f"{where}: bad pair", expected=expected, found=pair)
        if pair[0] == pair[1] or not set(pair) <= keys.keys():
            raise DataError(f"{where}: bad pair", expected=f"{expected}, both in keys", found=pair)
    return tuple((first, second) for first, second in raw)


def union(first: Patterns, second: Patterns) -> Patterns:
    """The patterns of two sets together.

    Raises:
        DataError: A name stands in both with unequal forms.
    """
    merged: dict[str, Forms] = {}
    for section in ("keys", "tasks", "exclude"):
        one, other = getattr(first, section), getattr(second, section)
        for name in sorted(one.keys() & other.keys()):
            if set(one[name]) != set(other[name]):
                raise DataError(f"two pattern files disagree on {name!r} in {section}", found=(one[name], other[name]))
        merged[section] = {**one, **other}
    return Patterns(**merged, pairs=tuple(dict.fromkeys((*first.pairs, *second.pairs))))


def find_patterns(items: str | Path) -> Path | None:
    """The pattern file of an item file: `NAME.patterns.json` beside `NAME.jsonl`, else `patterns.json`, else None."""
    path = Path(items)
    beside = (path.with_suffix(".patterns.json"), path.with_name("patterns.json"))
    return next((candidate for candidate in beside if candidate.is_file()), None)
