"""Counting without events: occurrences and documents of every phrase, for lists of up to millions.

Above `_DIRECT` phrases the table outgrows the caches. Keys are then first sorted into `PARTS` by their top bits, and a
part is looked up when it is full: its slice of the Bloom filter and of the table stays in the cache meanwhile.
"""

# The compiled functions take arrays and tuples of arrays; numba infers their types.
# mypy: disable-error-code="no-untyped-def,assignment,arg-type"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from latentkt.corpus.kernel.hashing import Buffer
from latentkt.corpus.kernel.simd import prefetch
from latentkt.corpus.kernel.stages import BACK, DOCUMENT, END, LOW, close_chunk, new_lists, next_chunk
from latentkt.corpus.kernel.table import PhraseTable

__all__ = ["PhraseCounter"]

PARTS, _PART_BITS, _PART_ROOM = 64, 6, 1 << 15
_DIRECT = 1 << 16
_ALL_PASS = np.full(1, 0xFFFFFFFFFFFFFFFF, np.uint64)
_FOUR, _EIGHT, _U32, _LOW32 = np.uint64(4), np.uint64(8), np.uint64(32), np.uint64(0xFFFFFFFF)
_ONE, _U6, _U63, _U58 = np.uint64(1), np.uint64(6), np.uint64(63), np.uint64(64 - _PART_BITS)
_compile: Any = njit(cache=True, boundscheck=False, error_model="numpy", nogil=True)
# A call would count references of every array that it is given.
_inline: Any = njit(cache=True, boundscheck=False, error_model="numpy", nogil=True, inline="always")

_AHEAD = 16  # keys between a prefetch and its use


class Parts(NamedTuple):
    """Keys waiting for their turn, by their top bits, each with its document and last byte; how many in each part."""

    waiting: NDArray[np.uint64]
    n: NDArray[np.int64]


class Totals(NamedTuple):
    """Counts by place in the table, and the phrases met for the first time in this buffer.

    Attributes:
        occurrences: Matches.
        documents: Documents, and the number of the last one; one row only where documents are not counted.
        fresh: Places of the phrases met for the first time.
        fresh_end: Byte behind the match of each.
    """

    occurrences: NDArray[np.uint32]
    documents: NDArray[np.uint32]
    fresh: NDArray[np.int64]
    fresh_end: NDArray[np.uint32]


@_inline
def _hit(key, home_by, keys, document, end, occurrences, documents, fresh, fresh_end, n_fresh):
    """Look one key up and count it; returns the number of phrases met for the first time."""
    place = key >> home_by
    while keys[place] != key and keys[place] != 0:
        place += _ONE
    if keys[place] != 0:
        if occurrences[place] == 0:
            fresh[n_fresh], fresh_end[n_fresh] = place, end
            n_fresh += 1
        occurrences[place] += 1
        if len(documents) > 1 and documents[place, 1] != document:
            documents[place, 1] = document
            documents[place, 0] += 1
    return n_fresh


@_compile
def _flush(parts, part, table, totals, n_fresh):
    """Look up what one part holds."""
    bloom_by, home_by = np.uint64(table.bloom_shift), np.uint64(table.home_shift)
    waiting = parts.waiting[part]
    keys, bloom = table.keys, table.bloom
    occurrences, documents, fresh, fresh_end = totals.occurrences, totals.documents, totals.fresh, totals.fresh_end
    keys_address, counts_address = np.uint64(keys.ctypes.data), np.uint64(occurrences.ctypes.data)
    passed = 0
    for row in range(parts.n[part]):
        bit = waiting[row, 0] >> bloom_by
        waiting[passed, 0], waiting[passed, 1] = waiting[row, 0], waiting[row, 1]
        passed += np.int64(bloom[bit >> _U6] >> (bit & _U63) & _ONE)
    for row in range(passed):
        soon = waiting[min(row + _AHEAD, passed - 1), 0] >> home_by
        prefetch(keys_address + soon * _EIGHT)
        prefetch(counts_address + soon * _FOUR)
        value = waiting[row, 1]
        document, end = np.uint32(value >> _U32), np.uint32(value & _LOW32)
        n_fresh = _hit(
            waiting[row, 0], home_by, keys, document, end, occurrences, documents, fresh, fresh_end, n_fresh
        )  # fmt: skip
    parts.n[part] = 0
    return n_fresh


