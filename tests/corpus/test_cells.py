"""Sums of cells: the compiled ones equal those of plain Python, however small the log, whatever the clusters."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latentkt.corpus.kernel.cells import CellSums
from latentkt.corpus.tally import Tally, merge_tallies, sum_by

N_KEYS, N_TASKS, WINDOW = 3, 2, 4


@st.composite
def matches(draw):
    """Rows (document, first word, last word, name), ordered by document and last word; words go on over documents."""
    rows = draw(st.lists(st.tuples(*(st.integers(0, n) for n in (3, 2, 30, N_KEYS + N_TASKS - 1))), max_size=40))
    return sorted(((d, 100 * d + last - back, 100 * d + last, name) for d, back, last, name in rows), key=_order)


def _order(row):
    return row[0], row[2]


def _expected(rows, clusters, size, offset):
    """Cells by their definition: occurrences, documents with a name, with a key and a task, windows."""
    total = Counter()
    for document, _, _, name in rows:
        total[clusters[document] * size + name] += 1
    for document in {row[0] for row in rows}:
        base = clusters[document] * size
        names = {row[3] for row in rows if row[0] == document}
        total.update(base + 10 + name for name in names)
        total.update(base + 20 + k * N_TASKS + t - N_KEYS for k in names for t in names if k < N_KEYS <= t)
    for document, first, last, key in rows:
        tasks = {
            name
            for other, low, high, name in rows
            if other == document and name >= N_KEYS and low >= first - WINDOW and high <= last + WINDOW
        }
        if key < N_KEYS:
            total.update(clusters[document] * size + offset + key * N_TASKS + task - N_KEYS for task in tasks)
    return dict(total)


def _add(sums, rows, clusters, offset):
    document, first, last, name = np.array(rows, np.int64).reshape(-1, 4).T.copy()
    clusters = np.array(clusters, np.int64)
    sums.add(document, name, clusters)
    sums.add_units(document, document, name, clusters, (N_KEYS, N_TASKS, 10, 20))
    sums.add_windows(document, (first, last), name, clusters, (N_KEYS, N_TASKS, WINDOW, offset))


@settings(max_examples=150, deadline=None)
@given(
    batches=st.lists(st.tuples(matches(), st.lists(st.integers(0, 5), min_size=4, max_size=4)), max_size=3),
    log=st.sampled_from([1, 3, 8, 1000]),
    wide=st.booleans(),
)
def test_sums_equal_the_definition(batches, log, wide):
    size, offset = (1 << 33, (1 << 33) - 6) if wide else (1 << 30, (1 << 30) - 6)  # the narrow one groups 4 clusters
    sums = CellSums(size, log=log)
    expected = Counter()
    for rows, clusters in batches:
        _add(sums, rows, clusters, offset)
        expected.update(_expected(rows, clusters, size, offset))
    codes, counts = sums.take()
    assert dict(zip(codes.tolist(), counts.tolist(), strict=True)) == expected
    assert (np.diff(codes) > 0).all()
    assert sums.used == 0 and not len(sums.take()[0])


def test_many_hits_of_many_clusters():
    """More than are sorted at once, in clusters that come back."""
    rng = np.random.default_rng(0)
    document = np.sort(rng.integers(0, 500, 300_000))
    cell, clusters = rng.integers(0, 50, len(document)), rng.integers(0, 90, 500)
    sums = CellSums(1 << 20, log=1 << 17)
    sums.add(document, cell, clusters)
    codes, counts = sums.take()
    expected = np.unique((clusters[document] << 20) + cell, return_counts=True)
    assert (codes == expected[0]).all() and (counts == expected[1]).all()


@pytest.mark.parametrize("n_clusters", [1, 7])
def test_a_tally_from_codes_is_the_tally_of_its_triples(n_clusters):
    rng = np.random.default_rng(n_clusters)
    clusters = rng.permutation(1000)[: n_clusters + 2].astype(np.uint64)  # two without a count
    row, cell, value = (rng.integers(0, high, 200) for high in (n_clusters, 10**9, 5))
    whole = Tally.build(clusters, row, cell, value)
    codes, counts = sum_by(row * 2 * 10**9 + cell, value)
    assert (Tally.from_codes(clusters, codes, counts, 2 * 10**9).arrays()["steps"] == whole.arrays()["steps"]).all()
    for cluster in range(n_clusters):
        mine = whole.rows == np.searchsorted(whole.clusters, clusters[cluster])
        got = Counter(dict(zip(whole.cells[whole.columns[mine]].tolist(), whole.values[mine].tolist(), strict=True)))
        want = Counter()
        for c, v in zip(cell[row == cluster].tolist(), value[row == cluster].tolist(), strict=True):
            want[c] += v
        assert dict(got) == dict(want)


@pytest.mark.parametrize("dissolved", [False, True])
def test_a_tally_is_read_back(dissolved):
    rng = np.random.default_rng(3)
    clusters = rng.permutation(20).astype(np.uint64)
    row, cell, value = rng.integers(3, 17, 300), rng.integers(0, 10**6, 300), rng.integers(1, 70_000, 300)
    tally = Tally.build(clusters, row, cell, value, max_clusters=10 if dissolved else 100)
    again = Tally.from_arrays(tally.arrays())
    assert again.dissolved == dissolved
    for name in ("cells", "totals", "clusters", "rows", "columns", "values", "weighted", "sketch"):
        assert getattr(again, name).dtype == getattr(tally, name).dtype, name
        assert (getattr(again, name) == getattr(tally, name)).all(), name
    assert merge_tallies([again, tally]).totals.tolist() == (2 * tally.totals).tolist() or dissolved
