"""Save an analysis: a run directory with every table, and the same as Markdown, LaTeX and JSON."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentkt.results import atomic_write, create_run, library_versions
from latentkt.results.files import canonical_json
from latentkt.trapqa.analysis.layouts import LAYOUTS
from latentkt.trapqa.analysis.typeset import latex, markdown

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.trapqa.analysis.analysis import Analysis

__all__ = ["PREFIX", "run_tables", "write_analysis"]

PREFIX = "trapqa_"


def run_tables(analysis: Analysis) -> dict[str, pd.DataFrame]:
    """The tables as a run holds them: names begin with `trapqa_`, `trapqa_left_out` lists what was left out."""
    tables = {f"{PREFIX}{name}": table for name, table in analysis.tables.items()}
    left_out = analysis.ledger.frame()
    return {**tables, **({f"{PREFIX}left_out": left_out} if len(left_out) else {})}


def write_analysis(
    analysis: Analysis,
    out: str | os.PathLike[str],
    *,
    options: Mapping[str, Any] | None = None,
    command: Sequence[str] | None = None,
) -> Path:
    """Write an analysis as a new run directory.

    Args:
        analysis: What `analyse` returns.
        out: The folder; it must be new or empty.
        options: What the analysis depended on besides the records (fame, priors), for the metadata.
        command: The words of the command line, for the metadata.

    Returns:
        The folder: `metadata.json`, `tables/*.parquet`, `analysis.json` (by setting), `across_settings.json`,
        `tables.md` (all tables and what they leave out), `latex/*.tex`.

    Raises:
        RunError: The folder holds something.
    """
    folder = Path(out)
    metadata = {
        "model": {"model": ", ".join(analysis.settings)},
        "items": {"path": ", ".join(name for name, _ in analysis.sources) or "in memory"},
        "options": {"records": [list(source) for source in analysis.sources], **(options or {})},
        "versions": library_versions(),
    }
    with create_run(folder, metadata=metadata, command=command) as run:
        for name, table in run_tables(analysis).items():
            for batch in run.batches(name, 1):
                run.write(name, batch, table)
        run.finish()
    _write(folder / "analysis.json", canonical_json(analysis.to_json()))
    _write(folder / "across_settings.json", canonical_json(dict(analysis.summary)))
    _write(folder / "tables.md", _page(analysis).encode())
    for name, table in analysis.tables.items():
        if name in LAYOUTS:
            _write(folder / "latex" / f"{name}.tex", latex(name, table).encode())
    return folder


def _page(analysis: Analysis) -> str:
    """All tables in the order of the paper, then what they leave out."""
    parts = [markdown(name, analysis.tables[name]) for name in LAYOUTS if name in analysis.tables]
    left_out = [f"- {text}" for text in analysis.ledger.texts()] or ["- nothing"]
    head = (
        "Counts are of answers: a question asked in both orders of its options has two. Rates are in percent with 95 % "
        "intervals that count questions; p values are two-sided and take one answer a question."
    )
    return "\n".join(["# TrapQA analysis", "", head, "", *parts, "### What the tables leave out", "", *left_out, ""])


def _write(path: Path, data: bytes) -> None:
    with atomic_write(path) as file:
        file.write(data)
