"""Linear probes: what can be read from activations, held against what the words, the size and the probe give away.

`fit_probe` and `probe_table` work on plain arrays; `probe_items` measures trap items.
"""

from __future__ import annotations

from typing import Any

from latentkt import lazy

_HOME = {
    "Probe": "fitting",
    "ProbeTables": "table",
    "bag_of_tokens": "folds",
    "fit_probe": "fitting",
    "joined_groups": "folds",
    "probe_table": "table",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOME, name)