@_compile
def _count(data, size, base, table, lists, parts, totals, all_pass):
    """Count a buffer; documents are numbered from `base`. Returns how many phrases were met for the first time."""
    state, at = np.zeros(4, np.uint64), np.zeros(6, np.int64)
    at[DOCUMENT], at[END] = base, -1
    home_by = np.uint64(table.home_shift)
    waiting, part_n = parts.waiting, parts.n
    room, partitioned = waiting.shape[1], len(part_n) > 1
    bloom, bloom_shift = (all_pass, 63) if partitioned else (table.bloom, table.bloom_shift)
    keys, end, nuls, key, key_word = table.keys, lists.end, lists.nuls, lists.key, lists.key_word
    occurrences, documents, fresh, fresh_end = totals.occurrences, totals.documents, totals.fresh, totals.fresh_end
    n_fresh = 0
    while at[LOW] < size:
        found, n, n_nul = next_chunk(data, size, table, lists, state, at, bloom, bloom_shift)
        passed, first = 0, at[DOCUMENT]
        for row in range(found):
            index = np.int64(key_word[row])
            while passed < n_nul and nuls[passed] <= index - BACK:
                passed += 1
            document = np.uint32(first + passed)
            if not partitioned:
                n_fresh = _hit(
                    key[row], home_by, keys, document, end[index], occurrences, documents, fresh, fresh_end, n_fresh
                )
                continue
            part = key[row] >> _U58
            place = np.uint64(part_n[part])
            waiting[part, place, 0] = key[row]
            waiting[part, place, 1] = np.uint64(document) << _U32 | np.uint64(end[index])
            part_n[part] += 1
            if part_n[part] == room:
                n_fresh = _flush(parts, part, table, totals, n_fresh)
        close_chunk(lists, at, n, n_nul)
    for part in range(len(part_n) if partitioned else 0):
        n_fresh = _flush(parts, part, table, totals, n_fresh)
    return n_fresh


class PhraseCounter:
    """Occurrences and documents of the phrases of a table, added up over buffers.

    Args:
        table: The phrases.
        documents: Count documents as well as occurrences.
    """

    def __init__(self, table: PhraseTable, *, documents: bool = True) -> None:
        self._table = table
        self._occurrences = np.zeros(table.n_slots, np.int64)
        self._documents = np.zeros(table.n_slots, np.int64)
        self._seen = 1
        self._bytes = 0
        self._lists = new_lists()
        shape = (PARTS, _PART_ROOM) if table.n_slots > _DIRECT else (1, 1)
        self._parts = Parts(np.zeros((*shape, 2), np.uint64), np.zeros(shape[0], np.int64))
        places = len(table.keys)
        self._totals = Totals(
            np.zeros(places, np.uint32), np.zeros((places if documents else 1, 2), np.uint32),
            np.zeros(table.n_slots, np.int64), np.zeros(table.n_slots, np.uint32),
        )  # fmt: skip

    def add(self, buffer: Buffer) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Count a buffer.

        Returns:
            The slots met for the first time, and the byte of the buffer behind the match of each.
        """
        if self._bytes + buffer.size > 1 << 31 or self._seen + len(buffer.starts) > 1 << 31:
            self._settle()
        table = self._table
        n_fresh = _count(
            buffer.data, buffer.size, self._seen, table, self._lists, self._parts, self._totals, _ALL_PASS
        )  # fmt: skip
        self._seen += len(buffer.starts) - 1
        self._bytes += buffer.size
        slots = table.slots[self._totals.fresh[:n_fresh]]
        known = self._occurrences[slots] > 0  # met before the counters were last emptied
        return slots[~known], self._totals.fresh_end[:n_fresh][~known].astype(np.int64)

    def _settle(self) -> None:
        """Move the 32-bit counters into the totals before they can run over."""
        filled = np.flatnonzero(self._totals.occurrences)
        slots = self._table.slots[filled]
        self._occurrences[slots] += self._totals.occurrences[filled]
        if len(self._totals.documents) > 1:
            self._documents[slots] += self._totals.documents[filled, 0]
        self._totals.occurrences[:] = 0
        self._totals.documents[:] = 0
        self._seen, self._bytes = 1, 0

    @property
    def occurrences(self) -> NDArray[np.int64]:
        """Occurrences by slot."""
        self._settle()
        return self._occurrences

    @property
    def documents(self) -> NDArray[np.int64]:
        """Documents by slot; zeros where they were not asked for."""
        self._settle()
        return self._documents
