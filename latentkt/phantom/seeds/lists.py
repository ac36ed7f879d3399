"""Plain lists of concepts: text, JSON, JSON lines, tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from latentkt.errors import DataError
from latentkt.phantom.seeds.files import first_of, lines, load_json, table
from latentkt.phantom.seeds.seeds import Row, Skip

__all__ = ["CATEGORY_FIELDS", "TEXT_FIELDS", "read_json", "read_jsonl", "read_table", "read_text"]

TEXT_FIELDS = ("concept", "term", "entity", "name", "label", "title", "text")
CATEGORY_FIELDS = ("category", "type", "domain")


def read_text(path: Path, skip: Skip) -> Iterator[Row]:
    """One concept a line; a line that begins with `#` is a comment."""
    for _, line in lines(path):
        if line.startswith("#"):
            skip("comment")
        else:
            yield None, line


def read_json(path: Path, skip: Skip) -> Iterator[Row]:
    """A list of texts, or an object {CATEGORY: [texts]}.

    Raises:
        DataError: It is of another form.
    """
    data = load_json(path)
    groups = data.items() if isinstance(data, dict) else [(None, data)]
    for category, texts in groups:
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise DataError(
                f"{path}: not a list of concepts", expected="[texts] or {CATEGORY: [texts]}", found=repr(texts)[:80]
            )
        yield from ((category, text) for text in texts)


def read_jsonl(path: Path, skip: Skip) -> Iterator[Row]:
    """An object a line, the concept under one of `TEXT_FIELDS`, its category under one of `CATEGORY_FIELDS`.

    Raises:
        DataError: A line is no object, or has no field for the concept.
    """
    name: str | None = None
    for number, line in lines(path):
        if not line.strip():
            continue
        row = _object(line, f"{path}, line {number}")
        name = name or first_of(TEXT_FIELDS, list(row), f"{path}, line {number}: no concept")
        if isinstance(row.get(name), str):
            yield _category(row), row[name]
        else:
            skip(f"no text in field {name}")


def _object(line: str, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise DataError(f"{where}: not JSON", found=error) from error
    if not isinstance(row, dict):
        raise DataError(f"{where}: not an object", found=line[:60])
    return row


def read_table(path: Path, skip: Skip) -> Iterator[Row]:
    """A comma- or tab-separated file with a header, columns named as the fields of `read_jsonl`.

    Raises:
        DataError: No column holds the concept.
    """
    name: str | None = None
    for row in table(path):
        name = name or first_of(TEXT_FIELDS, list(row), f"{path}: no column for the concept")
        if row.get(name):
            yield _category(row), row[name]
        else:
            skip(f"nothing in column {name}")


def _category(row: Mapping[str, Any]) -> str | None:
    values = (row.get(name) for name in CATEGORY_FIELDS)
    return next((value for value in values if isinstance(value, str) and value), None)
