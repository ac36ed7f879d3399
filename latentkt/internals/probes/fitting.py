"""Fit probes on folds: everything that is fitted (mean, scale, strength, weights) is fitted on training rows alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latentkt.errors import InputError
from latentkt.internals.probes.folds import Fold, make_folds
from latentkt.internals.probes.kinds import Kind, Linear, kind_named

if TYPE_CHECKING:
    import pandas as pd
    from jaxtyping import Float, Int

__all__ = ["Outcome", "Probe", "check_rows", "fit_probe", "run_folds"]

INNER_FOLDS = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """One fold of one label.

    Attributes:
        rows: The rows that were tested.
        scores: Their signed scores, above 0 where the probe says 1; NaN where no probe could be trained.
        right: 1 where the probe is right, else 0; NaN likewise.
        n_train: Training rows.
        majority: Accuracy of the training rows' commoner label on the tested rows.
        C: The strength that was chosen inside the training rows; NaN where the kind has none.
        reason: Why there is no score, else empty.
    """

    rows: Int[np.ndarray, " test"]
    scores: Float[np.ndarray, " test"]
    right: Float[np.ndarray, " test"]
    n_train: int
    majority: float
    C: float
    reason: str

    def row(self, labels: Int[np.ndarray, " row"]) -> dict[str, object]:
        """The columns of a fold's row; `labels` are those of all rows."""
        from latentkt.stats import auroc

        truth = labels[self.rows]
        both = len(np.unique(truth)) == 2 and not np.isnan(self.scores).any()
        return {
            "n_train": self.n_train,
            "n_test": len(self.rows),
            "score": float(self.right.mean()),
            "auc": auroc(self.scores, truth).value if both else float("nan"),
            "majority_score": self.majority,
            "C": self.C,
            "reason": self.reason,
        }


@dataclass(frozen=True, eq=False)
class Probe:
    """A probe on one set of features.

    Attributes:
        kind: Its kind.
        folds: One row a fold: `fold`, `n_train`, `n_test`, `score` (held-out accuracy), `auc` (NaN where one class is
            tested), `majority_score`, `C`, `reason`.
        held_out: Signed score of each row by the probe that has not seen its group, above 0 where it says 1, [row].
        direction: Unit vector in the space of the features along which the probe of all rows scores 1, [d].
        intercept: The score of that probe is `features @ (norm * direction) + intercept`.
        norm: See `intercept`.
        C: Strength of the probe of all rows.
    """

    kind: str
    folds: pd.DataFrame
    held_out: Float[np.ndarray, " row"]
    direction: Float[np.ndarray, " d"]
    intercept: float
    norm: float
    C: float

    @property
    def score(self) -> float:
        """Mean held-out accuracy over folds."""
        return float(self.folds["score"].mean())


