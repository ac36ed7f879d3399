"""What a search has done so far, so that the same command goes on where it was stopped."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from latentkt.errors import RunError

__all__ = ["Journal"]


class Journal:
    """Finished units of a search (shards, or texts): kept in memory, and in a file where one is given.

    The first line of the file says what the search depends on; a half-written last line is dropped.

    Args:
        path: The file; None keeps nothing.
        identity: What the search depends on.
        resume: Go on with an existing file.

    Raises:
        RunError: The file exists and `resume` is off, or it belongs to another search.
    """

    def __init__(self, path: Path | None, identity: Mapping[str, Any], *, resume: bool = False) -> None:
        self.path = path
        self.done: dict[str, dict[str, Any]] = {}
        self._file = None
        if path is None:
            return
        if path.exists():
            self._read(path, dict(identity), resume)
        self._file = path.open("ab")
        if not self._file.tell():
            self._write({"identity": dict(identity)})

    def _read(self, path: Path, identity: dict[str, Any], resume: bool) -> None:
        if not resume:
            raise RunError(
                f"an unfinished search lies in {path}",
                fix="go on with it with --resume, or remove the file",
            )
        data = path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            with path.open("r+b") as file:
                file.truncate(len(whole))
        lines = whole.splitlines()
        if not lines:
            return
        known = json.loads(lines[0]).get("identity", {})
        other = sorted(name for name in {*known, *identity} if known.get(name) != identity.get(name))
        if other:
            raise RunError(
                f"{path} belongs to another search",
                expected="the same " + ", ".join(other),
                found="; ".join(f"{name}: {known.get(name)!r} there, {identity.get(name)!r} here" for name in other)[
                    :400
                ],
                fix="verify as it was begun, or choose another name for the output",
            )
        self.done = {entry.pop("unit"): entry for entry in map(json.loads, lines[1:])}

    def add(self, unit: str, entry: Mapping[str, Any]) -> None:
        """Keep the result of a unit."""
        self.done[unit] = dict(entry)
        self._write({"unit": unit, **entry})

    def _write(self, entry: Mapping[str, Any]) -> None:
        if self._file is not None:
            self._file.write(json.dumps(entry, ensure_ascii=False).encode() + b"\n")
            self._file.flush()

    def close(self, *, finished: bool = False) -> None:
        """Close the file, and remove it where the search is finished."""
        if self._file is not None:
            self._file.close()
            self._file = None
            if finished and self.path is not None:
                self.path.unlink()
