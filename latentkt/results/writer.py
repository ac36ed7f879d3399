"""Write the tables of a run: planned batches, one part a batch, merged at the end.

The bytes of a table depend on its parts and their order alone, so a run that was killed and resumed ends with the bytes
of an unbroken one.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentkt.errors import InputError, RunError
from latentkt.results import layout, tables
from latentkt.results.files import TEMPORARY, atomic_write, canonical_json, read_metadata, write_bytes
from latentkt.results.identity import refuse_differences

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["RunWriter"]


@dataclass(frozen=True, slots=True)
class RunWriter:
    """Writes one run; made by `create_run`. It holds no state but the path, so it can be sent to worker processes.

    Attributes:
        path: The run's folder.
    """

    path: Path

    def plan(self, table: str, n_batches: int) -> None:
        """Fix the number of batches of a table; the same number again changes nothing.

        Raises:
            RunError: The table was planned with another number of batches.
        """
        if not layout.NAME.fullmatch(table) or n_batches < 1:
            raise InputError(
                f"plan of table {table!r}",
                expected="a name of lower-case letters, digits and underscores, and at least one batch",
                found=f"{n_batches} batches",
            )
        known = self._metadata()
        if table not in known["plan"]:
            known["finished"] = False
        planned = known["plan"].setdefault(table, n_batches)
        if planned != n_batches:
            raise RunError(
                f"run {self.path}: table {table!r} was planned with other batches",
                expected=f"{planned} batches, as the run was begun",
                found=n_batches,
                fix="resume with the same options, or begin a new run in another folder",
            )
        self._save(known)

    def batches(self, table: str | Sequence[str], n_batches: int) -> Iterator[int]:
        """Plan the batches of a table, and go through those that are not done.

        Args:
            table: A table, or several that each batch writes a part of.
            n_batches: Batches in all.

        Yields:
            Indices of the batches that lack a part, in order.

        Raises:
            RunError: The table was planned with another number of batches.
        """
        names = [table] if isinstance(table, str) else list(table)
        for name in names:
            self.plan(name, n_batches)
        return self._missing(names, n_batches)

    def _missing(self, names: Sequence[str], n_batches: int) -> Iterator[int]:
        for batch in range(n_batches):
            if not all(self.done(name, batch) for name in names):
                yield batch

    def done(self, table: str, batch: int) -> bool:
        """Whether a batch of a table has been written."""
        return layout.part(self.path, table, batch).exists() or layout.table(self.path, table).exists()

    def write(self, table: str, batch: int, frame: pd.DataFrame) -> None:
        """Write the rows of one batch; they count as done once this returns. A batch may have no rows, not no columns.

        Raises:
            RunError: The batch was not planned, the table is already merged, the frame cannot be stored without loss,
                or the disk is full.
        """
        planned = self._metadata()["plan"].get(table, 0)
        if not 0 <= batch < planned:
            raise RunError(
                f"run {self.path}: batch {batch} of table {table!r} was not planned",
                expected=f"a batch under {planned}",
                fix="plan the table first with run.batches(table, n_batches)",
            )
        if layout.table(self.path, table).exists():
            raise RunError(f"run {self.path}: table {table!r} is whole already", found=f"batch {batch} again")
        arrow = tables.to_arrow(frame, name=table)
        with atomic_write(layout.part(self.path, table, batch)) as file:
            tables.write_arrow(arrow, file)

    def save(self, table: str, frame: pd.DataFrame) -> None:
        """Write a table of one batch; nothing is done where it is there already."""
        for batch in self.batches(table, 1):
            self.write(table, batch, frame)

    def read(self, table: str) -> pd.DataFrame:
        """The rows of a table whose batches are all written, before or after `finish`.

        Raises:
            RunError: A batch is missing.
        """
        if layout.table(self.path, table).exists():
            return tables.from_arrow(tables.read_arrow(layout.table(self.path, table)))
        return tables.from_arrow(self._merged(table, self._metadata()["plan"].get(table, 0)))

    def write_file(self, name: str, data: bytes | str) -> None:
        """Keep a file beside the tables (the items, a report); an existing one is replaced as a whole."""
        target = (self.path / name).resolve()
        inside = self.path.resolve() in target.parents
        if not inside or target.name == layout.METADATA or target.name.startswith(TEMPORARY):
            raise InputError(f"file name {name!r}", expected="a name inside the run's folder that is not taken by it")
        write_bytes(target, data.encode() if isinstance(data, str) else data)

    def finish(self) -> None:
        """Merge the parts of every planned table, record the tables' hashes, and mark the run as finished.

        Raises:
            RunError: A planned batch is missing (named), or the disk is full; the run can then still be resumed.
        """
        known = self._metadata()
        for table, n_batches in sorted(known["plan"].items()):
            if not layout.table(self.path, table).exists():
                merged = self._merged(table, n_batches)
                with atomic_write(layout.table(self.path, table)) as file:
                    tables.write_arrow(merged, file)
            if table not in known["tables"]:
                known["tables"][table] = _describe(layout.table(self.path, table))
        known["finished"] = True
        self._save(known)
        shutil.rmtree(self.path / "parts", ignore_errors=True)

    def _merged(self, table: str, n_batches: int) -> Any:
        missing = [batch for batch in range(n_batches) if not layout.part(self.path, table, batch).exists()]
        if missing or not n_batches:
            raise RunError(
                f"run {self.path}: table {table!r} is not complete",
                expected=f"{n_batches} batches",
                found=f"missing: {missing[:10]}{' …' if len(missing) > 10 else ''}",
                fix="run the same command with --resume",
            )
        parts = [tables.read_arrow(layout.part(self.path, table, batch)) for batch in range(n_batches)]
        return tables.concatenate(parts, name=table)

    def _metadata(self) -> dict[str, Any]:
        return read_metadata(layout.metadata_path(self.path))

    def _save(self, known: Mapping[str, Any]) -> None:
        write_bytes(layout.metadata_path(self.path), canonical_json(known))

    def open(self, identity: Mapping[str, Any], command: Sequence[str] | None) -> None:
        """Write or compare the identity, and note that a session began."""
        if layout.metadata_path(self.path).exists():
            known = self._metadata()
            begun_with = {"schema_version": known["schema_version"], **known["identity"]}
            refuse_differences(self.path, begun_with, {"schema_version": layout.SCHEMA_VERSION, **identity})
        else:
            known = {
                "schema_version": layout.SCHEMA_VERSION,
                "identity": identity,
                "plan": {},
                "tables": {},
                "finished": False,
                "history": [],
            }
        known["history"].append({"command": None if command is None else list(command), "began": _now(), "ended": None})
        self._save(known)

    def close(self) -> None:
        """Note that the session ended; `create_run` calls this."""
        known = self._metadata()
        known["history"][-1]["ended"] = _now()
        self._save(known)


def _describe(path: Path) -> dict[str, Any]:
    import pyarrow.parquet as pq

    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return {"rows": pq.read_metadata(path).num_rows, "columns": pq.read_schema(path).names, "sha256": digest}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
