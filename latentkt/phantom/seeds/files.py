"""Opening seed files: plain or gzipped text, JSON, and tables with their delimiter found."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any, TextIO

from latentkt.errors import DataError, InputError

__all__ = ["first_of", "lines", "load_json", "open_text", "table"]


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """A text file, gunzipped where its name ends in `.gz`.

    Raises:
        InputError: It cannot be opened.
        DataError: It is not UTF-8.
    """
    try:
        with path.open("rb") as stored:
            raw = gzip.GzipFile(fileobj=stored) if path.suffix == ".gz" else stored
            with io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as file:
                yield file
    except (EOFError, zlib.error) as error:
        raise DataError(f"{path} is a damaged gzip file", found=error) from error
    except OSError as error:
        raise InputError(f"cannot read the seeds {path}: {error.strerror or error}", expected="a file") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8", found=error.reason) from error


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines from 1, without their ends."""
    with open_text(path) as file:
        for number, line in enumerate(file, start=1):
            yield number, line.rstrip("\r\n")


def load_json(path: Path) -> Any:
    """The content of a JSON file.

    Raises:
        DataError: It is none.
    """
    with open_text(path) as file:
        try:
            return json.load(file)
        except ValueError as error:
            raise DataError(f"{path}: not JSON", found=error) from error


def table(path: Path, *, columns: Sequence[str] = (), needs: str = "a header line") -> Iterator[dict[str, str]]:
    """Rows of a comma- or tab-separated file with a header; names of columns in lower case.

    Args:
        path: The file.
        columns: Names that must be there.
        needs: What the message says was expected.

    Raises:
        DataError: There is no header, or a column lacks.
    """
    with open_text(path) as file:
        head = file.readline()
        delimiter = "\t" if "\t" in head else ","
        names = [name.strip().lower() for name in next(csv.reader([head], delimiter=delimiter), [])]
        missing = [name for name in columns if name not in names]
        if not names or missing:
            raise DataError(f"{path}: columns", expected=", ".join(columns) or needs, found=", ".join(names) or "none")
        for number, row in _cells(path, file, delimiter):
            if len(row) > len(names):
                raise DataError(
                    f"{path}, row {number}: too many cells",
                    expected=f"{len(names)}: {', '.join(names)}",
                    found=f"{len(row)}: {row}"[:120],
                    fix="put a cell that holds the delimiter into quotation marks",
                )
            if row:
                yield dict(zip_longest(names, row, fillvalue=""))


def _cells(path: Path, file: TextIO, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    try:
        yield from enumerate(csv.reader(file, delimiter=delimiter), start=2)
    except csv.Error as error:
        raise DataError(f"{path}: not a table", expected=f"cells between {delimiter!r}", found=error) from error


def first_of(names: Sequence[str], known: Sequence[str], where: str) -> str:
    """The first of some names that is among the known ones.

    Raises:
        DataError: None is.
    """
    found = next((name for name in names if name in known), None)
    if found is None:
        raise DataError(where, expected=f"one of {', '.join(names)}", found=", ".join(known))
    return found
