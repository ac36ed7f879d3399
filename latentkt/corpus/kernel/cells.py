"""From matches to sums by cluster and cell, compiled: the hits of `units`, each added to a hash table at once."""

# The compiled functions take arrays and tuples of arrays; numba infers their types.
# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["CellSums"]

_MIX, _FREE = np.uint64(0x9E3779B97F4A7C15), np.int64(-1)
_ONE = np.uint64(1)
_compile: Any = njit(cache=True, boundscheck=False, error_model="numpy", nogil=True)


@_compile
def _add(codes, values, keys, sums, used):
    """Add values to the sums of their codes until half the table is full; returns how many were added, and the fill."""
    by = np.uint64(64 - np.int64(np.log2(len(keys))))
    last = np.uint64(len(keys) - 1)
    for row in range(len(codes)):
        code = codes[row]
        place = np.uint64(code) * _MIX >> by
        while keys[place] != code and keys[place] != _FREE:
            place = place + _ONE & last
        if keys[place] == _FREE:
            if 2 * used >= len(keys):
                return row, used
            keys[place] = code
            used += 1
        sums[place] += values[row if len(values) > 1 else 0]
    return len(codes), used


@_compile
def _unit_codes(row, unit, name, base, shape, seen, some, codes):
    """Cells of the units from `row` on, until `codes` may run over; returns the next row and the number of codes.

    A unit gives one hit for each name in it and one for each of its keys with each of its tasks.
    """
    n_keys, n_tasks, single, joint = shape
    filled = 0
    while row < len(unit):
        stop, keys, tasks = row, 0, len(some)
        while stop < len(unit) and unit[stop] == unit[row]:
            one = name[stop]
            if seen[one] != row + 1:
                seen[one] = row + 1
                if one < n_keys:
                    some[keys] = one
                    keys += 1
                else:
                    tasks -= 1
                    some[tasks] = one
            stop += 1
        if filled + keys + (keys + 1) * (len(some) - tasks) > len(codes):
            return row, filled
        for place in range(len(some) - tasks + keys):
            codes[filled + place] = base[row] + single + some[place if place < keys else tasks + place - keys]
        filled += len(some) - tasks + keys
        for key in some[:keys]:
            for task in some[tasks:]:
                codes[filled] = base[row] + joint + key * n_tasks + task - n_keys
                filled += 1
        row = stop
    return row, filled


@_compile
def _window_codes(row, matches, name, base, shape, seen, some, codes):
    """Cells of the key occurrences from `row` on with a task in their window; as `_unit_codes`."""
    document, first, last = matches
    n_keys, n_tasks, size, joint = shape
    filled = tasks = 0
    current = np.int64(-1)
    while row < len(name):
        if document[row] != current:
            current, tasks = document[row], 0
            at = row
            while at > 0 and document[at - 1] == current:
                at -= 1
            while at < len(name) and document[at] == current:
                if name[at] >= n_keys:
                    some[tasks] = at
                    tasks += 1
                at += 1
        if filled + tasks > len(codes):
            return row, filled
        if name[row] < n_keys:
            left, right = first[row] - size, last[row] + size
            low, high = 0, tasks
            while low < high:  # the first task that ends inside
                middle = (low + high) // 2
                if last[some[middle]] < left:
                    low = middle + 1
                else:
                    high = middle
            while low < tasks and last[some[low]] <= right:
                task = some[low]
                if first[task] >= left and seen[name[task]] != row + 1:
                    seen[name[task]] = row + 1
                    codes[filled] = base[row] + joint + name[row] * n_tasks + name[task] - n_keys
                    filled += 1
                low += 1
        row += 1
    return row, filled


class CellSums:
    """Sums by code (row of a cluster × number of cells + cell).

    Attributes:
        used: Codes with a sum.
    """

    def __init__(self) -> None:
        self._keys, self._sums, self.used = np.full(1 << 14, _FREE), np.zeros(1 << 14, np.int64), 0
        self._codes = np.zeros(1 << 16, np.int64)

    def add(self, codes: NDArray[np.int64], values: NDArray[np.int64]) -> None:
        """Add a value to the sum of each code; one value stands for all."""
        done = 0
        while True:
            many, self.used = _add(codes[done:], values[done:] if len(values) > 1 else values, self._keys, self._sums, self.used)
            done += many
            if done == len(codes):
                return
            there = np.flatnonzero(self._keys != _FREE)
            keys, sums = self._keys[there], self._sums[there]
            self._keys, self._sums = np.full(4 * len(self._keys), _FREE), np.zeros(4 * len(self._keys), np.int64)
            self.used = 0
            self.add(keys, sums)

    def add_units(
        self, unit: NDArray[np.int64], name: NDArray[np.int64], base: NDArray[np.int64], shape: tuple[int, int, int, int]
    ) -> None:
        """Add the hits of units: `shape` is keys, tasks, first cell of single names, first cell of keys with tasks."""
        self._add_all(_unit_codes, unit, name, base, shape)

    def add_windows(
        self,
        matches: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
        name: NDArray[np.int64],
        base: NDArray[np.int64],
        shape: tuple[int, int, int, int],
    ) -> None:
        """Add the hits of windows: `matches` are document, first and last word; `shape` as above with the window's size."""
        self._add_all(_window_codes, matches, name, base, shape)

    def _add_all(self, make: Any, units: Any, name: NDArray[np.int64], base: NDArray[np.int64], shape: Any) -> None:
        seen = np.zeros(shape[0] + shape[1], np.int64)
        some = np.zeros(max(len(name), 1), np.int64)
        row = 0
        while row < len(name):
            before = row
            row, filled = make(row, units, name, base, shape, seen, some, self._codes)
            self.add(self._codes[:filled], np.ones(1, np.int64))
            if row == before:
                self._codes = np.zeros(4 * len(self._codes), np.int64)
            seen[:] = 0

    def take(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Codes and their sums, in no order; nothing is left."""
        there = np.flatnonzero(self._keys != _FREE)
        keys, sums = self._keys[there], self._sums[there]
        self._keys[:], self._sums[:], self.used = _FREE, 0, 0
        return keys, sums
