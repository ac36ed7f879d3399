"""The stages of the numba kernel: word edges, word hashes, phrase keys, the table. Each works on a chunk of text.

Word and gap lists carry `BACK` entries of the chunk before in front, so that phrases run over the edge of a chunk.
"""

# The compiled functions take arrays and tuples of arrays; numba infers their types.
# mypy: disable-error-code="no-untyped-def,assignment,arg-type"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from latentkt.corpus.kernel import hashing
from latentkt.corpus.kernel.simd import block_masks, count_bits, load64, lowest_bit, prefetch

__all__ = ["BACK", "CHUNK", "Lists", "care_places", "close_chunk", "edges", "hash_words", "new_lists", "next_chunk"]

BACK = 8
CHUNK = 32 * 1024
_FIRST, _SECOND, _LATER = np.uint64(hashing.FIRST), np.uint64(hashing.SECOND), np.uint64(hashing.LATER)
_BASE, _MIX = np.uint64(hashing.BASE), np.uint64(hashing.MIX)
_GAP_BASIS, _GAP_PRIME = np.uint64(hashing.GAP_BASIS), np.uint64(hashing.GAP_PRIME)
_HIGH = np.uint64(0x8080808080808080)
_ZERO, _ONE, _EIGHT = np.uint64(0), np.uint64(1), np.uint64(8)
_U23, _U41, _U32, _U63, _U6 = np.uint64(23), np.uint64(41), np.uint64(32), np.uint64(63), np.uint64(6)
_BIT5 = np.uint64(0x20)
_INDEX = np.uint32(1)
# Arrays are taken out of their tuples before each loop: inside it, every access would count references.
_compile: Any = njit(cache=True, boundscheck=False, error_model="numpy", nogil=True)
_inline: Any = njit(cache=True, boundscheck=False, error_model="numpy", nogil=True, inline="always")

# What `edges` carries from block to block, and what a scan carries from chunk to chunk.
PREVIOUS, CARRY, SKIP, KIND = range(4)
LOW, OPEN, RUN, WORDS, DOCUMENT, END = range(6)


class Lists(NamedTuple):
    """The lists of one chunk, used again for every chunk; `masks` and `cache` serve the hashing of words."""

    start: NDArray[np.uint32]
    end: NDArray[np.uint32]
    joined: NDArray[np.uint8]
    nuls: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    gaps: NDArray[np.uint64]
    word: NDArray[np.uint32]
    mask: NDArray[np.uint8]
    pair_key: NDArray[np.uint64]
    key: NDArray[np.uint64]
    key_word: NDArray[np.uint32]
    key_length: NDArray[np.uint8]
    masks: NDArray[np.uint64]
    cache: NDArray[np.uint64]


