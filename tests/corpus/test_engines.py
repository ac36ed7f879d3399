"""Both engines leave the same bytes; a killed run goes on; memory and disk failures keep what is done."""

from __future__ import annotations

import errno
import filecmp
import json
import signal
import subprocess
import sys

import numpy as np
import pytest

from latentkt.cli import main
from latentkt.corpus import Patterns, count_texts, load_counts
from latentkt.corpus.counter import Counter, Partial, merge_partials
from latentkt.corpus.counts import write_arrays
from latentkt.corpus.local import count_corpus
from latentkt.corpus.plan import make_plan
from latentkt.corpus.tally import MAX_CLUSTERS, SKETCH, Tally, merge_tallies, poisson_weights
from latentkt.errors import DataError, RunError

PATTERNS = Patterns.from_dict(
    {"keys": {"zeno": ["Zeno"], "darwin": ["Darwin"], "euclid": ["Euclid"]}, "tasks": {"evolution": ["evolution"],
     "arithmetic": ["arithmetic"]}, "pairs": [["zeno", "darwin"]]}  # not in the order of the alphabet
)  # fmt: skip
OPTIONS = {"windows": [5], "sentence": True}


@pytest.fixture
def corpus(tmp_path):
    """Sixteen shards, each with its own mix."""
    rng = np.random.default_rng(3)
    folder = tmp_path / "in"
    folder.mkdir()
    words = ["Darwin", "Euclid", "Zeno", "evolution", "arithmetic", "and", "of.", "Then"]
    for shard in range(16):
        rows = [{"text": " ".join(rng.choice(words, 20)), "source": f"b{rng.integers(40)}"} for _ in range(8)]
        (folder / f"s{shard:02d}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder


def _same(one, other):
    return all(filecmp.cmp(one / name, other / name, shallow=False) for name in ("counts.npz", "manifest.json"))


def _texts(corpus):
    return [json.loads(line) for path in sorted(corpus.iterdir()) for line in path.read_text().splitlines()]


def test_saved_counts_equal_those_in_memory(corpus, tmp_path):
    counts = count_corpus([str(corpus)], PATTERNS, str(tmp_path / "out"), **OPTIONS)
    rows = _texts(corpus)
    direct = count_texts([row["text"] for row in rows], PATTERNS, clusters=[row["source"] for row in rows], **OPTIONS)
    assert counts.to_dict() == direct.to_dict() == load_counts(tmp_path / "out").to_dict()
    assert list(counts.to_dict()["keys"]) == ["zeno", "darwin", "euclid"]
    for name in ("clusters", "rows", "values", "totals"):
        assert (getattr(counts.tally, name) == getattr(direct.tally, name)).all()
    frame = counts.to_frame()
    row = frame[(frame.kind == "path") & (frame.scope == "window:5") & (frame["name"] == "darwin:evolution")]
    assert row["count"].item() == counts.pair("darwin:evolution", "window:5") > 0


def test_two_processes_leave_the_same_bytes(corpus, tmp_path):
    for name, workers in (("one", 1), ("two", 2)):
        count_corpus([str(corpus)], PATTERNS, str(tmp_path / name), workers=workers, **OPTIONS)
    assert _same(tmp_path / "one", tmp_path / "two")


def test_a_stopped_run_goes_on(corpus, tmp_path, monkeypatch):
    count_corpus([str(corpus)], PATTERNS, str(tmp_path / "whole"), **OPTIONS)
    original, done = Counter.count_shard, []

    def fails_at_the_sixth(self, shard, on_bytes=lambda done: None):
        if len(done) == 5:
            raise KeyboardInterrupt
        done.append(shard.name)
        return original(self, shard, on_bytes)

    monkeypatch.setattr(Counter, "count_shard", fails_at_the_sixth)
    with pytest.raises(KeyboardInterrupt):
        count_corpus([str(corpus)], PATTERNS, str(tmp_path / "out"), **OPTIONS)
    with pytest.raises(DataError, match="an unfinished run"):
        load_counts(tmp_path / "out")
    monkeypatch.setattr(Counter, "count_shard", lambda *args: done.append(args[1].name) or original(*args))
    count_corpus([str(corpus)], PATTERNS, str(tmp_path / "out"), **OPTIONS)
    assert len(done) == 16 and len(set(done)) == 16
    assert _same(tmp_path / "whole", tmp_path / "out")


def test_a_folder_of_another_run_is_refused(corpus, tmp_path):
    count_corpus([str(corpus)], PATTERNS, str(tmp_path / "out"), windows=[5])
    with pytest.raises(RunError, match="is taken"):
        count_corpus([str(corpus)], PATTERNS, str(tmp_path / "out"), windows=[6])


def test_a_bad_shard_keeps_the_finished_ones(corpus, tmp_path):
    (corpus / "s09.jsonl.gz").write_bytes(b"no gzip")
    with pytest.raises(DataError, match="s09"):
        count_corpus([str(corpus)], PATTERNS, str(tmp_path / "out"))
    assert len(list((tmp_path / "out" / "parts").glob("*.npz"))) == 10


def test_no_space_left(corpus, tmp_path, monkeypatch, capsys):
    """The disk is full at the fourth shard, and at the counts themselves; each time the same command goes on."""
    count_corpus([str(corpus)], PATTERNS, str(tmp_path / "whole"), windows=[5])
    (tmp_path / "p.json").write_text(json.dumps(PATTERNS.to_dict()))
    out = tmp_path / "out"
    command = [
        "corpus",
        "count",
        str(corpus),
        "--patterns",
        str(tmp_path / "p.json"),
        "--window",
        "5",
        "--out",
        str(out),
    ]

    def full(name):
        def write(path, arrays):
            if path.name == name:
                raise OSError(errno.ENOSPC, "No space left on device")
            write_arrays(path, arrays)

        return write

    with monkeypatch.context() as patch:
        patch.setattr("latentkt.corpus.counter.write_arrays", full("000003.npz"))
        assert main(command) == 2
    said = capsys.readouterr().err
    assert "no space left for" in said and "finished shards are kept" in said
    parts = {path.name: path.stat().st_mtime_ns for path in (out / "parts").iterdir()}
    assert sorted(parts) == ["000000.npz", "000001.npz", "000002.npz"]
    with monkeypatch.context() as patch:
        patch.setattr("latentkt.corpus.counts.write_arrays", full("counts.npz"))
        assert main(command) == 2
    assert "cannot write the counts" in capsys.readouterr().err and len(list((out / "parts").iterdir())) == 16
    assert main(command) == 0
    assert {name: (out / "parts" / name).stat().st_mtime_ns for name in parts} == parts
    assert _same(tmp_path / "whole", out)


KILLED = """
import json, os, signal, sys
from latentkt.corpus import Patterns
from latentkt.corpus.counter import Counter
from latentkt.corpus.datatrove import run_datatrove
from latentkt.corpus.plan import make_plan

def count_or_die(self, shard, *rest, count=Counter.count_shard):
    if shard.name == "s06.jsonl":
        os.killpg(0, signal.SIGKILL)
    return count(self, shard, *rest)

Counter.count_shard = count_or_die
plan = make_plan([sys.argv[1]], Patterns.from_dict(json.loads(sys.argv[2])), sys.argv[3], windows=[5], sentence=True)
plan.begin()
run_datatrove(plan, tasks=4)
"""


@pytest.mark.slow
def test_datatrove_killed_once_ends_in_the_same_bytes(corpus, tmp_path, monkeypatch):
    """16 shards on 4 tasks; the whole process group is killed in the second shard of the third rank."""
    pytest.importorskip("datatrove")
    count_corpus([str(corpus)], PATTERNS, str(tmp_path / "local"), **OPTIONS)
    out = tmp_path / "out"
    command = [sys.executable, "-c", KILLED, str(corpus), json.dumps(PATTERNS.to_dict()), str(out)]
    killed = subprocess.run(command, capture_output=True, check=False, start_new_session=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]
    markers, ranks, parts = out / "datatrove-4" / "completions", out / "ranks", out / "parts"
    assert sorted(path.name for path in markers.iterdir()) == ["00000", "00001"]
    assert sorted(path.name for path in ranks.iterdir()) == ["00000.npz", "00001.npz"]
    kept = {path.name: path.stat().st_mtime_ns for path in (*parts.iterdir(), *ranks.iterdir())}
    assert len(kept) == 2 + 9  # two ranks of four shards, and one shard of the third
    with pytest.raises(DataError, match="an unfinished run"):
        load_counts(out)
    (tmp_path / "p.json").write_text(json.dumps(PATTERNS.to_dict()))
    options = ["--window", "5", "--sentence", "--engine", "datatrove", "--workers", "4"]
    assert (
        main(["corpus", "count", str(corpus), "--patterns", str(tmp_path / "p.json"), "--out", str(out), *options]) == 0
    )
    assert len(list(ranks.iterdir())) == len(list(markers.iterdir())) == 4 and len(list(parts.iterdir())) == 16
    after = {path.name: path.stat().st_mtime_ns for path in (*parts.iterdir(), *ranks.iterdir())}
    assert {name: after[name] for name in kept} == kept  # what was finished was not counted again
    assert _same(tmp_path / "local", out)


@pytest.mark.slow
def test_a_bad_shard_keeps_the_finished_ones_of_its_rank(corpus, tmp_path):
    pytest.importorskip("datatrove")
    (corpus / "s09.jsonl.gz").write_bytes(b"no gzip")
    with pytest.raises(DataError, match="s09"):
        count_corpus([str(corpus)], PATTERNS, str(tmp_path / "out"), engine="datatrove")
    assert len(list((tmp_path / "out" / "parts").glob("*.npz"))) == 10


def test_the_step_counts_what_a_pipeline_brings(corpus, tmp_path):
    pytest.importorskip("datatrove")
    from datatrove.data import Document

    from latentkt.corpus.datatrove import CountStep, merge_ranks

    plan = make_plan([str(corpus)], PATTERNS, tmp_path / "out", **OPTIONS)
    plan.begin()
    rows = _texts(corpus)
    documents = [
        Document(text=row["text"], id=str(i), metadata={"source": row["source"]}) for i, row in enumerate(rows)
    ]
    passed = list(CountStep(plan).run(iter(documents)))
    assert passed == documents
    direct = count_texts([row["text"] for row in rows], PATTERNS, clusters=[row["source"] for row in rows], **OPTIONS)
    assert merge_ranks(plan, 1).to_dict() == direct.to_dict()
    with pytest.raises(RunError, match="not every rank"):
        merge_ranks(plan, 2)


def _random_tally(rng, *, n_clusters=12, max_clusters=MAX_CLUSTERS):
    clusters = rng.choice(40, n_clusters, replace=False).astype(np.uint64) * np.uint64(0x123456789ABCDEF)
    row, cell = rng.integers(0, n_clusters, 60), rng.integers(0, 9, 60)
    return Tally.build(clusters, row, cell, rng.integers(1, 5, 60), max_clusters=max_clusters)


def _bytes(tally):
    return {name: array.tobytes() for name, array in tally.arrays().items()}


@pytest.mark.parametrize("limit", [MAX_CLUSTERS, 15])
def test_tallies_merge_in_any_order_and_grouping(limit):
    rng = np.random.default_rng(0)
    tallies = [_random_tally(rng, max_clusters=limit) for _ in range(5)]
    whole = merge_tallies(tallies, max_clusters=limit)
    assert whole.dissolved == (limit == 15)
    for order in (rng.permutation(5) for _ in range(5)):
        mixed = [tallies[i] for i in order]
        left = merge_tallies(mixed[:2], max_clusters=limit)
        right = merge_tallies(mixed[2:], max_clusters=limit)
        assert _bytes(merge_tallies([right, left], max_clusters=limit)) == _bytes(whole)


def test_dissolved_clusters_keep_totals_sums_and_small_numbers_of_clusters():
    rng = np.random.default_rng(1)
    tallies = [_random_tally(rng) for _ in range(4)]
    kept, dissolved = merge_tallies(tallies), merge_tallies(tallies, max_clusters=10)
    assert dissolved.n_clusters is None and not kept.dissolved
    assert (kept.totals == dissolved.totals).all()
    for cell in range(9):
        by_cluster = kept.by_cluster([cell])[:, 0]
        hashes = kept.clusters[np.unique(kept.rows[kept.columns == cell])]
        assert (dissolved.replicate_sums([cell])[:, 0] == by_cluster @ poisson_weights(hashes)).all()
        assert dissolved.supporting_clusters([cell]) == min(len(by_cluster), SKETCH)


def test_partials_are_read_back(tmp_path):
    partial = merge_partials([])
    partial.save(tmp_path / "p.npz")
    first = (tmp_path / "p.npz").read_bytes()
    Partial.load(tmp_path / "p.npz").save(tmp_path / "p.npz")
    assert (tmp_path / "p.npz").read_bytes() == first
