"""Concepts, made or real: one row of JSON each."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args

from latentkt.errors import DataError
from latentkt.results import read_json_lines, write_json_lines

__all__ = ["EXISTENCE", "KINDS", "METHODS", "Concept", "concept_id", "load_concepts", "save_concepts"]

Kind = Literal["term", "entity"]
Method = Literal["recombined", "blended", "pattern", "real"]
Existence = Literal["phantom", "common", "rare", "unattested", "between", "unverified"]

KINDS: tuple[str, ...] = get_args(Kind)
METHODS: tuple[str, ...] = get_args(Method)
EXISTENCE: tuple[str, ...] = get_args(Existence)


@dataclass(frozen=True, slots=True)
class Concept:
    """One concept.

    Attributes:
        id: Made from kind and text by `concept_id`, so the same concept has the same id in every file.
        concept: The text.
        kind: `term` (an abstract concept of a field) or `entity` (the name of one event, work or place).
        category: The seed list that it comes from or belongs to.
        parents: What it was made of. The first is the seed whose words or pattern were kept (the group of the concept
            where folds or intervals are grouped by parent); then each word or item put in, and for a blended word the
            two words it was made of. Empty for a real concept.
        method: `recombined` (a term whose words are all words of seeds), `blended` (a term with a made word),
            `pattern` (an entity from a pattern and an item), or `real` (a seed).
        existence: `unverified` before `verify`; then `phantom` for a made concept with no match; for a real one
            `common`, `rare` or `unattested`, and `between` outside the limits of those.
        search: What was searched and found: corpus, tokens, matches, per million tokens, upper bound.

    Example:
        >>> made = Concept.make("entermolecule chemistry", kind="term", category="science",
        ...                     parents=("nuclear chemistry", "enteric", "macromolecule"), method="blended")
        >>> made.id, made.existence, made.group
        ('term-b76b2818ba4c', 'unverified', 'nuclear chemistry')
    """

    id: str
    concept: str
    kind: Kind
    category: str
    parents: tuple[str, ...] = ()
    method: Method = "real"
    existence: Existence = "unverified"
    search: dict[str, Any] | None = field(default=None, hash=False)

    @classmethod
    def make(
        cls, concept: str, *, kind: Kind, category: str, parents: Iterable[str] = (), method: Method = "real"
    ) -> Concept:
        """A concept with its id, not yet verified."""
        return cls(concept_id(kind, concept), concept, kind, category, tuple(parents), method)

    @property
    def group(self) -> str:
        """What folds and intervals are grouped by: the first parent, or the concept itself where it is real."""
        return self.parents[0] if self.parents else self.concept

    @property
    def made(self) -> bool:
        """Whether it was made here."""
        return self.method != "real"

    def to_dict(self) -> dict[str, Any]:
        """As a row."""
        return {**asdict(self), "parents": list(self.parents)}


def concept_id(kind: str, concept: str) -> str:
    """Id of a concept: its kind and 48 bits of a hash of both.

    Example:
        >>> concept_id("term", "pericline circuit")
        'term-5668a10b9481'
    """
    digest = hashlib.blake2b("\0".join((kind, concept)).encode(), digest_size=6)
    return f"{kind}-{digest.hexdigest()}"


_NAMES = tuple(each.name for each in fields(Concept))
_CHOICES = {"kind": KINDS, "method": METHODS, "existence": EXISTENCE}


def save_concepts(concepts: Iterable[Concept], path: str | Path) -> int:
    """Write concepts as JSON lines, whole or not at all; the number written.

    Raises:
        RunError: The disk is full or the folder cannot be written to.
    """
    return write_json_lines((concept.to_dict() for concept in concepts), path)


def load_concepts(path: str | Path) -> list[Concept]:
    """Read and check a file of concepts.

    A row needs `concept` and `kind`; the id is made where it lacks, and the other fields have the defaults of `Concept`
    (`category` is then ``""``).

    Raises:
        InputError: There is no such file.
        DataError: A row is no concept, two rows have one id, or the file is empty; the message names file and line.
    """
    seen: dict[str, str] = {}

    def parse(row: dict[str, Any], where: str) -> Concept:
        concept = _parsed(row, where)
        if concept.id in seen:
            raise DataError(f"{where}: id {concept.id!r} stands twice", found=f"the first is {seen[concept.id]}")
        seen[concept.id] = where
        return concept

    concepts = list(read_json_lines(path, parse))
    if not concepts:
        raise DataError(f"{path} holds no concepts", expected="at least one row with concept and kind")
    return concepts


def _parsed(row: dict[str, Any], where: str) -> Concept:
    unknown = sorted(row.keys() - set(_NAMES))
    if unknown:
        raise DataError(f"{where}: unknown field {unknown[0]!r}", expected=", ".join(_NAMES), found=unknown)
    text = row.get("concept")
    if not isinstance(text, str) or not text.strip():
        raise DataError(f"{where}: no concept", expected="text under 'concept'", found=repr(text)[:60])
    row = {"method": "real", "existence": "unverified", "category": "", **row}
    for name, choices in _CHOICES.items():
        if row.get(name) not in choices:
            raise DataError(
                f"{where}, concept {text!r}: {name} is wrong", expected=" | ".join(choices), found=repr(row.get(name))
            )
    parents = row.get("parents", [])
    if not isinstance(parents, list) or not all(isinstance(parent, str) for parent in parents):
        raise DataError(f"{where}, concept {text!r}: parents", expected="a list of texts", found=repr(parents)[:80])
    if not isinstance(row.get("search"), dict | None) or not isinstance(row["category"], str):
        raise DataError(f"{where}, concept {text!r}", expected="search an object or null, category a text", found=row)
    row["parents"] = tuple(parents)
    return Concept(**{"id": concept_id(row["kind"], text), **row})
