"""Work off batches in one process or several, each with its own model and one thread."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from latentkt.errors import RunError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Pool"]

_state: dict[str, Any] = {}


def _die_with_parent() -> None:
    """End this worker when its parent is gone: a killed parent cannot tell it, and it would wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _begin(make_context: Callable[[], Any]) -> None:
    import torch

    threading.Thread(target=_die_with_parent, daemon=True).start()

    # A terminal's Ctrl-C reaches every process; the parent alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    _state["context"] = make_context()


@contextmanager
def _single_thread() -> Iterator[None]:
    """One thread in this process, as in a worker's: sums of several threads round otherwise. Put back at the end."""
    import torch
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(threads)


def _work(work: Callable[[Any, Any], dict[str, pd.DataFrame]], index: int, batch: Any) -> tuple[int, dict[str, Any]]:
    return index, work(_state["context"], batch)


class Pool:
    """Processes that share nothing but the function that makes their context (opens the model, reads the items).

    With one worker everything runs in the calling process, on one thread as well. The tables do not depend on the
    number of workers.
    """

    def __init__(self, make_context: Callable[[], Any], *, workers: int) -> None:
        self._make_context, self._workers = make_context, workers
        self._context: Any = None
        self._executor: ProcessPoolExecutor | None = None
        self._held = ExitStack()

    def __enter__(self) -> Pool:
        if self._workers > 1:
            os.environ.setdefault("OMP_NUM_THREADS", "1")
            self._executor = ProcessPoolExecutor(
                self._workers,
                mp_context=multiprocessing.get_context("spawn"),
                initializer=_begin,
                initargs=(self._make_context,),
            )
        else:
            self._held.enter_context(_single_thread())
        return self

    def __exit__(self, *_: object) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)
        self._held.close()

    def run(
        self, work: Callable[[Any, Any], dict[str, pd.DataFrame]], batches: Sequence[tuple[int, Any]]
    ) -> Iterator[tuple[int, dict[str, pd.DataFrame]]]:
        """Yield (index, tables) of each batch as it is done, in any order."""
        if self._executor is None:
            if self._context is None:
                self._context = self._make_context()
            for index, batch in batches:
                yield index, work(self._context, batch)
            return
        futures: list[Future[Any]] = []
        try:
            futures += [self._executor.submit(_work, work, index, batch) for index, batch in batches]
            for future in as_completed(futures):
                yield future.result()
        except BrokenProcessPool as error:
            raise RunError(
                "a worker process ended before its work was done",
                expected=f"memory for {self._workers} copies of the model",
                found="a process that was killed, or could not open the model",
                fix="run the same command with --resume and --workers 1",
            ) from error
        finally:
            for future in futures:
                future.cancel()
