"""The counting kernel compiled by numba: the interface of `plain`, several times as fast."""

# The compiled functions take arrays and tuples of arrays; numba infers their types.
# mypy: disable-error-code="no-untyped-def,assignment,arg-type"
from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from latentkt.corpus.kernel.cells import CellSums
from latentkt.corpus.kernel.chunks import DOCUMENT, END, KEYS, LOW, WORDS, close_chunk, forget, new_lists, next_chunk
from latentkt.corpus.kernel.edges import BACK, care_places, edges
from latentkt.corpus.kernel.extract import extract_lines
from latentkt.corpus.kernel.hashing import Buffer
from latentkt.corpus.kernel.lookup import AHEAD, find_slots
from latentkt.corpus.kernel.table import Events, PhraseTable, Words
from latentkt.corpus.kernel.tallying import PhraseCounter
from latentkt.corpus.kernel.words import hash_gaps, hash_words
from latentkt.corpus.matching import CharacterTables

__all__ = ["CellSums", "PhraseCounter", "careful", "extract_lines", "find", "tokenise"]

_U32, _LOW32 = np.uint64(32), np.uint64(0xFFFFFFFF)
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
    if gaps:
        hash_gaps(buffer.data, lists, n, -1, table)
    hash_words(buffer.data, lists, n, table)
    part = slice(BACK, BACK + n)
    start, end, joined, hashes = lists.start[part], lists.end[part], lists.joined[part], lists.hashes[part]
    gap = lists.added[part] - hashes if gaps else np.zeros(n, np.uint64)
    return Words(start.astype(np.int64), end.astype(np.int64), hashes, gap, joined.astype(bool))


_NONE8, _NONE64 = np.zeros(0, np.uint8), np.zeros(0, np.uint64)
_NO_SLOTS, _NO_HOMES = np.zeros(0, np.int32), np.zeros(0, np.uint32)
_NO_TABLES = CharacterTables(_NONE8, np.zeros(0, np.uint32), np.zeros((0, 3), np.uint32))
_EMPTY = PhraseTable(
    _NO_TABLES, 0, False, 1, 0, np.zeros(2, np.uint8), 63, _NONE8, 0, _NONE64, 0, _NONE64, _NO_HOMES, 0, 0, _NO_SLOTS
)  # fmt: skip


@_compile
def _matches(lists, n, table, waiting, order, places):
    """Matches of a chunk, ordered by last word and length: rows of `waiting`, in the order of `order`."""
    key, key_word, bounds = lists.key, lists.key_word, lists.bounds
    row = 0
    for length in range(1, table.max_words + 1):
        side = np.uint64(length) << _U32
        while row < bounds[length]:
            waiting[row, 0], waiting[row, 1] = key[row], side | np.uint64(key_word[row])
            row += 1
    found = find_slots(waiting, row, table, 0, 0)
    places[: BACK + n + 2] = 0
    for row in range(found):  # keys come by length: sorting them stably by word is enough
        places[(waiting[row, 1] & _LOW32) + np.uint64(1)] += np.uint32(1)
    for index in range(BACK, BACK + n + 1):
        places[index + 1] += places[index]
    for row in range(found):
        word = waiting[row, 1] & _LOW32
        order[places[word]] = row
        places[word] += np.uint32(1)
    return found


@_compile
def _find(data, size, table, lists, state, at, out, n_events, scratch):
    """Scan on until the text ends or the lists of events might overflow; returns the number of events."""
    slot, document, last, length, first_byte, end_byte, word_starts = out
    waiting, order, places = scratch
    start, end, nuls = lists.start, lists.end, lists.nuls
    while at[LOW] < size and n_events + KEYS <= len(slot):
        n, n_nul = next_chunk(data, size, table, lists, state, at)
        found = _matches(lists, n, table, waiting, order, places)
        nul, first_document, first_word = 0, at[DOCUMENT], at[WORDS] - BACK
        for at_row in range(found):
            row = order[at_row]
            index, words = np.int64(waiting[row, 1] & _LOW32), np.int64(waiting[row, 1] >> _U32)
            while nul < n_nul and nuls[nul] <= index - BACK:
                nul += 1
            event = n_events + at_row
            slot[event], document[event] = waiting[row, 0], first_document + nul
            last[event], length[event] = first_word + index, words
            first_byte[event], end_byte[event] = start[np.uint64(index - words + 1)], end[np.uint64(index)]
        n_events += found
        for row in range(n_nul):
            if at[DOCUMENT] + row + 1 < len(word_starts):
                word_starts[at[DOCUMENT] + row + 1] = at[WORDS] + nuls[row]
        close_chunk(lists, at, n, n_nul)
    return n_events


class _Scratch(threading.local):
    """What `find` works with, kept from buffer to buffer: fresh memory costs a page fault every 4 kB.

    The events are not kept here: they are handed out.
    """

    def __init__(self) -> None:
        self.lists = new_lists()
        order, places = np.zeros(KEYS, np.uint32), np.zeros(len(self.lists.start) + 2, np.uint32)
        self.rows = np.zeros((KEYS + AHEAD, 2), np.uint64), order, places


_scratch = _Scratch()


def find(buffer: Buffer, table: PhraseTable) -> Events:
    """All phrases of the table in a buffer, by last word, shorter first."""
    columns = [np.empty(KEYS + buffer.size // 24, np.int64) for _ in range(6)]
    word_starts = np.zeros(len(buffer.starts), np.int64)
    state, at, lists = np.zeros(4, np.uint64), np.zeros(5, np.int64), _scratch.lists
    forget(lists)
    at[END] = -1
    n = 0
    while at[LOW] < buffer.size:
        if len(columns[0]) - n < KEYS:
            columns = [np.concatenate([column[:n], np.empty(n + KEYS, np.int64)]) for column in columns]
        n = _find(buffer.data, buffer.size, table, lists, state, at, (*columns, word_starts), n, _scratch.rows)
    slot, document, last, length, start, end = (column[:n] for column in columns)
    return Events(slot.astype(np.int32), document, last - length + 1, last, start, end, word_starts)
