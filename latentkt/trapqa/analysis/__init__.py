"""TrapQA's tables from the records of runs, with intervals and tests, and a list of what each table leaves out.

`read_records` reads and checks, `join_fame` and `join_priors` add what a user has besides, `analyse` computes every
table, `write_analysis` saves them. The names below are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latentkt import lazy

if TYPE_CHECKING:
    from latentkt.trapqa.analysis.analysis import Analysis as Analysis
    from latentkt.trapqa.analysis.analysis import analyse as analyse
    from latentkt.trapqa.analysis.fame import fame_scores as fame_scores
    from latentkt.trapqa.analysis.fame import join_fame as join_fame
    from latentkt.trapqa.analysis.fame import join_names as join_names
    from latentkt.trapqa.analysis.fame import read_fame as read_fame
    from latentkt.trapqa.analysis.output import write_analysis as write_analysis
    from latentkt.trapqa.analysis.priors import join_priors as join_priors
    from latentkt.trapqa.analysis.priors import read_priors as read_priors
    from latentkt.trapqa.analysis.records import Records as Records
    from latentkt.trapqa.analysis.records import read_records as read_records
    from latentkt.trapqa.analysis.records import records_from_frame as records_from_frame

_HOME = {
    "Analysis": "analysis",
    "Records": "records",
    "analyse": "analysis",
    "fame_scores": "fame",
    "join_fame": "fame",
    "join_names": "fame",
    "join_priors": "priors",
    "read_fame": "fame",
    "read_priors": "priors",
    "read_records": "records",
    "records_from_frame": "records",
    "write_analysis": "output",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOME, name)


def __dir__() -> list[str]:
    return __all__
