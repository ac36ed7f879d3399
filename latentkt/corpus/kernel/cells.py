"""From matches to sums by cluster and cell, compiled: the hits of `units`, logged, sorted by cluster and added up.

A hit is one cell in a log; marks tell which cluster the hits up to there belong to. When the log is full, the hits of a
few clusters at a time are copied out, sorted while they lie in the cache, added up, and merged with the earlier sums. A
hash table would meet a cache miss at every hit: most cells are met once or twice.
"""

# The compiled functions take arrays and tuples of arrays; numba infers their types.
# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["CellSums"]

_Ints = NDArray[np.int64]
_Shape = tuple[int, int, int, int]

_LOG = 1 << 23  # hits between two sortings
_GROUP = 1 << 16  # hits sorted at once, or those of one cluster
_HITS, _MARKS = range(2)  # of the state of a log
_compile: Any = njit(cache=True, boundscheck=False, error_model="numpy", nogil=True)
_inline: Any = njit(cache=True, boundscheck=False, error_model="numpy", nogil=True, inline="always")


@_compile
def _single(row, hits, rows, shape, lists, log, marks, at):
    """Log the cells of hits from `row` on until the log is full; returns the next row."""
    document, cell = hits
    filled, marked = at[_HITS], at[_MARKS]
    while row < len(cell) and filled < len(log):
        log[filled] = cell[row]
        filled += 1
        row += 1
        if row == len(cell) or document[row] != document[row - 1] or filled == len(log):
            marks[marked, 0], marks[marked, 1] = rows[document[row - 1]], filled
            marked += 1
    at[_HITS], at[_MARKS] = filled, marked
    return row


@_compile
def _units(row, hits, rows, shape, lists, log, marks, at):
    """Log the cells of the units from `row` on until the log might run over; returns the next row.

    A unit gives one hit for each name in it and one for each of its keys with each of its tasks.
    """
    document, unit, name = hits
    seen, some = lists
    n_keys, n_tasks, single, joint = shape
    filled, marked = at[_HITS], at[_MARKS]
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
        if filled + keys + (keys + 1) * (len(some) - tasks) > len(log):
            break
        for place in range(keys):
            log[filled + place] = single + some[place]
        filled += keys
        for place in range(tasks, len(some)):
            log[filled + place - tasks] = single + some[place]
        filled += len(some) - tasks
        for place in range(keys):
            first = joint + some[place] * n_tasks - n_keys
            for task in range(tasks, len(some)):
                log[filled + task - tasks] = first + some[task]
            filled += len(some) - tasks
        marks[marked, 0], marks[marked, 1] = rows[document[row]], filled
        marked += 1
        row = stop
    at[_HITS], at[_MARKS] = filled, marked
    return row


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


@_inline
def _near(row, low, tasks, hits, shape, lists, log, filled):
    """Log the tasks of a document in the window of one key; returns the first that may lie in the next, and hits."""
    _, first, last, name = hits
    seen, some = lists
    n_keys, n_tasks, size, joint = shape
    left, right = first[row] - size, last[row] + size
    while low > 0 and last[some[low - 1]] >= left:  # a longer key may start before the one before it
        low -= 1
    while low < tasks and last[some[low]] < left:
        low += 1
    near = low
    while near < tasks and last[some[near]] <= right:
        task = some[near]
        if first[task] >= left and seen[name[task]] != row + 1:
            seen[name[task]] = row + 1
            log[filled] = joint + name[row] * n_tasks + name[task] - n_keys
            filled += 1
        near += 1
    return low, filled


@_compile
def _windows(row, hits, rows, shape, lists, log, marks, at):
    """Log the cells of the key occurrences from `row` on with a task in their window; as `_units`."""
    document, _, _, name = hits
    n_keys, n_tasks, _, _ = shape
    filled, marked = at[_HITS], at[_MARKS]
    tasks = low = 0
    current = np.int64(-1)
    while row < len(name) and filled + n_tasks <= len(log):
        if document[row] != current:
            current, tasks, low = document[row], _tasks_beside(row, document, name, n_keys, lists[1]), 0
        if name[row] < n_keys:
            low, filled = _near(row, low, tasks, hits, shape, lists, log, filled)
        row += 1
        if row == len(name) or document[row] != current or filled + n_tasks > len(log):
            marks[marked, 0], marks[marked, 1] = rows[current], filled
            marked += 1
    at[_HITS], at[_MARKS] = filled, marked
    return row


@_compile
def _gather(log, marks, order, low, size, limit, out):
    """Copy out the hits of clusters in order, from mark `low` on, until they are enough; returns marks and hits done.

    Cells of the clusters are told apart by `size` times the number of the cluster less that of the first.
    """
    first, filled = marks[order[low], 0], 0
    row = first
    while low < len(order):
        mark = order[low]
        if marks[mark, 0] != row:
            row = marks[mark, 0]
            if filled >= _GROUP or row - first >= limit:
                break
        base = (row - first) * size
        start = marks[mark - 1, 1] if mark else 0
        many = marks[mark, 1] - start
        for place in range(many):
            out[filled + place] = log[start + place] + base
        filled += many
        low += 1
    return low, filled


