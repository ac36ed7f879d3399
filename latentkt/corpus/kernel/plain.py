"""The counting kernel in NumPy alone: the same words, hashes and events as the numba kernel, more slowly."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from latentkt.corpus.kernel.hashing import (
    BASE,
    FIRST,
    PAD,
    SECOND,
    Buffer,
    gap_hash,
    piece_masks,
    word_hash,
)
from latentkt.corpus.kernel.table import Events, PhraseTable, Words, finish
from latentkt.corpus.matching import CARE, SPACE, WORD, CharacterTables

__all__ = ["PhraseCounter", "careful", "find", "tokenise"]  # no CellSums: `units` counts with NumPy

_HIGH = np.uint64(0x8080808080808080)
_MASKS = piece_masks()
_FIRST_MASK, _SECOND_MASK = np.ascontiguousarray(_MASKS.T)
_PIECE = 1 << 18
_NONE, _NO_SLOTS = np.zeros(0, np.int64), np.zeros(0, np.int32)


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
    """Class of the character that each byte belongs to, `WORD`, `SPACE` or 0; a byte of slack on either side."""
    data = buffer.data[: buffer.size]
    table = tables.classes[:256] & (WORD | SPACE)
    table[128:] = 0
    classes = np.zeros(buffer.size + 2, np.uint8)
    classes[1:-1] = np.frombuffer(data.tobytes().translate(table.tobytes()), np.uint8)
    if data.size and data.max() >= 128:
        leads, width, code = _code_points(buffer)
        kind = tables.classes[code] & (WORD | SPACE)
        for step in range(4):
            deep = width > step
            classes[leads[deep] + step + 1] = kind[deep]
    return classes


def _hashes(
    buffer: Buffer,
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    tables: CharacterTables,
    fold_bits: int,
    known: dict[bytes, int],
) -> NDArray[np.uint64]:
    """Hashes of words; those of the long ones and of those beyond ASCII are added to `known`."""
    data = buffer.data[: buffer.size + PAD]
    folded = data | np.uint8(fold_bits & 0xFF)
    loads = np.ndarray((len(folded) - 8,), "<u8", folded, strides=(1,))
    length = end - start
    hashes = loads[start]
    hashes &= _FIRST_MASK.take(length, mode="clip")
    slow = [np.flatnonzero((hashes & _HIGH) != 0)]
    hashes *= np.uint64(FIRST)
    long = np.flatnonzero(length > 8)
    length = length.take(long)
    second = loads[start.take(long) + 8]
    second &= _SECOND_MASK.take(length, mode="clip")
    slow.append(long[(length > 16) | (second & _HIGH).astype(bool)])
    hashes[long] += second * np.uint64(SECOND)
    for index in itertools.chain.from_iterable(rows.tolist() for rows in slow):
        raw = data[start[index] : end[index]].tobytes()
        if raw not in known:
            known[raw] = word_hash(raw, tables, fold_bits)
        hashes[index] = known[raw]
    return hashes


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


def tokenise(
    buffer: Buffer, tables: CharacterTables, *, fold_bits: int, gaps: bool, known: dict[bytes, int] | None = None
) -> Words:
    """Words of a buffer with their hashes; with `gaps`, those of the gaps too (else only white space joins words).

    `known` keeps the hashes of unusual words from buffer to buffer.
    """
    classes = _byte_classes(buffer, tables)
    bounds = np.flatnonzero(classes[1:] != classes[:-1])  # where runs of one class begin
    kinds = classes[1:].take(bounds)
    rows = np.flatnonzero(kinds == WORD)
    start, end = bounds.take(rows), bounds.take(rows + 1)
    joined = np.zeros(len(rows), bool)
    joined[1:] = (kinds.take(rows[1:] - 1) == SPACE) & (rows[1:] - rows[:-1] == 2)
    gap = np.zeros(len(start), np.uint64)
    if gaps:
        odd = np.flatnonzero(~joined)
        gap[odd], joined[odd] = _gaps(buffer, start, end, odd, tables)
    return Words(
        start, end, _hashes(buffer, start, end, tables, fold_bits, {} if known is None else known), gap, joined
    )


def _index(value: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Small unsigned numbers as NumPy indexes with them: without a copy."""
    return value.view(np.int64)


