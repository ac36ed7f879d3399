"""Files that are either whole or absent: write to a temporary name, then rename."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from latentkt.errors import InputError, RunError

__all__ = ["atomic_write", "canonical_json", "read_json", "read_metadata", "remove_temporary", "write_bytes"]

# Begins the name of every file that is not finished; readers never look at such names.
TEMPORARY = ".unfinished-"

_FIELDS = ("schema_version", "identity", "plan", "tables", "finished", "history")

_REMEDY = {
    errno.ENOSPC: "free some space, then run the same command with --resume",
    errno.EDQUOT: "free some of your quota, then run the same command with --resume",
    errno.EROFS: "choose a folder that can be written to",
    errno.EACCES: "choose a folder that can be written to",
}


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that gets its name only when the block ends without an error.

    The data go to a temporary name in the same folder and are flushed to the disk before the rename, so a reader, or a
    run that resumes after a kill or a power cut, finds the old file, the new one, or none: never a part of one.

    Args:
        path: Where the file is to stand; its folder is made where it is missing.

    Yields:
        A binary file to write to.

    Raises:
        RunError: The disk is full or the folder cannot be written to; nothing is left under either name.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with atomic_write(f"{folder}/a.txt") as file:
        ...         _ = file.write(b"whole")
        ...     Path(folder, "a.txt").read_bytes()
        b'whole'
    """
    target = Path(path)
    temporary = target.parent / f"{TEMPORARY}{os.getpid()}-{target.name}"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
        _flush_folder(target.parent)
    except OSError as error:
        raise RunError(
            f"cannot write {target}",
            found=error.strerror or str(error),
            fix=_REMEDY.get(error.errno or 0, "check the folder, then run the same command with --resume"),
        ) from error
    finally:
        with suppress(OSError):  # where the folder itself is the fault, that fault is what is reported
            temporary.unlink(missing_ok=True)


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write `data` as a whole file; see `atomic_write`."""
    with atomic_write(path) as file:
        file.write(data)


def remove_temporary(folder: Path) -> None:
    """Remove what a killed writer left under `folder`."""
    for leftover in folder.rglob(f"{TEMPORARY}*"):
        leftover.unlink(missing_ok=True)


def canonical_json(value: Any) -> bytes:
    """One spelling for equal values: sorted keys, two spaces, UTF-8, a newline at the end.

    NumPy scalars become plain numbers.

    Raises:
        InputError: The value holds something that JSON does not know (NaN and infinity among them).
    """
    try:
        text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False, default=_plain)
    except (TypeError, ValueError) as error:
        raise InputError(
            "metadata cannot be written as JSON",
            expected="text, finite numbers, booleans, null, lists and objects keyed by text",
            found=error,
            fix="convert the value before it is passed on",
        ) from error
    return text.encode() + b"\n"


def read_json(path: Path) -> Any:
    """Read a JSON file of a run.

    Raises:
        RunError: The file is absent or is no JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"cannot read {path}", expected="a JSON file written by latentkt", found=error) from error


def read_metadata(path: Path) -> dict[str, Any]:
    """Read the `metadata.json` of a run.

    Raises:
        RunError: The file is absent, is no JSON, or is not the metadata of a run.
    """
    known = read_json(path)
    lacking = [field for field in _FIELDS if not isinstance(known, dict) or field not in known]
    if lacking:
        raise RunError(
            f"{path} is not the metadata of a run",
            expected=f"an object with {', '.join(_FIELDS)}",
            found=f"without {', '.join(lacking)}",
            fix="choose another folder",
        )
    return known


def _plain(value: Any) -> Any:
    item = getattr(value, "item", None)
    if callable(item) and getattr(value, "ndim", 0) == 0:
        return item()
    raise TypeError(f"{value!r} of type {type(value).__name__}")


def _flush_folder(folder: Path) -> None:
    """Make the rename itself survive a power cut, where the platform can open folders."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
