"""A prompt in pieces, each with one role; the spans of the prompt are read off them.

Built so, roles cover every character once by construction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from latentkt.trapqa.items import SLOTS, Candidate, Span, Spans, TrapItem

__all__ = ["Order", "Piece", "cue_pieces", "option_pieces", "piece_spans", "question_pieces"]

Order = Literal["correct_first", "shortcut_first"]
_UNMARKED = ("template", "rest")


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a prompt that has one role; a whole span of the item, if it is one."""

    text: str
    role: str


def option_pieces(item: TrapItem, order: Order) -> dict[str, list[Piece]]:
    """Placeholder of each option, and of each profile -> what stands there in that order."""
    shown = [(item.correct, "option_correct"), (item.shortcut, "option_shortcut")]
    if order == "shortcut_first":
        shown.reverse()
    filled = {}
    for letter, (candidate, role) in zip("ab", shown, strict=True):
        filled[f"{{option_{letter}}}"] = [Piece(candidate.text, role)]
        filled[f"{{profile_{letter}}}"] = [Piece(_profile(candidate), role)]
    return filled


def _profile(candidate: Candidate) -> str:
    return f"{candidate.text}\n{candidate.profile}"


def question_pieces(text: str, spans: Spans, options: Mapping[str, list[Piece]]) -> list[Piece]:
    """The question cut at its spans and slots."""
    marks = [(start, end, Piece(text[start:end], role)) for role, ranges in spans.items() for start, end in ranges]
    for slot in SLOTS:
        if slot in text:
            at = text.index(slot)
            marks.append((at, at + len(slot), options[slot][0]))
    pieces, at = [], 0
    for start, end, piece in sorted(marks, key=lambda mark: mark[0]):
        pieces += [Piece(text[at:start], "rest"), piece]
        at = end
    return [piece for piece in (*pieces, Piece(text[at:], "rest")) if piece.text]


def cue_pieces(last: Piece) -> list[Piece]:
    """The last line of a plain prompt is its answer cue, if it holds words of the template only."""
    if last.role != "template":
        return [last]
    at = max(last.text.rfind("\n"), 0)
    return [piece for piece in (Piece(last.text[:at], "template"), Piece(last.text[at:], "answer")) if piece.text]


def piece_spans(pieces: Sequence[Piece]) -> dict[str, tuple[Span, ...]]:
    """Ranges of the pieces by role; neighbours that are both template, or both rest, make one range."""
    spans: dict[str, list[Span]] = {}
    at = 0
    for piece in pieces:
        end = at + len(piece.text)
        ranges = spans.setdefault(piece.role, [])
        if ranges and ranges[-1][1] == at and piece.role in _UNMARKED:
            ranges[-1] = (ranges[-1][0], end)
        else:
            ranges.append((at, end))
        at = end
    return {role: tuple(ranges) for role, ranges in spans.items()}
