"""What is proved of each item from its counted priors and from limits that are stated, not measured."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from latentkt.corpus.counts import Counts
from latentkt.corpus.ratio import log_ratio
from latentkt.join.items import HasPaths
from latentkt.keytask import Certificate, Limits, bonferroni_level, certify, certify_same_key

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["STATED", "item_certificates"]

STATED = Limits.blind(alpha_s=0.9, alpha_0=0.9)
"""Limits for a first look: the shortcut path answers y_s in nine of ten, the correct path y* in at most nine of ten,
nothing
is known of mixed paths, and the prompt is taken to satisfy Assumptions 3.1 and 3.2 exactly. State your own."""

Ends = tuple[float, float]
_SURE: Ends = (math.inf, math.inf)


def item_certificates(
    items: Iterable[HasPaths],
    counts: Counts,
    *,
    limits: Limits = STATED,
    scope: str | None = None,
    method: str = "auto",
    level: float = 0.95,
) -> pd.DataFrame:
    """Certify, item by item, that the shortcut answer is the more probable one: given the patterns and the limits.

    Args:
        items: Items with `paths`.
        counts: Counts of the patterns that the paths name.
        limits: What is stated of prompt and answers.
        scope: Scope of co-occurrence; the counts' default if None.
        method: Intervals of the counts: ``auto``, ``multinomial`` or ``cluster``.
        level: Probability with which the intervals of an item hold together (Bonferroni over three).

    Returns:
        Columns: item, gamma_lower (γ = P(y_s|z) − P(y*|z) is at least this), threshold, margin (nats), certified,
        saturated, why_no_certificate. Items without paths have NaN and the reason.
    """
    import pandas as pd

    each = bonferroni_level(level, intervals=3)
    return pd.DataFrame([_row(item, counts, limits, scope or counts.default_scope, method, each) for item in items])


def _row(item: HasPaths, counts: Counts, limits: Limits, scope: str, method: str, level: float) -> dict[str, Any]:
    nothing = {"gamma_lower": math.nan, "threshold": math.nan, "margin": math.nan, "certified": False}
    if item.paths is None:
        return {"item": item.id, **nothing, "saturated": False, "why_no_certificate": "the item has no paths"}
    shortcut, correct = (counts.patterns.check_path(item.paths[side]) for side in ("shortcut", "correct"))
    found = _certificate(counts, shortcut, correct, limits, scope, method, level)
    return {
        "item": item.id,
        "gamma_lower": float(found.gamma_lower),
        "threshold": float(found.threshold),
        "margin": float(found.margin),
        "certified": bool(found.certified),
        "saturated": bool(found.saturated),
        "why_no_certificate": "",
    }


def _certificate(
    counts: Counts,
    shortcut: tuple[str, str],
    correct: tuple[str, str],
    limits: Limits,
    scope: str,
    method: str,
    level: float,
) -> Certificate:
    (key_s, task_s), (key_0, task_0) = shortcut, correct
    clustered = counts.manifest.get("fields", {}).get("cluster") != "none"

    def ends(top: int, bottom: int) -> Ends:
        ratio = log_ratio(counts.tally, top, bottom, method=method, level=level, clustered=clustered)
        return ratio.low, ratio.high

    def odds(key: str, task: str, other: str) -> Ends:
        if task == other:
            return _SURE
        return ends(counts.layout.pair(scope, key, task), counts.layout.pair(scope, key, other))

    if key_s == key_0:
        return certify_same_key(log_odds=odds(key_s, task_s, task_0), limits=limits)
    keys = ends(counts.layout.occurrences(key_s, "key"), counts.layout.occurrences(key_0, "key"))
    return certify(
        log_rho_k=keys,
        log_odds_s=odds(key_s, task_s, task_0),
        log_odds_0=odds(key_0, task_0, task_s),
        limits=limits,
    )
