"""How many hits mean what they should: a sheet of hits to read, and the shares that the reader found."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

from latentkt.corpus.hits import concordance
from latentkt.errors import DataError

__all__ = ["read_precision", "write_precision_sheet"]

COLUMNS = ("path", "shard", "document", "left", "key", "right", "task", "good")


def write_precision_sheet(
    folder: str | Path, paths: Iterable[str], out: str | Path, *, n: int = 20, window: int = 50
) -> None:
    """Write a CSV of hits with an empty column ``good``, to be filled with 1 (right sense) or 0 by a reader.

    Args:
        folder: Counts of a run.
        paths: ``KEY:TASK``, each with up to `n` hits.
        out: The CSV file.
        n: Hits for each path.
        window: Largest distance of key and task in words.
    """
    with Path(out).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for path in paths:
            for hit in concordance(folder, path, n=n, window=window):
                writer.writerow([path, hit.shard, hit.document, hit.left, hit.key, hit.right, hit.task, ""])


def read_precision(path: str | Path) -> dict[str, float]:
    """Share of good hits of each path, from a sheet whose column ``good`` a reader has filled (empty: unread).

    Raises:
        DataError: A column is missing, or ``good`` holds something else than 0, 1 or nothing.
    """
    marks: dict[str, list[int]] = {}
    with Path(path).open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if not {"path", "good"} <= set(reader.fieldnames or ()):
            raise DataError(f"{path}: no sheet of hits", expected="columns path and good", found=reader.fieldnames)
        for number, row in enumerate(reader, start=2):
            mark = (row["good"] or "").strip()
            if mark not in {"", "0", "1"}:
                raise DataError(f"{path}:{number}: bad mark", expected="0, 1 or nothing", found=repr(mark))
            if mark:
                marks.setdefault(row["path"], []).append(int(mark))
    return {name: sum(values) / len(values) for name, values in marks.items()}
