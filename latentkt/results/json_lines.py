"""Files of JSON lines: strict to read, whole or absent when written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from latentkt.errors import DataError, InputError
from latentkt.results.files import atomic_write

__all__ = ["json_line", "read_json_lines", "write_json_lines"]

Row = TypeVar("Row")
_BOM = "\ufeff".encode()


def json_line(row: Mapping[str, Any]) -> str:
    r"""One row as a line of JSON, with its line feed.

    Example:
        >>> json_line({"name": "Curie"})
        '{"name": "Curie"}\n'
    """
    return json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"


def write_json_lines(rows: Iterable[Mapping[str, Any]], path: str | Path) -> int:
    """Write rows as JSON lines; the number written.

    Raises:
        RunError: The disk is full or the folder cannot be written to.
    """
    number = 0
    with atomic_write(path) as file:
        for row in rows:
            file.write(json_line(row).encode())
            number += 1
    return number


def read_json_lines(path: str | Path, parse: Callable[[dict[str, Any], str], Row]) -> Iterator[Row]:
    """Read JSON lines one by one; blank lines are passed over, and only line feeds end a line.

    Args:
        path: The file, UTF-8.
        parse: Makes a row of an object and of the words that say where it stands.

    Raises:
        InputError: The file cannot be read.
        DataError: A line is not UTF-8 or no JSON object; the message names file and line.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> path = Path(tempfile.mkdtemp()) / "people.jsonl"
        >>> write_json_lines([{"name": "Curie"}, {"name": "Meitner"}], path)
        2
        >>> list(read_json_lines(path, lambda row, where: row["name"]))
        ['Curie', 'Meitner']
    """
    path = Path(path)
    try:
        file = path.open("rb")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", expected="a file of JSON lines") from error
    with file:
        for number, line in enumerate(file, start=1):
            line = line.removeprefix(_BOM) if number == 1 else line
            if line.strip():
                where = f"{path}, line {number}"
                yield parse(_object(line, where), where)


def _object(line: bytes, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not JSON", expected="one JSON object", found=str(error)[:120]) from error
    if not isinstance(row, dict):
        raise DataError(f"{where}: not an object", expected="one JSON object", found=repr(row)[:60])
    return row
