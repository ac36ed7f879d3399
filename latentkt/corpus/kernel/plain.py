"""The counting kernel in NumPy alone: the same words, hashes and events as the numba kernel, more slowly."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from latentkt.corpus.kernel.hashing import (
    FIRST,
    PAD,
    SECOND,
    Buffer,
    gap_hash,
    piece_masks,
    word_hash,
)
from latentkt.corpus.kernel.table import Events, PhraseTable, Words, phrase_keys
from latentkt.corpus.matching import CARE, SPACE, WORD, CharacterTables

__all__ = ["PhraseCounter", "careful", "find", "tokenise"]  # no CellSums: `units` counts with NumPy

_HIGH = np.uint64(0x8080808080808080)
_MASKS = piece_masks()
_FIRST_MASK, _SECOND_MASK = np.ascontiguousarray(_MASKS.T)
_PIECE = 1 << 18


def _code_points(buffer: Buffer) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint32]]:
    """First byte, width and code point of every character beyond ASCII."""
    leads = np.flatnonzero(buffer.data[: buffer.size] >= 0xC0)
    first = buffer.data[leads].astype(np.uint32)
    width = 2 + (first >= 0xE0).astype(np.int64) + (first >= 0xF0)
    code = first & (0x7F >> width).astype(np.uint32)
    for step in (1, 2, 3):
        deep = width > step
        code[deep] = (code[deep] << 6) | (buffer.data[leads[deep] + step] & 0x3F)
    return leads, width, code


def careful(buffer: Buffer, tables: CharacterTables) -> NDArray[np.int64]:
    """Documents with a character that `Matching.prepare` may change."""
    leads, _, code = _code_points(buffer)
    places = leads[(tables.classes[code] & CARE) != 0]
    return np.unique(np.searchsorted(buffer.starts, places, side="right") - 1)


def _byte_classes(buffer: Buffer, tables: CharacterTables) -> NDArray[np.uint8]:
    """Class of the character that each byte belongs to, one byte of slack on either side."""
    data = buffer.data[: buffer.size]
    table = tables.classes[:256].copy()
    table[128:] = 0
    classes = np.zeros(buffer.size + 2, np.uint8)
    np.take(table, data, out=classes[1:-1])
    if data.size and data.max() >= 128:
        leads, width, code = _code_points(buffer)
        kind = tables.classes[code]
        for step in range(4):
            deep = width > step
            classes[leads[deep] + step + 1] = kind[deep]
    return classes


def _hashes(
    buffer: Buffer, start: NDArray[np.int64], end: NDArray[np.int64], tables: CharacterTables, fold_bits: int
) -> NDArray[np.uint64]:
    loads = np.ndarray((buffer.size + PAD - 8,), "<u8", buffer.data, strides=(1,))
    length = end - start
    short = np.minimum(length, 16)
    first_mask, second_mask = _FIRST_MASK[short], _SECOND_MASK[short]
    first, second = loads[start], loads[start + 8]
    first &= first_mask
    second &= second_mask
    slow = np.flatnonzero(((first | second) & _HIGH).astype(bool) | (length > 16))
    first |= np.uint64(fold_bits) & first_mask
    second |= np.uint64(fold_bits) & second_mask
    first *= np.uint64(FIRST)
    second *= np.uint64(SECOND)
    first += second
    known: dict[bytes, int] = {}
    data = buffer.data
    for index in slow.tolist():
        raw = data[start[index] : end[index]].tobytes()
        if raw not in known:
            known[raw] = word_hash(raw, tables, fold_bits)
        first[index] = known[raw]
    return first


def _gaps(
    buffer: Buffer, start: NDArray[np.int64], end: NDArray[np.int64], odd: NDArray[np.int64], tables: CharacterTables
) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """Hashes of the gaps before the words `odd`, and whether a phrase may run over them (no end of document inside)."""
    hashes, joined = np.zeros(len(odd), np.uint64), np.zeros(len(odd), bool)
    known: dict[bytes, int | None] = {}
    for at, word in enumerate(odd.tolist()):
        if word == 0:
            continue
        raw = buffer.data[end[word - 1] : start[word]].tobytes()
        if raw not in known:
            known[raw] = None if b"\0" in raw else gap_hash(raw, tables)
        value = known[raw]
        if value is not None:
            hashes[at], joined[at] = value, True
    return hashes, joined


def tokenise(buffer: Buffer, tables: CharacterTables, *, fold_bits: int, gaps: bool) -> Words:
    """Words of a buffer with their hashes; with `gaps`, those of the gaps too (else only white space joins words)."""
    classes = _byte_classes(buffer, tables)
    word = (classes & WORD).astype(bool)
    edges = np.flatnonzero(word[1:] != word[:-1])
    start, end = edges[::2], edges[1::2]
    other = np.flatnonzero((classes[1:-1] & (WORD | SPACE)) == 0)
    joined = np.ones(len(start) + 1, bool)
    joined[np.searchsorted(start, other)] = False
    joined = joined[:-1]
    joined[:1] = False
    gap = np.zeros(len(start), np.uint64)
    if gaps:
        odd = np.flatnonzero(~joined)
        gap[odd], joined[odd] = _gaps(buffer, start, end, odd, tables)
    return Words(start, end, _hashes(buffer, start, end, tables, fold_bits), gap, joined)


def _runs(joined: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many words up to each one are joined without a break."""
    index = np.arange(len(joined))
    return index - np.maximum.accumulate(np.where(joined, 0, index)) + 1


