r"""What counts as the same text: normalisation, plain punctuation, case — and the tables of characters behind it.

Text and forms are prepared alike: Unicode normalisation, then (if asked) curly quotes and dashes as plain ones. Case is
folded while words are compared. A match needs no word character (`\w` of Python's `re`) on either side, and any run of
white space equals one space.
"""

from __future__ import annotations

import itertools
import re
import sys
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from latentkt.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["CARE", "SPACE", "WORD", "CharacterTables", "Matching", "character_tables"]

# Bits of the class of a character. CARE: a text that holds it must go through `Matching.prepare` first.
WORD, SPACE, CARE = 1, 2, 4
_LIMIT = sys.maxunicode + 1
_PLAIN = {
    **dict.fromkeys(map(ord, "\u2018\u2019\u201a\u201b"), "'"),
    **dict.fromkeys(map(ord, "\u201c\u201d\u201e\u201f"), '"'),
    **dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"), "-"),
}
_CHOICES = {
    "case": ("simple", "full", "sensitive", "casings"),
    "normalize": ("nfc", "nfkc", "none"),
    "punctuation": ("keep", "plain"),
}


@dataclass(frozen=True, slots=True)
class Matching:
    """How text and forms are compared.

    Attributes:
        case: ``simple`` (one character folds to one: ``İ`` and ``ß`` stay), ``full`` (``ß`` = ``ss``), ``sensitive``,
            or ``casings``: the sum over the distinct casings original, UPPER, Title and lower, each matched exactly
            (PhantomBench).
        normalize: ``nfc``, ``nfkc`` or ``none``.
        punctuation: ``plain`` reads curly quotes and all dashes as ``'``, ``"`` and ``-``; ``keep`` does not.

    Example:
        >>> Matching(case="full").fold("Straße")
        'strasse'
        >>> Matching(case="casings").casings("iPhone case")
        ('iPhone case', 'IPHONE CASE', 'Iphone Case', 'iphone case')
    """

    case: str = "simple"
    normalize: str = "nfc"
    punctuation: str = "keep"

    def __post_init__(self) -> None:
        for option in fields(self):
            if getattr(self, option.name) not in _CHOICES[option.name]:
                raise InputError(
                    f"unknown choice for {option.name}",
                    expected=" | ".join(_CHOICES[option.name]),
                    found=repr(getattr(self, option.name)),
                )

    @property
    def folds(self) -> bool:
        """Whether case is ignored."""
        return self.case in {"simple", "full"}

    def prepare(self, text: str) -> str:
        """Normalised text, punctuation made plain if asked, case kept; NUL (it separates documents) becomes U+0001."""
        if not text.isascii():
            if self.normalize != "none":
                form: Any = self.normalize.upper()
                text = unicodedata.normalize(form, text)
            text = text.translate(_translation(self))
        return text.replace("\0", "\1")

    def fold(self, text: str) -> str:
        """Text with its case folded, after `prepare`."""
        text = self.prepare(text)
        if not self.folds:
            return text
        if text.isascii():
            return text.lower()
        return text.casefold() if self.case == "full" else "".join(map(_simple_fold, text))

    def casings(self, form: str) -> tuple[str, ...]:
        """The literals that stand for one form: itself, or its distinct casings."""
        if self.case != "casings":
            return (form,)
        return tuple(dict.fromkeys((form, form.upper(), form.title(), form.lower())))

    def to_dict(self) -> dict[str, str]:
        """The options as plain data, for the manifest."""
        return {option.name: getattr(self, option.name) for option in fields(self)}


class CharacterTables(NamedTuple):
    """Per code point: class bits, and what it folds to.

    Attributes:
        classes: Bits `WORD`, `SPACE`, `CARE`.
        folds: The folded code point; values from 0x110000 on are rows of `expansions`.
        expansions: Rows of three code points, 0 where fewer.
    """

    classes: NDArray[np.uint8]
    folds: NDArray[np.uint32]
    expansions: NDArray[np.uint32]


def _simple_fold(char: str) -> str:
    # Simple folding (statuses C and S of CaseFolding.txt): the full folding where it is one character, else lower case
    # where that is one character (`ẞ` -> `ß`), else the character itself (`İ`).
    for folded in (char.casefold(), char.lower()):
        if len(folded) == 1:
            return folded
    return char


# Where characters lie that have case, compose, or are not normalised; the rest (ideographs, Hangul syllables, private
# use, planes 4 and up) has none of it, which a test checks for the Unicode version at hand.
_REGIONS = (
    (0x80, 0x3400),
    (0xA000, 0xAC00),
    (0xF900, 0x12400),
    (0x16000, 0x17000),
    (0x1B000, 0x20000),
    (0x2F800, 0x2FA20),
)


def _special() -> Iterator[int]:
    return itertools.chain.from_iterable(itertools.starmap(range, _REGIONS))


def _compositions() -> set[int]:
    """Code points that can compose with the character before them."""
    second = {*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)}  # Hangul vowels and trailing consonants, by algorithm
    for code in _special():
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            second.add(int(parts[1], 16))
    return second


@lru_cache(maxsize=8)
def _translation(matching: Matching) -> dict[int, str]:
    """Characters that `prepare` replaces after normalisation: plain punctuation, and folds that change the class."""
    table = dict(_PLAIN) if matching.punctuation == "plain" else {}
    if matching.folds:
        fold = str.casefold if matching.case == "full" else _simple_fold
        for code in _special():
            folded = fold(chr(code))
            if folded != chr(code) and [_kind(char) for char in folded] != [_kind(chr(code))] * len(folded):
                table[code] = folded
    return table


def _kind(char: str) -> tuple[bool, bool]:
    return re.match(r"\w", char) is not None, char.isspace()


@lru_cache(maxsize=8)
def character_tables(matching: Matching) -> CharacterTables:
    """The tables of characters of one way of matching (about 0.3 s, kept)."""
    import numpy as np

    everything = "".join(map(chr, range(0xD800))) + "\0" * 0x800 + "".join(map(chr, range(0xE000, _LIMIT)))
    classes = np.zeros(_LIMIT, np.uint8)
    for bit, pattern in ((WORD, r"\w+"), (SPACE, r"\s+")):
        for match in re.finditer(pattern, everything):
            classes[match.start() : match.end()] |= bit
    classes[list(_translation(matching))] |= CARE
    if matching.normalize != "none":
        form: Any = matching.normalize.upper()
        moved = [
            code
            for code in _special()
            if (unicodedata.combining(chr(code)) or not unicodedata.is_normalized(form, chr(code)))
        ]
        classes[moved] |= CARE
        classes[sorted(_compositions())] |= CARE
    return CharacterTables(classes, *_fold_tables(matching))


def _fold_tables(matching: Matching) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    import numpy as np

    folds = np.arange(_LIMIT, dtype=np.uint32)
    rows: list[list[int]] = []
    if matching.folds:
        folds[65:91] += 32
        for code in _special():
            folded = chr(code).casefold() if matching.case == "full" else _simple_fold(chr(code))
            if len(folded) == 1:
                folds[code] = ord(folded)
            else:
                folds[code] = _LIMIT + len(rows)
                rows.append([*map(ord, folded), 0, 0][:3])
    return folds, np.array(rows or [[0, 0, 0]], dtype=np.uint32)
