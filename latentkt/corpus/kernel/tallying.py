"""Counting without events: occurrences and documents of every phrase, for lists of up to millions.

Above `_DIRECT` phrases the table outgrows the caches. Keys are then first sorted into `PARTS` by their top bits, and a
part is looked up when it is full: its slice of the Bloom filter and of the table stays in the cache meanwhile.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from latentkt.corpus.kernel.fast import CHUNK, new_cache, work_arrays
from latentkt.corpus.kernel.hashing import Buffer, piece_masks
from latentkt.corpus.kernel.stages import BACK, edges, hash_words, phrase_stage, select
from latentkt.corpus.kernel.table import PhraseTable

__all__ = ["PhraseCounter"]

PARTS, _PART_BITS, _PART_ROOM = 64, 6, 1 << 15
_DIRECT = 1 << 16
_MASKS = piece_masks()
_ONE, _U6, _U63, _U58 = np.uint64(1), np.uint64(6), np.uint64(63), np.uint64(64 - _PART_BITS)
_compile: Any = njit(cache=True, boundscheck=False, error_model="numpy", nogil=True)

# Columns of the tally: occurrences, documents, number of the last document, unused.
_OCCURRENCES, _DOCUMENTS, _LAST = range(3)


@_compile
def _hit(tally, place, document, end, fresh, fresh_end, n_fresh):  # type: ignore[no-untyped-def]
    if tally[place, _LAST] != document:
        if tally[place, _OCCURRENCES] == 0:
            fresh[n_fresh], fresh_end[n_fresh] = place, end
            n_fresh += 1
        tally[place, _LAST] = document
        tally[place, _DOCUMENTS] += 1
    tally[place, _OCCURRENCES] += 1
    return n_fresh


@_compile
def _flush(part, n, part_key, part_document, part_end, bloom, shifts, keys, tally, fresh, fresh_end, n_fresh):  # type: ignore[no-untyped-def]
    """Look up what one part holds."""
    bloom_by, home_by = np.uint64(shifts[2]), np.uint64(shifts[3])
    passed = 0
    for row in range(n):
        key = part_key[part, row]
        bit = key >> bloom_by
        part_key[part, passed] = key
        part_document[part, passed], part_end[part, passed] = part_document[part, row], part_end[part, row]
        passed += np.int64(bloom[np.int64(bit >> _U6)] >> (bit & _U63) & _ONE)
    for row in range(passed):
        key = part_key[part, row]
        place = np.int64(key >> home_by)
        while keys[place] != key and keys[place] != 0:
            place += 1
        if keys[place] != 0:
            n_fresh = _hit(tally, place, part_document[part, row], part_end[part, row], fresh, fresh_end, n_fresh)
    return n_fresh


@_compile
def _count(
    data,
    size,
    base,
    work,
    cache,
    tables,
    masks,
    fold_bits,
    with_gaps,
    filters,
    shifts,
    keys,
    tally,
    parts,
    fresh,
    fresh_end,
):  # type: ignore[no-untyped-def]
    """Count a buffer; documents are numbered from `base`. Returns how many phrases were met for the first time."""
    classes, folds, expansions = tables
    last, pair, bloom = filters
    start, end, joined, nuls, hashes, gaps, word, mask, key, key_word, key_length = work
    part_key, part_document, part_end, part_n, open_bloom = parts
    partitioned = len(part_n) > 1
    home_by = np.uint64(shifts[3])
    state = np.zeros(4, np.uint64)
    n_open = run = n_fresh = 0
    previous_end = -1
    document = base
    for low in range(0, size, CHUNK):
        high = min(low + CHUNK, (size + 63) // 64 * 64)
        n_start, n, n_nul = edges(data, low, high, state, classes, start, end, joined, nuls, n_open)
        hash_words(
            data,
            start,
            end,
            joined,
            n,
            previous_end,
            hashes,
            gaps,
            cache,
            fold_bits,
            with_gaps,
            classes,
            folds,
            expansions,
            masks,
        )
        found, run = select(hashes, joined, n, run, last, shifts[0], word, mask)
        if partitioned:
            found = phrase_stage(
                hashes, gaps, with_gaps, word, mask, found, pair, shifts[1], open_bloom, 63, key, key_word, key_length
            )
        else:
            found = phrase_stage(
                hashes, gaps, with_gaps, word, mask, found, pair, shifts[1], bloom, shifts[2], key, key_word, key_length
            )
        passed = 0
        for row in range(found):
            index = np.int64(key_word[row])
            while passed < n_nul and nuls[passed] <= index - BACK:
                passed += 1
            mine = np.uint32(document + passed)
            if partitioned:
                part = np.int64(key[row] >> _U58)
                at = part_n[part]
                part_key[part, at], part_document[part, at], part_end[part, at] = key[row], mine, end[index]
                part_n[part] = at + 1
                if at + 1 == part_key.shape[1]:
                    n_fresh = _flush(
                        part,
                        at + 1,
                        part_key,
                        part_document,
                        part_end,
                        bloom,
                        shifts,
                        keys,
                        tally,
                        fresh,
                        fresh_end,
                        n_fresh,
                    )
                    part_n[part] = 0
                continue
            place = np.int64(key[row] >> home_by)
            while keys[place] != key[row] and keys[place] != 0:
                place += 1
            if keys[place] != 0:
                n_fresh = _hit(tally, place, mine, end[index], fresh, fresh_end, n_fresh)
        document += n_nul
        n_open = n_start - n
        if n:
            previous_end = np.int64(end[BACK + n - 1])
        opened, opened_joined = start[BACK + n], joined[BACK + n]
        for row in range(BACK):
            hashes[row], gaps[row] = hashes[n + row], gaps[n + row]
        start[BACK], joined[BACK] = opened, opened_joined
    if partitioned:
        for part in range(len(part_n)):
            n_fresh = _flush(
                part,
                part_n[part],
                part_key,
                part_document,
                part_end,
                bloom,
                shifts,
                keys,
                tally,
                fresh,
                fresh_end,
                n_fresh,
            )
            part_n[part] = 0
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
        self._tally = np.zeros((len(table.keys), 4), np.uint32)
        self._seen = 1
        self._bytes = 0
        self._work, self._cache = work_arrays(), new_cache()
        many = table.n_slots > _DIRECT
        shape = (PARTS, _PART_ROOM) if many else (1, 1)
        self._parts = (
            np.zeros(shape, np.uint64), np.zeros(shape, np.uint32), np.zeros(shape, np.uint32),
            np.zeros(shape[0], np.int64), np.full(1, 0xFFFFFFFFFFFFFFFF, np.uint64),
        )  # fmt: skip
        self._fresh = np.zeros(table.n_slots + 1, np.int64), np.zeros(table.n_slots + 1, np.uint32)

    def add(self, buffer: Buffer) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Count a buffer.

        Returns:
            The slots met for the first time, and the byte of the buffer behind the match of each.
        """
        if self._bytes + buffer.size > 1 << 31 or self._seen + len(buffer.starts) > 1 << 31:
            self._settle()
        table = self._table
        n_fresh = _count(
            buffer.data, buffer.size, self._seen, self._work, self._cache, tuple(table.characters), _MASKS,
            np.uint64(table.fold_bits), table.gaps, (table.last, table.pair, table.bloom),
            (table.last_shift, table.pair_shift, table.bloom_shift, table.home_shift),
            table.keys, self._tally, self._parts, *self._fresh,
        )  # fmt: skip
        self._seen += len(buffer.starts) - 1
        self._bytes += buffer.size
        slots = table.slots[self._fresh[0][:n_fresh]]
        known = self._occurrences[slots] > 0  # met before the counters were last emptied
        return slots[~known], self._fresh[1][:n_fresh][~known].astype(np.int64)

    def _settle(self) -> None:
        """Move the 32-bit counters into the totals before they can run over."""
        filled = np.flatnonzero(self._tally[:, _OCCURRENCES])
        slots = self._table.slots[filled]
        self._occurrences[slots] += self._tally[filled, _OCCURRENCES]
        self._documents[slots] += self._tally[filled, _DOCUMENTS]
        self._tally[:] = 0
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
