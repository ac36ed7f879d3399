"""What the outcomes of one layer say: rows by fold, and one row over all folds with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latentkt.internals.probes.fitting import Outcome
from latentkt.stats import cluster_interval, clustered_share, mean_interval

if TYPE_CHECKING:
    from jaxtyping import Int

__all__ = ["LayerOutcomes"]

SINGLE = "every entity has one row, so none can stand in train and test"
NAN = float("nan")
SCORES = {"generalisation": ("bag", "embedding", "random_init"), "selectivity": ("control",)}


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
        groups = {str(self.clusters[row]) for row in rows}
        single = len(self.labels) - len(rows)
        numbers = _share("", self.task, self.clusters)
        for several in SCORES.values():
            for name in several:
                numbers |= _share(f"{name}_", self.others.get(name, ()), self.clusters)
        numbers["majority_score"] = _mean_majority(self.task)
        numbers["chance"] = _chance(self.task, self.labels)
        numbers |= _difference("gain", self.task, self.others.get("bag", ()), self.clusters)
        numbers |= _difference("selectivity", self.task, self.others.get("control", ()), self.clusters)
        # Where each group left out has both labels a bag can fall below chance: what lies above it may be chance still.
        bar = max(numbers["chance"], numbers["majority_score"])
        above_bag = numbers["score"] > numbers["bag_high"] and numbers["gain_low"] > 0
        evidence = self.split == "generalisation" and above_bag and numbers["low"] > bar
        counts = {"n_rows": len(rows), "n_groups": len(groups), "n_single": single}
        found: dict[str, object] = {**counts, **numbers, "evidence": bool(evidence)}
        found["reason"] = "; ".join(dict.fromkeys(o.reason for o in self.task if o.reason)) if self.task else SINGLE
        return found


def _measured(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Folds in which a probe could be trained."""
    return [outcome for outcome in outcomes if not np.isnan(outcome.right).any()]


def _mean_majority(outcomes: Sequence[Outcome]) -> float:
    """Over the rows that the score is of."""
    known = _measured(outcomes)
    rows = sum(len(outcome.rows) for outcome in known)
    return sum(outcome.majority * len(outcome.rows) for outcome in known) / rows if rows else NAN


def _chance(outcomes: Sequence[Outcome], labels: Int[np.ndarray, " row"]) -> float:
    """Share of the commoner label among the rows that the score is of: what the best single answer scores."""
    known = _measured(outcomes)
    ones = float(labels[np.concatenate([outcome.rows for outcome in known])].mean()) if known else NAN
    return max(ones, 1.0 - ones)


def _share(name: str, outcomes: Sequence[Outcome], clusters: Sequence[object]) -> dict[str, float]:
    """Accuracy over all tested rows.

    Folds share what they were trained on, so their scores may scatter more than rows do: the interval takes the wider
    ends of Wilson's over groups and Student's over folds.
    """
    known = _measured(outcomes)
    if not known:
        return {f"{name}score": NAN, f"{name}low": NAN, f"{name}high": NAN}
    right = np.concatenate([outcome.right for outcome in known])
    rows = clustered_share(right, [str(clusters[row]) for outcome in known for row in outcome.rows])
    folds = mean_interval([float(outcome.right.mean()) for outcome in known])
    low, high = np.fmin(rows.low, folds.low), np.fmax(rows.high, folds.high)
    return {f"{name}score": rows.value, f"{name}low": max(0.0, float(low)), f"{name}high": min(1.0, float(high))}


def _difference(
    name: str, first: Sequence[Outcome], second: Sequence[Outcome], clusters: Sequence[object]
) -> dict[str, float]:
    """Mean over groups of first − second; the interval is the wider of that over groups and that over folds."""
    both = [
        (a, a.right - b.right) for a, b in zip(first, second, strict=False) if not np.isnan(a.right - b.right).any()
    ]
    if not both:
        return {name: NAN, f"{name}_low": NAN, f"{name}_high": NAN}
    gaps = np.concatenate([gap for _, gap in both])
    groups = cluster_interval(gaps, [str(clusters[row]) for outcome, _ in both for row in outcome.rows]).interval
    folds = mean_interval([float(gap.mean()) for _, gap in both])
    low, high = np.fmin(groups.low, folds.low), np.fmax(groups.high, folds.high)
    return {name: groups.value, f"{name}_low": float(low), f"{name}_high": float(high)}
