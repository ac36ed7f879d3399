"""Asking models the items of TrapQA, or any trap items, and keeping what they answered as records.

`run_trapqa` asks a model on this machine; the tasks of `latentkt.trapqa.inspect_tasks` ask any model that inspect-ai
knows, and `records_from_log` reads its logs. Both give the same records, read with `read_records`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latentkt import lazy

if TYPE_CHECKING:
    from latentkt.trapqa.running.dominance import evidence as evidence
    from latentkt.trapqa.running.inspect_log import records_from_log as records_from_log
    from latentkt.trapqa.running.options import RunOptions as RunOptions
    from latentkt.trapqa.running.questions import Plan as Plan
    from latentkt.trapqa.running.questions import Question as Question
    from latentkt.trapqa.running.questions import plan_questions as plan_questions
    from latentkt.trapqa.running.records import Record as Record
    from latentkt.trapqa.running.records import join_probes as join_probes
    from latentkt.trapqa.running.records import read_records as read_records
    from latentkt.trapqa.running.records import records_frame as records_frame
    from latentkt.trapqa.running.records import write_records as write_records
    from latentkt.trapqa.running.rows import load_rows as load_rows
    from latentkt.trapqa.running.run import Summary as Summary
    from latentkt.trapqa.running.run import run_trapqa as run_trapqa
    from latentkt.trapqa.running.sources import load_source as load_source

_HOME = {
    "Plan": "questions",
    "Question": "questions",
    "Record": "records",
    "RunOptions": "options",
    "Summary": "run",
    "evidence": "dominance",
    "join_probes": "records",
    "load_rows": "rows",
    "load_source": "sources",
    "plan_questions": "questions",
    "read_records": "records",
    "records_frame": "records",
    "records_from_log": "inspect_log",
    "run_trapqa": "run",
    "write_records": "records",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOME, name)


def __dir__() -> list[str]:
    return __all__
