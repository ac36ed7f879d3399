"""The counting kernel compiled by numba: the interface of `plain`, several times as fast."""

# The compiled functions take arrays and tuples of arrays; numba infers their types.
# mypy: disable-error-code="no-untyped-def,assignment,arg-type"
from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from latentkt.corpus.kernel.hashing import Buffer
from latentkt.corpus.kernel.stages import (
    BACK,
    CHUNK,
    DOCUMENT,
    END,
    LOW,
    WORDS,
    care_places,
    close_chunk,
    edges,
    hash_words,
    new_lists,
    next_chunk,
)
from latentkt.corpus.kernel.table import Events, PhraseTable, Words
from latentkt.corpus.kernel.tallying import PhraseCounter
from latentkt.corpus.matching import CharacterTables

__all__ = ["PhraseCounter", "careful", "find", "tokenise"]

_MOST_EVENTS = BACK * (CHUNK // 2 + 1)  # of one chunk
_compile: Any = njit(cache=True, boundscheck=False, error_model="numpy", nogil=True)


def careful(buffer: Buffer, tables: CharacterTables) -> NDArray[np.int64]:
    """Documents with a character that `Matching.prepare` may change."""
    places = np.zeros(1 << 12, np.int64)
    while (found := care_places(buffer.data, buffer.size, tables.classes, places)) == len(places):
        places = np.zeros(2 * len(places), np.int64)
    return np.unique(np.searchsorted(buffer.starts, places[:found], side="right") - 1)


def tokenise(buffer: Buffer, tables: CharacterTables, *, fold_bits: int, gaps: bool) -> Words:
    """Words of a buffer with their hashes; with `gaps`, those of the gaps too (else only white space joins words)."""
    lists = new_lists(buffer.size)
    table = _EMPTY._replace(characters=tables, fold_bits=fold_bits, gaps=gaps)
    _, n, _ = edges(
        buffer.data, 0, buffer.size, np.zeros(4, np.uint64), tables.classes, lists.start, lists.end, lists.joined,
        lists.nuls, 0,
    )  # fmt: skip
    hash_words(buffer.data, lists, n, -1, table)
    part = slice(BACK, BACK + n)
    start, end, joined = lists.start[part], lists.end[part], lists.joined[part]
    return Words(
        start.astype(np.int64), end.astype(np.int64), lists.hashes[part], lists.gaps[part], joined.astype(bool)
    )


_NONE8, _NONE64 = np.zeros(0, np.uint8), np.zeros(0, np.uint64)
_NO_SLOTS = np.zeros(0, np.int32)
_NO_TABLES = CharacterTables(_NONE8, np.zeros(0, np.uint32), np.zeros((0, 3), np.uint32))
_EMPTY = PhraseTable(
    _NO_TABLES, 0, False, 1, _NONE8, 0, _NONE8, 0, _NONE64, 0, _NONE64, _NO_SLOTS, 0, 0, _NO_SLOTS
)  # fmt: skip


@_compile
def _find(data, size, table, lists, state, at, out, n_events):
    """Scan on until the text ends or the lists of events might overflow; returns the number of events."""
    slot, document, last, length, first_byte, end_byte, word_starts = out
    home_by = np.uint64(table.home_shift)
    keys, slots = table.keys, table.slots
    start, end, nuls = lists.start, lists.end, lists.nuls
    key, key_word, key_length = lists.key, lists.key_word, lists.key_length
    while at[LOW] < size and n_events + _MOST_EVENTS <= len(slot):
        found, n, n_nul = next_chunk(data, size, table, lists, state, at, table.bloom, table.bloom_shift)
        passed = 0
        for row in range(found):
            place = key[row] >> home_by
            while keys[place] != key[row] and keys[place] != 0:
                place += np.uint64(1)
            if keys[place] == 0:
                continue
            index = np.int64(key_word[row])
            while passed < n_nul and nuls[passed] <= index - BACK:
                passed += 1
            slot[n_events], document[n_events] = slots[place], at[DOCUMENT] + passed
            last[n_events], length[n_events] = at[WORDS] + index - BACK, key_length[row]
            first_byte[n_events] = start[index - np.int64(key_length[row]) + 1]
            end_byte[n_events] = end[index]
            n_events += 1
        for row in range(n_nul):
            if at[DOCUMENT] + row + 1 < len(word_starts):
                word_starts[at[DOCUMENT] + row + 1] = at[WORDS] + nuls[row]
        close_chunk(lists, at, n, n_nul)
    return n_events


def find(buffer: Buffer, table: PhraseTable) -> Events:
    """All phrases of the table in a buffer, by last word, shorter first."""
    columns = [np.zeros(2 * _MOST_EVENTS + buffer.size // 32, np.int64) for _ in range(6)]
    word_starts = np.zeros(len(buffer.starts), np.int64)
    state, at, lists = np.zeros(4, np.uint64), np.zeros(6, np.int64), new_lists()
    at[END] = -1
    n = 0
    while at[LOW] < buffer.size:
        if len(columns[0]) - n < _MOST_EVENTS:
            columns = [np.concatenate([column, np.zeros(len(column), np.int64)]) for column in columns]
        n = _find(buffer.data, buffer.size, table, lists, state, at, (*columns, word_starts), n)
    slot, document, last, length, start, end = (column[:n] for column in columns)
    return Events(slot.astype(np.int32), document, last - length + 1, last, start, end, word_starts)
