"""Read a run back: its metadata, and its tables when they are asked for."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentkt.errors import RunError
from latentkt.results import layout, tables
from latentkt.results.files import read_json, read_metadata

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Run", "Tables", "load_run"]


class Tables(Mapping[str, "pd.DataFrame"]):
    """The tables of a run by name. Each is read from the disk when it is first used, and then kept."""

    def __init__(self, path: Path, plan: Mapping[str, int]) -> None:
        self._path, self._frames = path, dict[str, "pd.DataFrame"]()
        self._files = {name: files for name in sorted(plan) if (files := layout.files_of(path, name))}

    def __getitem__(self, name: str) -> pd.DataFrame:
        """The table; change a copy, not the frame itself.

        Raises:
            KeyError: The run has no such table.
            RunError: The table is damaged.
        """
        if name not in self._files:
            raise KeyError(f"run {self._path} has no table {name!r}; it has {', '.join(self._files) or 'none'}")
        if name not in self._frames:
            parts = [tables.read_arrow(file) for file in self._files[name]]
            self._frames[name] = tables.from_arrow(tables.concatenate(parts, name=name))
        return self._frames[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def __repr__(self) -> str:
        return f"Tables({', '.join(self._files)})"


@dataclass(frozen=True)
class Run:
    """A run that was loaded.

    Attributes:
        path: Its folder.
        metadata: The whole of `metadata.json`: `schema_version`, `identity`, `plan` (batches of each table), `tables`
            (rows, columns, hash), `finished`, `history` (commands and times of each session).
        tables: The long tables by name, read when first used.
    """

    path: Path
    metadata: dict[str, Any]
    tables: Mapping[str, pd.DataFrame]

    @property
    def finished(self) -> bool:
        """Whether every planned batch was written and merged."""
        return bool(self.metadata["finished"])

    @property
    def identity(self) -> dict[str, Any]:
        """What the tables depend on: model, items, seeds, options, versions."""
        return self.metadata["identity"]

    def has(self, table: str) -> bool:
        """Whether the run holds a table with at least one row; one of which everything was skipped has none."""
        return table in self.tables and len(self.tables[table]) > 0

    def progress(self) -> dict[str, tuple[int, int]]:
        """Batches written and batches planned, of each table."""
        counts = {}
        for name, planned in sorted(self.metadata["plan"].items()):
            whole = layout.table(self.path, name).exists()
            counts[name] = (planned if whole else len(layout.files_of(self.path, name)), planned)
        return counts

    def verify(self) -> None:
        """Compare the bytes of every table with the hash recorded when the run was finished.

        Raises:
            RunError: A table was changed afterwards, or is missing.
        """
        for name, known in self.metadata["tables"].items():
            path = layout.table(self.path, name)
            found = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "no file"
            if found != known["sha256"]:
                raise RunError(
                    f"table {name!r} of run {self.path} is not what the run wrote",
                    expected=f"sha256 {known['sha256']}",
                    found=found,
                    fix="run it again in a new folder; tables are not meant to be edited",
                )


def load_run(path: str | os.PathLike[str], *, partial: bool = False) -> Run:
    """Load a run directory.

    Args:
        path: The folder that `create_run` wrote.
        partial: Accept an unfinished run; its tables then hold the batches written so far.

    Returns:
        The run, with the tables as they were saved: the same columns, types, rows and NaN.

    Raises:
        RunError: The folder is no run, was written by another version of the format, or is unfinished and `partial` is
            off.
    """
    folder = Path(path)
    if not layout.metadata_path(folder).is_file():
        raise RunError(
            f"{folder} is no run directory",
            expected=f"a folder with {layout.METADATA}",
            fix="name the folder that --out made",
        )
    metadata = read_json(layout.metadata_path(folder))
    version = metadata.get("schema_version") if isinstance(metadata, dict) else None
    if version != layout.SCHEMA_VERSION:
        raise RunError(
            f"run {folder} is written in another format",
            expected=f"schema version {layout.SCHEMA_VERSION}",
            found=version,
            fix="read it with the version of latentkt that wrote it",
        )
    metadata = read_metadata(layout.metadata_path(folder))
    run = Run(folder, metadata, Tables(folder, metadata["plan"]))
    if not run.finished and not partial:
        done = ", ".join(f"{name} {written}/{planned}" for name, (written, planned) in run.progress().items())
        raise RunError(
            f"run {folder} is not finished",
            expected="every planned batch",
            found=f"batches written: {done or 'none'}",
            fix="run its command again with --resume, or load it with partial=True",
        )
    return run
