"""From matches to cells: which unit of which scope holds which key, task and pair."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latentkt.corpus.kernel.hashing import Buffer
from latentkt.corpus.layout import Layout
from latentkt.corpus.scan import Matches
from latentkt.corpus.sentences import sentence_starts

__all__ = ["add_cells", "cell_hits", "drop_excluded"]

Hits = tuple[NDArray[np.int64], NDArray[np.int64]]  # document, cell: one row a hit


def drop_excluded(matches: Matches, n_names: int) -> Matches:
    """Without the matches that share a byte with a match of an exclusion of their name.

    Exclusions of name i are the entries ``n_names + i``; they are dropped too.
    """
    is_name = matches.entry < n_names
    if is_name.all():
        return matches
    names, outs = np.flatnonzero(is_name), np.flatnonzero(~is_name)
    cancelled = np.zeros(len(names), bool)
    for name in np.unique(matches.entry[outs]) - n_names:
        mine = names[matches.entry[names] == name]
        theirs = outs[matches.entry[outs] == name + n_names]
        start = np.sort(matches.start[theirs])
        end = np.maximum.accumulate(matches.end[theirs][np.argsort(matches.start[theirs], kind="stable")])
        before = np.searchsorted(start, matches.end[mine], side="left")  # exclusions that start before the match ends
        overlap = (before > 0) & (end[np.maximum(before - 1, 0)] > matches.start[mine])
        cancelled[np.searchsorted(names, mine[overlap])] = True
    keep = names[~cancelled]
    return matches.rows(keep)


def cell_hits(buffer: Buffer, matches: Matches, layout: Layout) -> Iterator[Hits]:
    """All hits of the cells of a layout, kind after kind."""
    name, document = matches.entry.astype(np.int64), matches.document
    yield document, name
    for scope in layout.scopes:
        offset = layout.scope_offset(scope)
        size = layout.window(scope)
        if size is not None:
            yield from _window_hits(matches, layout, offset, size)
            continue
        unit = document if scope == "document" else _sentence_units(buffer, matches)
        units, names, units_document = _distinct(unit, name, document, layout)
        yield units_document, _single_offset(layout, scope) + names
        yield from _joint_hits(units, names, units_document, layout, offset)
    yield from pair_hits(buffer, matches, layout)


def pair_hits(buffer: Buffer, matches: Matches, layout: Layout) -> Iterator[Hits]:
    """The hits of the named pairs of keys alone."""
    if not layout.pairs:
        return
    name, document = matches.entry.astype(np.int64), matches.document
    for scope in layout.scopes:
        offset = layout.scope_offset(scope) + len(layout.keys) * len(layout.tasks)
        size = layout.window(scope)
        if size is not None:
            yield from _window_pairs(matches, layout, offset, size)
            continue
        unit = document if scope == "document" else _sentence_units(buffer, matches)
        units, names, units_document = _distinct(unit, name, document, layout)
        for index, (one, other) in enumerate(layout.pairs):
            a, b = (np.flatnonzero(names == layout.keys.index(key)) for key in (one, other))
            both = a[np.isin(units[a], units[b])]
            yield units_document[both], np.full(len(both), offset + index)


def add_cells(sums: Any, buffer: Buffer, matches: Matches, layout: Layout, rows: NDArray[np.int64]) -> None:
    """Add the same hits to a kernel's `CellSums`; `rows` is the row of the cluster of each document."""
    places = (matches.entry.astype(np.int64), matches.document, matches.first, matches.last)
    name, document, first, last = map(np.ascontiguousarray, places)
    sums.add(document, name, rows)
    n_keys, n_tasks = len(layout.keys), len(layout.tasks)
    for scope in layout.scopes:
        offset = layout.scope_offset(scope)
        size = layout.window(scope)
        if size is not None:
            sums.add_windows(document, (first, last), name, rows, (n_keys, n_tasks, size, offset))
            continue
        unit = document if scope == "document" else _sentence_units(buffer, matches)
        sums.add_units(document, unit, name, rows, (n_keys, n_tasks, _single_offset(layout, scope), offset))
    for hit_document, cell in pair_hits(buffer, matches, layout):
        sums.add(hit_document, cell, rows)


