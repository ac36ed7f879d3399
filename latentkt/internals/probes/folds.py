"""Two ways of splitting rows, and the labels of the control task.

`generalisation` leaves whole groups (families, entities) out: what is found must hold for groups never seen.
`selectivity` gives every entity rows on both sides, so that its control task (Hewitt and Liang 2019: one random label
an entity) can be learned by heart: what the probe scores beyond it is not memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from latentkt.errors import InputError

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["SPLITS", "Fold", "bag_of_tokens", "check_no_leak", "control_labels", "joined_groups", "make_folds"]

SPLITS = ("generalisation", "selectivity")


class Fold(NamedTuple):
    """Rows of one fold."""

    train: Int[np.ndarray, " train"]
    test: Int[np.ndarray, " test"]


def make_folds(
    split: str,
    labels: Int[np.ndarray, " row"],
    groups: Sequence[object],
    *,
    max_folds: int = 5,
    seed: int = 0,
) -> list[Fold]:
    """Folds of one split.

    Args:
        split: `generalisation`: no group stands in train and test at once; label shares are kept as far as groups
            allow. `selectivity`: each group's rows are dealt over the folds, so that a row that is tested has another
            of its group in train; rows of groups with one row stand in no fold.
        labels: 0 or 1.
        groups: Family or entity of each row.
        max_folds: Number of folds; fewer where there are fewer groups (rows of a group).
        seed: Seed of the assignment.

    Returns:
        The folds; none where the selectivity split does not exist because every group has one row.

    Raises:
        InputError: Unknown split, or fewer than two groups to leave out.
    """
    if split not in SPLITS:
        raise InputError("unknown split of a probe", expected=" or ".join(SPLITS), found=split)
    index = np.unique(np.asarray(list(map(str, groups))), return_inverse=True)[1]
    if split == "selectivity":
        return _dealt(index, max_folds, seed)
    return _left_out(labels, index, max_folds, seed)


def _left_out(labels: np.ndarray, index: np.ndarray, max_folds: int, seed: int) -> list[Fold]:
    from sklearn.model_selection import StratifiedGroupKFold

    n = min(max_folds, int(index.max()) + 1)
    if n < 2:
        raise InputError(
            "a probe cannot leave a group out",
            expected="two groups (families, entities) or more",
            found=f"{len(index)} rows of one group",
        )
    splitter = StratifiedGroupKFold(n_splits=n, shuffle=True, random_state=seed)
    # A class with fewer rows than folds is told apart by its groups all the same, so sklearn's warning says nothing.
    import warnings

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        pairs = list(splitter.split(np.zeros(len(labels)), labels, index))
    return [Fold(train, test) for train, test in pairs if len(test)]


def _dealt(index: np.ndarray, max_folds: int, seed: int) -> list[Fold]:
    rng = np.random.default_rng([seed, 1])
    where = np.full(len(index), -1)
    for group in range(int(index.max()) + 1):
        rows = np.flatnonzero(index == group)
        if len(rows) > 1:
            where[rng.permutation(rows)] = (rng.integers(max_folds) + np.arange(len(rows))) % max_folds
    dealt = np.flatnonzero(where >= 0)
    pairs = [Fold(dealt[where[dealt] != fold], dealt[where[dealt] == fold]) for fold in range(max_folds)]
    return [fold for fold in pairs if len(fold.test)]


def check_no_leak(groups: Sequence[object], entities: Sequence[object], *, name: str) -> None:
    """Refuse groups that share an entity: leaving one of them out would leave its rows in train.

    Raises:
        InputError: Names an entity that stands in two groups.
    """
    home: dict[str, str] = {}
    for entity, group in zip(map(str, entities), map(str, groups), strict=True):
        if home.setdefault(entity, group) != group:
            raise InputError(
                f"probe {name!r}: an entity stands in two groups, so a fold would leave its rows in train",
                expected="each entity in one group",
                found=f"{entity!r} in {home[entity]!r} and {group!r}",
                fix="join these groups (joined_groups), or leave out entities instead of families",
            )


def joined_groups(groups: Sequence[object], entities: Sequence[object]) -> list[str]:
    """Groups that share an entity become one, named by its members, so that leaving it out leaves the entity out.

    Example:
        >>> joined_groups(["f", "g", "g", "h"], ["ann", "ann", "ben", "cid"])
        ['f+g', 'f+g', 'f+g', 'h']
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    names, group = np.unique(list(map(str, groups)), return_inverse=True)
    entity = np.unique(list(map(str, entities)), return_inverse=True)[1] + len(names)
    size = int(entity.max()) + 1
    _, part = connected_components(coo_matrix((np.ones(len(group)), (group, entity)), shape=(size, size)))
    members = ["+".join(names[part[: len(names)] == own]) for own in part[: len(names)]]
    return [members[index] for index in group]


def control_labels(
    labels: Int[np.ndarray, " row"], entities: Sequence[object], *, seed: int = 0
) -> Int[np.ndarray, " row"]:
    """Labels of the control task: one drawn label an entity, the same on all its rows.

    As many entities get a 1 as the task's share of 1 asks for, at least one and not all.

    Example:
        >>> control_labels(np.array([0, 1, 0, 1]), ["a", "a", "b", "b"]).tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])
        True
    """
    index = np.unique(np.asarray(list(map(str, entities))), return_inverse=True)[1]
    count = int(index.max()) + 1
    ones = int(np.clip(round(float(np.mean(labels)) * count), 1, max(1, count - 1)))
    drawn = np.random.default_rng([seed, 2]).permutation(count) < ones
    return drawn.astype(int)[index]


def bag_of_tokens(prompts: Sequence[Sequence[int]]) -> Float[np.ndarray, "row token"]:
    """How often each token stands in each prompt: what the words give away by themselves.

    Example:
        >>> bag_of_tokens([[5, 7, 5], [7]]).tolist()
        [[2.0, 1.0], [0.0, 1.0]]
    """
    vocabulary = {token: i for i, token in enumerate(sorted({t for prompt in prompts for t in prompt}))}
    bag = np.zeros((len(prompts), len(vocabulary)))
    for row, prompt in enumerate(prompts):
        for token in prompt:
            bag[row, vocabulary[token]] += 1
    return bag
