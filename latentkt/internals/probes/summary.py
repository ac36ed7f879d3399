"""What the outcomes of one layer say: rows by fold, and one row over all folds with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latentkt.internals.probes.fitting import Outcome
from latentkt.stats import clustered_share, paired_interval

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["LayerOutcomes"]

SINGLE = "every entity has one row, so none can stand in train and test"
NAN = float("nan")
SCORES = {"generalisation": ("bag", "embedding", "random_init"), "selectivity": ("control",)}
RESAMPLES = 999


@dataclass(frozen=True, eq=False)
class LayerOutcomes:
    """Outcomes of one kind, split and layer.

    Attributes:
        task: One a fold.
        others: Baselines (`bag`, `embedding`, `random_init`) or `control`, on the same folds.
        labels: Labels of all rows.
        clusters: What intervals count: the group of each row.
        split: `generalisation` or `selectivity`.
    """

    task: Sequence[Outcome]
    others: Mapping[str, Sequence[Outcome]]
    labels: Int[np.ndarray, " row"]
    clusters: Sequence[object]
    split: str

    def fold_rows(self) -> list[dict[str, object]]:
        """One row a fold; where the split does not exist one row of NaN with the reason."""
        names = [name for several in SCORES.values() for name in several]
        if not self.task:
            nothing = dict.fromkeys(("score", "auc", "majority_score", "C"), NAN)
            rest = {f"{name}_score": NAN for name in names} | {"selectivity": NAN}
            return [{"n_train": 0, "n_test": 0, **nothing, "reason": SINGLE, **rest}]
        rows = []
        for fold, outcome in enumerate(self.task):
            row = outcome.row(self.labels)
            for name in names:
                row[f"{name}_score"] = float(self.others[name][fold].right.mean()) if name in self.others else NAN
            rows.append({**row, "selectivity": outcome.right.mean() - row["control_score"]})
        return rows

    def layer_row(self) -> dict[str, object]:
        """The layer over all folds."""
        rows = np.concatenate([outcome.rows for outcome in self.task]) if self.task else np.zeros(0, dtype=int)
        clusters = [str(self.clusters[row]) for row in rows]
        right = _right(self.task)
        found = {"n_rows": len(rows), "n_groups": len(set(clusters)), "n_single": len(self.labels) - len(rows)}
        found |= _share("", right, clusters)
        for several in SCORES.values():
            for name in several:
                found |= _share(f"{name}_", _right(self.others.get(name, ())), clusters)
        found["majority_score"] = (
            float(np.average([o.majority for o in self.task], weights=[len(o.rows) for o in self.task]))
            if self.task
            else NAN
        )
        found |= _difference("gain", right, _right(self.others.get("bag", ())), clusters)
        found |= _difference("selectivity", right, _right(self.others.get("control", ())), clusters)
        found["evidence"] = bool(found["score"] > found["bag_high"] and found["gain_low"] > 0)
        found["reason"] = "; ".join(dict.fromkeys(o.reason for o in self.task if o.reason)) if self.task else SINGLE
        return found


def _right(outcomes: Sequence[Outcome]) -> Float[np.ndarray, " tested"]:
    return np.concatenate([outcome.right for outcome in outcomes]) if outcomes else np.zeros(0)


def _share(name: str, right: np.ndarray, clusters: Sequence[str]) -> dict[str, float]:
    known = ~np.isnan(right)
    if not known.any():
        return {f"{name}score": NAN, f"{name}low": NAN, f"{name}high": NAN}
    share = clustered_share(right[known], [c for c, there in zip(clusters, known, strict=True) if there])
    return {f"{name}score": share.value, f"{name}low": share.low, f"{name}high": share.high}


def _difference(name: str, first: np.ndarray, second: np.ndarray, clusters: Sequence[str]) -> dict[str, float]:
    """Mean over groups of first − second, with its interval."""
    if not len(first) or not len(second) or np.isnan(first - second).all():
        return {name: NAN, f"{name}_low": NAN, f"{name}_high": NAN}
    interval = paired_interval(first, second, clusters).interval
    return {name: interval.value, f"{name}_low": interval.low, f"{name}_high": interval.high}