def new_lists(size: int = CHUNK) -> Lists:
    """Lists for the words of `size` bytes of text; edges are written in steps of four, hence the slack."""
    words = size // 2 + BACK + 72
    keys = BACK * (min(size, CHUNK) // 2 + BACK + 72)
    cache = np.zeros((8192, 3), np.uint64)
    cache[:, :2] = np.uint64(0xFFFFFFFFFFFFFFFF)
    u8, u32, u64 = np.uint8, np.uint32, np.uint64
    return Lists(
        np.zeros(words, u32), np.zeros(words, u32), np.zeros(words, u8), np.zeros(size + 256, np.int64),
        np.zeros(words, u64), np.zeros(words, u64), np.zeros(words, u32), np.zeros(words, u8), np.zeros(words, u64),
        np.zeros(keys, u64), np.zeros(keys, u32), np.zeros(keys, u8), hashing.piece_masks(), cache,
    )  # fmt: skip


@_inline
def decode(data, at):
    """Code point and width of the character at a lead byte."""
    lead = np.int64(data[at])
    if lead < 0x80:
        return lead, 1
    if lead < 0xE0:
        return (lead & 0x1F) << 6 | np.int64(data[at + 1]) & 0x3F, 2
    if lead < 0xF0:
        return (lead & 0x0F) << 12 | (np.int64(data[at + 1]) & 0x3F) << 6 | np.int64(data[at + 2]) & 0x3F, 3
    high = (lead & 0x07) << 18 | (np.int64(data[at + 1]) & 0x3F) << 12
    return high | (np.int64(data[at + 2]) & 0x3F) << 6 | np.int64(data[at + 3]) & 0x3F, 4


@_compile
def _beyond_ascii(data, at, word, space, high, state, classes):
    """Masks of words and white space with the characters beyond ASCII; one may reach into the next block."""
    skip, kind = np.int64(state[SKIP]), np.int64(state[KIND])
    bits = (_ONE << np.uint64(skip)) - _ONE
    left = high & ~bits
    word |= high
    if kind & 1 == 0:
        word &= ~bits
    if kind & 2:
        space |= bits
    skip = 0
    while left:
        place = lowest_bit(left)
        code, width = decode(data, at + place)
        kind = np.int64(classes[code])
        bits = ((_ONE << np.uint64(width)) - _ONE) << np.uint64(place)
        if kind & 1 == 0:
            word &= ~bits
        if kind & 2:
            space |= bits
        skip = max(place + width - 64, 0)
        left &= ~bits
    state[SKIP], state[KIND] = np.uint64(skip), np.uint64(kind)
    return word, space


@_compile
def edges(data, low, high, state, classes, start, end, joined, nuls, n_start):
    """Starts and ends of words in blocks of 64 bytes; whether the gap before each start is white space alone.

    Lists are written from index `BACK` on; `n_start` starts (0 or 1: a word still open) lie there already. NULs are
    noted as the number of starts before them. Returns the numbers of starts, ends and NULs.
    """
    address = np.uint64(data.ctypes.data)
    n_end = n_nul = 0
    previous, carry = state[PREVIOUS], state[CARRY]
    for at in range(low, high, 64):
        word, space, beyond, nul = block_masks(address + np.uint64(at))
        if beyond | state[SKIP]:
            word, space = _beyond_ascii(data, at, word, space, beyond, state, classes)
        shifted = word << _ONE | previous
        starts, ends = word & ~shifted, shifted & ~word
        # A run of white space that begins at the end of a word carries a bit through to the byte behind it.
        one = space + (ends & space)
        two = one + carry
        carry = np.uint64(one < space) | np.uint64(two < one)
        white = two & ~space
        previous = word >> _U63
        while nul:
            place = lowest_bit(nul)
            nuls[n_nul] = n_start + count_bits(starts & ((_ONE << np.uint64(place)) - _ONE))
            n_nul += 1
            nul &= nul - _ONE
        many = count_bits(starts)
        at_start = BACK + n_start
        for index in range(0, many, 4):
            for step in range(4):
                place = lowest_bit(starts)
                start[at_start + index + step] = at + place
                joined[at_start + index + step] = white >> np.uint64(place & 63) & _ONE
                starts &= starts - _ONE
        n_start += many
        many = count_bits(ends)
        at_end = BACK + n_end
        for index in range(0, many, 4):
            for step in range(4):
                end[at_end + index + step] = at + lowest_bit(ends)
                ends &= ends - _ONE
        n_end += many
    state[PREVIOUS], state[CARRY] = previous, carry
    return n_start, n_end, n_nul


@_inline
def _utf8_byte(code, width, index):
    """Byte `index` of a character of `width` bytes."""
    if width == 1:
        return np.uint64(code)
    if index == 0:
        return np.uint64((0xF00 >> width) & 0xFF | code >> 6 * (width - 1))
    return np.uint64(0x80 | code >> 6 * (width - 1 - index) & 0x3F)


@_inline
def _add_piece(piece, done, value):
    """Take the next eight bytes of a word into its hash."""
    if done == 0:
        return piece * _FIRST
    if done == 1:
        return value + piece * _SECOND
    return ((value << _U23 | value >> _U41) ^ piece) * _LATER


@_compile
def slow_hash(data, first, stop, folds, expansions, fold_bits):
    """Hash of a long word, or one with characters beyond ASCII, by its definition (see `hashing`)."""
    value = piece = filled = _ZERO
    done = 0
    at = first
    while at < stop:
        code, width = decode(data, at)
        at += width
        code = np.int64(folds[code]) if code >= 128 else code
        row = code - 0x110000
        for part in range(3 if row >= 0 else 1):
            code = np.int64(expansions[row, part]) if row >= 0 else code
            if code == 0:
                break
            width = 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4
            for index in range(width):
                byte = _utf8_byte(code, width, index)
                byte |= fold_bits & _BIT5 if width == 1 else _ZERO
                piece |= byte << (filled * _EIGHT)
                filled += _ONE
                if filled == _EIGHT:
                    value = _add_piece(piece, done, value)
                    done += 1
                    piece = filled = _ZERO
    return _add_piece(piece, done, value) if filled else value


@_compile
def gap_hash(data, first, stop, classes):
    """Hash of the text between two words (see `hashing`), and whether a document ends in it."""
    value = _GAP_BASIS
    in_space = False
    count = 0
    at = first
    while at < stop:
        code, width = decode(data, at)
        if code == 0:
            return _ZERO, True
        space = classes[code] & 2 != 0
        if not (space and in_space):
            count += 1
            if space:
                value = (value ^ _BIT5) * _GAP_PRIME
            else:
                for index in range(width):
                    value = (value ^ np.uint64(data[at + index])) * _GAP_PRIME
        in_space = space
        at += width
    return (_ZERO if in_space and count == 1 else value), False


@_compile
def hash_words(data, lists, n, previous_end, table):
    """Hash of every word; with gaps also that of the gap before it, which then joins unless a document ends there."""
    address = np.uint64(data.ctypes.data)
    fold_bits = np.uint64(table.fold_bits)
    classes, folds, expansions = table.characters
    start, end, joined, hashes, gaps = lists.start, lists.end, lists.joined, lists.hashes, lists.gaps
    cache, masks = lists.cache, lists.masks
    for index in range(BACK, BACK + n):
        first = np.int64(start[index])
        length = np.int64(end[index]) - first
        if length > 16:
            hashes[index] = slow_hash(data, first, first + length, folds, expansions, fold_bits)
            continue
        one_mask, two_mask = masks[np.uint64(length), 0], masks[np.uint64(length), 1]
        one = load64(address + np.uint64(first)) & one_mask
        two = load64(address + np.uint64(first + 8)) & two_mask
        if (one | two) & _HIGH:
            slot = ((one ^ two) * _FIRST) >> np.uint64(51)
            if cache[slot, 0] != one or cache[slot, 1] != two:
                cache[slot, 0], cache[slot, 1] = one, two
                cache[slot, 2] = slow_hash(data, first, first + length, folds, expansions, fold_bits)
            hashes[index] = cache[slot, 2]
        else:
            hashes[index] = (one | fold_bits & one_mask) * _FIRST + (two | fold_bits & two_mask) * _SECOND
    if table.gaps:
        for index in range(BACK, BACK + n):
            gaps[index] = _ZERO
            if joined[index] == 0:
                before = np.int64(end[index - 1]) if index > BACK else previous_end
                if before >= 0:
                    gaps[index], broken = gap_hash(data, before, np.int64(start[index]), classes)
                    joined[index] = 0 if broken else 1


@_compile
def select(lists, n, run, table):
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
def pair_stage(lists, n, table):
    """Drop the lengths that no phrase ending with these two words has; kept words close up. No branch: most fail."""
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
def phrase_stage(lists, n, bloom, bloom_shift):
    """Keys of the phrases that may end with each word, shorter first, past the Bloom filter."""
    found = 0
    by = np.uint64(bloom_shift)
    hashes, gaps, word, mask, pair_key = lists.hashes, lists.gaps, lists.word, lists.mask, lists.pair_key
    key, key_word, key_length = lists.key, lists.key_word, lists.key_length
    for row in range(n):
        index, bits = np.int64(word[row]), np.uint64(mask[row])
        while bits:
            length = lowest_bit(bits) + 1
            bits &= bits - _ONE
            value = pair_key[row]
            if length != 2:
                value = hashes[np.uint64(index - length + 1)]
                for back in range(length - 2, -1, -1):
                    value = value * _BASE + hashes[np.uint64(index - back)] + gaps[np.uint64(index - back)]
                value = _finish(value)
            bit = value >> by
            key[found], key_word[found], key_length[found] = value, index, length
            found += np.int64(bloom[bit >> _U6] >> (bit & _U63) & _ONE)
    return found


@_compile
def next_chunk(data, size, table, lists, state, at, bloom, bloom_shift):
    """The keys that end in the next chunk; returns how many, and the numbers of words and of NULs in it."""
    low = at[LOW]
    high = min(low + CHUNK, (size + 63) // 64 * 64)
    n_start, n, n_nul = edges(
        data, low, high, state, table.characters.classes, lists.start, lists.end, lists.joined, lists.nuls, at[OPEN]
    )
    hash_words(data, lists, n, at[END], table)
    found, at[RUN] = select(lists, n, at[RUN], table)
    found = phrase_stage(lists, pair_stage(lists, found, table), bloom, bloom_shift)
    at[LOW], at[OPEN] = high, n_start - n
    return found, n, n_nul


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


@_compile
def care_places(data, size, classes, places):
    """Bytes at which a character lies that preparation may change (bit 4 of its class), at most len(places) of them."""
    address = np.uint64(data.ctypes.data)
    found = at = 0
    while at < size:
        high = load64(address + np.uint64(at)) & _HIGH
        if high == 0:
            at += 8
            continue
        at += lowest_bit(high) >> 3
        if at >= size:
            break
        code, width = decode(data, at)
        if classes[code] & 4:
            places[found] = at
            found += 1
            if found == len(places):
                return found
        at += width
    return found
