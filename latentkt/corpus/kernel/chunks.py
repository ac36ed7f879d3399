"""A chunk of text, from words to the keys of the phrases that may end in it.

Two filters, one byte a bucket, leave of all words those that end a phrase, and of all lengths those that the last two
words allow; keys are then made one length after the other, so that no loop holds a branch that is hard to foresee.
"""

# The compiled functions take arrays and tuples of arrays; numba infers their types.
# mypy: disable-error-code="no-untyped-def,assignment,arg-type"
from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from latentkt.corpus.kernel import hashing
from latentkt.corpus.kernel.bits import list_bits
from latentkt.corpus.kernel.edges import BACK, edges
from latentkt.corpus.kernel.simd import byte_mask, count_bits, prefetch, store_lengths
from latentkt.corpus.kernel.words import hash_gaps, hash_words

__all__ = ["CHUNK", "KEYS", "Lists", "close_chunk", "forget", "new_lists", "next_chunk"]

CHUNK = 32 * 1024
KEYS = hashing.MAX_WORDS * (CHUNK // 2 + 1)  # most keys of one chunk
_BASE, _MIX = np.uint64(hashing.BASE), np.uint64(hashing.MIX)
_ONE, _THREE, _FOUR, _U6, _U32, _U63 = (np.uint64(value) for value in (1, 3, 4, 6, 32, 63))
_INDEX, _SINGLE, _ANY = np.uint32(1), np.uint8(1), np.uint64(0xFF)
# Arrays are taken out of their tuples before each loop, and no loop calls a function with arrays: either would count
# references every time round.
_compile: Any = njit(cache=True, boundscheck=False, error_model="numpy", nogil=True)

LOW, OPEN, WORDS, DOCUMENT, END = range(5)  # what a scan carries from chunk to chunk


class Lists(NamedTuple):
    """The lists of one chunk, used again for every chunk.

    Attributes:
        start: First byte of each word, from index `BACK` on.
        end: Byte behind it.
        joined: Whether a phrase may run over the gap before it.
        nuls: For each NUL, how many words start before it.
        numbers: Number of the document of each word, for who counts documents.
        hashes: Hash of each word.
        added: Hash of each word plus that of the gap before it; not filled where the table has no gaps.
        mask: Lengths of the phrases that may end with each word, as bits.
        word: Words that may end a phrase.
        left: Of those, the lengths that the last two words allow.
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
    numbers: NDArray[np.uint32]
    hashes: NDArray[np.uint64]
    added: NDArray[np.uint64]
    mask: NDArray[np.uint8]
    word: NDArray[np.uint32]
    left: NDArray[np.uint8]
    pair_key: NDArray[np.uint64]
    picked: NDArray[np.uint32]
    key: NDArray[np.uint64]
    key_word: NDArray[np.uint32]
    bounds: NDArray[np.int64]
    masks: NDArray[np.uint64]
    cache: NDArray[np.uint64]


def new_lists(size: int = CHUNK) -> Lists:
    """Lists for the words of `size` bytes of text; 64 entries are written at once, hence the slack."""
    words = size // 2 + BACK + 136
    one, four, eight = (partial(np.zeros, dtype=kind) for kind in (np.uint8, np.uint32, np.uint64))
    lists = Lists(
        start=four(words), end=four(words), joined=one(words), nuls=np.zeros(size + 256, np.int64), numbers=four(words),
        hashes=eight(words), added=eight(words), mask=one(words), word=four(words), left=one(words),
        pair_key=eight(words), picked=four(words), key=eight(KEYS), key_word=four(KEYS),
        bounds=np.zeros(hashing.MAX_WORDS + 1, np.int64), masks=hashing.piece_masks(),
        cache=np.zeros((8192, 3), np.uint64),
    )  # fmt: skip
    forget(lists)
    return lists


def forget(lists: Lists) -> None:
    """Empty the cache of hashes: they hold for one table alone. What else the lists keep is overwritten or not read."""
    lists.cache[:, :2] = np.uint64(0xFFFFFFFFFFFFFFFF)  # no word has these bytes


@_compile
def _allow(lists, n):
    """For each word, the lengths of the phrases that may end with it as far as the gaps go, as bits."""
    joined, mask = np.uint64(lists.joined.ctypes.data), np.uint64(lists.mask.ctypes.data)
    for low in range(BACK, BACK + n, 64):
        store_lengths(joined + np.uint64(low), mask + np.uint64(low))


@_compile
def _finish(value):
    key = (value ^ value >> _U32) * _MIX
    return key if key else _ONE


@_compile
def _select(lists, n):
    """Words that may end a phrase."""
    found = 0
    mask, word = np.uint64(lists.mask.ctypes.data), np.uint64(lists.word.ctypes.data)
    for low in range(BACK, BACK + n, 64):
        bits = byte_mask(mask + np.uint64(low), _ANY)
        if low + 64 > BACK + n:
            bits &= (_ONE << np.uint64(BACK + n - low)) - _ONE
        list_bits(bits, low, word + _FOUR * np.uint64(found))
        found += count_bits(bits)
    return found


@_compile
def _narrow(lists, n, table):
    """Drop the lengths that no phrase ending with these two words has."""
    by = np.uint64(table.pair_shift)
    hashes, added, pair = lists.hashes, lists.added if table.gaps else lists.hashes, table.pair
    word, mask, left, pair_key = lists.word, lists.mask, lists.left, lists.pair_key
    address = np.uint64(pair.ctypes.data)
    for row in range(n):
        index = word[row]
        two = _finish(hashes[index - _INDEX] * _BASE + added[index])
        pair_key[row] = two
        prefetch(address + (two >> by))
    for row in range(n):
        left[row] = mask[word[row]] & (pair[pair_key[row] >> by] | _SINGLE)


@_compile
def _pick(lists, n, length):
    """Rows of `word` at which phrases of one length may end."""
    chosen = 0
    left, picked = np.uint64(lists.left.ctypes.data), np.uint64(lists.picked.ctypes.data)
    bit = _ONE << np.uint64(length - 1)
    for low in range(0, n, 64):
        bits = byte_mask(left + np.uint64(low), bit)
        if low + 64 > n:
            bits &= (_ONE << np.uint64(n - low)) - _ONE
        list_bits(bits, low, picked + _FOUR * np.uint64(chosen))
        chosen += count_bits(bits)
    return chosen


@_compile
def _make_keys(lists, n, table):
    """Keys of the phrases that may end with each word, one length after the other, past the Bloom filter."""
    hashes, added = lists.hashes, lists.added if table.gaps else lists.hashes
    word, pair_key, picked = lists.word, lists.pair_key, lists.picked
    key, key_word, bounds = lists.key, lists.key_word, lists.bounds
    bloom, by = table.bloom, np.uint64(table.bloom_shift)
    address = np.uint64(bloom.ctypes.data)
    found = 0
    for length in range(1, table.max_words + 1):
        bounds[length] = found
        if table.lengths >> (length - 1) & 1 == 0:
            continue
        chosen = _pick(lists, n, length)
        for at in range(chosen):
            row = picked[at]
            index = np.uint64(word[row])
            if length == 2:
                value = pair_key[row]
            else:
                value = hashes[index - np.uint64(length - 1)]
                for back in range(length - 2, -1, -1):
                    value = value * _BASE + added[index - np.uint64(back)]
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
    if table.gaps:
        hash_gaps(data, lists, n, at[END], table)
    _allow(lists, n)
    hash_words(data, lists, n, table)
    found = _select(lists, n)
    _narrow(lists, found, table)
    _make_keys(lists, found, table)
    at[LOW], at[OPEN] = high, n_start - n
    return n, n_nul


@_compile
def close_chunk(lists, at, n, n_nul):
    """Move what the next chunk needs to the front of the lists."""
    start, joined, hashes, added = lists.start, lists.joined, lists.hashes, lists.added
    at[DOCUMENT] += n_nul
    at[WORDS] += n
    if n:
        at[END] = lists.end[BACK + n - 1]
    opened, opened_joined = start[BACK + n], joined[BACK + n]
    for row in range(BACK):
        start[row], joined[row] = start[n + row], joined[n + row]
        hashes[row], added[row] = hashes[n + row], added[n + row]
    start[BACK], joined[BACK] = opened, opened_joined
