"""Measurements inside the network, on a model and pairs of prompts.

The names below are loaded when they are used, so that importing the package stays light.
"""

from __future__ import annotations

from typing import Any

from latentkt import lazy

_HOME = {
    "AnswerScore": "metrics",
    "Branches": "branches",
    "LensRun": "lens",
    "ProbeData": "probes",
    "answer_lens": "lens",
    "attribute": "attribution",
    "head_table": "attribution",
    "token_lens": "lens",
    "item_run": "pairs",
    "pairs_of_item": "pairs",
    "patch": "patching",
    "patch_positions": "patching",
    "patch_roles": "patching",
    "placebo_roles": "placebo",
    "effects_against_placebo": "effects",
    "engine_of": "engines",
    "probe_layers": "probes",
    "role_positions": "places",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOME, name)


def __dir__() -> list[str]:
    return __all__
