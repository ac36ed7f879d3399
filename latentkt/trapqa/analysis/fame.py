"""Fame of the candidates from a user's table of pages.

Fame is the mean of three numbers, each normalised over all names of the table: length of the page, views, external
links. `minmax` maps the smallest to 0 and the largest to 1, the paper's; `rank` maps ranks to 0 to 1, so that a few
pages of enormous traffic do not press all others together. A name that lacks one of the three has no fame: it is not
available, which is not zero.
"""

from __future__ import annotations

import dataclasses
import os
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from latentkt.errors import DataError, InputError
from latentkt.trapqa.analysis.fame_tables import TOP_SHARE

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.trapqa.analysis.records import Records
    from latentkt.trapqa.items import ItemSet

__all__ = ["fame_scores", "join_fame", "join_names", "read_fame"]

MEASURES = ("page_length", "page_views", "external_links")
NOT_IN_ITEMS = "fame: the question is not in the item file"
NOT_AVAILABLE = "fame is not available for a candidate"


def read_fame(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a CSV of pages with the columns `name`, `page_length`, `page_views`, `external_links`.

    Raises:
        DataError: The file is absent or lacks a column; a name stands twice; a number is none, or negative.
    """
    import pandas as pd

    file = Path(path)
    try:
        table = pd.read_csv(file, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {file}", expected="a CSV file with a header", found=error) from error
    lacking = [name for name in ("name", *MEASURES) if name not in table.columns]
    if lacking:
        raise DataError(
            f"{file} lacks columns: {', '.join(lacking)}",
            expected=", ".join(("name", *MEASURES)),
            found=", ".join(table.columns),
        )
    twice = sorted({name for name in table["name"][table["name"].map(_plain).duplicated(keep=False)]})
    if twice:
        raise DataError(f"{file}: names stand more than once", found=", ".join(twice[:8]), fix="keep one row a name")
    for measure in MEASURES:
        table[measure] = _numbers(table, measure, file)
    return table[["name", *MEASURES]]


def _numbers(table: pd.DataFrame, measure: str, file: Path) -> pd.Series[float]:
    """A column of numbers; an empty cell is a missing value."""
    import pandas as pd

    text = table[measure].str.strip()
    values = pd.to_numeric(text, errors="coerce").astype(float)
    bad = ((text != "") & values.isna()) | (values < 0) | np.isinf(values)
    if bad.any():
        listed = ", ".join(f"{name!r}: {value!r}" for name, value in zip(table["name"][bad], text[bad], strict=True))
        raise DataError(f"{file}: column {measure}", expected="numbers of 0 or more, or nothing", found=listed[:400])
    return values


def fame_scores(pages: pd.DataFrame, *, norm: Literal["minmax", "rank"] = "minmax") -> pd.DataFrame:
    """Fame of every name.

    Args:
        pages: Columns `name`, `page_length`, `page_views`, `external_links`.
        norm: How each of the three is normalised over all names that have it.

    Returns:
        `name`, `fame` (0 to 1; NaN where one of the three is missing) and `rank` (1 the most famous).

    Raises:
        InputError: Another norm, or a column in which all values are equal, which cannot be normalised.

    Example:
        >>> import pandas as pd
        >>> pages = pd.DataFrame({"name": ["A", "B", "C"], "page_length": [10, 20, 30], "page_views": [0, 5, 10],
        ...                       "external_links": [1, 3, None]})
        >>> fame_scores(pages)["fame"].tolist()
        [0.0, 0.6666666666666666, nan]
    """
    if norm not in ("minmax", "rank"):
        raise InputError("norm of fame", expected="minmax or rank", found=norm)
    parts = []
    for measure in MEASURES:
        values = pages[measure].astype(float)
        if values.nunique() < 2:
            raise InputError(f"fame: column {measure} cannot be normalised", expected="two values or more", found="one")
        shown = values if norm == "minmax" else values.rank()
        parts.append((shown - shown.min()) / (shown.max() - shown.min()))
    fame = sum(parts[1:], parts[0]) / len(parts)
    return pages[["name"]].assign(fame=fame, rank=fame.rank(ascending=False, method="min")).reset_index(drop=True)


def join_fame(records: Records, scores: pd.DataFrame, items: ItemSet) -> Records:
    """Records with the fame of their candidates, in place of what they hold.

    Args:
        records: Checked records.
        scores: What `fame_scores` returns.
        items: The items that the records are of: they name the candidates, with other spellings that count.

    Returns:
        New records. Questions with a candidate that is not in the table, or has no fame there, are noted in the ledger
        by id and have fame for neither side. `top_fame` is set over all names of the table.
    """
    by_name = {_plain(name): float(value) for name, value in zip(scores["name"], scores["fame"], strict=True)}
    fames: dict[str, tuple[float, float]] = {}
    for item in items:
        sides = (item.correct, item.shortcut)
        fames[item.id] = tuple(_look_up(by_name, (side.text, *side.aliases)) for side in sides)  # type: ignore[assignment]
    ledger = dataclasses.replace(records.ledger, lines=list(records.ledger.lines))
    ids = records.frame["question_id"].astype(str)
    asked = [question for question in dict.fromkeys(ids)]
    kinds = {item.id: item.kind for item in items}
    unknown = [question for question in asked if question not in fames]
    missing = [q for q in asked if q in fames and np.isnan(fames[q]).any() and kinds[q] == "scientist"]
    ledger.leave_out("records", "", NOT_IN_ITEMS, unknown)
    ledger.leave_out("records", "", NOT_AVAILABLE, missing)
    frame = records.frame.copy()
    values = np.array([_both(fames.get(question)) for question in ids]).reshape(-1, 2)
    frame[["correct_fame", "shortcut_fame"]] = values
    frame["top_fame"] = _bar(scores)
    return dataclasses.replace(records, frame=frame, ledger=ledger)


def join_names(records: Records, items: ItemSet) -> Records:
    """Records with the names of their candidates, for the table of questions that every setting misses.

    Args:
        records: Checked records.
        items: The items that the records are of; questions that are not among them have no names.
    """
    frame, ids = records.frame.copy(), records.frame["question_id"].astype(str)
    for column, names in (
        ("correct_name", {item.id: item.correct.text for item in items}),
        ("shortcut_name", {item.id: item.shortcut.text for item in items}),
    ):
        frame[column] = ids.map(names).astype("category")
    return dataclasses.replace(records, frame=frame)


def _both(pair: tuple[float, float] | None) -> tuple[float, float]:
    """Both sides, or neither."""
    if pair is None or np.isnan([pair[0], pair[1]]).any():
        return (np.nan, np.nan)
    return (pair[0], pair[1])


def _bar(scores: pd.DataFrame) -> float:
    """The fame that the top 1 % of all names have at least; NaN for fewer than a hundred names."""
    known = np.sort(scores["fame"].dropna().to_numpy())
    count = int(TOP_SHARE * len(known))
    return float(known[-count]) if count else np.nan


def _look_up(by_name: Mapping[str, float], names: tuple[str, ...]) -> float:
    """The fame under the first spelling that the table knows."""
    return next((by_name[_plain(name)] for name in names if _plain(name) in by_name), np.nan)


def _plain(name: str) -> str:
    """One spelling for names that differ in case, spaces or how accents are composed."""
    return " ".join(unicodedata.normalize("NFC", name).casefold().split())
