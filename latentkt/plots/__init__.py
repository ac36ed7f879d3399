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
    from latentkt.plots.cuts import knockout_by_layer, knockout_edges, strongest_cuts
    from latentkt.plots.evidence import evidence_by_item
    from latentkt.plots.explicitness import dose_response_by_level
    from latentkt.plots.faithful import faithfulness_curve
    from latentkt.plots.heads import head_grid, largest_heads
    from latentkt.plots.join import dominance_scatter
    from latentkt.plots.lens import lens_trajectory
    from latentkt.plots.patching import patch_by_role
    from latentkt.plots.phantom import (
        phantom_abstention,
        phantom_kinds,
        phantom_probe,
        phantom_rates,
        phantom_selectivity,
        phantom_steering,
    )
    from latentkt.plots.placebo import effects_by_role
    from latentkt.plots.predictions import predicted_against_exact
    from latentkt.plots.probes import probe_by_layer
    from latentkt.plots.steering import steering_effects
    from latentkt.plots.style import to_png, to_svg
    from latentkt.plots.synthetic import dominance_law, r_coefficients, sweep_lines, training_curve, trap_errors
    from latentkt.plots.theory import dominance_map, term_waterfall
    from latentkt.plots.tokens import layer_by_token
    from latentkt.plots.trapqa import (
        trapqa_calibration,
        trapqa_consensus,
        trapqa_errors,
        trapqa_everyday,
        trapqa_fame,
        trapqa_probe_states,
    )
    from latentkt.plots.verdicts import verdict_by_item

_HOME = {
    "accuracy_by_kind": "accuracy",
    "attribution_bars": "attribution",
    "differences_by_family": "answers",
    "dominance_map": "theory",
    "dominance_scatter": "join",
    "dose_response_by_level": "explicitness",
    "effects_by_role": "placebo",
    "faithfulness_curve": "faithful",
    "head_grid": "heads",
    "dominance_law": "synthetic",
    "evidence_by_item": "evidence",
    "item_against_control": "answers",
    "knockout_by_layer": "cuts",
    "knockout_edges": "cuts",
    "largest_heads": "heads",
    "layer_by_token": "tokens",
    "lens_trajectory": "lens",
    "patch_by_role": "patching",
    "phantom_abstention": "phantom",
    "phantom_kinds": "phantom",
    "phantom_probe": "phantom",
    "phantom_rates": "phantom",
    "phantom_selectivity": "phantom",
    "phantom_steering": "phantom",
    "position_bias": "accuracy",
    "predicted_against_exact": "predictions",
    "probe_by_layer": "probes",
    "strongest_cuts": "cuts",
    "term_waterfall": "theory",
    "r_coefficients": "synthetic",
    "steering_effects": "steering",
    "sweep_lines": "synthetic",
    "to_png": "style",
    "to_svg": "style",
    "training_curve": "synthetic",
    "trap_errors": "synthetic",
    "trapqa_calibration": "trapqa",
    "trapqa_consensus": "trapqa",
    "trapqa_errors": "trapqa",
    "trapqa_everyday": "trapqa",
    "trapqa_fame": "trapqa",
    "trapqa_probe_states": "trapqa",
    "verdict_by_item": "verdicts",
}

__all__ = [
    "accuracy_by_kind",
    "attribution_bars",
    "differences_by_family",
    "dominance_law",
    "dominance_map",
    "dominance_scatter",
    "dose_response_by_level",
    "effects_by_role",
    "evidence_by_item",
    "faithfulness_curve",
    "head_grid",
    "item_against_control",
    "knockout_by_layer",
    "knockout_edges",
    "largest_heads",
    "layer_by_token",
    "lens_trajectory",
    "patch_by_role",
    "phantom_abstention",
    "phantom_kinds",
    "phantom_probe",
    "phantom_rates",
    "phantom_selectivity",
    "phantom_steering",
    "position_bias",
    "predicted_against_exact",
    "probe_by_layer",
    "r_coefficients",
    "steering_effects",
    "strongest_cuts",
    "sweep_lines",
    "term_waterfall",
    "to_png",
    "to_svg",
    "training_curve",
    "trap_errors",
    "trapqa_calibration",
    "trapqa_consensus",
    "trapqa_errors",
    "trapqa_everyday",
    "trapqa_fame",
    "trapqa_probe_states",
    "verdict_by_item",
]


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOME, name)