def _lookup(keys: NDArray[np.uint64], table: PhraseTable) -> NDArray[np.int32]:
    """Slot of each key, -1 where it is no phrase."""
    found = np.full(len(keys), -1, np.int32)
    bit = keys >> np.uint64(table.bloom_shift)
    maybe = (table.bloom[bit >> np.uint64(6)] >> (bit & np.uint64(63))) & np.uint64(1)
    left = np.flatnonzero(maybe)
    place = (keys[left] >> np.uint64(table.home_shift)).astype(np.int64)
    while len(left):
        there = table.keys[place]
        hit = there == keys[left]
        found[left[hit]] = table.slots[place[hit]]
        onward = ~hit & (there != 0)
        left, place = left[onward], place[onward] + 1
    return found


def find(buffer: Buffer, table: PhraseTable) -> Events:
    """All phrases of the table in a buffer, by last word, shorter first."""
    parts, words = [], 0
    for low, high in _pieces(buffer.starts):
        origin = int(buffer.starts[low])
        size = int(buffer.starts[high]) - origin
        data = buffer.data[origin : origin + size + PAD]
        if len(data) < size + PAD:
            data = np.concatenate([data, np.zeros(PAD, np.uint8)])
        events = _find_piece(Buffer(data, size, buffer.starts[low : high + 1] - origin), table)
        parts.append(
            (
                events.slot, events.document + low, events.first + words, events.last + words,
                events.start + origin, events.end + origin, events.word_starts[:-1] + words,
            )
        )  # fmt: skip
        words += int(events.word_starts[-1])
    slot, document, first, last, start, end, word_starts = (
        np.concatenate(column) for column in zip(_NO_EVENTS, *parts, strict=True)
    )
    return Events(slot, document, first, last, start, end, np.append(word_starts, words))


_NO_EVENTS = (np.zeros(0, np.int32), *(np.zeros(0, np.int64) for _ in range(6)))


def _pieces(starts: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Ranges of documents of about `_PIECE` bytes: the arrays of a piece then stay in the cache."""
    cuts = np.unique(np.searchsorted(starts, np.arange(0, int(starts[-1]), _PIECE)))
    bounds = [*cuts.tolist(), len(starts) - 1]
    return [(low, high) for low, high in itertools.pairwise(bounds) if high > low]


def _find_piece(buffer: Buffer, table: PhraseTable) -> Events:
    words = tokenise(buffer, table.characters, fold_bits=table.fold_bits, gaps=table.gaps)
    lengths = table.last[words.hash >> np.uint64(table.last_shift)]
    candidates = np.flatnonzero(lengths)
    lengths = lengths[candidates]
    runs = _runs(words.joined)[candidates]
    several = np.flatnonzero((lengths > 1) & (runs > 1))
    pairs = phrase_keys(words, candidates[several], 2)
    allowed = np.ones(len(candidates), np.uint8)
    allowed[several] |= table.pair[pairs >> np.uint64(table.pair_shift)]
    lengths &= allowed
    lasts, slots, counts = [], [], []
    for length in range(1, table.max_words + 1):
        chosen = candidates[((lengths >> (length - 1)) & 1).astype(bool) & (runs >= length)]
        slot = _lookup(phrase_keys(words, chosen, length), table)
        hits = np.flatnonzero(slot >= 0)
        lasts.append(chosen[hits])
        slots.append(slot[hits])
        counts.append(np.full(len(hits), length, np.int64))
    last, slot, count = np.concatenate(lasts), np.concatenate(slots), np.concatenate(counts)
    order = np.argsort(last * (table.max_words + 1) + count, kind="stable")
    last, slot, first = last[order], slot[order], (last - count + 1)[order]
    word_starts = np.searchsorted(words.start, buffer.starts)
    document = np.searchsorted(buffer.starts, words.start[last], side="right") - 1
    return Events(slot, document, first, last, words.start[first], words.end[last], word_starts)


class PhraseCounter:
    """Occurrences and documents of the phrases of a table, added up over buffers."""

    def __init__(self, table: PhraseTable) -> None:
        self._table = table
        self.occurrences = np.zeros(table.n_slots, np.int64)
        self.documents = np.zeros(table.n_slots, np.int64)

    def add(self, buffer: Buffer) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Count a buffer.

        Returns:
            The slots met for the first time, and the byte of the buffer behind the match of each.
        """
        events = find(buffer, self._table)
        slots, first = np.unique(events.slot, return_index=True)
        fresh = self.occurrences[slots] == 0
        self.occurrences += np.bincount(events.slot, minlength=self._table.n_slots)
        pairs = np.unique(events.document * self._table.n_slots + events.slot)
        self.documents += np.bincount(pairs % self._table.n_slots, minlength=self._table.n_slots)
        return slots[fresh], events.end[first[fresh]]
