"""How long probes take: 30 layers × 4 roles × 5 folds × (task + control) on 400 rows of 576 numbers.

    python experiments/benchmarks/probes.py [KIND …]

One thread, process CPU time, activations in memory. First the whole sweep under the split `selectivity`, with the
choice of the penalty inside each fold; then, on one layer and with the same folds and strengths, scikit-learn's own
pipeline (`StandardScaler`, the estimator, `GridSearchCV`), task and control one after the other: the ratio says what
sharing the folds' common part saves.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from latentkt.internals.probes import probe_table
from latentkt.internals.probes.fitting import INNER_FOLDS
from latentkt.internals.probes.folds import control_labels, make_folds
from latentkt.internals.probes.kinds import KINDS

ROWS, LAYERS, ROLES, WIDTH, ENTITIES = 400, 30, 4, 576, 100


def activations(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows with a falling spectrum, a part of their entity, and a faint direction of the label, deeper and clearer."""
    entities = np.repeat(np.arange(ENTITIES), ROWS // ENTITIES)
    labels = np.tile([0, 1], ROWS // 2)
    mixing = rng.normal(size=(WIDTH, WIDTH)) / np.arange(1, WIDTH + 1)[:, None] ** 0.7
    features = rng.normal(size=(ROWS, LAYERS, WIDTH)) @ mixing
    features += 0.7 * (rng.normal(size=(ENTITIES, LAYERS, WIDTH)) @ mixing)[entities]
    features += (labels[:, None] * np.linspace(0, 0.6, LAYERS))[..., None] * rng.normal(size=WIDTH)
    return features.astype(np.float32), labels, entities


def plain(kind: str, x: np.ndarray, labels: np.ndarray, entities: np.ndarray) -> list[float]:
    """Held-out accuracy by scikit-learn alone, on the folds of the library."""
    if kind == "ridge":
        made = (RidgeClassifier(), {"ridgeclassifier__alpha": [WIDTH * share for share in (100, 10, 1, 0.1, 0.01)]})
    else:
        made = (LogisticRegression(solver="newton-cholesky"), {"logisticregression__C": [1e-4, 1e-3, 1e-2, 1e-1]})
    scores = []
    for column in (labels, control_labels(labels, entities)):
        for train, test in make_folds("selectivity", labels, entities):
            inner = make_folds("selectivity", labels[train], entities[train], max_folds=INNER_FOLDS)
            search = GridSearchCV(make_pipeline(StandardScaler(), made[0]), made[1], cv=inner)
            scores.append(search.fit(x[train], column[train]).score(x[test], column[test]))
    return scores


def main() -> None:
    """Print CPU seconds of the sweep, the ratio on one layer, and how far the accuracies lie apart."""
    features, labels, entities = activations(np.random.default_rng(0))
    for kind in sys.argv[1:] or KINDS:
        begin = time.process_time()
        for role in range(ROLES):
            table = probe_table(
                features, labels, entities, kinds=[kind], splits=["selectivity"], layers=range(LAYERS), seed=role
            )
        sweep = time.process_time() - begin
        best = table.layers.loc[table.layers["score"].idxmax()]
        print(
            f"{kind:<16} {sweep:6.1f} CPU s for {LAYERS} layers x {ROLES} roles; best layer {best['layer']}: "
            f"{best['score']:.2f}, control {best['control_score']:.2f}"
        )
        if kind in ("ridge", "logistic"):
            compare(kind, features[:, -1:], labels, entities)


def compare(kind: str, features: np.ndarray, labels: np.ndarray, entities: np.ndarray) -> None:
    """One layer by the library and by scikit-learn's pipeline, alternating, the smaller of two runs each."""
    times = [[], []]
    for _ in range(2):
        begin = time.process_time()
        ours = probe_table(features, labels, entities, kinds=[kind], splits=["selectivity"], layers=[0]).folds
        middle = time.process_time()
        theirs = plain(kind, features[:, 0].astype(np.float64), labels, entities)
        times[0].append(middle - begin)
        times[1].append(time.process_time() - middle)
    gap = np.abs(np.concatenate([ours["score"], ours["control_score"]]) - theirs).max()
    print(
        f"{'':<16} one layer: {min(times[0]):.2f} s, scikit-learn's pipeline {min(times[1]):.2f} s, ratio "
        f"{min(times[1]) / min(times[0]):.1f}; largest difference of a fold's accuracy {gap:.3f}"
    )


if __name__ == "__main__":
    main()
