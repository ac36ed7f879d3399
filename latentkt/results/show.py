"""A run in one screen of text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from latentkt.results.reader import Run

__all__ = ["describe"]


def describe(run: Run) -> str:
    """What a run holds and how far it is, after its tables' hashes have been checked.

    Raises:
        RunError: A table is not what the run wrote.
    """
    run.verify()
    lines = [f"{run.path}: {'finished' if run.finished else 'not finished'}", "tables"]
    for name, (written, planned) in run.progress().items():
        rows = f"{len(run.tables[name]):,} rows" if name in run.tables else "no rows yet"
        lines.append(f"  {name:<16} {rows:>16}   batch {written} of {planned}")
    lines.append("identity")
    lines += [f"  {key:<16} {_short(value)}" for key, value in sorted(run.identity.items())]
    lines.append("sessions")
    lines += [
        f"  {entry['began']}  {' '.join(entry['command'] or ['(from Python)'])}" for entry in run.metadata["history"]
    ]
    return "\n".join(lines)


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else f"{text[:99]}…"
