"""Hits in context: the places behind a count, read again from the corpus."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from latentkt.corpus.counter import Counter, Job
from latentkt.corpus.documents import Skipped
from latentkt.corpus.fields import Fields
from latentkt.corpus.kernel.hashing import Buffer
from latentkt.corpus.matching import Matching
from latentkt.corpus.patterns import Patterns
from latentkt.corpus.plan import PLAN
from latentkt.corpus.readers import read_shard
from latentkt.corpus.scan import Matches, scan
from latentkt.corpus.shards import Shard
from latentkt.corpus.units import drop_excluded
from latentkt.errors import DataError

__all__ = ["Hit", "concordance"]


@dataclass(frozen=True, slots=True)
class Hit:
    """One occurrence of a key near its task.

    Attributes:
        shard: Name of the file.
        document: Number of the document in the shard, from 1 (damaged lines are not counted).
        left: Text before the key.
        key: The key as it stands there.
        right: Text behind it.
        task: The nearest match of the task as it stands there.
        distance: Words between the two, 0 for neighbours; negative if the task stands before the key.
    """

    shard: str
    document: int
    left: str
    key: str
    right: str
    task: str
    distance: int


def concordance(folder: str | Path, path: str, *, n: int = 20, window: int = 50, width: int = 60) -> list[Hit]:
    """The first hits of a path: a key with its task at most `window` words away.

    Args:
        folder: Counts of a run; its corpus is read again from where it was.
        path: ``KEY:TASK``.
        n: How many hits.
        window: Largest distance in words.
        width: Characters of context on either side.

    Raises:
        DataError: The folder is no run, or its corpus is gone.
        InputError: An unknown path.
    """
    try:
        plan = json.loads((Path(folder) / PLAN).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"no plan in {folder}", expected="a folder of `latentkt corpus count`", found=error) from error
    patterns = Patterns.from_dict(plan["patterns"])
    key, task = patterns.check_path(path)
    exclude = {name: forms for name, forms in patterns.exclude.items() if name in {key, task}}
    small = Patterns({key: patterns.keys[key]}, {task: patterns.tasks[task]}, exclude)
    job = Job(small, Matching(**plan["matching"]), fields=Fields(**plan["fields"]))
    hits: list[Hit] = []
    for shard in (Shard(**one) for one in plan["shards"]):
        for hit in _shard_hits(job, shard, window, width):
            hits.append(hit)
            if len(hits) == n:
                return hits
    return hits


def _shard_hits(job: Job, shard: Shard, window: int, width: int) -> Iterator[Hit]:
    counter = Counter(job)
    before = 0
    for batch in read_shard(shard, job.fields, job.matching, counter.lexicon.kernel, Skipped()):
        matches = drop_excluded(scan(batch.buffer, counter.lexicon), 2)
        for row in np.flatnonzero(matches.entry == 0).tolist():
            near = _nearest(matches, row, window)
            if near is not None:
                yield _hit(batch.buffer, matches, row, near, shard, before, width)
        before += len(batch.clusters)


def _nearest(matches: Matches, row: int, window: int) -> int | None:
    document = matches.document[row]
    low, high = np.searchsorted(matches.document, [document, document + 1])
    tasks = low + np.flatnonzero(matches.entry[low:high] == 1)
    inside = tasks[
        (matches.first[tasks] >= matches.first[row] - window) & (matches.last[tasks] <= matches.last[row] + window)
    ]
    if not len(inside):
        return None
    return int(inside[np.argmin([abs(_distance(matches, row, task)) for task in inside.tolist()])])


def _distance(matches: Matches, row: int, task: int) -> int:
    if matches.first[task] > matches.last[row]:
        return int(matches.first[task] - matches.last[row]) - 1
    return min(int(matches.last[task] - matches.first[row]) + 1, 0)


def _hit(buffer: Buffer, matches: Matches, row: int, task: int, shard: Shard, before: int, width: int) -> Hit:
    document = int(matches.document[row])
    low, high = int(buffer.starts[document]), int(buffer.starts[document + 1]) - 1
    start, end = int(matches.start[row]), int(matches.end[row])

    def text(first: int, last: int) -> str:
        return " ".join(buffer.data[first:last].tobytes().decode("utf-8", "ignore").split())

    return Hit(
        shard.name,
        before + document + 1,
        text(max(low, start - 4 * width), start)[-width:],
        text(start, end),
        text(end, min(high, end + 4 * width))[:width],
        text(int(matches.start[task]), int(matches.end[task])),
        _distance(matches, row, task),
    )
