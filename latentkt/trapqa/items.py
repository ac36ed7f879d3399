"""What a trap item is: the question, its two answers, its spans and its control.

An item asks for one of two answers. The `shortcut` answer is the one that a frequent association suggests; the
`correct` answer is the one that the question's constraint leaves. Its control is the same question with one thing
changed, so that the shortcut is right there (`flip`) or nothing is (`neutral`). Spans say where in the question the
cue of the shortcut and the constraint stand: code-point offsets into the text before the option slots are filled.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from latentkt.corpus.patterns import Patterns
from latentkt.errors import InputError

__all__ = [
    "SLOTS",
    "Candidate",
    "Control",
    "ControlKind",
    "ItemSet",
    "Kind",
    "Paths",
    "Polarity",
    "ProbeQuestion",
    "ProbeRole",
    "Span",
    "Spans",
    "TrapItem",
    "Which",
]

Kind = Literal["scientist", "action"]
Polarity = Literal["negated", "affirmed", "none"]
ControlKind = Literal["flip", "neutral"]
ProbeRole = Literal["eliminative", "compatibility"]
Which = Literal["item", "control"]
Span = tuple[int, int]
Spans = Mapping[str, tuple[Span, ...]]

SLOTS = ("{option_a}", "{option_b}")
"""The places of the two options in the text of an action item: the one shown first, the one shown second."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One of the two answers of an item.

    Attributes:
        text: The answer as it stands among the options.
        aliases: Other ways to write it that count as this answer.
        profile: What the profiles-in-context condition says of it, or None.
    """

    text: str
    aliases: tuple[str, ...] = ()
    profile: str | None = None


@dataclass(frozen=True, slots=True)
class Control:
    """The minimal pair of an item, with the same two answers.

    Attributes:
        kind: `flip`: the shortcut answer is right here. `neutral`: neither is, and no accuracy exists.
        text: The question, equal to the item's outside the spans.
        spans: Like the item's: the same roles in the same order.
    """

    kind: ControlKind
    text: str
    spans: Spans


@dataclass(frozen=True, slots=True)
class ProbeQuestion:
    """A yes-or-no question about one candidate and the decisive relation.

    Attributes:
        role: `eliminative` rules the shortcut candidate out, `compatibility` fits the correct one.
        text: The question, whole.
        answer: True where "yes" is right.
    """

    role: ProbeRole
    text: str
    answer: bool


@dataclass(frozen=True, slots=True)
class Paths:
    """The key and task through which each answer is reached, as names of the set's patterns.

    Attributes:
        correct: (key, task) of the correct path.
        shortcut: (key, task) of the shortcut path.
    """

    correct: tuple[str, str]
    shortcut: tuple[str, str]


@dataclass(frozen=True)
class TrapItem:
    """One trap item. Made by `load_items` or `mark_item`, which check it.

    Attributes:
        id: Unique in its set.
        kind: `scientist` (two candidates, one description) or `action` (two actions, one scenario).
        family: Relation or template family; the statistical cluster.
        text: The question without the option list; an action's text holds `{option_a}` and `{option_b}` once each.
        correct: The answer that the constraint leaves.
        shortcut: The answer whose path has the larger prior.
        spans: Role -> code-point ranges of `text`; roles `shortcut` and `constraint` at least.
        control: The minimal pair.
        aspect: Part of life or field of knowledge, or None.
        constraint_kind: What sort of constraint it is, or None.
        polarity: Whether the constraint negates or affirms a fact; `none` where it does neither.
        group: Shared by the items that ask the same at several levels of explicitness, else None.
        level: 0 (implicit) to 3 (explicit), else None.
        paths: The two key-task paths, or None.
        probe_questions: At most one of each role.
        source: Where the facts come from, and why the shortcut is the shortcut.
        meta: Anything else that belongs to the item.
    """

    id: str
    kind: Kind
    family: str
    text: str
    correct: Candidate
    shortcut: Candidate
    spans: Spans
    control: Control
    aspect: str | None = None
    constraint_kind: str | None = None
    polarity: Polarity = "none"
    group: str | None = None
    level: int | None = None
    paths: Paths | None = None
    probe_questions: tuple[ProbeQuestion, ...] = ()
    source: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)

    def question(self, which: Which = "item") -> tuple[str, Spans]:
        """Text and spans of the item or of its control."""
        return (self.text, self.spans) if which == "item" else (self.control.text, self.control.spans)

    def right(self, which: Which = "item") -> Literal["correct", "shortcut"] | None:
        """Which of the item's two answers is right there; None in a neutral control."""
        if which == "item":
            return "correct"
        return "shortcut" if self.control.kind == "flip" else None

    def probe(self, role: ProbeRole) -> ProbeQuestion | None:
        """The probe question of that role, or None."""
        return next((probe for probe in self.probe_questions if probe.role == role), None)

    def to_dict(self) -> dict[str, Any]:
        """The item as the JSON object that `load_items` reads."""
        paths = None if self.paths is None else {s: ":".join(getattr(self.paths, s)) for s in ("correct", "shortcut")}
        return {
            "id": self.id,
            "kind": self.kind,
            "family": self.family,
            "aspect": self.aspect,
            "constraint_kind": self.constraint_kind,
            "polarity": self.polarity,
            "group": self.group,
            "level": self.level,
            "text": self.text,
            "correct": _candidate_dict(self.correct),
            "shortcut": _candidate_dict(self.shortcut),
            "spans": _spans_dict(self.spans),
            "control": {
                "kind": self.control.kind,
                "text": self.control.text,
                "spans": _spans_dict(self.control.spans),
            },
            "paths": paths,
            "probe_questions": [{"role": p.role, "text": p.text, "answer": p.answer} for p in self.probe_questions],
            "source": list(self.source),
            "meta": dict(self.meta),
        }


def _candidate_dict(candidate: Candidate) -> dict[str, Any]:
    return {"text": candidate.text, "aliases": list(candidate.aliases), "profile": candidate.profile}


def _spans_dict(spans: Spans) -> dict[str, list[list[int]]]:
    return {role: [list(span) for span in ranges] for role, ranges in spans.items()}


@dataclass(frozen=True)
class ItemSet:
    """Items that were checked together, and the patterns that their paths name.

    Attributes:
        items: The items, in the order of the file.
        patterns: The set's patterns, or None where no item names a path.
        path: The file, or None for sets that are built in or made in memory.

    Example:
        >>> from latentkt.trapqa import ItemSet
        >>> len(ItemSet(items=()))
        0
    """

    items: tuple[TrapItem, ...]
    patterns: Patterns | None = None
    path: Path | None = None

    def __iter__(self) -> Iterator[TrapItem]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    @cached_property
    def sha256(self) -> str:
        """Hash of the content (items in order, and patterns): the same however the file is laid out."""
        patterns = None if self.patterns is None else self.patterns.to_dict()
        content = [[item.to_dict() for item in self.items], patterns]
        return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()

    def by_id(self, item_id: str) -> TrapItem:
        """The item of that id.

        Raises:
            InputError: There is none.
        """
        for item in self.items:
            if item.id == item_id:
                return item
        known = ", ".join(item.id for item in self.items[:8])
        raise InputError(f"no item {item_id!r} in the set", expected=f"one of {len(self)} ids ({known}, …)")

    def filter(self, *, kind: Kind | None = None, family: str | None = None) -> ItemSet:
        """The items of one kind, one family or both, with the same patterns; it may be empty."""
        kept = (i for i in self.items if kind in (None, i.kind) and family in (None, i.family))
        return ItemSet(items=tuple(kept), patterns=self.patterns, path=self.path)
