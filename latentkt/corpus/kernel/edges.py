"""Where words begin and end: masks of 64 bytes at a time, with characters beyond ASCII looked up one by one."""

# The compiled functions take arrays and tuples of arrays; numba infers their types.
# mypy: disable-error-code="no-untyped-def,assignment,arg-type"
from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from latentkt.corpus.kernel.bits import list_bits, list_flags
from latentkt.corpus.kernel.simd import block_masks, count_bits, load64, lowest_bit

__all__ = ["BACK", "care_places", "decode", "edges"]

BACK = 8  # entries of the chunk before that lists carry in front, so that phrases run over the edge of a chunk
_ZERO, _ONE, _FOUR, _U63 = np.uint64(0), np.uint64(1), np.uint64(4), np.uint64(63)
_HIGH = np.uint64(0x8080808080808080)
_compile: Any = njit(cache=True, boundscheck=False, error_model="numpy", nogil=True)
_inline: Any = njit(cache=True, boundscheck=False, error_model="numpy", nogil=True, inline="always")

PREVIOUS, CARRY, SKIP, KIND = range(4)  # what `edges` carries from block to block


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
    start_address, end_address = np.uint64(start[BACK:].ctypes.data), np.uint64(end[BACK:].ctypes.data)
    joined_address = np.uint64(joined[BACK:].ctypes.data)
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
        list_bits(starts, at, start_address + _FOUR * np.uint64(n_start))
        list_flags(white, starts, joined_address + np.uint64(n_start))
        n_start += count_bits(starts)
        list_bits(ends, at, end_address + _FOUR * np.uint64(n_end))
        n_end += count_bits(ends)
    state[PREVIOUS], state[CARRY] = previous, carry
    return n_start, n_end, n_nul


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
