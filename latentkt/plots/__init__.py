"""Figures, one function each, from result tables only.

Each function takes a long table (see `latentkt.plots.columns` for what it must hold) and returns a
`matplotlib.figure.Figure`. It is strict about columns that are missing and easy about those it does not know. `caption`
names what the table cannot: the preset, the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latentkt import lazy

if TYPE_CHECKING:
    from latentkt.plots.accuracy import accuracy_by_kind, position_bias
    from latentkt.plots.answers import differences_by_family, item_against_control
    from latentkt.plots.lens import lens_trajectory
    from latentkt.plots.patching import patch_by_role
    from latentkt.plots.probes import probe_by_layer
    from latentkt.plots.style import to_png, to_svg
    from latentkt.plots.trapqa import (
        trapqa_calibration,
        trapqa_consensus,
        trapqa_errors,
        trapqa_everyday,
        trapqa_fame,
        trapqa_probe_states,
    )

_HOME = {
    "accuracy_by_kind": "accuracy",
    "differences_by_family": "answers",
    "item_against_control": "answers",
    "lens_trajectory": "lens",
    "patch_by_role": "patching",
    "position_bias": "accuracy",
    "probe_by_layer": "probes",
    "to_png": "style",
    "to_svg": "style",
    "trapqa_calibration": "trapqa",
    "trapqa_consensus": "trapqa",
    "trapqa_errors": "trapqa",
    "trapqa_everyday": "trapqa",
    "trapqa_fame": "trapqa",
    "trapqa_probe_states": "trapqa",
}

__all__ = [
    "accuracy_by_kind",
    "differences_by_family",
    "item_against_control",
    "lens_trajectory",
    "patch_by_role",
    "position_bias",
    "probe_by_layer",
    "to_png",
    "to_svg",
    "trapqa_calibration",
    "trapqa_consensus",
    "trapqa_errors",
    "trapqa_everyday",
    "trapqa_fame",
    "trapqa_probe_states",
]


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOME, name)
