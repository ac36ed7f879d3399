"""Where things lie in a run directory.

::

    metadata.json                     identity (must be equal on resume), plan, tables, history (commands, times)
    parts/TABLE/00003.parquet         one part per table and batch, while the run is going on
    tables/TABLE.parquet              all parts of a table in the order of the batches, once `finish` has run
    anything else                     files kept beside the tables (`write_file`), the report

A table is whole when it stands in `tables/`; a batch is done when its part stands in `parts/`.
"""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["LOCK", "METADATA", "NAME", "SCHEMA_VERSION", "files_of", "metadata_path", "part", "table"]

SCHEMA_VERSION = 1
METADATA = "metadata.json"
LOCK = ".lock"
# What a table may be called: its name becomes a file name on every platform.
NAME = re.compile(r"[a-z][a-z0-9_]*")


def metadata_path(run: Path) -> Path:
    """The file of the run's metadata."""
    return run / METADATA


def part(run: Path, name: str, batch: int) -> Path:
    """The file of one batch of a table."""
    return run / "parts" / name / f"{batch:05d}.parquet"


def table(run: Path, name: str) -> Path:
    """The file of a merged table."""
    return run / "tables" / f"{name}.parquet"


def files_of(run: Path, name: str) -> list[Path]:
    """The files that make up a table: the merged one, or the parts so far."""
    merged = table(run, name)
    return [merged] if merged.exists() else sorted(part(run, name, 0).parent.glob("[0-9]*.parquet"))
