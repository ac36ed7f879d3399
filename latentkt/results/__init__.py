"""Run directories: long tables and metadata, saved and loaded without loss.

A run is written with `create_run` and read with `load_run`. Every file is written under a temporary name and renamed,
so that whatever has its final name is whole. See `latentkt.results.layout` for the layout of the folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latentkt import lazy

if TYPE_CHECKING:
    from latentkt.results.files import atomic_write
    from latentkt.results.json_lines import json_line, read_json_lines, write_json_lines
    from latentkt.results.outputs import jsonl_output
    from latentkt.results.reader import Run, load_run
    from latentkt.results.session import create_run, refuse_existing
    from latentkt.results.versions import library_versions
    from latentkt.results.writer import RunWriter

__all__ = [
    "Run",
    "RunWriter",
    "atomic_write",
    "create_run",
    "json_line",
    "jsonl_output",
    "library_versions",
    "load_run",
    "read_json_lines",
    "refuse_existing",
    "write_json_lines",
]

_HOME = {
    "Run": "reader",
    "RunWriter": "writer",
    "atomic_write": "files",
    "create_run": "session",
    "json_line": "json_lines",
    "jsonl_output": "outputs",
    "library_versions": "versions",
    "load_run": "reader",
    "read_json_lines": "json_lines",
    "refuse_existing": "session",
    "write_json_lines": "json_lines",
}


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOME, name)
