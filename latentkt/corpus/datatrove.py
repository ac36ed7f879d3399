"""The datatrove engine: counting as one pipeline step, for Slurm, Ray or local executors; then an exact merge.

Each rank counts its shards and writes one partial file. datatrove marks a rank complete when its step returns, so a
relaunch with the same number of tasks counts only what is missing; of a rank that was stopped it keeps the shards that
were finished.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from latentkt.corpus.counter import Counter, Partial, merge_partials
from latentkt.corpus.counts import Counts
from latentkt.corpus.documents import Batch, make_buffer
from latentkt.corpus.plan import Plan, guarded
from latentkt.corpus.tally import cluster_hash
from latentkt.errors import MissingExtraError, RunError

try:
    from datatrove.pipeline.base import PipelineStep
except ImportError as error:
    raise MissingExtraError("datatrove", extra="corpus", purpose="the datatrove engine") from error

__all__ = ["CountStep", "merge_ranks", "rank_file", "run_datatrove"]

_BATCH = 1000


def rank_file(plan: Plan, rank: int) -> Path:
    """The partial file of one rank."""
    return plan.out / "ranks" / f"{rank:05d}.npz"


class CountStep(PipelineStep):
    """Counts documents and writes one partial file a rank.

    At the start of a pipeline it reads the shards of its plan, ``shards[rank::world_size]``. Behind a reader of
    datatrove it counts the documents that come (cluster: the field of their metadata) and passes them on.

    Args:
        plan: What is counted.
    """

    name = "Count keys and tasks"
    type = "latentkt"

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.plan = plan

    def run(self, data: Any = None, rank: int = 0, world_size: int = 1) -> Iterator[Any]:
        """Count what belongs to a rank."""
        counter = Counter(self.plan.job)
        if data is not None:
            yield from self._count_stream(counter, data)
            partial = counter.take()
        else:
            mine = range(rank, len(self.plan.shards), world_size)
            partial = merge_partials(self._count_shard(counter, index) for index in mine)
        path = rank_file(self.plan, rank)
        guarded(self.plan.out, lambda: path.parent.mkdir(parents=True, exist_ok=True))
        guarded(self.plan.out, lambda: partial.save(path))
        self.stat_update("documents", value=partial.report.documents)

    def _count_shard(self, counter: Counter, index: int) -> Partial:
        path = self.plan.part(index)
        if path.exists():
            return Partial.load(path)
        partial = counter.count_shard(self.plan.shards[index])
        self.plan.save_part(index, partial)
        return partial

    def _count_stream(self, counter: Counter, data: Iterable[Any]) -> Iterator[Any]:
        kept: list[Any] = []
        for document in data:
            kept.append(document)
            if len(kept) == _BATCH:
                self._count(counter, kept)
                yield from kept
                kept = []
        self._count(counter, kept)
        yield from kept

    def _count(self, counter: Counter, documents: list[Any]) -> None:
        fields = self.plan.job.fields
        texts = [document.text for document in documents]
        names = [fields.cluster_of(document.metadata) for document in documents]
        hashes = [cluster_hash(str(d.id) if n is None else n) for n, d in zip(names, documents, strict=True)]
        buffer = make_buffer(texts, self.plan.job.matching, counter.lexicon.kernel)
        counter.add(Batch(buffer, np.array(hashes, np.uint64), 0))


def merge_ranks(plan: Plan, tasks: int) -> Counts:
    """Merge the partial files of all ranks into the counts.

    Raises:
        RunError: A rank is missing.
    """
    files = [rank_file(plan, rank) for rank in range(tasks)]
    missing = [rank for rank, file in enumerate(files) if not file.exists()]
    if missing:
        raise RunError("not every rank is counted", expected=f"{tasks} ranks", found=f"missing {missing[:10]}")
    return plan.finish(files)


def run_datatrove(plan: Plan, *, tasks: int, workers: int = 1) -> Counts:
    """Count a plan with datatrove's local executor, then merge; a relaunch with the same `tasks` resumes.

    Raises:
        RunError: A rank is missing, or cannot be written; finished shards are kept.
        DataError: A shard cannot be read; finished shards are kept.
    """
    from datatrove.executor import LocalPipelineExecutor

    logs = plan.out / f"datatrove-{tasks}"
    for marker in sorted((logs / "completions").glob("*")):  # a marker without its file would lose the rank
        if not rank_file(plan, int(marker.name)).exists():
            marker.unlink()
    executor = LocalPipelineExecutor([CountStep(plan)], tasks=tasks, workers=workers, logging_dir=str(logs))
    executor.run()
    return merge_ranks(plan, tasks)
