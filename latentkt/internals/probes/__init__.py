"""Linear probes: what can be read from activations, held against what the words, the size and the probe give away.

`fit_probe` and `probe_table` work on plain arrays; `probe_items` measures trap items.
"""

from __future__ import annotations

from typing import Any

from latentkt import lazy

_HOME = {
    "Probe": "fitting",
    "ProbeTables": "table",
    "SweptProbes": "sweep",
    "TARGETS": "targets",
    "bag_of_tokens": "folds",
    "facts_known": "rows",
    "fit_probe": "fitting",
    "joined_groups": "folds",
    "labels_of": "targets",
    "probe_items": "items",
    "probe_rows": "rows",
    "probe_table": "table",
    "random_init": "activations",
    "role_features": "activations",
    "sweep_probes": "sweep",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOME, name)
