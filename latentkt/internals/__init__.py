"""Measurements inside the network, on a model and pairs of prompts.

The names below are loaded when they are used, so that importing the package stays light.
"""

from __future__ import annotations

from typing import Any

from latentkt import lazy

_HOME = {
    "ActivationStore": "store",
    "AnswerScore": "metrics",
    "Branches": "branches",
    "Direction": "directions",
    "Generation": "generation",
    "LOGITS": "paths",
    "LensRun": "lens",
    "Node": "paths",
    "Probe": "probes",
    "ProbeTables": "probes",
    "TARGETS": "probes",
    "TunedLens": "tuned",
    "answer_lens": "lens",
    "atp": "attribution_patching",
    "atp_items": "gradient_runs",
    "attribute": "attribution",
    "attribute_items": "runs",
    "Choice": "verifying",
    "collect": "store",
    "direction_of_probe": "directions",
    "dose_response": "explicitness",
    "edge_attribution": "edges",
    "edit_along": "steering",
    "edited": "engines.edited",
    "effects_against_placebo": "effects",
    "engine_of": "engines",
    "facts_known": "probes",
    "faithfulness": "faithful",
    "faithfulness_items": "gradient_runs",
    "fit_probe": "probes",
    "generate": "generation",
    "head_table": "attribution",
    "item_run": "pairs",
    "joined_groups": "probes",
    "knockout": "attention_cuts",
    "knockout_items": "gradient_runs",
    "lens_items": "runs",
    "load_tuned_lens": "tuned",
    "make_direction": "directions",
    "ndif_request": "engines.remote",
    "open_store": "store",
    "pairs_of_item": "pairs",
    "patch": "patching",
    "patch_items": "runs",
    "patch_positions": "patching",
    "patch_roles": "patching",
    "path_patch": "paths",
    "placebo_draws": "placebo",
    "placebo_roles": "placebo",
    "probe_items": "probes",
    "probe_rows": "probes",
    "probe_table": "probes",
    "random_directions": "directions",
    "random_init": "probes",
    "read_and_unread": "directions",
    "role_features": "probes",
    "role_positions": "places",
    "steer": "steering",
    "steer_items": "steering_runs",
    "steer_left_out": "steering_runs",
    "steer_text": "steering",
    "sweep_probes": "probes",
    "token_lens": "lens",
    "train_tuned_lens": "tuned",
    "verdict_items": "verdict_runs",
    "verdict_table": "verdicts",
    "verification": "verifying",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOME, name)


def __dir__() -> list[str]:
    return __all__
