"""The file that a run writes: one line a question as soon as it is answered, so that nothing is asked twice.

Beside `NAME.jsonl` lies `NAME.meta.json`, which says what the answers depend on, and when and by which command each
session asked.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, TypeVar

from latentkt.errors import RunError
from latentkt.results import atomic_write
from latentkt.trapqa.running.records import Record, read_records, record_line, write_records

__all__ = ["RECORDS", "Journal", "Layout", "meta_path", "now", "open_journal", "write_meta"]

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Layout(Generic[Row]):
    """How one kind of rows lies in a file.

    Attributes:
        read: The checked rows of a file.
        line: A row as a line, with or without its line feed.
        write: Write a whole file.
        key: What no two rows share.
    """

    read: Callable[[Path], list[Row]]
    line: Callable[[Row], str]
    write: Callable[[Sequence[Row], Path], object]
    key: Callable[[Row], object]


RECORDS: Layout[Record] = Layout(read_records, record_line, write_records, lambda record: record.key)
"""Records of trap items."""


def meta_path(path: Path) -> Path:
    """Where the provenance of a record file lies.

    Example:
        >>> meta_path(Path("records.jsonl")).name
        'records.meta.json'
    """
    return path.with_suffix(".meta.json")


def now() -> str:
    """The time, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def write_meta(path: Path, meta: Mapping[str, Any]) -> None:
    """Write the provenance of the record file `path`."""
    with atomic_write(meta_path(path)) as file:
        file.write((json.dumps(meta, indent=2, ensure_ascii=False) + "\n").encode())


class Journal(Generic[Row]):
    """Appends records to a file that is held by one process."""

    def __init__(self, path: Path, meta: dict[str, Any], records: list[Row], dropped: int, layout: Layout[Row]) -> None:
        self.path, self.meta, self.records, self.dropped, self._layout = path, meta, records, dropped, layout
        self.done: set[object] = {layout.key(record) for record in records}

    def append(self, records: Sequence[Row]) -> None:
        """Write records behind those that are there, onto the disk."""
        if not records:
            return
        with self.path.open("ab") as file:
            file.write("".join(self._layout.line(record).rstrip("\n") + "\n" for record in records).encode())
            file.flush()
            os.fsync(file.fileno())
        self.records += records
        self.done |= {self._layout.key(record) for record in records}

    def finish(self, records: Sequence[Row], session: Mapping[str, Any]) -> None:
        """Put the finished records in the place of the file, and the session into its provenance."""
        self._layout.write(records, self.path)
        self.meta["sessions"][-1] |= {"ended": now(), **session}
        write_meta(self.path, self.meta)


@contextmanager
def open_journal(
    path: Path,
    identity: Mapping[str, Any],
    *,
    layout: Layout[Row],
    resume: bool,
    command: Sequence[str] | None,
) -> Iterator[Journal[Row]]:
    """Begin a record file, or go on with one.

    Args:
        path: The file.
        identity: What its answers depend on; on resume it must be what the file was begun with. Under `items.sha256`
            conditions may be added.
        layout: What kind of rows the file holds, such as `RECORDS`.
        resume: Go on with an existing file; begin one where there is none.
        command: The words of the command line, for the record.

    Raises:
        RunError: The file exists and `resume` is off, belongs to another run, or is being written by another process.
    """
    from filelock import FileLock, Timeout

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path.with_name(f".{path.name}.lock"))
        lock.acquire(timeout=0)
    except Timeout as error:
        raise RunError(f"{path} is being written by another process", fix="wait for it to end") from error
    except OSError as error:
        raise RunError(f"cannot write to {path.parent}", found=error.strerror, fix="choose another folder") from error
    try:
        yield _opened(path, dict(identity), layout, resume=resume, command=command)
    finally:
        lock.release()


def _opened(
    path: Path, identity: dict[str, Any], layout: Layout[Row], *, resume: bool, command: Sequence[str] | None
) -> Journal[Row]:
    exists = path.exists() or meta_path(path).exists()
    if exists and not resume:
        raise RunError(
            f"{path} exists", expected="a new file", found="records", fix="choose another name, or go on with --resume"
        )
    meta: dict[str, Any] = {"identity": identity, "sessions": []}
    records: list[Row] = []
    dropped = 0
    if exists:
        meta = _same_identity(path, identity)
        dropped = _drop_half_line(path)
        records = layout.read(path) if path.exists() else []
    meta["sessions"].append({"began": now(), "ended": None, "command": list(command or [])})
    write_meta(path, meta)
    return Journal(path, meta, records, dropped, layout)


def _same_identity(path: Path, identity: dict[str, Any]) -> dict[str, Any]:
    try:
        meta = json.loads(meta_path(path).read_text(encoding="utf-8"))
        known = meta["identity"]
    except (OSError, ValueError, KeyError) as error:
        raise RunError(
            f"{path} cannot be gone on with", expected=f"its provenance in {meta_path(path).name}", found=str(error)
        ) from error
    merged = {**known, "items": {**known.get("items", {}), **identity.get("items", {})}}
    old, new = (side.get("items", {}).get("sha256", {}) for side in (known, identity))
    merged["items"]["sha256"] = {**old, **new}
    other = [name for name in sorted({*known, *identity} - {"items"}) if known.get(name) != identity.get(name)]
    other += [
        f"items of {condition}" for condition in sorted(old.keys() & new.keys()) if old[condition] != new[condition]
    ]
    if other:
        raise RunError(
            f"{path} was begun otherwise",
            expected="the same " + ", ".join(other),
            found="; ".join(f"{name}: {known.get(name)!r} there, {identity.get(name)!r} here" for name in other)[:600],
            fix="choose another name for the records, or ask as it was begun",
        )
    meta["identity"] = merged
    return dict(meta)


def _drop_half_line(path: Path) -> int:
    """Cut off a last line that was not written to its end; its question is asked again. Returns how many were cut."""
    if not path.exists():
        return 0
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) == len(data):
        return 0
    with path.open("r+b") as file:
        file.truncate(len(whole))
    return 1
