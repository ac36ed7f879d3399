"""Exact sparse counts by cluster, and what replaces the clusters where there are too many of them.

Up to `MAX_CLUSTERS` clusters keep a count of their own for every cell. Beyond that a tally holds, for every cell, the
total, `REPLICATES` sums weighted by Poisson(1) integers drawn from a hash of cluster and replicate, and the smallest
`SKETCH` cluster hashes (how many clusters support the cell, exact below `SKETCH`). All of it is integer and adds up, so
tallies merge in any order and grouping to the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "MAX_CLUSTERS",
    "REPLICATES",
    "SKETCH",
    "Tally",
    "cluster_hash",
    "merge_tallies",
    "poisson_weights",
    "sum_by",
]

MAX_CLUSTERS = 100_000
REPLICATES = 200
SKETCH = 16
_Ints = NDArray[np.int64]
_Hashes = NDArray[np.uint64]
_POISSON = np.cumsum([np.exp(-1.0) / float(f) for f in (1, 1, 2, 6, 24, 120, 720, 5040, 40320, 362880, 3628800)])
_FULL = np.uint64(0xFFFFFFFFFFFFFFFF)


@lru_cache(maxsize=1 << 14)
def cluster_hash(name: str) -> int:
    """64-bit hash of a cluster's name.

    Example:
        >>> cluster_hash("example.org") == cluster_hash("example.org") != cluster_hash("example.com")
        True
    """
    return int.from_bytes(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def poisson_weights(clusters: _Hashes, replicates: int = REPLICATES) -> _Ints:
    """Poisson(1) weight of each cluster in each replicate, from a hash alone: shape (clusters, replicates).

    Example:
        >>> weights = poisson_weights(np.arange(2000, dtype=np.uint64))
        >>> bool(abs(weights.mean() - 1) < 0.01), bool(abs(weights.var() - 1) < 0.02)
        (True, True)
    """
    with np.errstate(over="ignore"):
        value = clusters[:, None] ^ (np.arange(1, replicates + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # the finaliser of SplitMix64
            value = (value ^ (value >> np.uint64(shift))) * np.uint64(factor)
        value ^= value >> np.uint64(31)
    return np.searchsorted(_POISSON, (value >> np.uint64(11)) * 2.0**-53, side="right").astype(np.int64)


def sum_by(codes: _Ints, counts: _Ints | None = None) -> tuple[_Ints, _Ints]:
    """Distinct codes, sorted, and the sum of their counts (1 each by default)."""
    if counts is None:
        unique, totals = np.unique(codes, return_counts=True)
        return unique, totals.astype(np.int64)
    if (codes[1:] > codes[:-1]).all():
        return codes, counts
    order = np.argsort(codes)
    codes, counts = codes[order], counts[order]
    first = np.flatnonzero(np.concatenate([np.ones(min(len(codes), 1), bool), codes[1:] != codes[:-1]]))
    return codes[first], np.add.reduceat(counts, first) if len(first) else counts


@dataclass(frozen=True)
class Tally:
    """Counts of cells, split by cluster or with Poisson-weighted sums.

    Attributes:
        cells: Cells with a count, sorted.
        totals: Their counts.
        clusters: Hashes of all clusters seen, sorted (empty once they are dissolved).
        rows: Sparse counts by cluster: index into `clusters` (empty once dissolved).
        columns: … index into `cells`.
        values: … count.
        weighted: Once dissolved: weighted sums, shape (cells, replicates), else shape (0, replicates).
        sketch: Once dissolved: the smallest cluster hashes of each cell, padded with the largest integer.
        dissolved: Whether the clusters are dissolved into weighted sums.
    """

    cells: _Ints
    totals: _Ints
    clusters: _Hashes
    rows: _Ints
    columns: _Ints
    values: _Ints
    weighted: _Ints
    sketch: _Hashes
    dissolved: bool = False

    @classmethod
    def build(
        cls, clusters: _Hashes, row: _Ints, cell: _Ints, value: _Ints, *, max_clusters: int = MAX_CLUSTERS
    ) -> Tally:
        """A tally from triples (index of cluster, cell, count); triples of one cluster and cell add up.

        Args:
            clusters: Hashes of all clusters, those without a count too, each once.
            row: Index into `clusters`.
            cell: Cell.
            value: Count.
            max_clusters: Above this number the clusters are dissolved.
        """
        size = int(cell.max(initial=0)) + 1
        return cls.from_codes(clusters, *sum_by(row * size + cell, value), size, max_clusters=max_clusters)

    @classmethod
    def from_codes(
        cls, clusters: _Hashes, codes: _Ints, counts: _Ints, size: int, *, max_clusters: int = MAX_CLUSTERS
    ) -> Tally:
        """A tally from sorted, distinct codes (index of cluster × `size` + cell) and their counts; as `build`."""
        bounds = np.searchsorted(codes, np.arange(len(clusters) + 1) * size)
        order = np.argsort(clusters, kind="stable")
        blocks = [slice(bounds[index], bounds[index + 1]) for index in order.tolist()]
        many = np.diff(bounds)[order]
        cells, columns = _index(_joined(codes, blocks) - np.repeat(order * size, many))
        values, rows = _joined(counts, blocks), np.repeat(np.arange(len(clusters)), many)
        totals = np.zeros(len(cells), np.int64)
        np.add.at(totals, columns, values)
        tally = cls(cells, totals, clusters[order], rows, columns, values, *_empty_sums())
        return tally._dissolve() if len(clusters) > max_clusters else tally

    @classmethod
    def empty(cls) -> Tally:
        """No counts at all."""
        none = np.zeros(0, np.int64)
        return cls.build(np.zeros(0, np.uint64), none, none, none)

    def _dissolve(self) -> Tally:
        if self.dissolved:
            return self
        weighted = np.zeros((len(self.cells), REPLICATES), np.int64)
        sketch = np.full((len(self.cells), SKETCH), _FULL, np.uint64)
        by_cell = np.argsort(self.columns, kind="stable")  # rows stay sorted: the smallest hashes come first
        bounds = np.searchsorted(self.columns[by_cell], np.arange(len(self.cells) + 1))
        for index in range(len(self.cells)):
            entries = by_cell[bounds[index] : bounds[index + 1]]
            for part in np.array_split(entries, len(entries) // 4096 + 1):
                weighted[index] += self.values[part] @ poisson_weights(self.clusters[self.rows[part]])
            sketch[index, : min(len(entries), SKETCH)] = self.clusters[self.rows[entries[:SKETCH]]]
        none = np.zeros(0, np.int64)
        return Tally(self.cells, self.totals, np.zeros(0, np.uint64), none, none, none, weighted, sketch, True)

    @property
    def n_clusters(self) -> int | None:
        """How many clusters were seen; None once they are dissolved (more than `MAX_CLUSTERS`)."""
        return None if self.dissolved else len(self.clusters)

    def total(self, cell: int) -> int:
        """Count of one cell."""
        at = int(np.searchsorted(self.cells, cell))
        return int(self.totals[at]) if at < len(self.cells) and self.cells[at] == cell else 0

    def dense(self, low: int, high: int) -> _Ints:
        """Counts of the cells low … high − 1 as an array."""
        out = np.zeros(high - low, np.int64)
        first, stop = np.searchsorted(self.cells, [low, high])
        out[self.cells[first:stop] - low] = self.totals[first:stop]
        return out

    def by_cluster(self, cells: Sequence[int]) -> _Ints:
        """Counts by cluster, shape (clusters that hold any of the cells, cells)."""
        entries = [self._entries(cell) for cell in cells]
        rows = np.unique(np.concatenate([self.rows[entry] for entry in entries]))
        out = np.zeros((len(rows), len(cells)), np.int64)
        for column, entry in enumerate(entries):
            out[np.searchsorted(rows, self.rows[entry]), column] = self.values[entry]
        return out

    def replicate_sums(self, cells: Sequence[int]) -> _Ints:
        """Poisson-weighted sums of some cells of a dissolved tally, shape (replicates, cells)."""
        out = np.zeros((REPLICATES, len(cells)), np.int64)
        for column, cell in enumerate(cells):
            at = int(np.searchsorted(self.cells, cell))
            if at < len(self.cells) and self.cells[at] == cell:
                out[:, column] = self.weighted[at]
        return out

    def supporting_clusters(self, cells: Sequence[int]) -> int:
        """Clusters with a count in any of the cells; once dissolved, exact below `SKETCH` and at most `SKETCH`."""
        if not self.dissolved:
            found = [self.rows[self._entries(cell)] for cell in cells]
            return len(np.unique(np.concatenate(found)))
        at = np.searchsorted(self.cells, cells)
        there = [i for i, cell in zip(at, cells, strict=True) if i < len(self.cells) and self.cells[i] == cell]
        hashes = np.unique(self.sketch[there]) if there else np.zeros(0, np.uint64)
        return min(int((hashes != _FULL).sum()), SKETCH)

    def _entries(self, cell: int) -> _Ints:
        at = int(np.searchsorted(self.cells, cell))
        if at == len(self.cells) or self.cells[at] != cell:
            return np.zeros(0, np.int64)
        return np.flatnonzero(self.columns == at)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """The tally as named arrays, for a file: narrow, as the sparse counts outgrow everything else.

        `entries` is how many of the sparse counts each cluster has, `steps` how far each column lies behind the one
        before it in its cluster.
        """
        entries = np.diff(np.searchsorted(self.rows, np.arange(len(self.clusters) + 1)))
        first = np.cumsum(entries) - entries
        steps = np.diff(self.columns, prepend=0)
        steps[first[entries > 0]] = self.columns[first[entries > 0]]
        kept = {name: getattr(self, name) for name in ("cells", "clusters", "sketch")}
        wide = {"totals": self.totals, "entries": entries, "steps": steps, "values": self.values}
        narrow = {name: _narrow(array) for name, array in {**wide, "weighted": self.weighted}.items()}
        return {**kept, **narrow, "dissolved": np.array([self.dissolved])}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Tally:
        """What `arrays` gave."""
        entries = arrays["entries"].astype(np.int64)
        rows = np.repeat(np.arange(len(entries)), entries)
        columns = np.cumsum(arrays["steps"], dtype=np.int64)
        before = np.append(np.zeros(1, np.int64), columns)[np.cumsum(entries) - entries]
        columns -= np.repeat(before, entries)
        totals, values, weighted = (arrays[name].astype(np.int64) for name in ("totals", "values", "weighted"))
        cells, clusters, sketch = (arrays[name] for name in ("cells", "clusters", "sketch"))
        dissolved = bool(arrays["dissolved"][0])
        return cls(cells, totals, clusters, rows, columns, values, weighted, sketch, dissolved)


def _narrow(array: _Ints) -> NDArray[np.unsignedinteger[Any]]:
    """Counts in the smallest unsigned integers that hold them."""
    return array.astype(np.min_scalar_type(array.max(initial=0)))


def _index(cell: _Ints) -> tuple[_Ints, _Ints]:
    """Distinct cells, sorted, and the place of each one given among them."""
    span = int(cell.max(initial=-1)) + 1
    if span > min(16 * len(cell), 1 << 31):
        cells, place = np.unique(cell, return_inverse=True)
        return cells, place
    there = np.zeros(span, bool)  # many of all cells are there: no need to sort
    there[cell] = True
    cells = np.flatnonzero(there)
    places = np.empty(span, np.int32)
    places[cells] = np.arange(len(cells), dtype=np.int32)
    return cells, places[cell].astype(np.int64)


def _joined(array: _Ints, blocks: Sequence[slice]) -> _Ints:
    return np.concatenate([array[:0], *(array[block] for block in blocks)])


def _empty_sums() -> tuple[_Ints, _Hashes]:
    return np.zeros((0, REPLICATES), np.int64), np.zeros((0, SKETCH), np.uint64)


def merge_tallies(tallies: Iterable[Tally], *, max_clusters: int = MAX_CLUSTERS) -> Tally:
    """The sum of tallies: the same bytes in any order and grouping."""
    merged: Tally | None = None
    for tally in tallies:
        merged = tally if merged is None else _merge_two(merged, tally, max_clusters)
    return Tally.empty() if merged is None else merged


def _merge_two(one: Tally, other: Tally, max_clusters: int) -> Tally:
    if not one.dissolved and not other.dissolved:
        clusters = np.union1d(one.clusters, other.clusters)
        parts = [(np.searchsorted(clusters, t.clusters)[t.rows], t.cells[t.columns], t.values) for t in (one, other)]
        row, cell, value = (np.concatenate(column) for column in zip(*parts, strict=True))
        return Tally.build(clusters, row, cell, value, max_clusters=max_clusters)
    one, other = one._dissolve(), other._dissolve()
    cells = np.union1d(one.cells, other.cells)
    totals = np.zeros(len(cells), np.int64)
    weighted = np.zeros((len(cells), REPLICATES), np.int64)
    hashes = np.full((len(cells), 2 * SKETCH), _FULL, np.uint64)
    for index, tally in enumerate((one, other)):
        at = np.searchsorted(cells, tally.cells)
        totals[at] += tally.totals
        weighted[at] += tally.weighted
        hashes[at, index * SKETCH : (index + 1) * SKETCH] = tally.sketch
    hashes.sort(axis=1)
    hashes[:, 1:][hashes[:, 1:] == hashes[:, :-1]] = _FULL
    hashes.sort(axis=1)
    none = np.zeros(0, np.int64)
    sketch = np.ascontiguousarray(hashes[:, :SKETCH])
    return Tally(cells, totals, np.zeros(0, np.uint64), none, none, none, weighted, sketch, True)
