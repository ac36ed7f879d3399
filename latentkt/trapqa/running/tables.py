"""Records as a run folder, so that the report can show them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentkt.errors import InputError
from latentkt.results import create_run, library_versions
from latentkt.trapqa.running.journal import meta_path
from latentkt.trapqa.running.records import Record, check_unique, join_probes, read_records, records_frame

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["save_run"]


def save_run(paths: Sequence[Path], out: Path, *, command: Sequence[str] | None = None) -> Path:
    """Write the records of some files as the table `trapqa` of a new run folder.

    Args:
        paths: Record files; their provenance is taken from the `NAME.meta.json` beside them, where it is there.
        out: The run's folder.
        command: The words of the command line, for the record.

    Returns:
        The folder. Its table `skipped` lists what was not asked, from the provenance.

    Raises:
        InputError: There are no records.
        DataError: A record is wrong or stands twice.
        RunError: The folder exists.
    """
    records: list[Record] = []
    provenance: dict[str, Any] = {}
    for path in paths:
        records += read_records(path)
        beside = meta_path(path)
        provenance[path.name] = json.loads(beside.read_text(encoding="utf-8")) if beside.is_file() else None
    if not records:
        raise InputError("no records to report", expected="at least one", found=", ".join(map(str, paths)))
    check_unique([(record, "the files together") for record in records])
    with create_run(out, metadata=_identity(provenance), command=command) as run:
        run.save("trapqa", records_frame(join_probes(records)))
        run.save("skipped", _skipped(provenance.values()))
        run.finish()
    return out


def _identity(provenance: dict[str, Any]) -> dict[str, Any]:
    """What the tables depend on: the common part of the files' provenance, and all of it."""
    found = [each["identity"] for each in provenance.values() if each and "identity" in each]
    models = {json.dumps(each["model"], sort_keys=True) for each in found if "model" in each}
    model = json.loads(models.pop()) if len(models) == 1 else {"model": f"{len(models)} models"} if models else None
    seeds = sorted({each["seed"] for each in found if "seed" in each})
    return {
        "model": model or {"model": "see the records' setting"},
        "seeds": {"orders": seeds[0] if len(seeds) == 1 else seeds},
        "records": {name: each and each.get("identity", each) for name, each in provenance.items()},
        "versions": library_versions(),
    }


def _skipped(provenance: Iterable[Any]) -> pd.DataFrame:
    import pandas as pd

    rows = {
        (question, f"trapqa {each['condition']}", each["reason"])
        for meta in provenance
        for session in (meta or {}).get("sessions", [])
        for each in session.get("skipped", [])
        for question in each["question_ids"]
    }
    return pd.DataFrame(sorted(rows), columns=["item", "stage", "reason"]).astype("str")
