"""The main job: items + model -> answers, measurements inside the network, one report.

`study` wires the parts into one run directory. It decides what is measured on how many items (`presets`), cuts that
into batches which are planned before anything runs (`stages`), and lets one or more single-thread processes work
them off (`workers`). The batches are the unit of resuming: a run that was killed goes on with the next one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latentkt import lazy

if TYPE_CHECKING:
    from latentkt.study.main import StudyOptions, study
    from latentkt.study.presets import PRESETS, Preset

__all__ = ["PRESETS", "Preset", "StudyOptions", "study"]

_HOME = {"StudyOptions": "main", "study": "main", "PRESETS": "presets", "Preset": "presets"}


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOME, name)
