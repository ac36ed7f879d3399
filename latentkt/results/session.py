"""Begin a run or go on with one, alone."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from latentkt.errors import RunError
from latentkt.results import layout
from latentkt.results.files import TEMPORARY, remove_temporary
from latentkt.results.identity import plain
from latentkt.results.writer import RunWriter

__all__ = ["create_run", "refuse_existing"]


@contextmanager
def create_run(
    path: str | os.PathLike[str],
    *,
    metadata: Mapping[str, Any],
    plan: Mapping[str, int] | None = None,
    resume: bool = False,
    command: Sequence[str] | None = None,
) -> Iterator[RunWriter]:
    """Begin a run, or go on with one, and hold it against other writers until the block ends.

    Args:
        path: The run's folder. It must not exist or be empty, unless `resume`.
        metadata: The identity of the run: all that its tables depend on, as JSON values. By convention the keys are
            `model`, `items`, `seeds`, `options`, `versions` (see `library_versions`) and `preset`. On resume it must be
            equal to what the run was begun with.
        plan: Number of batches of each table, where all are known before the run. Tables may also be planned one by one
            with `RunWriter.batches`.
        resume: Go on with an existing run; begin one where there is none.
        command: The words of the command line, for the record; not part of the identity.

    Yields:
        The writer. Leaving the block without `finish()` leaves a run that can be resumed.

    Raises:
        RunError: The folder exists and `resume` is off; it is no run; its identity or plan differs (every difference is
            named); another process is writing to it; the disk is full.

    Example:
        >>> import tempfile, pandas as pd
        >>> from latentkt.results import load_run
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with create_run(f"{folder}/run", metadata={"seeds": {"items": 0}}) as run:
        ...         for batch in run.batches("answers", 2):
        ...             run.write("answers", batch, pd.DataFrame({"item": [f"i{batch}"], "log_odds": [0.5 * batch]}))
        ...         run.finish()
        ...     load_run(f"{folder}/run").tables["answers"]["log_odds"].tolist()
        [0.0, 0.5]
    """
    from filelock import FileLock, Timeout

    folder = Path(path)
    identity = plain(metadata)
    refuse_existing(folder, resume=resume)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / layout.LOCK)
        lock.acquire(timeout=0)
    except Timeout as error:
        raise RunError(f"run {folder} is being written by another process", fix="wait for it to end") from error
    except OSError as error:
        raise RunError(f"cannot write to {folder}", found=error.strerror, fix="choose another folder") from error
    try:
        remove_temporary(folder)
        run = RunWriter(folder)
        run.open(identity, command)
        for table, n_batches in (plan or {}).items():
            run.plan(table, n_batches)
        try:
            yield run
        finally:
            run.close()
    finally:
        lock.release()


def refuse_existing(path: str | os.PathLike[str], *, resume: bool) -> None:
    """Refuse a folder in which a run cannot be begun, or (`resume`) gone on with; `create_run` calls this too.

    Raises:
        RunError: It holds a run and `resume` is off, or something that is no run, or it cannot be looked into.
    """
    folder = Path(path)
    try:
        if not folder.exists():
            return
        if not folder.is_dir():
            raise RunError(f"run folder {folder}", expected="a folder", found="a file", fix="choose another name")
        names = [entry.name for entry in folder.iterdir()]
    except OSError as error:
        raise RunError(f"cannot look into {folder}", found=error.strerror, fix="choose another folder") from error
    # A run is never mixed with another's files.
    content = [name for name in names if name != layout.LOCK and not name.startswith(TEMPORARY)]
    if not content:
        return
    if layout.METADATA not in content:
        raise RunError(
            f"folder {folder} is no run, and not empty",
            expected=f"a new folder, or one with {layout.METADATA}",
            found=", ".join(sorted(content)[:5]),
            fix="choose another folder",
        )
    if not resume:
        raise RunError(
            f"run {folder} exists",
            expected="a new folder",
            found="a run, finished or not",
            fix="choose another folder, or go on with that run with --resume",
        )
