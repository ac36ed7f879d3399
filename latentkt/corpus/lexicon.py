"""From forms to what is searched: hashed phrases for the kernel, regular expressions for the few that cannot be hashed.

A literal form is hashed unless it begins or ends with punctuation or has more than eight words; those, and the regex
forms, run through `re`, and only on documents that hold a literal which every match of theirs must hold.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from latentkt.corpus.kernel.table import PhraseTable, build_table
from latentkt.corpus.matching import Matching
from latentkt.corpus.patterns import Form, Patterns
from latentkt.errors import DataError

if TYPE_CHECKING:
    from latentkt.corpus.kernel import Kernel

__all__ = ["Lexicon", "SlowForm", "build_lexicon", "required_literal", "unfiltered"]


@dataclass(frozen=True, slots=True)
class SlowForm:
    """A form that `re` searches.

    Attributes:
        entry: What it stands for.
        pattern: The expression, boundaries included.
        folded: Whether it is searched in folded text (literals) or in prepared text (regex forms).
        literal: ASCII bytes that every match holds (lower case where case is ignored); None: none is known.
    """

    entry: int
    pattern: re.Pattern[str]
    folded: bool
    literal: bytes | None


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Forms compiled for one way of matching.

    Attributes:
        matching: How text is compared.
        kernel: The kernel that the table was built with, and that finds its phrases.
        table: The hashed phrases.
        offsets: Entries of slot s are ``entries[offsets[s]:offsets[s + 1]]``.
        entries: What the slots stand for.
        slow: The forms that cannot be hashed.
    """

    matching: Matching
    kernel: Kernel
    table: PhraseTable
    offsets: NDArray[np.int64]
    entries: NDArray[np.int32]
    slow: tuple[SlowForm, ...]


def build_lexicon(forms: Sequence[tuple[int, Form]], matching: Matching, kernel: Kernel) -> Lexicon:
    """Compile forms, each with the entry that it stands for.

    Raises:
        DataError: A form has no word character once it is prepared.
    """
    literals = [(entry, variant) for entry, form in forms if not form.regex for variant in matching.casings(form.text)]
    phrases = [_prepared(text, matching) for _, text in literals]
    table = build_table(phrases, matching, kernel)
    owner = np.fromiter((entry for entry, _ in literals), np.int32, len(literals))
    hashed = np.flatnonzero(table.slot_of >= 0)
    pairs = np.unique(np.stack([table.slot_of[hashed], owner[hashed]], axis=1), axis=0)
    offsets = np.searchsorted(pairs[:, 0], np.arange(table.n_slots + 1))
    slow = [
        _slow_literal(literals[row][0], phrases[row], matching) for row in np.flatnonzero(table.slot_of < 0).tolist()
    ]
    slow += [_slow_regex(entry, form.text, matching) for entry, form in forms if form.regex]
    return Lexicon(matching, kernel, table, offsets, np.ascontiguousarray(pairs[:, 1]), tuple(slow))


def _prepared(text: str, matching: Matching) -> str:
    return text if text.isascii() and "\0" not in text else " ".join(matching.prepare(text).split())


def _slow_literal(entry: int, phrase: str, matching: Matching) -> SlowForm:
    parts = matching.fold(phrase).split()
    if not re.search(r"\w", phrase):
        raise DataError(
            f"form {phrase!r} has no word character", expected="at least one letter, digit or underscore", found=phrase
        )
    pattern = re.compile(r"(?<!\w)" + r"\s+".join(map(re.escape, parts)) + r"(?!\w)")
    return SlowForm(entry, pattern, True, _longest_ascii(parts))


def _slow_regex(entry: int, source: str, matching: Matching) -> SlowForm:
    flags = re.IGNORECASE if matching.folds else re.NOFLAG
    pattern = re.compile(rf"(?<!\w)(?:{source})(?!\w)", flags)
    literal = required_literal(source)
    return SlowForm(entry, pattern, False, literal.lower() if literal and matching.folds else literal)


def _longest_ascii(texts: Sequence[str]) -> bytes | None:
    runs = [run for text in texts for run in re.findall(r"[!-~]+", text)]
    return max(runs, key=len).encode("ascii") if runs else None


def unfiltered(patterns: Patterns) -> tuple[str, ...]:
    """The regex forms without a required literal: they run on every document.

    Example:
        >>> unfiltered(Patterns.from_dict({"keys": {"d": ["Darwin", {"regex": "[A-Z]+"}]}}))
        ('[A-Z]+',)
    """
    groups = (*patterns.keys.values(), *patterns.tasks.values(), *patterns.exclude.values())
    forms = dict.fromkeys(form.text for forms in groups for form in forms if form.regex)
    return tuple(source for source in forms if required_literal(source) is None)


def required_literal(source: str) -> bytes | None:
    """The longest ASCII text that every match of a regular expression holds, as far as its structure shows.

    Example:
        >>> required_literal(r"(Charles )?Darwin(ian|ism)?")
        b'Darwin'
        >>> required_literal(r"[Aa]|b") is None
        True
    """
    runs: list[str] = []
    _collect(re._parser.parse(source), runs)  # type: ignore[attr-defined]
    return _longest_ascii(runs)


def _collect(parsed: Any, runs: list[str]) -> None:
    current = ""
    for operation, argument in parsed:
        name = str(operation)
        if name == "LITERAL":
            current += chr(argument)
            continue
        runs.append(current)
        current = ""
        if name == "SUBPATTERN":
            _collect(argument[3], runs)
        elif name in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"} and argument[0] >= 1:
            _collect(argument[2], runs)
    runs.append(current)
