"""Work off batches in one process or several, each with its own model and one thread."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Pool"]

_state: dict[str, Any] = {}


def _begin(make_context: Callable[[], Any]) -> None:
    import torch

    torch.set_num_threads(1)
    _state["context"] = make_context()


def _work(work: Callable[[Any, Any], dict[str, pd.DataFrame]], index: int, batch: Any) -> tuple[int, dict[str, Any]]:
    return index, work(_state["context"], batch)


class Pool:
    """Processes that share nothing but the function that makes their context (opens the model, reads the items).

    With one worker everything runs in the calling process. The tables do not depend on the number of workers.
    """

    def __init__(self, make_context: Callable[[], Any], *, workers: int) -> None:
        self._make_context, self._workers = make_context, workers
        self._context: Any = None
        self._executor: ProcessPoolExecutor | None = None

    def __enter__(self) -> Pool:
        if self._workers > 1:
            os.environ.setdefault("OMP_NUM_THREADS", "1")
            self._executor = ProcessPoolExecutor(
                self._workers,
                mp_context=multiprocessing.get_context("spawn"),
                initializer=_begin,
                initargs=(self._make_context,),
            )
        return self

    def __exit__(self, *_: object) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)

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
        futures = [self._executor.submit(_work, work, index, batch) for index, batch in batches]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            for future in futures:
                future.cancel()
