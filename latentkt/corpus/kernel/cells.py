"""From matches to sums by cluster and cell, compiled: the hits of `units`, each added to a hash table at once."""

# The compiled functions take arrays and tuples of arrays; numba infers their types.
# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from latentkt.corpus.kernel.simd import prefetch

__all__ = ["CellSums"]

_Shape = tuple[int, int, int, int]

_MIX = np.uint64(0x9E3779B97F4A7C15)
_ONE, _SIXTEEN = np.uint64(1), np.uint64(16)
_AHEAD = 24  # codes between a prefetch and its use
_START = 1 << 16
_compile: Any = njit(cache=True, boundscheck=False, error_model="numpy", nogil=True)


@_compile
def _add(codes, values, single, table, used):
    """Add values to the sums of their codes until half the table is full; returns how many were added, and the fill.

    Codes are kept plus one: 0 is a free place.
    """
    by = np.uint64(64 - np.int64(np.log2(len(table))))
    last = np.uint64(len(table) - 1)
    address = np.uint64(table.ctypes.data)
    n = len(codes)
    for row in range(n):
        soon = np.uint64(codes[min(row + _AHEAD, n - 1)]) * _MIX >> by
        prefetch(address + soon * _SIXTEEN)
        code = codes[row]
        place = np.uint64(code) * _MIX >> by
        while table[place, 0] != code + 1 and table[place, 0] != 0:
            place = place + _ONE & last
        if table[place, 0] == 0:
            if 2 * used >= len(table):
                return row, used
            table[place, 0] = code + 1
            used += 1
        table[place, 1] += values[0 if single else row]
    return n, used


@_compile
def _look_up(codes, table, sums):
    """The sums of codes that the table holds."""
    by = np.uint64(64 - np.int64(np.log2(len(table))))
    last = np.uint64(len(table) - 1)
    address = np.uint64(table.ctypes.data)
    n = len(codes)
    for row in range(n):
        soon = np.uint64(codes[min(row + _AHEAD, n - 1)]) * _MIX >> by
        prefetch(address + soon * _SIXTEEN)
        place = np.uint64(codes[row]) * _MIX >> by
        while table[place, 0] != codes[row] + 1:
            place = place + _ONE & last
        sums[row] = table[place, 1]


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
def _tasks_beside(row, document, name, n_keys, some):
    """List the tasks in the document of a row; returns how many."""
    at, tasks = row, 0
    while at > 0 and document[at - 1] == document[row]:
        at -= 1
    while at < len(name) and document[at] == document[row]:
        if name[at] >= n_keys:
            some[tasks] = at
            tasks += 1
        at += 1
    return tasks


@_compile
def _first_from(some, tasks, last, left):
    """The first of the tasks that ends at the word `left` or behind it."""
    low, high = 0, tasks
    while low < high:
        middle = (low + high) // 2
        if last[some[middle]] < left:
            low = middle + 1
        else:
            high = middle
    return low


@_compile
def _window_codes(row, matches, name, base, shape, seen, some, codes):
    """Cells of the key occurrences from `row` on with a task in their window; as `_unit_codes`."""
    document, first, last = matches
    n_keys, n_tasks, size, joint = shape
    filled = tasks = 0
    current = np.int64(-1)
    while row < len(name):
        if document[row] != current:
            current, tasks = document[row], _tasks_beside(row, document, name, n_keys, some)
        if filled + tasks > len(codes):
            return row, filled
        if name[row] < n_keys:
            left, right = first[row] - size, last[row] + size
            low = _first_from(some, tasks, last, left)
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

    used: int

    def __init__(self) -> None:
        self._clear(_START)
        self._codes = np.zeros(1 << 16, np.int64)

    def add(self, codes: NDArray[np.int64], values: NDArray[np.int64]) -> None:
        """Add a value to the sum of each code; one value stands for all."""
        done = 0
        while True:
            rest = values[done:] if len(values) == len(codes) else values
            many, self.used = _add(codes[done:], rest, len(values) == 1, self._table, self.used)
            done += many
            if done == len(codes):
                return
            kept = self._table[self._table[:, 0] > 0]
            self._clear(2 * len(self._table))
            self.add(kept[:, 0] - 1, kept[:, 1])

    def add_units(
        self,
        unit: NDArray[np.int64],
        name: NDArray[np.int64],
        base: NDArray[np.int64],
        shape: _Shape,
    ) -> None:
        """Add the hits of units: `shape` is keys, tasks, first cell of single names, first cell of keys with tasks."""
        self._add_all(_unit_codes, unit, name, base, shape)

    def add_windows(
        self,
        matches: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
        name: NDArray[np.int64],
        base: NDArray[np.int64],
        shape: _Shape,
    ) -> None:
        """Add the hits of windows: `matches` are document, first and last word; the third of `shape` is the size."""
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
        """Codes in order and their sums; nothing is left."""
        codes = self._table[:, 0]
        codes = np.sort(codes[codes > 0] - 1)
        sums = np.empty(len(codes), np.int64)
        _look_up(codes, self._table, sums)
        self._clear(_START)
        return codes, sums

    def _clear(self, size: int) -> None:
        self._table, self.used = np.zeros((size, 2), np.int64), 0
