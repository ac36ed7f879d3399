"""One progress bar for everything: the stage, how far, the time left."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["Stage", "progress"]


class Stage:
    """One line of the bar; `advance` moves it by some units (items, bytes, cells)."""

    def __init__(self, bar: Progress | None, task: int) -> None:
        self._bar, self._task = bar, task

    def advance(self, amount: float = 1.0, *, note: str | None = None) -> None:
        """Move on by `amount` units; `note` replaces the text at the end of the line."""
        if self._bar is not None:
            fields = {} if note is None else {"note": note}
            self._bar.update(self._task, advance=amount, **fields)  # type: ignore[arg-type]


@contextmanager
def progress(*, show: bool | None = None) -> Iterator[Bar]:
    """Open a bar on standard error; nothing is drawn where that is not a terminal (unless `show`).

    Example:
        >>> with progress(show=False) as bar:
        ...     stage = bar.stage("counting", total=2)
        ...     stage.advance(2)
    """
    if not (sys.stderr.isatty() if show is None else show):
        yield Bar(None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as rich_bar:
        yield Bar(rich_bar)


class Bar:
    """Makes stages; silent where nothing is shown."""

    def __init__(self, bar: Progress | None) -> None:
        self._bar = bar

    def stage(self, name: str, *, total: float) -> Stage:
        """Begin a stage of `total` units."""
        task = -1 if self._bar is None else self._bar.add_task(name, total=total, note="")
        return Stage(self._bar, task)
