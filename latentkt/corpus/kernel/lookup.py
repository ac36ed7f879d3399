"""From keys to places in the table, without branches that are hard to foresee.

Keys wait in rows of two integers, the key and whatever the caller keeps beside it.
"""

# The compiled functions take arrays and tuples of arrays; numba infers their types.
# mypy: disable-error-code="no-untyped-def,assignment,arg-type"
from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from latentkt.corpus.kernel.simd import lowest_bit, match4, prefetch

__all__ = ["find_places"]

_ONE, _THREE, _EIGHT = np.uint64(1), np.uint64(3), np.uint64(8)
_AHEAD = 16  # keys between a prefetch and its use
_compile: Any = njit(cache=True, boundscheck=False, error_model="numpy", nogil=True)


@_compile
def find_places(waiting, n, table, beside, width):
    """Replace each key by its place in the table and drop those that have none; returns how many are left.

    `beside` is the address of an array with `width` bytes for each place, which the caller will read next.
    """
    by = np.uint64(table.home_shift)
    keys = table.keys
    address, beside, width = np.uint64(keys.ctypes.data), np.uint64(beside), np.uint64(width)
    found = 0
    for row in range(n):
        soon = waiting[min(row + _AHEAD, n - 1), 0] >> by
        prefetch(address + soon * _EIGHT)
        prefetch(beside + soon * width)
        key = waiting[row, 0]
        place = key >> by
        match = match4(address + place * _EIGHT, key)
        if match == 0 and keys[place + _THREE] != 0:  # rare: the key is absent, or lies far from its home
            while keys[place] != key and keys[place] != 0:
                place += _ONE
            match = np.uint64(keys[place] == key)
        waiting[found, 0], waiting[found, 1] = place + (np.uint64(lowest_bit(match)) & _THREE), waiting[row, 1]
        found += match != 0
    return found
