"""A chunk of text, from words to the keys of the phrases that may end in it.

Two filters, one byte a bucket, leave of all words those that end a phrase, and of all lengths those that the last two
words allow; keys are then made one length after the other, so that no loop holds a branch that is hard to foresee.
"""

# The compiled functions take arrays and tuples of arrays; numba infers their types.
# mypy: disable-error-code="no-untyped-def,assignment,arg-type"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from latentkt.corpus.kernel import hashing
from latentkt.corpus.kernel.edges import BACK, edges
from latentkt.corpus.kernel.simd import prefetch
from latentkt.corpus.kernel.words import hash_words

__all__ = ["CHUNK", "KEYS", "Lists", "close_chunk", "new_lists", "next_chunk"]

CHUNK = 32 * 1024
KEYS = hashing.MAX_WORDS * (CHUNK // 2 + 1)  # most keys of one chunk
_BASE, _MIX = np.uint64(hashing.BASE), np.uint64(hashing.MIX)
_ONE, _THREE, _U6, _U32, _U63 = np.uint64(1), np.uint64(3), np.uint64(6), np.uint64(32), np.uint64(63)
_INDEX = np.uint32(1)
# Arrays are taken out of their tuples before each loop, and no loop calls a function with arrays: either would count
# references every time round.
_compile: Any = njit(cache=True, boundscheck=False, error_model="numpy", nogil=True)

LOW, OPEN, RUN, WORDS, DOCUMENT, END = range(6)  # what a scan carries from chunk to chunk


class Lists(NamedTuple):
    """The lists of one chunk, used again for every chunk.

    Attributes:
        start: First byte of each word, from index `BACK` on.
        end: Byte behind it.
        joined: Whether a phrase may run over the gap before it.
        nuls: For each NUL, how many words start before it.
        hashes: Hash of each word.
        gaps: Hash of the gap before it.
        word: Words that may end a phrase.
        mask: Lengths of such phrases, as bits.
        pair_key: Key of the last two words.
        picked: Rows of `word` with one length.
        key: Keys of phrases, by length.
        key_word: Their last words.
        bounds: Keys of length L are those from ``bounds[L - 1]`` to ``bounds[L]``.
        masks: See `hashing.piece_masks`.
        cache: Hashes of short words beyond ASCII.
    """

    start: NDArray[np.uint32]
    end: NDArray[np.uint32]
    joined: NDArray[np.uint8]
    nuls: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    gaps: NDArray[np.uint64]
    word: NDArray[np.uint32]
    mask: NDArray[np.uint8]
    pair_key: NDArray[np.uint64]
    picked: NDArray[np.uint32]
    key: NDArray[np.uint64]
    key_word: NDArray[np.uint32]
    bounds: NDArray[np.int64]
    masks: NDArray[np.uint64]
    cache: NDArray[np.uint64]


def new_lists(size: int = CHUNK) -> Lists:
    """Lists for the words of `size` bytes of text; edges are written in steps of four, hence the slack."""
    words = size // 2 + BACK + 72
    cache = np.zeros((8192, 3), np.uint64)
    cache[:, :2] = np.uint64(0xFFFFFFFFFFFFFFFF)
    u8, u32, u64 = np.uint8, np.uint32, np.uint64
    return Lists(
        np.zeros(words, u32), np.zeros(words, u32), np.zeros(words, u8), np.zeros(size + 256, np.int64),
        np.zeros(words, u64), np.zeros(words, u64), np.zeros(words, u32), np.zeros(words, u8), np.zeros(words, u64),
        np.zeros(words, u32), np.zeros(KEYS, u64), np.zeros(KEYS, u32), np.zeros(hashing.MAX_WORDS + 1, np.int64),
        hashing.piece_masks(), cache,
    )  # fmt: skip


@_compile
def _select(lists, n, run, table):
    """Words that may end a phrase, with the lengths of such phrases as bits; `run` words before were joined."""
    found = 0
    shift = np.uint64(table.last_shift)
    hashes, joined, word, mask, last = lists.hashes, lists.joined, lists.word, lists.mask, table.last
    for index in range(BACK, BACK + n):
        run = min(run + 1, BACK) if joined[index] else 1
        bits = np.int64(last[hashes[index] >> shift]) & ((1 << run) - 1)
        word[found], mask[found] = index, bits
        found += bits != 0
    return found, run


@_compile
def _finish(value):
    key = (value ^ value >> _U32) * _MIX
    return key if key else _ONE


@_compile
def _narrow(lists, n, table):
    """Drop the lengths that no phrase ending with these two words has; kept words close up."""
    found = 0
    by = np.uint64(table.pair_shift)
    hashes, gaps, pair = lists.hashes, lists.gaps, table.pair
    word, mask, pair_key = lists.word, lists.mask, lists.pair_key
    address = np.uint64(pair.ctypes.data)
    for row in range(n):
        index = word[row]
        two = _finish(hashes[index - _INDEX] * _BASE + hashes[index] + gaps[index])
        pair_key[row] = two
        prefetch(address + (two >> by))
    for row in range(n):
        two = pair_key[row]
        bits = np.int64(mask[row]) & (np.int64(pair[two >> by]) | 1)
        word[found], mask[found], pair_key[found] = word[row], bits, two
        found += bits != 0
    return found


@_compile
def _make_keys(lists, n, table):
    """Keys of the phrases that may end with each word, one length after the other, past the Bloom filter."""
    hashes, gaps, word, mask, pair_key = lists.hashes, lists.gaps, lists.word, lists.mask, lists.pair_key
    picked, key, key_word, bounds = lists.picked, lists.key, lists.key_word, lists.bounds
    bloom, by = table.bloom, np.uint64(table.bloom_shift)
    address = np.uint64(bloom.ctypes.data)
    found = 0
    for length in range(1, table.max_words + 1):
        bounds[length] = found
        if table.lengths >> (length - 1) & 1 == 0:
            continue
        chosen = 0
        for row in range(n):
            picked[chosen] = row
            chosen += np.int64(mask[row]) >> (length - 1) & 1
        for at in range(chosen):
            row = picked[at]
            index = np.uint64(word[row])
            if length == 2:
                value = pair_key[row]
            else:
                value = hashes[index - np.uint64(length - 1)]
                for back in range(length - 2, -1, -1):
                    place = index - np.uint64(back)
                    value = value * _BASE + hashes[place] + gaps[place]
                value = _finish(value)
            key[found + at], key_word[found + at] = value, index
            prefetch(address + (value >> by >> _THREE))
        for at in range(found, found + chosen):
            value = key[at]
            bit = value >> by
            key[found], key_word[found] = value, key_word[at]
            found += np.int64(bloom[bit >> _U6] >> (bit & _U63) & _ONE)
        bounds[length] = found


@_compile
def next_chunk(data, size, table, lists, state, at):
    """The keys that end in the next chunk; returns the numbers of words and of NULs in it."""
    low = at[LOW]
    high = min(low + CHUNK, (size + 63) // 64 * 64)
    n_start, n, n_nul = edges(
        data, low, high, state, table.characters.classes, lists.start, lists.end, lists.joined, lists.nuls, at[OPEN]
    )
    hash_words(data, lists, n, at[END], table)
    found, at[RUN] = _select(lists, n, at[RUN], table)
    _make_keys(lists, _narrow(lists, found, table), table)
    at[LOW], at[OPEN] = high, n_start - n
    return n, n_nul


@_compile
def close_chunk(lists, at, n, n_nul):
    """Move what the next chunk needs to the front of the lists."""
    start, hashes, gaps = lists.start, lists.hashes, lists.gaps
    at[DOCUMENT] += n_nul
    at[WORDS] += n
    if n:
        at[END] = lists.end[BACK + n - 1]
    opened, opened_joined = start[BACK + n], lists.joined[BACK + n]
    for row in range(BACK):
        start[row], hashes[row], gaps[row] = start[n + row], hashes[n + row], gaps[n + row]
    start[BACK], lists.joined[BACK] = opened, opened_joined
