"""All matches of a lexicon in a buffer of documents: the kernel's, then those of the forms that only `re` can find."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentkt.corpus.kernel.hashing import Buffer
from latentkt.corpus.kernel.plain import tokenise
from latentkt.corpus.kernel.table import Events
from latentkt.corpus.lexicon import Lexicon, SlowForm
from latentkt.corpus.matching import Matching, character_tables

__all__ = ["Matches", "scan"]


class Matches(NamedTuple):
    """Matches of entries, ordered by document and last word; one row for each entry and span.

    Attributes:
        entry: What matched.
        document: Index of the document in the buffer.
        first: Index in the buffer of the first word that the match touches.
        last: Index of the last one.
        start: First byte.
        end: Byte behind the last.
        word_starts: Index of the first word of each document, and the number of words at the end.
    """

    entry: NDArray[np.int32]
    document: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    word_starts: NDArray[np.int64]

    def rows(self, chosen: NDArray[np.int64]) -> Matches:
        """Some of the matches, in the order given."""
        columns = (self.document, self.first, self.last, self.start, self.end)
        document, first, last, start, end = (column[chosen] for column in columns)
        return Matches(self.entry[chosen], document, first, last, start, end, self.word_starts)


def scan(buffer: Buffer, lexicon: Lexicon) -> Matches:
    """All matches of the lexicon in a buffer."""
    events = lexicon.kernel.find(buffer, lexicon.table)
    matches = _expand(events, lexicon)
    if not lexicon.slow:
        return matches
    return _merge(matches, _slow_matches(buffer, lexicon))


def _expand(events: Events, lexicon: Lexicon) -> Matches:
    """One row for each entry of a slot."""
    low = lexicon.offsets[events.slot]
    many = lexicon.offsets[events.slot + 1] - low
    if len(many) and many.max() == 1:
        return Matches(lexicon.entries[low], *events[1:])
    row = np.repeat(np.arange(len(low)), many)
    offset = np.arange(len(row)) - np.repeat(np.cumsum(many) - many, many)
    return Matches(events.slot, *events[1:]).rows(row)._replace(entry=lexicon.entries[low[row] + offset])


def _merge(matches: Matches, found: list[tuple[int, int, int, int, int, int]]) -> Matches:
    if not found:
        return matches
    own = (matches.entry, matches.document, matches.first, matches.last, matches.start, matches.end)
    columns = [np.concatenate([old, new]) for old, new in zip(own, np.array(found, np.int64).T, strict=True)]
    rows = np.stack([columns[i] for i in (1, 3, 2, 4, 5, 0)], axis=1)  # document, last, first, start, end, entry
    rows = np.unique(rows, axis=0)
    document, last, first, start, end, entry = rows.T
    return Matches(entry.astype(np.int32), document, first, last, start, end, matches.word_starts)


def _slow_matches(buffer: Buffer, lexicon: Lexicon) -> list[tuple[int, int, int, int, int, int]]:
    words = tokenise(buffer, lexicon.table.characters, fold_bits=0, gaps=False)
    data = buffer.data[: buffer.size].tobytes()
    if lexicon.matching.folds:
        data = data.lower()
    special = set[int]() if data.isascii() else _documents_with(_special(lexicon.matching), data, buffer)
    found = []
    for form in lexicon.slow:
        for document in sorted(_candidates(form, data, buffer, special)):
            origin = int(buffer.starts[document])
            for start, end in _spans(form, buffer.document(document).decode("utf-8"), lexicon.matching):
                first = int(np.searchsorted(words.end, origin + start, side="right"))
                last = int(np.searchsorted(words.start, origin + end, side="left")) - 1
                found.append((form.entry, document, first, last, origin + start, origin + end))
    return found


@lru_cache(maxsize=8)
def _special(matching: Matching) -> re.Pattern[bytes] | None:
    """Characters beyond ASCII that may stand for ASCII ones: their documents are searched whatever the literal."""
    if not matching.folds:
        return None
    tables = character_tables(matching)
    ascii_row = np.any((tables.expansions > 0) & (tables.expansions < 128), axis=1).reshape(-1)
    folds = tables.folds[128:]
    rows = np.clip(folds.astype(np.int64) - 0x110000, 0, len(ascii_row) - 1)
    odd = np.flatnonzero((folds < 128) | ((folds >= 0x110000) & ascii_row[rows]))
    chars = {chr(128 + code) for code in odd.tolist()} | {"\u0130", "\u0131"}  # re.I joins these to i
    return re.compile(b"|".join(re.escape(char.encode("utf-8")) for char in sorted(chars)))


def _documents_with(pattern: re.Pattern[bytes] | None, data: bytes, buffer: Buffer) -> set[int]:
    return set() if pattern is None else _documents_at((match.start() for match in pattern.finditer(data)), buffer)


def _documents_at(places: Iterable[int], buffer: Buffer) -> set[int]:
    at = np.fromiter(places, np.int64)
    return set(np.unique(np.searchsorted(buffer.starts, at, side="right") - 1).tolist())


def _candidates(form: SlowForm, data: bytes, buffer: Buffer, special: set[int]) -> set[int]:
    if form.literal is None:
        return set(range(len(buffer.starts) - 1))
    places = (match.start() for match in re.finditer(re.escape(form.literal), data))
    return _documents_at(places, buffer) | special


def _spans(form: SlowForm, text: str, matching: Matching) -> Iterable[tuple[int, int]]:
    """Byte spans of all matches in one prepared document, overlapping ones too."""
    searched = matching.fold(text) if form.folded else text
    place = _places(text, searched if form.folded else None, matching)
    match = form.pattern.search(searched)
    while match:
        yield int(place[match.start()]), int(place[match.end()])
        match = form.pattern.search(searched, match.start() + 1)


def _places(text: str, folded: str | None, matching: Matching) -> NDArray[np.int64]:
    """Byte of the document at which each character of the searched text lies (or the one that it was folded from)."""
    if text.isascii():
        return np.arange(len(text) + 1)
    widths = [len(char.encode("utf-8")) for char in text]
    begins = np.concatenate([np.zeros(1, np.int64), np.cumsum(widths)])
    if folded is None or matching.case != "full":
        return begins
    counts = [len(char.casefold()) for char in text]
    return np.append(np.repeat(begins[:-1], counts), begins[-1])
