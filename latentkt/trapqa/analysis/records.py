"""Read records, refuse what contradicts itself, and put probe answers beside the answers they belong to.

Refused, with file, line and question: lines that are no JSON, values of another kind, two answers for one key
(question, setting, condition, order), labels that differ between records of one question. Counted and set to missing,
by question: probe answers that contradict each other, fame that differs or is there for one side only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentkt.errors import DataError
from latentkt.trapqa.analysis.fields import FIELDS, TEXTS, YES_NO, checked
from latentkt.trapqa.analysis.ledger import Ledger

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Records", "read_records", "records_from_frame"]

SHOWN = 8


@dataclass(frozen=True)
class Records:
    """Records that were checked, as one table.

    Attributes:
        frame: One row a record. Text columns are categories; `question` numbers the questions; `wrong` is 1.0 where
            the answer is not y*, 0.0 where it is, NaN where there is none; yes/no columns are 1.0, 0.0 or NaN; probe
            columns are filled in every row of the same question and setting. `top_fame`, `log_prior_ratio` and
            `cooccurrence` are NaN until fame or priors are joined.
        ledger: What was set to missing, by question.
        sources: Files and their sha256.
    """

    frame: pd.DataFrame
    ledger: Ledger
    sources: tuple[tuple[str, str], ...] = ()

    @property
    def settings(self) -> list[str]:
        """The settings, in the order in which they first appear."""
        return [str(name) for name in self.frame["setting"].drop_duplicates()]


def read_records(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> Records:
    """Read record files (JSON lines); several are read as one.

    Args:
        paths: One file or several.

    Raises:
        DataError: A file is absent, a line is no record, or records contradict each other.
    """
    import hashlib

    files = [Path(paths)] if isinstance(paths, str | os.PathLike) else [Path(path) for path in paths]
    rows, problems, sources = _Rows(), list[str](), list[tuple[str, str]]()
    for file in files:
        digest = hashlib.sha256()
        try:
            with file.open("rb") as lines:
                for number, line in enumerate(lines, start=1):
                    digest.update(line)
                    problem = rows.add_line(line)
                    if problem:
                        problems.append(f"{file}, line {number}: {problem}")
        except OSError as error:
            raise DataError(f"cannot read {file}", expected="a file of records", found=error.strerror) from error
        sources.append((file.name, digest.hexdigest()))
    _refuse(problems, "records are refused", "correct these lines, or leave them out")
    return _checked(rows.frame(), tuple(sources))


def records_from_frame(frame: pd.DataFrame) -> Records:
    """The same checks for records that are a table already.

    Args:
        frame: Columns named as the fields of a record; others are not looked at.

    Raises:
        DataError: As `read_records`.

    Example:
        >>> import pandas as pd
        >>> rows = {"question_id": ["a", "b"], "setting": "m", "condition": "names", "answer": ["correct", "off"]}
        >>> records_from_frame(pd.DataFrame(rows)).frame["wrong"].tolist()
        [0.0, 1.0]
    """
    names = [name for name in FIELDS if name in frame.columns]
    rows, problems = _Rows(), list[str]()
    plain = frame[names].astype(object).where(frame[names].notna(), None)
    for number, values in enumerate(plain.itertuples(index=False, name=None)):
        record = {name: _plain(value, name) for name, value in zip(names, values, strict=True)}
        problem = rows.add(record)
        if problem:
            problems.append(f"row {number}: {problem}")
    _refuse(problems, "records are refused", "correct these rows, or leave them out")
    return _checked(rows.frame(), ())


def _plain(value: Any, name: str) -> Any:
    """A cell as JSON would have it; a yes/no column that holds gaps comes as 0.0 and 1.0."""
    value = value.item() if hasattr(value, "item") else value
    return bool(value) if name in YES_NO and value in (0.0, 1.0) and value is not None else value


class _Rows:
    """Checked values, record by record."""

    def __init__(self) -> None:
        self.rows: list[tuple[str | float | None, ...]] = []

    def add_line(self, line: bytes) -> str | None:
        """Add one line of a file; the text says what is wrong with it."""
        if line.isspace():
            return None
        try:
            record = json.loads(line.decode())
        except ValueError as error:
            return f"no JSON ({error}); a line that ends early was half written"
        return self.add(record)

    def add(self, record: Any) -> str | None:
        """Add one record; the text says what is wrong with it."""
        values, problem = checked(record)
        if problem is None:
            self.rows.append(values)
        return problem

    def frame(self) -> pd.DataFrame:
        """One row a record: texts as categories, the rest as numbers."""
        import numpy as np
        import pandas as pd

        columns: dict[str, Any] = {}
        for name, values in zip(FIELDS, zip(*self.rows, strict=True) if self.rows else [()] * len(FIELDS), strict=True):
            if name in TEXTS:
                columns[name] = pd.Categorical(values, categories=_seen(values))
            else:
                columns[name] = np.array(values, dtype=float)
        return pd.DataFrame(columns)


def _seen(values: Iterable[Any]) -> list[Any]:
    """Distinct values in order of first appearance."""
    return [value for value in dict.fromkeys(values) if value is not None]


def _checked(frame: pd.DataFrame, sources: tuple[tuple[str, str], ...]) -> Records:
    from latentkt.trapqa.analysis.consistency import one_label, settle_fame, settle_probes

    if frame.empty:
        raise DataError("there are no records", expected="at least one line", found="none")
    _refuse(
        _duplicates(frame),
        "two answers for one key",
        "keep one record for each question, setting, condition and order",
    )
    frame["question"] = frame["question_id"].cat.codes.astype("int64")
    frame[["top_fame", "log_prior_ratio", "cooccurrence"]] = float("nan")
    frame["wrong"] = frame["answer"].map({"correct": 0.0, "shortcut": 1.0, "off": 1.0}).astype(float)
    problems = [text for label in ("family", "aspect", "constraint_kind") for text in one_label(frame, label)]
    _refuse(problems, "labels differ between records of one question", "give each question one label")
    ledger = Ledger()
    settle_probes(frame, ledger)
    settle_fame(frame, ledger)
    return Records(frame, ledger, sources)


def _duplicates(frame: pd.DataFrame) -> list[str]:
    """Keys that more than one record has; a record without order stands for either order."""
    keys = ["question_id", "setting", "condition"]
    orders = frame["order"].cat.codes
    # A key has as many records as distinct orders, and only one where the order is unknown.
    grouped = orders.groupby([frame[key] for key in keys], observed=True).agg(["size", "nunique", "min"])
    bad = grouped[(grouped["size"] > grouped["nunique"]) | ((grouped["min"] < 0) & (grouped["size"] > 1))]
    return [
        f"question {question!r}, setting {setting!r}, condition {condition!r}: {size} records"
        for question, setting, condition, size in bad["size"].reset_index().itertuples(index=False)
    ]


def _refuse(problems: list[str], what: str, fix: str) -> None:
    if problems:
        more = f"\n  … and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
        listed = "\n  ".join(problems[:SHOWN])
        raise DataError(f"{what} ({len(problems)}):\n  {listed}{more}", fix=fix)
