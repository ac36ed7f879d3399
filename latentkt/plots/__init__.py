"""Figures, one function each, from result tables only.

Each function takes a long table (see `latentkt.plots.columns` for what it must hold) and returns a
`matplotlib.figure.Figure`. It is strict about columns that are missing and easy about those it does not know. `caption`
names what the table cannot: the preset, the model.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from latentkt.plots.accuracy import accuracy_by_kind, position_bias
    from latentkt.plots.answers import differences_by_family, item_against_control
    from latentkt.plots.evidence import evidence_by_item
    from latentkt.plots.lens import lens_trajectory
    from latentkt.plots.patching import patch_by_role
    from latentkt.plots.probes import probe_by_layer
    from latentkt.plots.style import to_png, to_svg

_HOME = {
    "accuracy_by_kind": "accuracy",
    "differences_by_family": "answers",
    "evidence_by_item": "evidence",
    "item_against_control": "answers",
    "lens_trajectory": "lens",
    "patch_by_role": "patching",
    "position_bias": "accuracy",
    "probe_by_layer": "probes",
    "to_png": "style",
    "to_svg": "style",
}

__all__ = [
    "accuracy_by_kind",
    "differences_by_family",
    "evidence_by_item",
    "item_against_control",
    "lens_trajectory",
    "patch_by_role",
    "position_bias",
    "probe_by_layer",
    "to_png",
    "to_svg",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
