"""The counting kernel compiled by numba: the interface of `plain`, and counts without events for long phrase lists."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from latentkt.corpus.kernel.hashing import Buffer, piece_masks
from latentkt.corpus.kernel.stages import BACK, care_places, edges, hash_words, phrase_stage, select
from latentkt.corpus.kernel.table import Events, PhraseTable, Words
from latentkt.corpus.matching import CharacterTables

__all__ = ["CHUNK", "careful", "find", "new_cache", "tokenise", "work_arrays"]

CHUNK = 32 * 1024
MOST_WORDS = CHUNK // 2 + BACK + 72  # of a chunk; the lists are written in steps of four
_MASKS = piece_masks()
_compile: Any = njit(cache=True, boundscheck=False, error_model="numpy", nogil=True)


def new_cache() -> NDArray[np.uint64]:
    """Hashes of words beyond ASCII seen lately: raw pieces and hash."""
    cache = np.zeros((8192, 3), np.uint64)
    cache[:, :2] = np.uint64(0xFFFFFFFFFFFFFFFF)
    return cache


def careful(buffer: Buffer, tables: CharacterTables) -> NDArray[np.int64]:
    """Documents with a character that `Matching.prepare` may change."""
    places = np.zeros(1 << 12, np.int64)
    while (found := care_places(buffer.data, buffer.size, tables.classes, places)) == len(places):
        places = np.zeros(2 * len(places), np.int64)
    return np.unique(np.searchsorted(buffer.starts, places[:found], side="right") - 1)


def tokenise(buffer: Buffer, tables: CharacterTables, *, fold_bits: int, gaps: bool) -> Words:
    """Words of a buffer with their hashes; with `gaps`, those of the gaps too (else only white space joins words)."""
    most = BACK + buffer.size // 2 + 72
    start, end = np.zeros(most, np.uint32), np.zeros(most, np.uint32)
    joined, nuls = np.zeros(most, np.uint8), np.zeros(len(buffer.starts) + 256, np.int64)
    state = np.zeros(4, np.uint64)
    _, n, _ = edges(buffer.data, 0, buffer.size, state, tables.classes, start, end, joined, nuls, 0)
    hashes, gap = np.zeros(most, np.uint64), np.zeros(most, np.uint64)
    hash_words(
        buffer.data, start, end, joined, n, -1, hashes, gap, new_cache(), np.uint64(fold_bits), gaps,
        *tables, _MASKS,
    )  # fmt: skip
    part = slice(BACK, BACK + n)
    return Words(
        start[part].astype(np.int64), end[part].astype(np.int64), hashes[part], gap[part], joined[part].astype(bool)
    )


@_compile
def _find(
    data, low, size, carried, state, work, cache, tables, masks, fold_bits, with_gaps, filters, shifts, table, out
):  # type: ignore[no-untyped-def]
    """Scan on from byte `low` until the text ends or the lists of events may overflow; returns where it stopped."""
    classes, folds, expansions = tables
    last, pair, bloom = filters
    start, end, joined, nuls, hashes, gaps, word, mask, key, key_word, key_length = work
    keys, slots = table
    event_slot, event_document, event_last, event_length, event_start, event_end, word_starts = out
    n_open, run, base, document, n_events, previous_end = carried
    home_by = np.uint64(shifts[3])
    while low < size and n_events + 8 * MOST_WORDS <= len(event_slot):
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
        found = phrase_stage(
            hashes, gaps, with_gaps, word, mask, found, pair, shifts[1], bloom, shifts[2], key, key_word, key_length
        )
        passed = 0
        for row in range(found):
            place = np.int64(key[row] >> home_by)
            while keys[place] != key[row] and keys[place] != 0:
                place += 1
            if keys[place] == 0:
                continue
            index = np.int64(key_word[row])
            while passed < n_nul and nuls[passed] <= index - BACK:
                passed += 1
            event_slot[n_events], event_document[n_events] = slots[place], document + passed
            event_last[n_events], event_length[n_events] = base + index - BACK, key_length[row]
            event_start[n_events] = start[index - np.int64(key_length[row]) + 1]
            event_end[n_events] = end[index]
            n_events += 1
        for row in range(n_nul):
            if document + row + 1 < len(word_starts):
                word_starts[document + row + 1] = base + nuls[row]
        document += n_nul
        base += n
        n_open = n_start - n
        if n:
            previous_end = np.int64(end[BACK + n - 1])
        opened = start[BACK + n]
        opened_joined = joined[BACK + n]
        for row in range(BACK):
            start[row], hashes[row], gaps[row] = start[n + row], hashes[n + row], gaps[n + row]
        start[BACK], joined[BACK] = opened, opened_joined
        low = high
    return low, (n_open, run, base, document, n_events, previous_end)


def work_arrays() -> tuple[NDArray[Any], ...]:
    """The lists of one chunk, used again for every chunk."""
    words, keys = MOST_WORDS, BACK * MOST_WORDS
    return (
        np.zeros(words, np.uint32), np.zeros(words, np.uint32), np.zeros(words, np.uint8),
        np.zeros(CHUNK + 256, np.int64), np.zeros(words, np.uint64), np.zeros(words, np.uint64),
        np.zeros(words, np.uint32), np.zeros(words, np.uint8),
        np.zeros(keys, np.uint64), np.zeros(keys, np.uint32), np.zeros(keys, np.uint8),
    )  # fmt: skip


def find(buffer: Buffer, table: PhraseTable) -> Events:
    """All phrases of the table in a buffer, by last word, shorter first."""
    n_documents = len(buffer.starts) - 1
    types = (np.int32, np.int64, np.int64, np.int64, np.int64, np.int64)
    room = max(16 * MOST_WORDS, buffer.size // 16)
    columns = [np.zeros(room, kind) for kind in types]
    word_starts = np.zeros(n_documents + 1, np.int64)
    state, work, cache = np.zeros(4, np.uint64), work_arrays(), new_cache()
    low, carried = 0, (0, 0, 0, 0, 0, -1)
    while low < buffer.size:
        if len(columns[0]) - carried[4] < 8 * MOST_WORDS:
            columns = [np.concatenate([column, np.zeros(len(column), column.dtype)]) for column in columns]
        low, carried = _find(
            buffer.data, low, buffer.size, carried, state, work, cache, tuple(table.characters), _MASKS,
            np.uint64(table.fold_bits), table.gaps, (table.last, table.pair, table.bloom),
            (table.last_shift, table.pair_shift, table.bloom_shift, table.home_shift),
            (table.keys, table.slots), (*columns, word_starts),
        )  # fmt: skip
    slot, document, last, length, start, end = (column[: carried[4]] for column in columns)
    return Events(slot, document, last - length + 1, last, start, end, word_starts)


def __getattr__(name: str) -> Any:
    if name == "PhraseCounter":
        from latentkt.corpus.kernel.tallying import PhraseCounter

        return PhraseCounter
    raise AttributeError(name)