def _single_offset(layout: Layout, scope: str) -> int:
    """First cell of the units that hold a name, by name."""
    if scope == "document":
        return layout.n_names
    return layout.scope_offset(scope) + len(layout.keys) * len(layout.tasks) + len(layout.pairs)


def _distinct(
    unit: NDArray[np.int64], name: NDArray[np.int64], document: NDArray[np.int64], layout: Layout
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Units and the names in them, each once, and the document of each."""
    units, names = np.divmod(np.unique(unit * layout.n_names + name), layout.n_names)
    return units, names, document[np.searchsorted(unit, units)]


def _sentence_units(buffer: Buffer, matches: Matches) -> NDArray[np.int64]:
    """A number for the sentence in which each match starts, growing along the buffer."""
    unit = np.zeros(len(matches.entry), np.int64)
    base = 0
    documents, rows = np.unique(matches.document, return_index=True)
    for document, low, high in zip(documents, rows, np.append(rows, len(unit))[1:], strict=True):
        text = buffer.document(int(document)).decode("utf-8")
        starts = np.array(sentence_starts(text), np.int64)
        if not text.isascii():
            widths = np.fromiter((len(char.encode("utf-8")) for char in text), np.int64, len(text))
            starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(widths)])[starts]
        inside = matches.start[low:high] - buffer.starts[document]
        unit[low:high] = base + np.searchsorted(starts, inside, side="right") - 1
        base += len(starts)
    return unit


def _joint_hits(
    units: NDArray[np.int64],
    names: NDArray[np.int64],
    unit_document: NDArray[np.int64],
    layout: Layout,
    offset: int,
) -> Iterator[Hits]:
    """Units with a key and a task, and with both keys of a pair; (unit, name) is sorted and unique."""
    n_keys, n_tasks = len(layout.keys), len(layout.tasks)
    is_key = names < n_keys
    keys, tasks = np.flatnonzero(is_key), np.flatnonzero(~is_key)
    low = np.searchsorted(units[tasks], units[keys], side="left")
    high = np.searchsorted(units[tasks], units[keys], side="right")
    key_row, task_row = _expand(low, high)
    cell = offset + names[keys][key_row] * n_tasks + names[tasks][task_row] - n_keys
    yield unit_document[keys][key_row], cell


def _expand(low: NDArray[np.int64], high: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row i with each of low[i] … high[i] − 1."""
    many = np.maximum(high - low, 0)
    row = np.repeat(np.arange(len(low)), many)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(many) - many, many) + np.repeat(low, many)


def _window_hits(matches: Matches, layout: Layout, offset: int, size: int) -> Iterator[Hits]:
    """Occurrences of a key with a match of the task wholly within `size` words of it, in the same document."""
    n_keys, n_tasks = len(layout.keys), len(layout.tasks)
    is_key = matches.entry < n_keys
    keys, tasks = np.flatnonzero(is_key), np.flatnonzero(~is_key)
    row, name = _neighbours(matches, keys, tasks, size)
    yield matches.document[keys][row], offset + matches.entry[keys][row].astype(np.int64) * n_tasks + name - n_keys


def _window_pairs(matches: Matches, layout: Layout, offset: int, size: int) -> Iterator[Hits]:
    for index, (one, other) in enumerate(layout.pairs):
        ones = np.flatnonzero(matches.entry == layout.keys.index(one))
        others = np.flatnonzero(matches.entry == layout.keys.index(other))
        row, _ = _neighbours(matches, ones, others, size)
        yield matches.document[ones][row], np.full(len(row), offset + index)


def _neighbours(
    matches: Matches, centres: NDArray[np.int64], others: NDArray[np.int64], size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each centre, by row, the names of the others within its window, each once."""
    document = matches.document[centres]
    left = np.maximum(matches.first[centres] - size, matches.word_starts[document])
    right = np.minimum(matches.last[centres] + size, matches.word_starts[document + 1] - 1)
    by_last = matches.last[others]  # sorted: matches are in the order of their last word
    low = np.searchsorted(by_last, left, side="left")
    high = np.searchsorted(by_last, right, side="right")
    row, other = _expand(low, high)
    inside = (matches.first[others][other] >= left[row]) & (matches.document[others][other] == document[row])
    row, name = row[inside], matches.entry[others][other[inside]].astype(np.int64)
    span = int(name.max(initial=0)) + 1
    return np.divmod(np.unique(row * span + name), span)
