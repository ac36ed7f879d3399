"""Linear probes: can a property of the item be read from the residual stream, layer by layer?

Whole families are left out of training and used for testing, so a probe cannot win by knowing the family. Beside each
layer stands a bag of tokens read from the prompt with the same folds: what a probe finds and the bag does not is
evidence, the rest is wording.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latentkt.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from jaxtyping import Float, Int

__all__ = ["ProbeData", "probe_layers"]


@dataclass(frozen=True)
class ProbeData:
    """Rows of a probe.

    Attributes:
        features: Residual stream, [row, layer, d_model]; entry 0 is the embedding.
        prompts: Token ids of each row's prompt, for the bag of tokens.
        labels: 0 or 1.
        groups: The family of each row; a family never stands in train and test at once.
    """

    features: Float[np.ndarray, "row layer d_model"]
    prompts: Sequence[Sequence[int]]
    labels: Int[np.ndarray, "row"]
    groups: Sequence[str]


def probe_layers(data: ProbeData, *, target: str, max_folds: int = 5, seed: int = 0) -> pd.DataFrame:
    """Held-out accuracy of a logistic probe by layer, beside a bag of tokens and the majority on the same folds.

    The features are standardised and the strength of regularisation C is chosen inside each training fold.

    Args:
        data: Rows, labels and families.
        target: Name of the label, written to the table.
        max_folds: Number of folds; fewer where there are fewer families.
        seed: Seed of the fold assignment.

    Returns:
        One row a layer and fold: `target`, `layer` (−1 = embedding), `fold`, `n_train`, `n_test`, `score` (accuracy),
        `bag_score`, `majority_score`, `C`. `layer` is the layer that the residual stream leaves.

    Raises:
        InputError: One class only, or fewer than two families.
    """
    import pandas as pd

    _check(data, target)
    folds = _folds(data, max_folds, seed)
    bag = _bag(data.prompts)
    rows: list[dict[str, object]] = []
    for fold, (train, test) in enumerate(folds):
        labels, groups = data.labels, np.asarray(data.groups)
        bag_score, _ = _fit_and_score(bag, labels, groups, train, test)
        majority = float(np.mean(labels[test] == np.round(labels[train].mean())))
        for layer in range(data.features.shape[1]):
            score, strength = _fit_and_score(data.features[:, layer], labels, groups, train, test)
            rows.append(
                {
                    "target": target,
                    "layer": layer - 1,
                    "position": "last",
                    "fold": fold,
                    "n_train": len(train),
                    "n_test": len(test),
                    "score": score,
                    "bag_score": bag_score,
                    "majority_score": majority,
                    "C": strength,
                }
            )
    return pd.DataFrame(rows)


def _check(data: ProbeData, target: str) -> None:
    if len(set(data.labels.tolist())) != 2:
        raise InputError(
            f"probe {target!r} has one class only", expected="labels 0 and 1", found=set(data.labels.tolist())
        )
    if len(set(data.groups)) < 2:
        raise InputError(
            f"probe {target!r} cannot leave a family out",
            expected="two families or more",
            found=sorted(set(data.groups)),
        )
    if not np.isfinite(data.features).all():
        raise InputError(f"probe {target!r} got activations that are not finite")


def _folds(data: ProbeData, max_folds: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    from sklearn.model_selection import StratifiedGroupKFold

    n = min(max_folds, len(set(data.groups)))
    splitter = StratifiedGroupKFold(n_splits=n, shuffle=True, random_state=seed)
    pairs = splitter.split(np.zeros(len(data.labels)), data.labels, data.groups)
    return [(train, test) for train, test in pairs if len(set(data.labels[train].tolist())) == 2 and len(test)]


def _bag(prompts: Sequence[Sequence[int]]) -> Float[np.ndarray, "row token"]:
    vocabulary = {token: i for i, token in enumerate(sorted({t for prompt in prompts for t in prompt}))}
    bag = np.zeros((len(prompts), len(vocabulary)))
    for row, prompt in enumerate(prompts):
        for token in prompt:
            bag[row, vocabulary[token]] += 1
    return bag


def _fit_and_score(
    features: np.ndarray, labels: np.ndarray, groups: np.ndarray, train: np.ndarray, test: np.ndarray
) -> tuple[float, float]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, GroupKFold

    fitted, held_out = _in_span(features[train], features[test])
    model = LogisticRegression(max_iter=2000)
    n_inner = min(3, len(set(groups[train].tolist())))
    if n_inner >= 2:
        model = GridSearchCV(model, {"C": [1e-4, 1e-3, 1e-2, 1e-1]}, cv=GroupKFold(n_inner))
        model.fit(fitted, labels[train], groups=groups[train])
        strength = float(model.best_params_["C"])
    else:
        model.fit(fitted, labels[train])
        strength = 1.0
    return float(model.score(held_out, labels[test])), strength


def _in_span(train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Standardise by the training rows and turn both parts into an orthonormal basis of their span.

    The penalty of the probe does not see a rotation and its weights lie in the span of the training rows, so the probe
    is the same one; it has as many columns as there are rows instead of one for each dimension of the model.
    """
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(train)
    scaled = scaler.transform(train)
    _, values, basis = np.linalg.svd(scaled, full_matrices=False)
    kept = basis[values > values.max() * 1e-7].T if values.max() > 0 else basis.T
    return scaled @ kept, scaler.transform(test) @ kept