def fit_probe(
    features: Float[np.ndarray, "row d"],
    labels: Int[np.ndarray, " row"],
    groups: Sequence[object],
    *,
    kind: str = "logistic",
    split: str = "generalisation",
    max_folds: int = 5,
    seed: int = 0,
    name: str = "probe",
) -> Probe:
    """Fit one probe: held-out scores by fold, and the direction of the probe of all rows.

    Standardisation and the strength of the penalty are chosen inside each training fold, on inner folds drawn like
    the outer ones.

    Args:
        features: One vector a row.
        labels: 0 or 1.
        groups: Family or entity of each row; see `make_folds`.
        kind: `logistic`, `ridge`, `lda` or `mean_difference` (of raw features).
        split: `generalisation` (groups are left out) or `selectivity` (each group in train and test).
        max_folds: Number of folds; fewer where there are fewer groups.
        seed: Seed of the folds.
        name: Named in refusals.

    Raises:
        InputError: One class only, one group only, fewer rows than folds, features that are not finite, shapes that
            do not fit, an unknown kind or split.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> labels = np.tile([0, 1], 20)
        >>> features = rng.normal(size=(40, 6)) + 3 * labels[:, None] * np.eye(6)[2]
        >>> probe = fit_probe(features, labels, np.repeat(range(10), 4), kind="ridge")
        >>> probe.score > 0.8, int(np.abs(probe.direction).argmax())
        (True, 2)
    """
    import pandas as pd

    features, labels = check_rows(features, labels, groups, name=name, max_folds=max_folds)
    chosen = kind_named(kind)
    folds = make_folds(split, labels, groups, max_folds=max_folds, seed=seed)
    outcomes = run_folds(features, labels[:, None], groups, folds, kind=chosen, split=split, seed=seed)
    held_out = np.full(len(labels), np.nan)
    for (outcome,) in outcomes:
        held_out[outcome.rows] = outcome.scores
    every = np.arange(len(labels))
    probe, centre, scale = _fitted(features, labels[:, None], groups, every, chosen, split, seed)
    weights = probe.weights[:, 0] / scale
    norm = float(np.linalg.norm(weights))
    return Probe(
        kind=kind,
        folds=pd.DataFrame([{"fold": n, **o.row(labels)} for n, (o,) in enumerate(outcomes)]),
        held_out=held_out,
        direction=weights / norm if norm > 0 else weights,
        intercept=float(probe.intercept[0] - centre @ weights),
        norm=norm,
        C=probe.C,
    )


def check_rows(
    features: np.ndarray, labels: np.ndarray, groups: Sequence[object], *, name: str, max_folds: int
) -> tuple[Float[np.ndarray, "row ..."], Int[np.ndarray, " row"]]:
    """The rows as float64 and int, after the refusals that every probe makes.

    Raises:
        InputError: See `fit_probe`.
    """
    values, ones = np.asarray(features), np.asarray(labels)
    if values.ndim < 2 or ones.ndim != 1 or not len(values) == len(ones) == len(groups):
        raise InputError(
            f"rows of probe {name!r} do not fit together",
            expected="features [row, …, d], labels [row] and one group a row",
            found=f"features {list(values.shape)}, labels {list(ones.shape)}, {len(groups)} groups",
        )
    found = sorted(set(ones.tolist()))
    if found != [0, 1]:
        what = "has one class only" if len(found) < 2 else "has labels that are not 0 and 1"
        raise InputError(f"probe {name!r} {what}", expected="labels 0 and 1, both of them", found=found[:5])
    if max_folds < 2 or len(ones) < max_folds:
        raise InputError(
            f"probe {name!r} has fewer rows than folds", expected=f"{max(2, max_folds)} rows or more", found=len(ones)
        )
    bad = ~np.isfinite(values).reshape(len(values), -1).all(1)
    if bad.any():
        raise InputError(
            f"probe {name!r} got activations that are not finite",
            expected="finite numbers",
            found=f"NaN or infinite in {int(bad.sum())} of {len(bad)} rows, the first in row {int(bad.argmax())}",
            fix="leave these rows out, or read the model in float32",
        )
    return values.astype(np.float64, copy=False), ones.astype(np.int64)


def run_folds(
    features: Float[np.ndarray, "row d"],
    labels: Int[np.ndarray, "row label"],
    groups: Sequence[object],
    folds: Sequence[Fold],
    *,
    kind: Kind,
    split: str,
    seed: int = 0,
) -> list[list[Outcome]]:
    """Outcomes by fold and label; all labels of a fold share the costly part of the fit."""
    found: list[list[Outcome]] = []
    for fold in folds:
        both = [len(np.unique(labels[fold.train, column])) == 2 for column in range(labels.shape[1])]
        columns = np.flatnonzero(both)
        scores = np.full((len(fold.test), labels.shape[1]), np.nan)
        strengths = np.full(labels.shape[1], np.nan)
        if len(columns):
            probes = _chosen(features, labels[:, columns], groups, fold.train, kind, split, seed)
            for column, (probe, centre, scale) in zip(columns, probes, strict=True):
                scores[:, column] = probe.scores((features[fold.test] - centre) / scale)[:, 0]
                strengths[column] = probe.C
        found.append([_outcome(fold, labels[:, c], scores[:, c], strengths[c]) for c in range(labels.shape[1])])
    return found


