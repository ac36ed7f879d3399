"""Count one shard, or texts in memory: batches in, a tally and a report out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latentkt.corpus.counts import Counts, read_arrays, write_arrays
from latentkt.corpus.documents import Batch, Skipped, make_buffer
from latentkt.corpus.fields import Fields
from latentkt.corpus.kernel import open_kernel
from latentkt.corpus.layout import Layout, parse_scopes
from latentkt.corpus.lexicon import Lexicon, build_lexicon
from latentkt.corpus.matching import Matching
from latentkt.corpus.patterns import Form, Patterns
from latentkt.corpus.readers import read_shard
from latentkt.corpus.scan import Matches, scan
from latentkt.corpus.shards import Shard
from latentkt.corpus.tally import Tally, cluster_hash, merge_tallies, sum_by
from latentkt.corpus.units import add_cells, cell_hits, drop_excluded

__all__ = ["Counter", "Job", "Partial", "Report", "count_texts", "merge_partials"]

_PENDING = 8_000_000  # sparse counts kept before they are added up


@dataclass(frozen=True)
class Job:
    """What is counted and how; the same in every process of a run.

    Attributes:
        patterns: The pattern set.
        matching: How text is compared.
        scopes: Names of the scopes, as `parse_scopes` gives them.
        fields: Fields of text and cluster.
        kernel: ``auto``, ``numba`` or ``numpy``; the counts do not depend on it.
        strict: Stop at the first damaged line.
    """

    patterns: Patterns
    matching: Matching = field(default_factory=Matching)
    scopes: tuple[str, ...] = ("document",)
    fields: Fields = field(default_factory=Fields)
    kernel: str = "auto"
    strict: bool = False

    @cached_property
    def layout(self) -> Layout:
        """Where each cell lies."""
        return Layout.of(self.patterns, self.scopes)

    def lexicon(self) -> Lexicon:
        """The compiled forms: entries are keys, then tasks, then the exclusions of each."""
        names = (*self.patterns.keys.items(), *self.patterns.tasks.items())
        forms: list[tuple[int, Form]] = []
        for index, (name, own) in enumerate(names):
            forms += [(index, form) for form in own]
            forms += [(len(names) + index, form) for form in self.patterns.exclude.get(name, ())]
        return build_lexicon(forms, self.matching, open_kernel(self.kernel))

    def to_dict(self) -> dict[str, Any]:
        """What decides the counts, as plain data."""
        return {
            "patterns": self.patterns.to_dict(),
            "patterns_sha256": self.patterns.sha256,
            "matching": self.matching.to_dict(),
            "scopes": list(self.scopes),
            "fields": asdict(self.fields),
            "strict": self.strict,
        }


@dataclass
class Report:
    """What a shard, or several, amounted to.

    Attributes:
        documents: Documents read.
        words: Word tokens in them.
        text_bytes: Bytes of their text.
        skipped: Reason -> how often.
        listed: [file, line, reason] of what was skipped.
        missing_clusters: Documents that lack the cluster field.
    """

    documents: int = 0
    words: int = 0
    text_bytes: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    listed: list[list[str | int]] = field(default_factory=list)
    missing_clusters: int = 0

    def __add__(self, other: Report) -> Report:
        reasons = {*self.skipped, *other.skipped}
        return Report(
            self.documents + other.documents,
            self.words + other.words,
            self.text_bytes + other.text_bytes,
            {reason: self.skipped.get(reason, 0) + other.skipped.get(reason, 0) for reason in sorted(reasons)},
            sorted([*self.listed, *other.listed], key=lambda row: (str(row[0]), row[1], str(row[2]))),
            self.missing_clusters + other.missing_clusters,
        )


@dataclass(frozen=True)
class Partial:
    """Tally and report of a part of the corpus."""

    tally: Tally
    report: Report

    def save(self, path: Path) -> None:
        """Write it, the same bytes for the same content."""
        report = json.dumps(asdict(self.report), sort_keys=True).encode("utf-8")
        write_arrays(path, {**self.tally.arrays(), "report": np.frombuffer(report, np.uint8)})

    @classmethod
    def load(cls, path: Path) -> Partial:
        """Read what `save` wrote."""
        arrays = read_arrays(path)
        report = json.loads(arrays["report"].tobytes())
        return cls(Tally.from_arrays(arrays), Report(**report))


def merge_partials(partials: Iterable[Partial]) -> Partial:
    """The sum of partials, whatever their order and grouping."""
    report = Report()

    def tallies() -> Iterable[Tally]:
        nonlocal report
        for partial in partials:
            report = report + partial.report
            yield partial.tally

    tally = merge_tallies(tallies())
    return Partial(tally, report)


class Counter:
    """Adds batches up. One counter serves many shards; `take` gives what came since the last `take`."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.lexicon = job.lexicon()
        self._clear()

    def _clear(self) -> None:
        self._rows: dict[int, int] = {}
        self._codes: list[NDArray[np.int64]] = []
        self._counts: list[NDArray[np.int64]] = []
        self._pending = 0
        kernel = self.lexicon.kernel
        self._sums = kernel.CellSums(self.job.layout.size) if hasattr(kernel, "CellSums") else None
        self._tally: Tally | None = None
        self._report = Report()

    def add(self, batch: Batch) -> None:
        """Count a batch of documents."""
        matches = scan(batch.buffer, self.lexicon)
        self._report.documents += len(batch.clusters)
        self._report.words += int(matches.word_starts[-1])
        self._report.text_bytes += batch.buffer.size - len(batch.clusters)
        rows = np.fromiter(
            (self._rows.setdefault(cluster, len(self._rows)) for cluster in batch.clusters.tolist()),
            np.int64,
            len(batch.clusters),
        )
        matches = drop_excluded(matches, self.job.layout.n_names)
        self._add_hits(batch, matches, rows)
        if self._pending > _PENDING:
            self._settle()

    def _add_hits(self, batch: Batch, matches: Matches, rows: NDArray[np.int64]) -> None:
        size = self.job.layout.size
        if self._sums is not None:
            add_cells(self._sums, batch.buffer, matches, self.job.layout, rows)
            self._pending = self._sums.used
            return
        for document, cell in cell_hits(batch.buffer, matches, self.job.layout):
            codes, counts = sum_by(rows[document] * size + cell)
            self._codes.append(codes)
            self._counts.append(counts)
            self._pending += len(codes)

    def _settle(self) -> None:
        """Fold what is pending into the tally."""
        if not self._rows:
            return
        if self._sums is not None:
            codes, counts = self._sums.take()
        else:
            codes, counts = sum_by(np.concatenate(self._codes), np.concatenate(self._counts))
        clusters = np.fromiter(self._rows, np.uint64, len(self._rows))
        tally = Tally.from_codes(clusters, codes, counts, self.job.layout.size)
        self._tally = tally if self._tally is None else merge_tallies([self._tally, tally])
        self._rows, self._codes, self._counts, self._pending = {}, [], [], 0

    def take(self) -> Partial:
        """What has been counted since the last call."""
        self._settle()
        partial = Partial(self._tally or Tally.empty(), self._report)
        self._clear()
        return partial

    def count_shard(self, shard: Shard, on_bytes: Callable[[int], None] = lambda done: None) -> Partial:
        """Count one shard; `on_bytes` is told how many of its stored bytes are done."""
        self._clear()
        skipped = Skipped(strict=self.job.strict)
        job = self.job
        for batch in read_shard(shard, job.fields, job.matching, self.lexicon.kernel, skipped):
            self.add(batch)
            on_bytes(batch.done)
        self._report.skipped, self._report.listed = skipped.counts, skipped.listed
        self._report.missing_clusters = skipped.missing_clusters
        on_bytes(shard.size)
        return self.take()


