"""From keys to slots, without branches that are hard to foresee.

Keys wait in rows of two integers, the key and whatever the caller keeps beside it.
"""

# The compiled functions take arrays and tuples of arrays; numba infers their types.
# mypy: disable-error-code="no-untyped-def,assignment,arg-type"
from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from latentkt.corpus.kernel.simd import lowest_bit, match4, prefetch

__all__ = ["AHEAD", "find_slots"]

_ONE, _THREE, _FOUR, _EIGHT = np.uint64(1), np.uint64(3), np.uint64(4), np.uint64(8)
_NEAR, AHEAD = 32, 64  # keys between the prefetch of what the directory names, and of the directory, and their use
_compile: Any = njit(cache=True, boundscheck=False, error_model="numpy", nogil=True)


@_compile
def find_slots(waiting, n, table, beside, width):
    """Replace each key by its slot and drop those that have none; returns how many are left.

    `waiting` has `AHEAD` rows more, whatever they hold. `beside` is the address of an array with `width` bytes for each
    slot, which the caller will read next.
    """
    by = np.uint64(table.home_shift)
    keys, homes = table.keys, table.homes
    address, directory = np.uint64(keys.ctypes.data), np.uint64(homes.ctypes.data)
    beside, width = np.uint64(beside), np.uint64(width)
    found = 0
    for row in range(n):
        prefetch(directory + (waiting[row + AHEAD, 0] >> by) * _FOUR)
        soon = np.uint64(homes[waiting[row + _NEAR, 0] >> by])
        prefetch(address + soon * _EIGHT)
        prefetch(beside + soon * width)
        key, other = waiting[row, 0], waiting[row, 1]
        home = key >> by
        slot = np.uint64(homes[home])
        match = match4(address + slot * _EIGHT, key)
        if match == 0:
            stop = np.uint64(homes[home + _ONE])
            if stop > slot + _FOUR:  # rare: more keys share this home
                while slot < stop and keys[slot] != key:
                    slot += _ONE
                match = np.uint64(slot < stop)
        waiting[found, 0], waiting[found, 1] = slot + (np.uint64(lowest_bit(match)) & _THREE), other
        found += match != 0
    return found
