"""Reading item files (JSON lines, with their pattern file beside them), and the sets that come with the package."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

from latentkt.corpus.patterns import Patterns, find_patterns
from latentkt.errors import DataError, InputError
from latentkt.trapqa.clauses import check_set
from latentkt.trapqa.items import ItemSet, Kind
from latentkt.trapqa.patterns import union
from latentkt.trapqa.schema import parse_item, shortened

__all__ = ["BUILTIN", "builtin_items", "load_items", "save_items"]

BUILTIN: dict[Kind, str] = {"scientist": "scientists", "action": "everyday"}
"""Kind of item -> name of the built-in file that holds it."""


def load_items(path: str | Path) -> ItemSet:
    """Read and check an item file; its patterns are `NAME.patterns.json` beside it, else `patterns.json` there.

    Args:
        path: A file of JSON lines, one item a line; blank lines are passed over.

    Raises:
        InputError: There is no such file.
        DataError: The file is empty, or an item breaks a clause; the message names file, line and id.

    Example:
        >>> load_items("nowhere.jsonl")
        Traceback (most recent call last):
        latentkt.errors.InputError: no item file nowhere.jsonl
          expected: a file of JSON lines, one trap item a line
          to do:    check the path
    """
    path = Path(path)
    items, places = [], []
    for number, line in enumerate(_read(path, "item file", "JSON lines, one trap item a line").split("\n"), start=1):
        if line.strip():
            where = f"{path}, line {number}"
            item = parse_item(_decode(line, where), where=where)
            items.append(item)
            places.append(f"{where}, item {item.id!r}")
    if not items:
        raise DataError(f"{path} holds no items", expected="at least one line", fix="see docs/guide/items.md")
    patterns = _patterns_beside(path)
    check_set(items, patterns, places)
    return ItemSet(items=tuple(items), patterns=patterns, path=path)


def builtin_items(kind: Kind | None = None) -> ItemSet:
    """The items that come with the package: all, or those of one kind.

    Raises:
        InputError: Another kind was asked for.
        DataError: The installation lacks the files.
    """
    if kind not in (None, *BUILTIN):
        raise InputError(f"no built-in items of kind {kind!r}", expected=f"None or one of {', '.join(BUILTIN)}")
    sets = [_builtin(name) for each, name in BUILTIN.items() if kind in (None, each)]
    items = tuple(item for item_set in sets for item in item_set)
    patterns = union(item_set.patterns for item_set in sets if item_set.patterns is not None)
    check_set(items, patterns, [f"built-in item {item.id!r}" for item in items])
    return ItemSet(items=items, patterns=patterns)


def _builtin(name: str) -> ItemSet:
    with resources.as_file(resources.files("latentkt.trapqa") / "data") as folder:
        path = folder / f"{name}.jsonl"
        if not path.is_file():
            raise DataError(
                f"the installation lacks the built-in items {name!r}", expected=path, fix="install latentkt again"
            )
        return load_items(path)


def save_items(item_set: ItemSet, path: str | Path) -> None:
    """Write items as JSON lines, and their patterns beside them, such that `load_items` gives the same set.

    Args:
        item_set: The items; an empty set is refused.
        path: The file to write, ending in `.jsonl`; an existing one is replaced.

    Raises:
        InputError: The set is empty or the name ends otherwise.
    """
    path = Path(path)
    if path.suffix != ".jsonl" or not len(item_set):
        raise InputError(
            f"cannot save items to {path}", expected="at least one item, a name ending in .jsonl", found=len(item_set)
        )
    lines = (json.dumps(item.to_dict(), ensure_ascii=False) for item in item_set)
    if item_set.patterns is not None:
        item_set.patterns.save(path.with_suffix(".patterns.json"))
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    unfinished.replace(path)


def _patterns_beside(path: Path) -> Patterns | None:
    beside = find_patterns(path)
    if beside is None:
        return None
    data = _decode(_read(beside, "pattern file", "JSON"), str(beside))
    return Patterns.from_dict(data, where=str(beside))  # type: ignore[arg-type]  # it refuses what is no object


def _read(path: Path, what: str, expected: str) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        raise InputError(f"no {what} {path}", expected=f"a file of {expected}", fix="check the path") from None
    except OSError as error:
        raise InputError(
            f"cannot read {shortened(str(path))}: {error.strerror}",
            expected=f"a file of {expected}",
            fix="check the path",
        ) from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise DataError(f"{path}, line {line}: not UTF-8", expected=expected, found=str(error.reason)) from error


def _decode(text: str, where: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{where}: not JSON", expected="one JSON object with unique fields", found=str(error)
        ) from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"a field occurs twice: {next(name for name in names if names.count(name) > 1)}")
    return record


def _no_constant(text: str) -> None:
    raise ValueError(f"{text} is not JSON")