@_compile
def _add_up(part, base, codes, sums, used):
    """Append the distinct codes of sorted hits and how often each stands there; returns how many there are now."""
    first, at = used, used - 1
    last = np.int64(-1)
    for row in range(len(part)):
        code = np.int64(part[row])
        at += code != last
        codes[at], sums[at] = base + code, row + 1  # the last one stays
        last = code
    for place in range(at, first, -1):
        sums[place] -= sums[place - 1]
    return at + 1


@_compile
def _merge(one, one_sums, two, two_sums, codes, sums):
    """Merge two sorted lists of codes with their sums; returns how many there are."""
    a = b = used = 0
    while a < len(one) and b < len(two):
        left, right = one[a], two[b]
        codes[used] = min(left, right)
        sums[used] = one_sums[a] * (left <= right) + two_sums[b] * (right <= left)
        a += left <= right
        b += right <= left
        used += 1
    while a < len(one):
        codes[used], sums[used] = one[a], one_sums[a]
        a += 1
        used += 1
    while b < len(two):
        codes[used], sums[used] = two[b], two_sums[b]
        b += 1
        used += 1
    return used


class CellSums:
    """Sums by code (row of a cluster × number of cells + cell).

    Args:
        size: Number of cells.
        log: Hits kept before they are sorted.
    """

    def __init__(self, size: int, *, log: int = _LOG) -> None:
        self._size = size
        self._cell = np.dtype(np.uint32 if size <= 1 << 32 else np.int64)
        self._limit = (1 << 32 if self._cell.itemsize == 4 else 1 << 63) // size
        self._log, self._marks = np.empty(log, self._cell), np.empty((1 << 12, 2), np.int64)
        self._at = np.zeros(2, np.int64)
        self._sums = np.zeros(0, np.int64), np.zeros(0, np.int64)

    @property
    def used(self) -> int:
        """Codes with a sum, those aside that still wait in the log."""
        return len(self._sums[0])

    def add(self, document: _Ints, cell: _Ints, rows: _Ints) -> None:
        """Add one to a cell for each hit; `rows` is the row of the cluster of each document."""
        self._add(_single, (document, cell), rows, (0, 0, 0, 0))

    def add_units(self, document: _Ints, unit: _Ints, name: _Ints, rows: _Ints, shape: _Shape) -> None:
        """Add the hits of units: `shape` is keys, tasks, first cell of single names, first cell of keys with tasks."""
        self._add(_units, (document, unit, name), rows, shape)

    def add_windows(self, document: _Ints, words: tuple[_Ints, _Ints], name: _Ints, rows: _Ints, shape: _Shape) -> None:
        """Add the hits of windows: `words` are first and last word; the third of `shape` is the size."""
        self._add(_windows, (document, *words, name), rows, shape)

    def _add(self, write: Any, hits: Any, rows: _Ints, shape: _Shape) -> None:
        n = len(hits[0])
        lists = np.zeros(shape[0] + shape[1], np.int64), np.zeros(max(n, 1), np.int64)
        row = 0
        while row < n:
            if self._at[_MARKS] + n > len(self._marks):
                self._marks = np.concatenate([self._marks, np.empty((n + len(self._marks), 2), np.int64)])
            before = row
            row = write(row, hits, rows, shape, lists, self._log, self._marks, self._at)
            if row < n:
                if row == before and self._at[_HITS] == 0:  # one unit has more hits than the log has room for
                    self._log = np.empty(4 * len(self._log), self._cell)
                self._fold()
                lists[0][:] = 0

    def _fold(self) -> None:
        """Sort what is in the log and merge it with the sums."""
        n = int(self._at[_HITS])
        if n == 0:
            return
        marks = self._marks[: self._at[_MARKS]]
        order = np.argsort(marks[:, 0], kind="stable")
        part, codes, sums = np.empty(n, self._cell), np.empty(n, np.int64), np.empty(n, np.int64)
        low = used = 0
        while low < len(order):
            first = int(marks[order[low], 0])
            low, filled = _gather(self._log, marks, order, low, self._size, self._limit, part)
            part[:filled].sort()
            used = _add_up(part[:filled], first * self._size, codes, sums, used)
        self._at[:] = 0
        self._sums = _merged(self._sums, (codes[:used], sums[:used]))

    def take(self) -> tuple[_Ints, _Ints]:
        """Codes in order and their sums; nothing is left."""
        self._fold()
        taken, self._sums = self._sums, (np.zeros(0, np.int64), np.zeros(0, np.int64))
        return taken


def _merged(one: tuple[_Ints, _Ints], two: tuple[_Ints, _Ints]) -> tuple[_Ints, _Ints]:
    if not len(one[0]):
        return two
    codes, sums = (np.empty(len(one[0]) + len(two[0]), np.int64) for _ in range(2))
    used = _merge(*one, *two, codes, sums)
    return codes[:used], sums[:used]
