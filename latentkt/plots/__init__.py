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
    from latentkt.plots.attribution import attribution_bars
    from latentkt.plots.heads import head_grid, largest_heads
    from latentkt.plots.lens import lens_trajectory
    from latentkt.plots.patching import patch_by_role
    from latentkt.plots.placebo import effects_by_role
    from latentkt.plots.probes import probe_by_layer
    from latentkt.plots.style import to_png, to_svg
    from latentkt.plots.tokens import layer_by_token

_HOME = {
    "accuracy_by_kind": "accuracy",
    "attribution_bars": "attribution",
    "differences_by_family": "answers",
    "effects_by_role": "placebo",
    "head_grid": "heads",
    "item_against_control": "answers",
    "largest_heads": "heads",
    "layer_by_token": "tokens",
    "lens_trajectory": "lens",
    "patch_by_role": "patching",
    "position_bias": "accuracy",
    "probe_by_layer": "probes",
    "to_png": "style",
    "to_svg": "style",
}

__all__ = [
    "accuracy_by_kind",
    "attribution_bars",
    "differences_by_family",
    "effects_by_role",
    "head_grid",
    "item_against_control",
    "largest_heads",
    "layer_by_token",
    "lens_trajectory",
    "patch_by_role",
    "position_bias",
    "probe_by_layer",
    "to_png",
    "to_svg",
]


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOME, name)