def _outcome(fold: Fold, labels: np.ndarray, scores: np.ndarray, strength: float) -> Outcome:
    truth = labels[fold.test]
    missing = np.isnan(scores).any()
    right = np.full(len(truth), np.nan) if missing else ((scores > 0) == truth).astype(float)
    common = float(labels[fold.train].mean() > 0.5)
    reason = "the training rows of this fold have one class only" if missing else ""
    return Outcome(fold.test, scores, right, len(fold.train), float(np.mean(truth == common)), float(strength), reason)


Standard = tuple[Linear, np.ndarray, np.ndarray]
"""A probe of standardised features, with the mean and the scale that it was fitted with."""


def _fitted(
    features: np.ndarray, labels: np.ndarray, groups: Sequence[object], train: np.ndarray, kind: Kind, split: str,
    seed: int,
) -> Standard:  # fmt: skip
    return _chosen(features, labels, groups, train, kind, split, seed)[0]


def _chosen(
    features: np.ndarray, labels: np.ndarray, groups: Sequence[object], train: np.ndarray, kind: Kind, split: str,
    seed: int,
) -> list[Standard]:  # fmt: skip
    """A probe for each label column, of the strength that inner folds of the training rows choose for it."""
    x, y = features[train], labels[train]
    steps = _steps(x, y, [groups[row] for row in train], kind, split, seed)
    centre, scale = _standard(x, kind)
    needed = sorted(set(steps))
    path = dict(zip(needed, kind.path((x - centre) / scale, y, needed), strict=True))
    found = []
    for column, step in enumerate(steps):
        whole = path[step]
        one = Linear(whole.weights[:, column : column + 1], whole.intercept[column : column + 1], whole.C)
        found.append((one, centre, scale))
    return found


def _steps(x: np.ndarray, y: np.ndarray, groups: Sequence[object], kind: Kind, split: str, seed: int) -> list[int]:
    """The step of each label with the best mean accuracy over inner folds; the weakest of equals."""
    if kind.steps == 1:
        return [0] * y.shape[1]
    every = list(range(kind.steps))
    totals = np.zeros((kind.steps, y.shape[1]))
    for fold in _inner_folds(y[:, 0], groups, split, seed):
        columns = [c for c in range(y.shape[1]) if len(np.unique(y[fold.train, c])) == 2]
        if not columns:
            continue
        centre, scale = _standard(x[fold.train], kind)
        tested = (x[fold.test] - centre) / scale
        path = kind.path((x[fold.train] - centre) / scale, y[fold.train][:, columns], every)
        for step, probe in enumerate(path):
            right = (probe.scores(tested) > 0) == y[fold.test][:, columns]
            totals[step, columns] += right.mean(0)
    return [int(step) for step in totals.argmax(0)]


def _inner_folds(labels: np.ndarray, groups: Sequence[object], split: str, seed: int) -> list[Fold]:
    """Inner folds drawn like the outer ones; none where one group is left, so that the weakest probe is taken."""
    if split == "generalisation" and len(set(map(str, groups))) < 2:
        return []
    return make_folds(split, labels, groups, max_folds=INNER_FOLDS, seed=seed)


def _standard(x: np.ndarray, kind: Kind) -> tuple[np.ndarray, np.ndarray]:
    if not kind.standardised:
        return np.zeros(x.shape[1]), np.ones(x.shape[1])
    spread = x.std(0)
    return x.mean(0), np.where(spread > 1e-12 * (1 + np.abs(x).max(initial=0.0)), spread, 1.0)
