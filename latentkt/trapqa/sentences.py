"""Sentences that stand in many items once names and years are masked: the mark of a template written out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from latentkt.trapqa.clauses import fold
from latentkt.trapqa.items import TrapItem
from latentkt.trapqa.templates import NEUTRAL_QUESTION

__all__ = ["Repeat", "masked", "repeated_sentences", "sentences"]

# Not after an initial ("A. B. Smith") or a common title; a number's point is not followed by space.
_END = re.compile(r"(?<=[.!?])(?<!\b[A-Z]\.)(?<!\bDr\.)(?<!\bMr\.)(?<!\bSt\.)(?<!\bMrs\.)\s+(?=[\"'“(]?[A-Z0-9{])")
_YEAR = re.compile(r"\b(?:1[0-9]{3}|20[0-9]{2})(?:s|\b)")
_WORD = r"(?:[A-Z]\.|(?!I\b)[A-Z][\w’'-]*)"
# Capital letters inside a sentence; at its beginning only when two stand together.
_NAME = re.compile(rf"(?<=[^\s.!?:][ (“\"]){_WORD}(?: {_WORD})*|^{_WORD}(?: {_WORD})+")
_CLOSING = fold(NEUTRAL_QUESTION["scientist"])


@dataclass(frozen=True, slots=True)
class Repeat:
    """A sentence and the items that hold it.

    Attributes:
        masked: The sentence, names as NAME and years as YEAR, small letters.
        ids: The items; of a group of levels, its first item only.
    """

    masked: str
    ids: tuple[str, ...]


def sentences(text: str) -> list[str]:
    """Split a text at the ends of its sentences.

    Example:
        >>> sentences("Mr. Hall met A. B. Smith. Who won? He did.")
        ['Mr. Hall met A. B. Smith.', 'Who won?', 'He did.']
    """
    return [part for line in text.splitlines() for part in _END.split(line.strip()) if part]


def masked(sentence: str, names: Sequence[str] = ()) -> str:
    """A sentence with names and years masked, in small letters.

    Args:
        sentence: One sentence.
        names: Names that are masked wherever they stand; other names are known by their capital letters.

    Example:
        >>> masked("In 1922 Niels Bohr lived in Copenhagen.")
        'in YEAR NAME lived in NAME.'
    """
    for name in sorted(names, key=len, reverse=True):
        sentence = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "\0", sentence)
    sentence = _NAME.sub("\0", _YEAR.sub("\1", sentence))
    return fold(sentence).replace("\0", "NAME").replace("\1", "YEAR")


def repeated_sentences(items: Sequence[TrapItem], *, limit: int) -> tuple[Repeat, ...]:
    """Sentences that more than `limit` items hold, after masking, most frequent first.

    An item counts once, its control included; the levels of one group count once together. "Who is this person?",
    with which every question about a person ends, is not counted.
    """
    holders: dict[str, dict[str, str]] = {}
    for item in items:
        names = [form for c in (item.correct, item.shortcut) for form in (c.text, *c.aliases)]
        if item.kind == "action":
            names = []
        for text in (item.text, item.control.text):
            for sentence in sentences(text):
                holders.setdefault(masked(sentence, names), {}).setdefault(item.group or item.id, item.id)
    repeats = [Repeat(text, tuple(ids.values())) for text, ids in holders.items() if len(ids) > limit]
    return tuple(sorted((r for r in repeats if r.masked != _CLOSING), key=lambda r: (-len(r.ids), r.masked)))
