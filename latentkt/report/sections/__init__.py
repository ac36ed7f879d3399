"""The sections of the report, in the order of the page.

A section is a module with

- `TITLE`: its heading, used also to say that the run does not hold it;
- `section(run) -> Section | None`: the section, or None where the run lacks what it needs.
"""

from __future__ import annotations

import importlib
from types import ModuleType

__all__ = ["ELSEWHERE", "SECTIONS", "modules"]

SECTIONS: tuple[str, ...] = (
    "answers",
    "position",
    "lens",
    "attribution",
    "patching",
    "placebo",
    "components",
    "tokens",
    "gradients",
    "knockout",
    "faithfulness",
    "probes",
    "steering",
    "verdict",
    "explicitness",
    "join",
    "construction",
    "synthetic",
    "synthetic_inside",
    "trapqa",
    "trapqa_tables",
    "phantom",
    "phantom_inside",
)
ELSEWHERE = frozenset(
    {
        "construction",
        "explicitness",
        "phantom",
        "phantom_inside",
        "synthetic",
        "synthetic_inside",
        "trapqa",
        "trapqa_tables",
    }
)
"""Sections of other kinds of runs: a page says that it lacks one of the rest, not one of these."""


def modules() -> list[ModuleType]:
    """The modules named by `SECTIONS`, in order."""
    return [importlib.import_module(f"{__name__}.{name}") for name in SECTIONS]
