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
    "Generation": "generation",
    "LOGITS": "paths",
    "LensRun": "lens",
    "Node": "paths",
    "Probe": "probes",
    "ProbeTables": "probes",
    "TunedLens": "tuned",
    "answer_lens": "lens",
    "attribute": "attribution",
    "attribute_items": "runs",
    "collect": "store",
    "effects_against_placebo": "effects",
    "engine_of": "engines",
    "fit_probe": "probes",
    "generate": "generation",
    "head_table": "attribution",
    "item_run": "pairs",
    "lens_items": "runs",
    "load_tuned_lens": "tuned",
    "ndif_request": "engines.remote",
    "open_store": "store",
    "pairs_of_item": "pairs",
    "patch": "patching",
    "patch_items": "runs",
    "patch_positions": "patching",
    "patch_roles": "patching",
    "path_patch": "paths",
    "placebo_roles": "placebo",
    "probe_table": "probes",
    "role_positions": "places",
    "token_lens": "lens",
    "train_tuned_lens": "tuned",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOME, name)


def __dir__() -> list[str]:
    return __all__
