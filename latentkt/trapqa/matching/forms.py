"""Text made comparable, and the ways in which a candidate may be written.

After `mark`, a reply is plain lower-case text in which every mention of a candidate is `@c` (correct) or `@s`
(shortcut); what is said about the candidates can then be read without knowing who they are.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Protocol

from latentkt.errors import InputError

__all__ = ["Named", "forms", "mark", "normalise"]

_LETTERS = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th", "ı": "i"})
_DASHES = str.maketrans(dict.fromkeys("‐‑‒−", "-") | dict.fromkeys("–—―", "—"))
_QUOTES = str.maketrans(dict.fromkeys("‘’‛`´", "'") | dict.fromkeys("“”„«»‹›″", '"'))
_MARKUP = re.compile(r"\\(?:boxed|text|textbf|mathrm|mathbf)|[*_#~@{}$\\]|(?<!\w)'|'(?!\w)")
_STRUCK = re.compile(r"~~.*?~~")
_SUFFIX = re.compile(r"[,\s]+(?:jr|sr|ii|iii|iv)\.?$|,.*$")


class Named(Protocol):
    """What matching needs of a candidate: a text and aliases."""

    @property
    def text(self) -> str:
        """The answer as it stands among the options."""

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other ways to write it."""


def normalise(text: str) -> str:
    """Text in small letters, without accents, markup, struck-out words, runs of spaces; lines and sentence marks stay.

    Example:
        >>> normalise("**Marie  Skłodowska‑CURIE**")
        'marie sklodowska curie'
    """
    text = unicodedata.normalize("NFKC", text).translate(_DASHES).translate(_QUOTES).casefold()
    decomposed = unicodedata.normalize("NFD", text)
    text = "".join(c for c in decomposed if not unicodedata.combining(c)).translate(_LETTERS)
    text = _MARKUP.sub("", _STRUCK.sub(" ", text))
    text = re.sub(r"(?<=\w)-(?=\w)", " ", text)
    return "\n".join(line for line in (" ".join(line.split()) for line in text.splitlines()) if line)


def forms(candidate: Named, other: Named) -> list[str]:
    """Patterns of all ways to write a candidate, longest first: its text, its aliases, and a person's surname.

    Middle initials may be left out or put in. A surname that the other candidate's name holds too is none.
    """
    texts = [normalise(form) for form in (candidate.text, *candidate.aliases)]
    surname = _surname(candidate.text)
    if surname and surname not in normalise(" ".join((other.text, *other.aliases))).split():
        texts.append(surname)
    unique = sorted({text for text in texts if text.strip(" .,")}, key=lambda text: (-len(text), text))
    if not unique:
        raise InputError(f"the candidate {candidate.text!r} cannot be matched", expected="letters or digits")
    person = _is_name(candidate.text)
    return [_pattern(text, person=person) for text in unique]


def _is_name(text: str) -> bool:
    words = text.split()
    return len(words) > 1 and words[0][:1].isupper() and words[-1][:1].isupper()


def _surname(text: str) -> str | None:
    if not _is_name(text):
        return None
    words = _SUFFIX.sub("", normalise(text)).split()
    return words[-1] if len(words) > 1 and len(words[-1]) > 2 else None


def _pattern(form: str, *, person: bool) -> str:
    words = [re.escape(word) for word in re.findall(r"[^\s.,]+", form)]
    gap = r"[.,]?\s+" if len(words) > 1 else ""
    inner = r"[.,]?\s+(?:\w\.?\s+){0,2}" if person else gap
    return r"(?<![\w@])" + (inner.join(words)) + r"(?!\w)"


def mark(text: str, correct: Sequence[str], shortcut: Sequence[str]) -> str:
    """Put `@c` and `@s` in the place of the candidates; the longest form that fits at a place is taken.

    Args:
        text: Normalised text.
        correct: Patterns of the correct answer.
        shortcut: Patterns of the shortcut answer.

    Example:
        >>> mark("eddington, not albert einstein.", ["eddington"], ["albert einstein", "einstein"])
        '@c, not @s.'
    """
    found = [
        (match.start(), -match.end(), name)
        for name, patterns in (("@c", correct), ("@s", shortcut))
        for pattern in patterns
        for match in re.finditer(pattern, text)
    ]
    marked, at = "", 0
    for start, minus_end, name in sorted(found):
        if start >= at:
            marked, at = marked + text[at:start] + name, -minus_end
    return marked + text[at:]
