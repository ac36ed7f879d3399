"""Hashes of words and of the gaps between them; short ASCII words take two loads and two multiplications."""

# The compiled functions take arrays and tuples of arrays; numba infers their types.
# mypy: disable-error-code="no-untyped-def,assignment,arg-type"
from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from latentkt.corpus.kernel import hashing
from latentkt.corpus.kernel.edges import BACK, decode
from latentkt.corpus.kernel.simd import load64

__all__ = ["hash_gaps", "hash_words"]

_FIRST, _SECOND, _LATER = np.uint64(hashing.FIRST), np.uint64(hashing.SECOND), np.uint64(hashing.LATER)
_GAP_BASIS, _GAP_PRIME = np.uint64(hashing.GAP_BASIS), np.uint64(hashing.GAP_PRIME)
_HIGH = np.uint64(0x8080808080808080)
_ZERO, _ONE, _EIGHT, _SIXTEEN = np.uint64(0), np.uint64(1), np.uint64(8), np.uint64(16)
_GROUP = 32
_U23, _U41, _BIT5 = np.uint64(23), np.uint64(41), np.uint64(0x20)
_compile: Any = njit(cache=True, boundscheck=False, error_model="numpy", nogil=True)
_inline: Any = njit(cache=True, boundscheck=False, error_model="numpy", nogil=True, inline="always")


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
def hash_gaps(data, lists, n, previous_end, table):
    """Hash of the gap before each word, which then joins unless a document ends there."""
    classes, start, end, joined, added = table.characters[0], lists.start, lists.end, lists.joined, lists.added
    for index in range(BACK, BACK + n):
        added[index] = _ZERO
        if joined[index] == 0:
            before = np.int64(end[index - 1]) if index > BACK else previous_end
            if before >= 0:
                added[index], broken = gap_hash(data, before, np.int64(start[index]), classes)
                joined[index] = 0 if broken else 1


@_compile
def _hash_carefully(data, lists, low, high, table):
    """Hash of each of some words, whatever they hold; returns how many are long or not ASCII."""
    address, fold_bits = np.uint64(data.ctypes.data), np.uint64(table.fold_bits)
    _, folds, expansions = table.characters
    start, end, hashes, cache, masks = lists.start, lists.end, lists.hashes, lists.cache, lists.masks
    odd = _ZERO
    for index in range(low, high):
        first = np.int64(start[index])
        length = np.int64(end[index]) - first
        if length > 16:
            hashes[index] = slow_hash(data, first, first + length, folds, expansions, fold_bits)
            odd += _ONE
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
            odd += _ONE
        else:
            hashes[index] = (one | fold_bits & one_mask) * _FIRST + (two | fold_bits & two_mask) * _SECOND
    return odd


@_compile
def hash_words(data, lists, n, table):
    """Hash of every word, with gaps also plus that of the gap before it; lengths that no phrase with its end has go.

    Words are hashed in groups as if all were short and ASCII, without a branch; a group with another is hashed again,
    and so, at once, are those behind it as long as they hold such words.
    """
    address, fold_bits, shift = np.uint64(data.ctypes.data), np.uint64(table.fold_bits), np.uint64(table.last_shift)
    start, end, hashes, mask, masks, last = (
        lists.start, lists.end, lists.hashes, lists.mask, lists.masks, table.last,
    )  # fmt: skip
    low, stop, odd = BACK, BACK + n, _ZERO
    while low + _GROUP <= stop:
        if odd == 0:
            for index in range(low, low + _GROUP):
                first = np.uint64(start[index])
                length = np.uint64(end[index]) - first
                short = min(length, _SIXTEEN)
                one = (load64(address + first) | fold_bits) & masks[short, 0]
                two = (load64(address + first + _EIGHT) | fold_bits) & masks[short, 1]
                hashes[index] = one * _FIRST + two * _SECOND
                odd |= (one | two) & _HIGH | length - short
        if odd:
            odd = _hash_carefully(data, lists, low, low + _GROUP, table)
        for index in range(low, low + _GROUP):
            mask[index] &= last[hashes[index] >> shift]
        low += _GROUP
    _hash_carefully(data, lists, low, stop, table)  # behind the last word of the list stands anything
    for index in range(low, stop):
        mask[index] &= last[hashes[index] >> shift]
    if table.gaps:
        added = lists.added
        for index in range(BACK, BACK + n):
            added[index] += hashes[index]
