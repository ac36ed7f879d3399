"""The end of every page: what was left out, and how the run was made."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from latentkt.plots.columns import require
from latentkt.report.blocks import Block, Grid, Note, Section
from latentkt.report.wording import plural

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.results import Run

__all__ = ["flat", "provenance", "skipped"]

LISTED = 200


def skipped(run: Run, absent: Sequence[str]) -> Section:
    """What the run left out: rows of its table `skipped`, and the sections it has no tables for.

    Args:
        run: The run.
        absent: Titles of sections that the run does not hold.
    """
    blocks: list[Block] = []
    intro = "Nothing was skipped."
    if "skipped" not in run.tables:
        intro = "This run kept no list of skipped things."
    elif len(run.tables["skipped"]):
        table = run.tables["skipped"]
        require(table, "skipped")
        counts = table.groupby(["stage", "reason"], sort=True, observed=True).size().reset_index(name="n")
        intro = f"{plural(len(table), 'thing was', 'things were')} skipped, as listed below; averages are without them."
        rows = [(str(row["stage"]), str(row["reason"]), str(row["n"])) for row in counts.to_dict("records")]
        blocks = [
            Grid(("stage", "reason", "count"), tuple(rows), "Skipped, by reason.", frozenset({"count"})),
            _each(table),
        ]
    if not run.finished:
        done = ", ".join(f"{name} {written} of {planned}" for name, (written, planned) in run.progress().items())
        blocks.insert(
            0, Note(f"The run is not finished: batches written are {done}. All numbers are of what there is so far.")
        )
    if absent:
        blocks.append(Note(f"Not measured in this run: {', '.join(absent)}."))
    return Section("skipped", "What was left out", intro, blocks=tuple(blocks))


def _each(table: pd.DataFrame) -> Grid:
    shown = table.head(LISTED)
    rows = tuple((str(row["item"]), str(row["stage"]), str(row["reason"])) for row in shown.to_dict("records"))
    more = f" The first {LISTED} of {len(table):,}; all are in the table `skipped`." if len(table) > LISTED else ""
    return Grid(("item", "stage", "reason"), rows, f"Skipped, one by one.{more}")


def provenance(run: Run) -> Section:
    """Where the numbers come from: tables, identity, sessions."""
    tables = [
        (name, f"{len(run.tables[name]):,}", ", ".join(map(str, run.tables[name].columns))) for name in run.tables
    ]
    identity = [(key, value) for key, value in flat(run.identity)]
    sessions = [
        (" ".join(entry["command"] or ["(from Python)"]), str(entry["began"]), str(entry["ended"] or "killed"))
        for entry in run.metadata["history"]
    ]
    blocks = (
        Grid(
            ("table", "rows", "columns"),
            tuple(tables),
            "Tables of the run (parquet, one measurement a row).",
            frozenset({"rows"}),
        ),
        Grid(("what", "value"), tuple(identity), "What the tables depend on."),
        Grid(("command", "began (UTC)", "ended (UTC)"), tuple(sessions), "Sessions."),
        Note(f'In Python: latentkt.results.load_run("{run.path.name}").tables["{next(iter(run.tables), "answers")}"]'),
    )
    return Section(
        "provenance", "How this run was made", "Every number on this page comes from these tables.", blocks=blocks
    )


def flat(value: Any, at: str = "") -> Iterator[tuple[str, str]]:
    """Nested metadata as (dotted name, text).

    Example:
        >>> list(flat({"model": {"dtype": "float32"}, "limit": None, "layers": [1, 2]}))
        [('model.dtype', 'float32'), ('limit', 'none'), ('layers', '[1, 2]')]
    """
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from flat(inner, f"{at}.{key}" if at else str(key))
    elif value is None:
        yield at, "none"
    else:
        yield at, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
