"""Counting without events: occurrences and documents of every phrase, for lists of up to millions.

Above `_DIRECT` phrases the table outgrows the caches. Keys are then first sorted into `PARTS` by their top bits, and a
part is looked up when it is full: its slice of the Bloom filter and of the table stays in the cache meanwhile. A
shorter list is one part, looked up after every chunk of text.
"""

# The compiled functions take arrays and tuples of arrays; numba infers their types.
# mypy: disable-error-code="no-untyped-def,assignment,arg-type"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from latentkt.corpus.kernel.chunks import DOCUMENT, END, LOW, close_chunk, new_lists, next_chunk
from latentkt.corpus.kernel.edges import BACK
from latentkt.corpus.kernel.hashing import Buffer
from latentkt.corpus.kernel.lookup import AHEAD, find_slots
from latentkt.corpus.kernel.simd import prefetch
from latentkt.corpus.kernel.table import PhraseTable

__all__ = ["PhraseCounter"]

PARTS, _PART_BITS, _PART_ROOM = 64, 6, 1 << 15
_SORTED = 1 << 10  # keys sorted between two looks at how full the parts are
# Rows of a part behind its room. Parts fill evenly: a power of two apart, their ends would share one set of the cache.
_BEHIND = _SORTED + AHEAD + 24
_DIRECT = 1 << 16
_FOUR, _WRITTEN = np.uint64(4), np.uint64(192)  # bytes of a part between a prefetch and what is written
_U32, _LOW32, _U58 = np.uint64(32), np.uint64(0xFFFFFFFF), np.uint64(64 - _PART_BITS)
_compile: Any = njit(cache=True, boundscheck=False, error_model="numpy", nogil=True)


class Parts(NamedTuple):
    """Keys waiting for their turn, by their top bits, each with its document and last byte; how many in each part."""

    waiting: NDArray[np.uint64]
    n: NDArray[np.int64]


class Totals(NamedTuple):
    """Counts by slot, and the phrases met for the first time in this buffer.

    Attributes:
        counts: Matches, documents, and the number of the last document.
        fresh: Slots of the phrases met for the first time.
        fresh_end: Byte behind the match of each.
    """

    counts: NDArray[np.uint32]
    fresh: NDArray[np.int32]
    fresh_end: NDArray[np.uint32]


@_compile
def _add(waiting, n, totals, n_fresh):
    """Count matches by slot; returns how many phrases have been met for the first time so far."""
    counts, fresh, fresh_end = totals.counts, totals.fresh, totals.fresh_end
    for row in range(n):
        slot, value = waiting[row, 0], waiting[row, 1]
        document = np.uint32(value >> _U32)
        many = counts[slot, 0]
        fresh[n_fresh], fresh_end[n_fresh] = slot, np.uint32(value & _LOW32)
        n_fresh += many == 0
        counts[slot, 0] = many + np.uint32(1)
        counts[slot, 1] += np.uint32(counts[slot, 2] != document)
        counts[slot, 2] = document
    return n_fresh


@_compile
def _look_up(parts, part, table, totals, n_fresh):
    """Look up and count what one part holds."""
    waiting = parts.waiting[part]
    found = find_slots(waiting, parts.n[part], table, totals.counts.ctypes.data, 16)
    parts.n[part] = 0
    return _add(waiting, found, totals, n_fresh)


@_compile
def _number_documents(lists, n, n_nul, document):
    """Note for each word the number of its document; `document` is that of the first."""
    numbers, nuls = lists.numbers, lists.nuls
    low = BACK
    for row in range(n_nul + 1):
        high = BACK + (nuls[row] if row < n_nul else n)
        numbers[low:high] = document + row
        low = high


@_compile
def _sort(lists, low, high, parts):
    """Put some keys, at most `_SORTED`, into their parts."""
    key, key_word, end, numbers = lists.key, lists.key_word, lists.end, lists.numbers
    waiting, part_n = parts.waiting, parts.n
    several, address = np.uint64(len(part_n) - 1), np.uint64(waiting.ctypes.data)
    size = np.uint64(waiting.shape[1])
    for row in range(low, high):
        index, value = key_word[row], key[row]
        part = (value >> _U58) & several
        place = np.uint64(part_n[part])
        prefetch(address + (part * size + place << _FOUR) + _WRITTEN)
        waiting[part, place, 0] = value
        waiting[part, place, 1] = np.uint64(numbers[index]) << _U32 | np.uint64(end[index])
        part_n[part] += 1


@_compile
def _count(data, size, base, table, lists, parts, totals):
    """Count a buffer; documents are numbered from `base`. Returns how many phrases were met for the first time."""
    state, at = np.zeros(4, np.uint64), np.zeros(5, np.int64)
    at[DOCUMENT], at[END] = base, -1
    n_parts, part_n, room = len(parts.n), parts.n, parts.waiting.shape[1] - _BEHIND
    n_fresh = 0
    while at[LOW] < size:
        n, n_nul = next_chunk(data, size, table, lists, state, at)
        _number_documents(lists, n, n_nul, at[DOCUMENT])
        n_keys = lists.bounds[table.max_words]
        for low in range(0, n_keys, _SORTED):
            _sort(lists, low, min(low + _SORTED, n_keys), parts)
            for part in range(n_parts):
                if part_n[part] > room:
                    n_fresh = _look_up(parts, part, table, totals, n_fresh)
        if n_parts == 1:
            n_fresh = _look_up(parts, 0, table, totals, n_fresh)
        close_chunk(lists, at, n, n_nul)
    for part in range(n_parts):
        n_fresh = _look_up(parts, part, table, totals, n_fresh)
    return n_fresh


class PhraseCounter:
    """Occurrences and documents of the phrases of a table, added up over buffers."""

    def __init__(self, table: PhraseTable) -> None:
        self._table = table
        self._occurrences = np.zeros(table.n_slots, np.int64)
        self._documents = np.zeros(table.n_slots, np.int64)
        self._seen = 1
        self._bytes = 0
        self._lists = new_lists()
        n_parts = PARTS if table.n_slots > _DIRECT else 1
        self._parts = Parts(np.zeros((n_parts, _PART_ROOM + _BEHIND, 2), np.uint64), np.zeros(n_parts, np.int64))
        n = table.n_slots
        self._totals = Totals(np.zeros((n, 4), np.uint32), np.zeros(n + 1, np.int32), np.zeros(n + 1, np.uint32))

    def add(self, buffer: Buffer) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Count a buffer.

        Returns:
            The slots met for the first time, and the byte of the buffer behind the match of each.
        """
        if self._bytes + buffer.size > 1 << 31 or self._seen + len(buffer.starts) > 1 << 31:
            self._settle()
        table = self._table
        n_fresh = _count(buffer.data, buffer.size, self._seen, table, self._lists, self._parts, self._totals)
        self._seen += len(buffer.starts) - 1
        self._bytes += buffer.size
        slots = self._totals.fresh[:n_fresh].copy()
        known = self._occurrences[slots] > 0  # met before the counters were last emptied
        return slots[~known], self._totals.fresh_end[:n_fresh][~known].astype(np.int64)

    def _settle(self) -> None:
        """Move the 32-bit counters into the totals before they can run over."""
        counts = self._totals.counts
        self._occurrences += counts[:, 0]
        self._documents += counts[:, 1]
        counts[:] = 0
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
