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
from latentkt.corpus.kernel.stages import BACK, DOCUMENT, END, LOW, close_chunk, new_lists, next_chunk
from latentkt.corpus.kernel.table import PhraseTable

__all__ = ["PhraseCounter"]

PARTS, _PART_BITS, _PART_ROOM = 64, 6, 1 << 15
_DIRECT = 1 << 16
_ALL_PASS = np.full(1, 0xFFFFFFFFFFFFFFFF, np.uint64)
_ONE, _U6, _U63, _U58 = np.uint64(1), np.uint64(6), np.uint64(63), np.uint64(64 - _PART_BITS)
_compile: Any = njit(cache=True, boundscheck=False, error_model="numpy", nogil=True)
# A call would count references of every array that it is given.
_inline: Any = njit(cache=True, boundscheck=False, error_model="numpy", nogil=True, inline="always")

# Columns of the tally: occurrences, documents, number of the last document, unused.
_OCCURRENCES, _DOCUMENTS, _LAST = range(3)


class Parts(NamedTuple):
    """Keys waiting for their turn, by their top bits, with the document and the last byte of each."""

    key: NDArray[np.uint64]
    document: NDArray[np.uint32]
    end: NDArray[np.uint32]
    n: NDArray[np.int64]


class Totals(NamedTuple):
    """Counts by place in the table, and the phrases met for the first time in this buffer."""

    tally: NDArray[np.uint32]
    fresh: NDArray[np.int64]
    fresh_end: NDArray[np.uint32]


@_inline
def _hit(key, home_by, keys, document, end, tally, fresh, fresh_end, n_fresh):
    """Look one key up and count it; returns the number of phrases met for the first time."""
    place = key >> home_by
    while keys[place] != key and keys[place] != 0:
        place += _ONE
    if keys[place] == 0:
        return n_fresh
    if tally[place, _LAST] != document:
        if tally[place, _OCCURRENCES] == 0:
            fresh[n_fresh], fresh_end[n_fresh] = place, end
            n_fresh += 1
        tally[place, _LAST] = document
        tally[place, _DOCUMENTS] += 1
    tally[place, _OCCURRENCES] += 1
    return n_fresh


@_compile
def _flush(parts, part, table, totals, n_fresh):
    """Look up what one part holds."""
    bloom_by, home_by = np.uint64(table.bloom_shift), np.uint64(table.home_shift)
    waiting, documents, ends = parts.key[part], parts.document[part], parts.end[part]
    keys, bloom = table.keys, table.bloom
    tally, fresh, fresh_end = totals.tally, totals.fresh, totals.fresh_end
    passed = 0
    for row in range(parts.n[part]):
        bit = waiting[row] >> bloom_by
        waiting[passed], documents[passed], ends[passed] = waiting[row], documents[row], ends[row]
        passed += np.int64(bloom[bit >> _U6] >> (bit & _U63) & _ONE)
    for row in range(passed):
        n_fresh = _hit(waiting[row], home_by, keys, documents[row], ends[row], tally, fresh, fresh_end, n_fresh)
    parts.n[part] = 0
    return n_fresh


@_compile
def _count(data, size, base, table, lists, parts, totals, all_pass):
    """Count a buffer; documents are numbered from `base`. Returns how many phrases were met for the first time."""
    state, at = np.zeros(4, np.uint64), np.zeros(6, np.int64)
    at[DOCUMENT], at[END] = base, -1
    home_by = np.uint64(table.home_shift)
    part_key, part_document, part_end, part_n = parts.key, parts.document, parts.end, parts.n
    room, partitioned = part_key.shape[1], len(part_n) > 1
    bloom, bloom_shift = (all_pass, 63) if partitioned else (table.bloom, table.bloom_shift)
    keys, end, nuls, key, key_word = table.keys, lists.end, lists.nuls, lists.key, lists.key_word
    tally, fresh, fresh_end = totals.tally, totals.fresh, totals.fresh_end
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
                n_fresh = _hit(key[row], home_by, keys, document, end[index], tally, fresh, fresh_end, n_fresh)
                continue
            part = key[row] >> _U58
            place = np.uint64(part_n[part])
            part_key[part, place], part_document[part, place], part_end[part, place] = key[row], document, end[index]
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
    """

    def __init__(self, table: PhraseTable) -> None:
        self._table = table
        self._occurrences = np.zeros(table.n_slots, np.int64)
        self._documents = np.zeros(table.n_slots, np.int64)
        self._seen = 1
        self._bytes = 0
        self._lists = new_lists()
        shape = (PARTS, _PART_ROOM) if table.n_slots > _DIRECT else (1, 1)
        document, end = np.zeros(shape, np.uint32), np.zeros(shape, np.uint32)
        self._parts = Parts(np.zeros(shape, np.uint64), document, end, np.zeros(shape[0], np.int64))
        tally = np.zeros((len(table.keys), 4), np.uint32)
        self._totals = Totals(tally, np.zeros(table.n_slots, np.int64), np.zeros(table.n_slots, np.uint32))

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
        filled = np.flatnonzero(self._totals.tally[:, _OCCURRENCES])
        slots = self._table.slots[filled]
        self._occurrences[slots] += self._totals.tally[filled, _OCCURRENCES]
        self._documents[slots] += self._totals.tally[filled, _DOCUMENTS]
        self._totals.tally[:] = 0
        self._seen, self._bytes = 1, 0

    @property
    def occurrences(self) -> NDArray[np.int64]:
        """Occurrences by slot."""
        self._settle()
        return self._occurrences

    @property
    def documents(self) -> NDArray[np.int64]:
        """Documents by slot."""
        self._settle()
        return self._documents
