"""Probes by layer, both splits, with every baseline on the same folds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latentkt.errors import InputError
from latentkt.internals.probes.fitting import Outcome, check_rows, run_folds
from latentkt.internals.probes.folds import SPLITS, bag_of_tokens, check_no_leak, control_labels, make_folds
from latentkt.internals.probes.kinds import Kind, kind_named
from latentkt.internals.probes.summary import LayerOutcomes

if TYPE_CHECKING:
    import pandas as pd
    from jaxtyping import Float, Int

__all__ = ["ProbeTables", "probe_table"]


@dataclass(frozen=True, eq=False)
class ProbeTables:
    """What `probe_table` found.

    Attributes:
        folds: One row a kind, split, layer and fold.
        layers: One row a kind, split and layer, with intervals and `evidence`.
    """

    folds: pd.DataFrame
    layers: pd.DataFrame


@dataclass(frozen=True)
class _Task:
    """Everything but the features of a layer."""

    labels: np.ndarray
    groups: Sequence[object]
    entities: Sequence[object]
    baselines: Mapping[str, np.ndarray]
    max_folds: int
    seed: int


def probe_table(
    features: Float[np.ndarray, "row layer d"],
    labels: Int[np.ndarray, " row"],
    groups: Sequence[object],
    *,
    entities: Sequence[object] | None = None,
    prompts: Sequence[Sequence[int]] | None = None,
    random_init: Float[np.ndarray, "row layer d"] | None = None,
    embedding: Float[np.ndarray, "row d"] | None = None,
    layers: Sequence[int] | None = None,
    kinds: Sequence[str] = ("logistic",),
    splits: Sequence[str] = SPLITS,
    target: str = "target",
    role: str = "last",
    max_folds: int = 5,
    seed: int = 0,
) -> ProbeTables:
    """Probe every layer under both splits, with baselines and the control task on the same folds.

    Args:
        features: Activations; `layers` says which layer each entry is.
        labels: 0 or 1.
        groups: What the split `generalisation` leaves out whole (family; entity where there is no family).
        entities: What the control task labels as one in the split `selectivity`; default `groups`.
        prompts: Token ids of each row's prompt, for the baseline bag of tokens.
        random_init: The same activations of the same architecture with random weights and embeddings; layers with NaN
            were not run and are left out.
        embedding: Embedding layer of the same rows; default the entry of layer −1, where there is one.
        layers: The layer of each entry; default −1 (embedding), 0, 1, …
        kinds: Kinds of probe (see `fit_probe`).
        splits: `generalisation`, `selectivity` or both.
        target: Name of the label.
        role: Where the activations were read (`last`: the last prompt token).
        max_folds: Number of folds; fewer where there are fewer groups.
        seed: Seed of folds and control labels.

    Returns:
        `.folds`: `target`, `kind`, `split`, `role`, `layer`, `fold`, `n_train`, `n_test`, `score` (accuracy), `auc`,
        `majority_score`, `C`, `reason`; under `generalisation` `bag_score`, `embedding_score`, `random_init_score`;
        under `selectivity` `control_score` and `selectivity` = score − control score. `.layers`: the same by layer,
        over all tested rows, with 95 % intervals, the wider of those over groups and over folds (`score`, `low`,
        `high`; `bag_low`, `bag_high`; …), `gain` with `gain_low` and `gain_high` (probe − bag of tokens, paired by
        group), `chance` (share of the commoner label among the tested rows), `n_groups`, `n_single` (rows left out
        because their entity has one row) and `evidence`: under `generalisation`, whether the score lies above the
        interval of the bag of tokens, the gain's interval above 0, and the score's own interval above `chance` and
        `majority_score`. What was not measured is NaN.

    Raises:
        InputError: As `fit_probe`; an entity that stands in two groups; entries and layers, or baselines and rows, that
            do not fit together.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> labels = np.tile([0, 1], 40)
        >>> features = rng.normal(size=(80, 3, 6))
        >>> features[:, 2, 1] += 4 * labels  # the layer after layer 0
        >>> found = probe_table(features, labels, np.repeat(range(10), 8), kinds=["ridge"])
        >>> general = found.layers[found.layers["split"] == "generalisation"]
        >>> general["score"].round(1).tolist()[-1] > 0.8
        True
    """
    import pandas as pd

    features, labels = check_rows(features, labels, groups, name=target, max_folds=max_folds)
    numbers = list(range(-1, features.shape[1] - 1)) if layers is None else list(layers)
    if features.ndim != 3 or len(numbers) != features.shape[1]:
        raise InputError(
            f"layers of probe {target!r}", expected=f"features [row, {len(numbers)}, d]", found=list(features.shape)
        )
    if entities is not None and "generalisation" in splits:
        check_no_leak(groups, entities, name=target)
    if embedding is None and -1 in numbers:
        embedding = features[:, numbers.index(-1)]
    baselines = _baselines(features, prompts, embedding, random_init, name=target)
    task = _Task(labels, groups, groups if entities is None else entities, baselines, max_folds, seed)
    folds: list[dict[str, object]] = []
    rows: list[dict[str, object]] = []
    for kind in kinds:
        for split in splits:
            about: dict[str, object] = {"target": target, "kind": kind, "split": split, "role": role}
            for number, found in enumerate(_measured(features, task, kind_named(kind), split)):
                about["layer"] = numbers[number]
                folds += [{**about, "fold": fold, **row} for fold, row in enumerate(found.fold_rows())]
                rows.append({**about, **found.layer_row()})
    return ProbeTables(pd.DataFrame(folds), pd.DataFrame(rows))


def _baselines(
    features: np.ndarray,
    prompts: Sequence[Sequence[int]] | None,
    embedding: np.ndarray | None,
    random_init: np.ndarray | None,
    *,
    name: str,
) -> dict[str, np.ndarray]:
    """The baselines that were given: [row, p], or [row, layer, d] where each layer has its own."""
    given = {
        "bag": None if prompts is None else bag_of_tokens(prompts),
        "embedding": embedding,
        "random_init": random_init,
    }
    found = {key: np.asarray(value, dtype=np.float64) for key, value in given.items() if value is not None}
    for key, value in found.items():
        if len(value) != len(features) or (value.ndim == 3 and value.shape[1] != features.shape[1]):
            raise InputError(
                f"baseline {key!r} of probe {name!r} does not fit its rows",
                expected=f"{len(features)} rows (and {features.shape[1]} layers)",
                found=list(value.shape),
            )
    return found


def _measured(features: np.ndarray, task: _Task, kind: Kind, split: str) -> Iterator[LayerOutcomes]:
    """One after the other, the layers of one kind and split."""
    general = split == "generalisation"
    clusters = task.groups if general else task.entities
    control = control_labels(task.labels, task.entities, seed=task.seed)
    labels = task.labels[:, None] if general else np.stack([task.labels, control], 1)
    folds = make_folds(split, task.labels, clusters, max_folds=task.max_folds, seed=task.seed)

    def run(values: np.ndarray, columns: np.ndarray) -> list[list[Outcome]]:
        return run_folds(values, columns, clusters, folds, kind=kind, split=split, seed=task.seed)

    shared = {key: [o for (o,) in run(x, labels)] for key, x in task.baselines.items() if general and x.ndim == 2}
    for layer in range(features.shape[1]):
        found = run(features[:, layer], labels)
        others = dict(shared) if general else {"control": [row[1] for row in found]}
        for key, x in task.baselines.items() if general else ():
            if x.ndim == 3 and np.isfinite(x[:, layer]).all():
                others[key] = [o for (o,) in run(x[:, layer], labels)]
        yield LayerOutcomes([row[0] for row in found], others, task.labels, clusters, split)
