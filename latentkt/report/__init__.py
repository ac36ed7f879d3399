"""One self-contained HTML page from a run directory, in plain words, with figures.

The page is made of sections, modules of `latentkt.report.sections` in the order of its tuple `SECTIONS`. A new part of
the library adds a module and its name there, and touches nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latentkt import lazy

if TYPE_CHECKING:
    from latentkt.report.blocks import Finding, Grid, Note, Picture, Section
    from latentkt.report.page import build

_HOME = {
    "Finding": "blocks",
    "Grid": "blocks",
    "Note": "blocks",
    "Picture": "blocks",
    "Section": "blocks",
    "build": "page",
}

__all__ = ["Finding", "Grid", "Note", "Picture", "Section", "build"]


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOME, name)