def count_texts(
    texts: Iterable[str],
    patterns: Patterns | Mapping[str, Any],
    *,
    windows: Sequence[int] = (),
    sentence: bool = False,
    matching: Matching | None = None,
    clusters: Iterable[str] | None = None,
    kernel: str = "auto",
) -> Counts:
    """Count texts that are in memory.

    Args:
        texts: The documents.
        patterns: The pattern set.
        windows: Window sizes in word tokens, each a scope.
        sentence: Add the scope ``sentence``.
        matching: How text is compared.
        clusters: Cluster of each document; by default each is one.
        kernel: ``auto``, ``numba`` or ``numpy``.

    Example:
        >>> patterns = {"keys": {"e": ["Euclid"]}, "tasks": {"g": ["geometry"]}}
        >>> counts = count_texts(["Euclid's geometry", "geometry"], patterns)
        >>> counts.to_dict()["cooccurrence"]
        {'document': {'e:g': 1}}
    """
    chosen = patterns if isinstance(patterns, Patterns) else Patterns.from_dict(patterns)
    rule = "document" if clusters is None else "given"
    scopes = parse_scopes(windows=windows, sentence=sentence)
    job = Job(chosen, matching or Matching(), scopes, Fields(cluster=rule), kernel)
    counter = Counter(job)
    documents = list(texts)
    names = [f"document\n{index}" for index in range(len(documents))] if clusters is None else list(clusters)
    hashes = np.array([cluster_hash(name) for name in names], np.uint64)
    for low in range(0, len(documents), 1000):
        part = documents[low : low + 1000]
        buffer = make_buffer(part, job.matching, counter.lexicon.kernel)
        counter.add(Batch(buffer, hashes[low : low + len(part)], 0))
    partial = counter.take()
    return Counts(chosen, job.layout, partial.tally, manifest(job, partial))


def manifest(job: Job, partial: Partial) -> dict[str, Any]:
    """What is written beside the counts."""
    from latentkt import __version__

    return {**job.to_dict(), **asdict(partial.report), "n_clusters": partial.tally.n_clusters, "latentkt": __version__}
