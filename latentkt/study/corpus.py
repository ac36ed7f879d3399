"""The corpus side of a study: count the items' patterns, and set priors and certificates beside what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latentkt.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.results import RunWriter
    from latentkt.study.main import StudyOptions
    from latentkt.trapqa import ItemSet, TrapItem

__all__ = ["COUNTS", "join_corpus", "refuse_without_patterns"]

COUNTS = "counts"
"""Folder of the counts inside the run's folder."""


@dataclass(frozen=True, slots=True)
class _WithPaths:
    """An item as the join wants it: paths as `KEY:TASK`."""

    id: str
    paths: Mapping[str, str] | None


def refuse_without_patterns(items: ItemSet) -> None:
    """A corpus can be counted only for items whose paths are named.

    Raises:
        InputError: The set has no patterns.
    """
    if items.patterns is None:
        raise InputError(
            "a corpus was named, but the items name no paths",
            expected="items with paths and a pattern file beside them",
            found="no pattern file",
            fix="write NAME.patterns.json beside NAME.jsonl, or leave out --corpus",
        )


def join_corpus(
    run: RunWriter, items: ItemSet, chosen: Sequence[TrapItem], options: StudyOptions, workers: int
) -> None:
    """Count, estimate each item's log prior ratio, certify it, and save the table `join`.

    Counting goes on where it was stopped; its folder stands inside the run's.
    """
    from latentkt.corpus import count_corpus
    from latentkt.join import item_certificates, item_priors, join_dominance

    assert items.patterns is not None
    counts = count_corpus(
        list(options.corpus), items.patterns, str(run.path / COUNTS), windows=[options.window], workers=workers
    )
    named = [_with_paths(item) for item in chosen]
    priors = item_priors(named, counts)
    table = join_dominance(priors, _dominance(run.read("answers")))
    run.save("join", table.merge(item_certificates(named, counts), on="item", how="left", validate="one_to_one"))


def _with_paths(item: TrapItem) -> _WithPaths:
    if item.paths is None:
        return _WithPaths(item.id, None)
    return _WithPaths(item.id, {"correct": ":".join(item.paths.correct), "shortcut": ":".join(item.paths.shortcut)})


def _dominance(answers: pd.DataFrame) -> pd.DataFrame:
    """Mean over option orders of dominance beyond the neutral prompt, in which the answer strings cancel.

    Its error is that of two orders about what the order itself does to all items: the mean over both is free of that.
    """
    asked = answers[answers["which"] == "item"].assign(
        dominance=lambda rows: -rows["corrected_log_odds"].replace([np.inf, -np.inf], np.nan),
        beyond_order=lambda rows: (
            rows["dominance"] - rows.groupby("order", observed=True)["dominance"].transform("mean")
        ),
        answer_length=lambda rows: rows["n_shortcut"] - rows["n_correct"],
    )
    grouped = asked.groupby("item", sort=False, observed=True)
    table = grouped.agg(
        dominance=("dominance", "mean"), family=("family", "first"), answer_length=("answer_length", "mean")
    )
    table["dominance_se"] = grouped["beyond_order"].sem()
    return table.reset_index()