def _lookup(keys: NDArray[np.uint64], table: PhraseTable) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Rows of the keys that are phrases, and their slots."""
    bit = keys >> np.uint64(table.bloom_shift)
    maybe = table.bloom.take(_index(bit >> np.uint64(6))) >> (bit & np.uint64(63))
    left = np.flatnonzero((maybe & np.uint64(1)) != 0)
    wanted = keys.take(left)
    home = _index(wanted >> np.uint64(table.home_shift))
    place, stop = table.homes.take(home).astype(np.int64), table.homes.take(home + 1)
    rows, slots = [_NONE], [_NO_SLOTS]
    while len(left):
        hit = table.keys.take(place) == wanted  # equal or not: a key is in no other home
        found = np.flatnonzero(hit)
        rows.append(left.take(found))
        slots.append(place.take(found).astype(np.int32))
        place += 1
        onward = np.flatnonzero(~hit & (place < stop))
        left, wanted, place, stop = left.take(onward), wanted.take(onward), place.take(onward), stop.take(onward)
    return np.concatenate(rows), np.concatenate(slots)


def find(buffer: Buffer, table: PhraseTable) -> Events:
    """All phrases of the table in a buffer, by last word, shorter first."""
    parts, words, known = [], 0, dict[bytes, int]()
    for low, high in _pieces(buffer.starts):
        origin = int(buffer.starts[low])
        size = int(buffer.starts[high]) - origin
        data = buffer.data[origin : origin + size + PAD]
        if len(data) < size + PAD:
            data = np.concatenate([data, np.zeros(PAD, np.uint8)])
        events = _find_piece(Buffer(data, size, buffer.starts[low : high + 1] - origin), table, known)
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


_NO_EVENTS = (_NO_SLOTS, *(_NONE for _ in range(6)))


def _pieces(starts: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Ranges of documents of about `_PIECE` bytes: the arrays of a piece then stay in the cache."""
    cuts = np.unique(np.searchsorted(starts, np.arange(0, int(starts[-1]), _PIECE)))
    bounds = [*cuts.tolist(), len(starts) - 1]
    return [(low, high) for low, high in itertools.pairwise(bounds) if high > low]


def _candidates(words: Words, pairs: NDArray[np.uint64], table: PhraseTable) -> NDArray[np.uint8]:
    """For each word, the lengths of the phrases that may end with it, as bits."""
    allowed = np.ones(len(pairs), np.uint8)
    joins = -words.joined.view(np.uint8)
    for _ in range(table.max_words - 1):
        allowed[1:] = ((allowed[:-1] << 1) & joins[1:]) | 1
    allowed &= table.last.take(_index(words.hash >> np.uint64(table.last_shift)))
    allowed &= table.pair.take(_index(finish(pairs) >> np.uint64(table.pair_shift))) | 1
    return allowed


def _find_piece(buffer: Buffer, table: PhraseTable, known: dict[bytes, int]) -> Events:
    words = tokenise(buffer, table.characters, fold_bits=table.fold_bits, gaps=table.gaps, known=known)
    added = words.hash + words.gap if table.gaps else words.hash
    pairs = np.zeros_like(added)
    pairs[1:] = words.hash[:-1] * np.uint64(BASE) + added[1:]
    lengths = _candidates(words, pairs, table)
    candidates = np.flatnonzero(lengths != 0)
    lengths = lengths.take(candidates)
    lasts, keys = [], []
    for length in range(1, table.max_words + 1):
        last = candidates.take(np.flatnonzero(lengths & (1 << (length - 1)) != 0))
        value = words.hash.take(last) if length == 1 else pairs.take(last - (length - 2))
        for back in range(length - 3, -1, -1):
            value *= np.uint64(BASE)
            value += added.take(last - back)
        lasts.append(last)
        keys.append(finish(value))
    count = np.repeat(np.arange(1, table.max_words + 1), [len(last) for last in lasts])
    rows, slot = _lookup(np.concatenate(keys), table)
    last, count = np.concatenate(lasts).take(rows), count.take(rows)
    order = np.argsort(last * (table.max_words + 1) + count)
    last, slot, first = last.take(order), slot.take(order), (last - count + 1).take(order)
    word_starts = np.searchsorted(words.start, buffer.starts)
    document = np.searchsorted(word_starts, last, side="right") - 1
    return Events(slot, document, first, last, words.start.take(first), words.end.take(last), word_starts)


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
        n_slots = self._table.n_slots
        new = np.flatnonzero(self.occurrences.take(events.slot) == 0)
        slots, first = np.unique(events.slot.take(new), return_index=True)
        self.occurrences += np.bincount(events.slot, minlength=n_slots)
        pairs = np.sort(events.document * n_slots + events.slot)
        other = np.append(pairs[1:] != pairs[:-1], True)[: len(pairs)]
        self.documents += np.bincount(pairs[other] % max(n_slots, 1), minlength=n_slots)
        return slots, events.end.take(new.take(first))
