"""The local engine: one shard after the other, or several processes; what is finished stays when a run is stopped."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

from latentkt.corpus.counter import Counter, Job
from latentkt.corpus.counts import Counts
from latentkt.corpus.patterns import Patterns
from latentkt.corpus.plan import Plan, make_plan
from latentkt.errors import InputError
from latentkt.progress import Stage, progress

__all__ = ["count_corpus", "run_local"]

_STEP = 1 << 22  # bytes between two reports of a worker


def count_corpus(
    paths: Sequence[str],
    patterns: Patterns,
    out: str,
    *,
    engine: str = "local",
    workers: int = 1,
    show_progress: bool | None = None,
    **options: Any,
) -> Counts:
    """Count a corpus of files and leave the counts in a folder; the same call goes on where it was stopped.

    Args:
        paths: Files, folders, globs, fsspec URLs or ``hub:NAME[@CONFIG][#SPLIT]``.
        patterns: The pattern set.
        out: Folder of the run.
        engine: ``local`` or ``datatrove``; both leave the same bytes.
        workers: Processes.
        show_progress: Draw a bar; by default where standard error is a terminal.
        **options: Those of `make_plan`: windows, sentence, matching, text_field, cluster, kernel, strict.

    Returns:
        The counts.

    Raises:
        InputError: Wrong options, no files.
        DataError: A shard cannot be read; the finished ones are kept.
        RunError: The folder is taken or cannot be written.
    """
    if engine not in {"local", "datatrove"}:
        raise InputError("unknown engine", expected="local | datatrove", found=repr(engine))
    if workers < 1:
        raise InputError("bad number of workers", expected="at least 1", found=workers)
    plan = make_plan(paths, patterns, out, **options)
    plan.begin()
    if engine == "datatrove" and not plan.finished:
        from latentkt.corpus.datatrove import run_datatrove

        return run_datatrove(plan, tasks=workers, workers=workers)
    return run_local(plan, workers=workers, show_progress=show_progress)


def run_local(plan: Plan, *, workers: int = 1, show_progress: bool | None = None) -> Counts:
    """Count the shards of a plan that are missing, then merge all of them."""
    if plan.finished:
        from latentkt.corpus.counts import load_counts

        return load_counts(plan.out)
    missing = plan.missing()
    with _bar(plan, missing, show_progress) as meter:
        if workers == 1 or len(missing) < 2:
            counter = Counter(plan.job)
            for index in missing:
                plan.save_part(index, counter.count_shard(plan.shards[index], meter.shard(index)))
        else:
            _run_pool(plan, missing, min(workers, len(missing)), meter)
    return plan.finish()


class _Meter:
    """Turns 'bytes done of shard i' into the bar: bytes, rate, time left."""

    def __init__(self, stage: Stage) -> None:
        self._stage, self._done, self._total, self._start = stage, dict[int, int](), 0, time.monotonic()

    def shard(self, index: int) -> Any:
        return lambda done: self.at(index, done)

    def at(self, index: int, done: int) -> None:
        gained = done - self._done.get(index, 0)
        if gained > 0:
            self._done[index] = done
            self._total += gained
            rate = self._total / max(time.monotonic() - self._start, 1e-9)
            self._stage.advance(gained, note=f"{self._total / 1e6:,.0f} MB, {rate / 1e6:,.1f} MB/s as stored")


@contextmanager
def _bar(plan: Plan, missing: Sequence[int], show: bool | None) -> Iterator[_Meter]:
    with progress(show=show) as bar:
        yield _Meter(bar.stage("counting", total=sum(plan.shards[index].size for index in missing)))


_worker: dict[str, Any] = {}


def _start_worker(job: Job, done: Any) -> None:
    _worker["counter"], _worker["done"] = Counter(job), done


def _work(plan: Plan, index: int) -> int:
    reported = 0

    def tell(done: int) -> None:
        nonlocal reported
        if done - reported >= _STEP or done >= plan.shards[index].size:
            reported = done
            _worker["done"].put((index, done))

    plan.save_part(index, _worker["counter"].count_shard(plan.shards[index], tell))
    return index


def _run_pool(plan: Plan, missing: Sequence[int], workers: int, meter: _Meter) -> None:
    context = multiprocessing.get_context("spawn")
    done = context.Queue()
    # Largest first, so that no worker is left alone with a large shard at the end.
    order = sorted(missing, key=lambda index: -plan.shards[index].size)
    with ProcessPoolExecutor(workers, context, _start_worker, (plan.job, done)) as pool:
        left: set[Future[int]] = {pool.submit(_work, plan, index) for index in order}
        try:
            while left:
                finished, left = wait(left, timeout=0.5, return_when=FIRST_COMPLETED)
                _drain(done, meter)
                for future in finished:
                    future.result()
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
        _drain(done, meter)


def _drain(done: Any, meter: _Meter) -> None:
    while not done.empty():
        meter.at(*done.get())
