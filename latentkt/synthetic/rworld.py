"""The worlds of the R-test: keys × tasks with a prior that is no product, and two ways in which documents arise."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from latentkt.errors import InputError

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["CORPORA", "PathWorld", "ambiguous_limit", "make_path_world"]

# Share of the ambiguous documents that are pair-neutral.
CORPORA = {"pair-neutral": 1.0, "path-neutral": 0.0}


@dataclass(frozen=True)
class PathWorld:
    """Keys and tasks, the prior of every path, and how ambiguous documents arise.

    A document shows two keys, two tasks and a question token. In an unambiguous one the keys are equal and the tasks
    are equal. Ambiguous ones are written in one of two ways with the same prior, prompts and answers:

    - pair-neutral: the key by π(k), the other key uniform, the pair of tasks uniform, the task by π(t|k)/m_k, with
      m_k = π(t|k) + π(t′|k). The prompt says nothing about the key, nor about the task given the key: Assumptions 3.1
      and 3.2 hold exactly, and W_s/W_0 = Π R.
    - path-neutral: the path by π(k) π(t|k), the other key and the other task uniform. The prompt says nothing about the
      path, W_s/W_0 = Π, and Assumption 3.1(ii) fails: P(z|k_s)/P(z|k*) = 1/R.

    Attributes:
        seed: What it was made from.
        prior_key: π(k).
        prior_task: π(t|k), one row a key.
        ambiguous_share: Share of documents that are ambiguous, in both corpora.
        pair_neutral_share: Share of those that are pair-neutral: 1, 0, or a mixture.
        held_out: (t, t′, shift): for this pair of tasks, keys this far apart on a circle are never shown together.

    Raises:
        InputError: If the unambiguous documents cannot fill up the prior.
    """

    seed: int
    prior_key: tuple[float, ...]
    prior_task: tuple[tuple[float, ...], ...]
    ambiguous_share: float
    pair_neutral_share: float
    held_out: tuple[tuple[int, int, int], ...] = ()

    def __post_init__(self) -> None:
        tasks = len(self.prior_task[0])
        if tasks < 3:
            raise InputError("too few tasks", expected="at least three relations", found=tasks)
        limit = ambiguous_limit(np.array(self.prior_task))
        over = self.pair_neutral_share > 0 and self.ambiguous_share > limit + 1e-12
        if not 0 < self.ambiguous_share <= 1 or over or self.ambiguous_share == 1:
            raise InputError(
                "the ambiguous documents alone exceed the prior",
                expected=f"ambiguous_share over 0 and at most {min(limit, 1):.4f}, and under 1",
                found=self.ambiguous_share,
                fix="unambiguous documents fill every path up to its prior, so some must be left: a corpus of ambiguous"
                " pair-neutral documents alone would force R = 1",
            )

    @property
    def keys(self) -> int:
        """K."""
        return len(self.prior_key)

    @property
    def tasks(self) -> int:
        """T."""
        return len(self.prior_task[0])

    @cached_property
    def task_pairs(self) -> np.ndarray:
        """Every pair of tasks, (pair, 2)."""
        return np.array(list(combinations(range(self.tasks), 2)))

    @cached_property
    def pi(self) -> Float[np.ndarray, "key task"]:
        """π(k, t)."""
        return np.array(self.prior_key)[:, None] * np.array(self.prior_task)

    @cached_property
    def partners(self) -> np.ndarray:
        """Keys that may be shown with each key, for each pair of tasks: (pair, key, number)."""
        key = np.arange(self.keys)
        distance = np.abs(key[:, None] - key[None, :])
        shift = np.minimum(distance, self.keys - distance)
        tables = []
        for pair in self.task_pairs:
            held = [s for first, second, s in self.held_out if (first, second) == tuple(pair)]
            allowed = (shift > 0) & ~np.isin(shift, held)
            tables.append([np.flatnonzero(row) for row in allowed])
        return np.array(tables)

    def joint(self, key: np.ndarray, task: np.ndarray, other_task: np.ndarray) -> Float[np.ndarray, " item"]:
        """P(z, k, t) of an ambiguous document z, up to a factor that is the same for its four paths."""
        prior = np.array(self.prior_task)
        both = prior[key, task] + prior[key, other_task]
        neutral_pair = np.array(self.prior_key)[key] * prior[key, task] / both / len(self.task_pairs)
        neutral_path = self.pi[key, task] / (self.tasks - 1)
        share = self.pair_neutral_share
        return share * neutral_pair + (1 - share) * neutral_path

    @cached_property
    def unambiguous(self) -> Float[np.ndarray, "key task"]:
        """Mass of unambiguous documents of every path; with the ambiguous ones it is π(k, t)."""
        key, task, other = np.meshgrid(*(np.arange(n) for n in (self.keys, self.tasks, self.tasks)), indexing="ij")
        ambiguous = np.where(task != other, self.joint(key, task, other), 0.0).sum(-1)
        return self.pi - self.ambiguous_share * ambiguous

    def to_json(self) -> str:
        """The world as text."""
        return json.dumps({"format": "latentkt.path-world/1", **asdict(self)}, indent=1) + "\n"


def path_world_from_dict(content: dict[str, Any]) -> PathWorld:
    """The world that `PathWorld.to_json` wrote."""
    fields = {name: value for name, value in content.items() if name != "format"}
    for name in ("prior_task", "held_out"):
        fields[name] = tuple(tuple(row) for row in fields[name])
    return PathWorld(**{**fields, "prior_key": tuple(fields["prior_key"])})


def ambiguous_limit(prior_task: Float[np.ndarray, "key task"]) -> float:
    """Largest share of pair-neutral documents: C(T, 2) · min over paths of 1 / Σ_t′ 1/m_k(t, t′).

    Example:
        >>> round(ambiguous_limit(np.full((2, 3), 1 / 3)), 6)
        1.0
    """
    both = prior_task[:, :, None] + prior_task[:, None, :]
    tasks = prior_task.shape[1]
    inverse = (1 / both) * ~np.eye(tasks, dtype=bool)
    return float(tasks * (tasks - 1) / 2 * (1 / inverse.sum(-1)).min())


def make_path_world(
    corpus: str,
    *,
    seed: int,
    keys: int = 24,
    tasks: int = 4,
    ambiguous_share: float = 0.5,
    key_ratio: float = 20.0,
    task_spread: float = 1.5,
    held_shifts: int = 2,
) -> PathWorld:
    """Draw the world of a seed; worlds of one seed differ only in how ambiguous documents arise.

    Args:
        corpus: "pair-neutral" or "path-neutral".
        seed: Of the draw.
        keys: K.
        tasks: T, at least 3.
        ambiguous_share: Share of ambiguous documents. Rows π(·|k) are drawn until they admit it.
        key_ratio: Most frequent key over the rarest; geometric between.
        task_spread: Standard deviation of the log weights of π(·|k) before rows are refused, in nats.
        held_shifts: Distances of keys that are held out for each pair of tasks.

    Example:
        >>> world = make_path_world("pair-neutral", seed=0)
        >>> bool(np.all(world.unambiguous >= -1e-12)), world.partners.shape
        (True, (6, 24, 19))
    """
    if corpus not in CORPORA:
        raise InputError("the corpus is unknown", expected=list(CORPORA), found=corpus)
    rng = np.random.default_rng([seed, 11])
    prior_key = rng.permutation(np.geomspace(1, key_ratio, keys))
    rows: list[np.ndarray] = []
    for _ in range(20_000):
        row = np.exp(task_spread * rng.standard_normal(tasks))
        row /= row.sum()
        if ambiguous_limit(row[None]) >= ambiguous_share:
            rows.append(row)
        if len(rows) == keys:
            break
    else:
        raise InputError(
            "no row π(·|k) admits so many ambiguous documents",
            expected="a smaller ambiguous_share or task_spread",
            found=f"{len(rows)} of {keys} rows in 20,000 draws at share {ambiguous_share}, spread {task_spread}",
        )
    shifts = np.arange(1, (keys + 1) // 2)
    held = [
        (first, second, int(shift))
        for first, second in combinations(range(tasks), 2)
        for shift in rng.choice(shifts, held_shifts, replace=False)
    ]
    return PathWorld(
        seed=seed,
        prior_key=tuple(float(value) for value in prior_key / prior_key.sum()),
        prior_task=tuple(tuple(float(value) for value in row) for row in rows),
        ambiguous_share=ambiguous_share,
        pair_neutral_share=CORPORA[corpus],
        held_out=tuple(held),
    )
