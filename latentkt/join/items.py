"""The log prior ratio of each item from the counts of a corpus."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from latentkt.corpus.counts import Counts
from latentkt.corpus.patterns import path_name
from latentkt.corpus.priors import log_prior_ratio
from latentkt.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FEW", "item_priors"]

FEW = 5  # items with fewer supporting clusters are listed, not plotted


class HasPaths(Protocol):
    """What is needed of an item: ``id`` and ``paths``, {"correct": "KEY:TASK", "shortcut": "KEY:TASK"} or None."""

    @property
    def id(self) -> str:
        """Name of the item."""

    @property
    def paths(self) -> Mapping[str, str] | None:
        """Its two paths."""


def item_priors(
    items: Iterable[HasPaths],
    counts: Counts,
    *,
    scope: str | None = None,
    method: str = "auto",
    level: float = 0.95,
    precision: Mapping[str, float] | None = None,
) -> pd.DataFrame:
    """One row an item: its log prior ratio with interval and parts.

    Args:
        items: Items with `paths`.
        counts: Counts of the patterns that the paths name.
        scope: Scope of co-occurrence; the smallest window, else the document, if None.
        method: ``auto``, ``multinomial`` or ``cluster``.
        level: Nominal coverage.
        precision: ``KEY:TASK`` -> share of its hits that mean what they should (see `read_precision`).

    Returns:
        Columns: item, shortcut, correct, scope, log_prior_ratio (shortcut over correct, nats), low, high, se (of the
        method that gave the interval), key_part, task_part, shortcut_units, correct_units, shortcut_key, correct_key
        (occurrences), key_pair (units with both keys, NaN if the pair is not counted), clusters, censored, plotted
        (False under 5 supporting clusters or without an estimate), why_not, precision_shortcut, precision_correct (NaN
        where no hits were read).

    Raises:
        InputError: A path that the counts do not know.
    """
    import pandas as pd

    rows = [_row(item, counts, scope, method, level, precision or {}) for item in items]
    if not rows:
        raise InputError("no items to join", expected="items with paths", found="none")
    return pd.DataFrame(rows)


def _row(
    item: HasPaths, counts: Counts, scope: str | None, method: str, level: float, precision: Mapping[str, float]
) -> dict[str, Any]:
    scope = scope or counts.default_scope
    if item.paths is None:
        return {"item": item.id, "scope": scope, "plotted": False, "why_not": "the item has no paths"}
    shortcut, correct = item.paths["shortcut"], item.paths["correct"]
    result = log_prior_ratio(counts, shortcut=shortcut, correct=correct, scope=scope, method=method, level=level)
    ratio = result.ratio
    why_not = _why_not(ratio.clusters, ratio.numerator, ratio.denominator)
    return {
        "item": item.id,
        "shortcut": shortcut,
        "correct": correct,
        "scope": scope,
        "log_prior_ratio": ratio.estimate,
        "low": ratio.low,
        "high": ratio.high,
        "se": ratio.se_cluster if ratio.method == "cluster" else ratio.se_multinomial,
        "key_part": result.key_part.estimate,
        "task_part": result.task_part,
        "shortcut_units": ratio.numerator,
        "correct_units": ratio.denominator,
        "shortcut_key": result.shortcut.key_occurrences,
        "correct_key": result.correct.key_occurrences,
        "key_pair": math.nan if result.key_pair is None else float(result.key_pair),
        "clusters": ratio.clusters,
        "censored": ratio.censored,
        "plotted": not why_not,
        "why_not": why_not,
        "precision_shortcut": precision.get(path_name(*counts.patterns.check_path(shortcut)), math.nan),
        "precision_correct": precision.get(path_name(*counts.patterns.check_path(correct)), math.nan),
    }


def _why_not(clusters: int, top: int, bottom: int) -> str:
    if top == 0 and bottom == 0:
        return "neither path occurs"
    return f"fewer than {FEW} supporting clusters" if clusters < FEW else ""
