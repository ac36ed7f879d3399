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
    from latentkt.plots.synthetic import dominance_law, r_coefficients, sweep_lines, training_curve, trap_errors

_HOME = {
    "accuracy_by_kind": "accuracy",
    "differences_by_family": "answers",
    "dominance_law": "synthetic",
    "item_against_control": "answers",
    "lens_trajectory": "lens",
    "patch_by_role": "patching",
    "position_bias": "accuracy",
    "probe_by_layer": "probes",
    "r_coefficients": "synthetic",
    "sweep_lines": "synthetic",
    "to_png": "style",
    "to_svg": "style",
    "training_curve": "synthetic",
    "trap_errors": "synthetic",
}

__all__ = [
    "accuracy_by_kind",
    "differences_by_family",
    "dominance_law",
    "item_against_control",
    "lens_trajectory",
    "patch_by_role",
    "position_bias",
    "probe_by_layer",
    "r_coefficients",
    "sweep_lines",
    "to_png",
    "to_svg",
    "training_curve",
    "trap_errors",
]


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOME, name)
