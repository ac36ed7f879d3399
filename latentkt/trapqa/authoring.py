"""Writing items by hand: marks in the text in place of counted offsets.

`I have [[shortcut: a hammer]] at hand and [[constraint: screws]].` is the text "I have a hammer at hand and screws."
with a span of each role. The control is written as what stands in the spans instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from latentkt.errors import InputError
from latentkt.trapqa.items import TrapItem
from latentkt.trapqa.schema import parse_item

__all__ = ["mark_item", "read_marks"]

_MARK = re.compile(r"\[\[([a-z][a-z0-9_]*): ?(.*?)\]\]", re.S)


def read_marks(marked: str) -> tuple[str, dict[str, list[list[int]]]]:
    """The text without its marks, and the spans that they give: `[[role: words]]` marks `words`.

    One space after the colon belongs to the mark; any further one belongs to the span.

    Raises:
        InputError: Brackets are left that make no mark.

    Example:
        >>> read_marks("He [[constraint: did not]] win.")
        ('He did not win.', {'constraint': [[3, 10]]})
    """
    spans: dict[str, list[list[int]]] = {}
    text, at = "", 0
    for match in _MARK.finditer(marked):
        text += marked[at : match.start()]
        role, words = match.groups()
        spans.setdefault(role, []).append([len(text), len(text) + len(words)])
        text, at = text + words, match.end()
    text += marked[at:]
    if "[[" in text or "]]" in text:
        raise InputError("marks that cannot be read", expected="[[role: words]], not nested", found=repr(marked[-80:]))
    return text, spans


def mark_item(
    *,
    id: str,
    kind: str,
    family: str,
    text: str,
    control: str | Mapping[str, str | Sequence[str]],
    correct: str | Mapping[str, Any],
    shortcut: str | Mapping[str, Any],
    control_kind: str = "flip",
    **fields: Any,
) -> TrapItem:
    """Make a checked item of a text with marks.

    Args:
        id: The item's id.
        kind: `scientist` or `action`.
        family: Its family.
        text: The question, with marks `[[role: words]]`.
        control: The control: its whole text with marks, or only what its spans hold instead: role -> words (a list
            of words where the role has several spans).
        correct: The correct answer: its text, or an object with `text`, `aliases`, `profile`.
        shortcut: The shortcut answer, likewise.
        control_kind: `flip` or `neutral`.
        fields: The other fields of an item, as in the file format.

    Raises:
        InputError: The marks cannot be read, or the control names a role that the text does not mark.
        DataError: The item breaks a clause.

    Example:
        >>> item = mark_item(
        ...     id="pauli", kind="scientist", family="nobel",
        ...     text="This [[shortcut: quantum physicist]] [[constraint: did not]] win a prize. Who is this person?",
        ...     control={"constraint": "did indeed"}, correct="Arnold Sommerfeld", shortcut="Wolfgang Pauli")
        >>> item.control.text
        'This quantum physicist did indeed win a prize. Who is this person?'
        >>> item.spans["constraint"]
        ((23, 30),)
    """
    plain, spans = read_marks(text)
    control_text, control_spans = read_marks(control if isinstance(control, str) else _swap(text, control))
    record = {
        **fields,
        "id": id,
        "kind": kind,
        "family": family,
        "text": plain,
        "spans": spans,
        "correct": _candidate(correct),
        "shortcut": _candidate(shortcut),
        "control": {"kind": control_kind, "text": control_text, "spans": control_spans},
    }
    return parse_item(record, where="mark_item")


def _candidate(answer: str | Mapping[str, Any]) -> dict[str, Any]:
    return {"text": answer} if isinstance(answer, str) else dict(answer)


def _swap(marked: str, words: Mapping[str, str | Sequence[str]]) -> str:
    """The marked text with the words of some roles replaced."""
    left = {role: [given] if isinstance(given, str) else list(given) for role, given in words.items()}

    def replaced(match: re.Match[str]) -> str:
        role, old = match.groups()
        if role not in left:
            return f"[[{role}: {old}]]"
        if not left[role]:
            raise InputError(f"the control has too few words for the role {role!r}", found=words[role])
        return f"[[{role}: {left[role].pop(0)}]]"

    swapped = _MARK.sub(replaced, marked)
    unused = [role for role, remaining in left.items() if remaining]
    if unused:
        raise InputError("the control has words for spans that the text does not mark", found=", ".join(unused))
    return swapped
