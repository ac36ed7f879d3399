"""Save an analysis as a run folder: every table, the same as Markdown, and what they leave out."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentkt.results import atomic_write, create_run, library_versions

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.phantom.analysis.analysis import Analysis

__all__ = ["PREFIX", "markdown", "write_analysis"]

PREFIX = "phantom_"


def write_analysis(
    analysis: Analysis,
    out: str | os.PathLike[str],
    *,
    inside: Mapping[str, pd.DataFrame] | None = None,
    identity: Mapping[str, Any] | None = None,
    command: Sequence[str] | None = None,
) -> Path:
    """Write an analysis as a new run folder.

    Args:
        analysis: What `analyse` returns.
        out: The folder; it must be new or empty.
        inside: Tables of a run of `probe`, to stand in the same folder and report.
        identity: What the tables depend on: model, files, options.
        command: The words of the command line.

    Returns:
        The folder: `metadata.json`, `tables/*.parquet` (names begin with `phantom_`), `tables.md`.

    Raises:
        RunError: The folder holds something.
    """
    folder = Path(out)
    metadata = {
        "model": {"model": ", ".join(analysis.settings)},
        "judges": list(analysis.judges),
        **(identity or {}),
        "versions": library_versions(),
    }
    with create_run(folder, metadata=metadata, command=command) as run:
        for name, table in {**analysis.tables}.items():
            run.save(f"{PREFIX}{name}", table)
        for name, table in (inside or {}).items():
            run.save(name, table)
        if analysis.ledger.lines:
            run.save(f"{PREFIX}left_out", analysis.ledger.frame())
        run.finish()
    shown = {name: table for name, table in analysis.tables.items() if name != "answers"}
    parts = [f"## {name}\n\n{markdown(table)}" for name, table in shown.items()]
    left_out = "\n".join(f"- {text}" for text in analysis.ledger.texts()) or "- nothing"
    with atomic_write(folder / "tables.md") as file:
        file.write("\n".join(["# PhantomBench analysis\n", *parts, f"## What is left out\n\n{left_out}\n"]).encode())
    return folder


def markdown(table: pd.DataFrame) -> str:
    r"""A table in Markdown, numbers to three digits behind the point.

    Example:
        >>> import pandas as pd
        >>> print(markdown(pd.DataFrame({"setting": ["a|b"], "rate_pct": [12.34567]})))
        | setting | rate_pct |
        | --- | ---: |
        | a\|b | 12.346 |
        <BLANKLINE>
    """
    numeric = [table[name].dtype.kind in "fiu" for name in table.columns]
    rows = [[_cell(value) for value in row] for row in table.itertuples(index=False)]
    body = [list(map(str, table.columns)), ["---:" if number else "---" for number in numeric], *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in body) + "\n"


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.3f}".rstrip("0").rstrip(".")
    return "–" if value is None else str(value).replace("|", "\\|").replace("\n", " ")
