"""Documents of the R-test: fresh draws for every step, path and key asked by a question token in one stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch

from latentkt.synthetic.documents import Documents, render
from latentkt.synthetic.training import Batch
from latentkt.synthetic.vocabulary import Vocabulary

if TYPE_CHECKING:
    from latentkt.synthetic.rworld import PathWorld

__all__ = ["BINDINGS", "PathStream", "path_prompts"]

BINDINGS = ("path", "key")
TEMPLATE = "{a} {b} {first} {second} {question} {answer}"
QUESTIONS = {"path": "?path", "key": "?key"}


def path_vocabulary(world: PathWorld) -> Vocabulary:
    """Question tokens, keys, tasks, and one answer word for each path."""
    keys, tasks = range(world.keys), range(world.tasks)
    answers = [f"y{key}.{task}" for key in keys for task in tasks]
    return Vocabulary.of([*QUESTIONS.values(), *(f"k{key}" for key in keys), *(f"t{task}" for task in tasks), *answers])


@dataclass(frozen=True)
class PathStream:
    """Batches of one corpus.

    Args:
        world: The world; it says how ambiguous documents arise.
        batch: Documents a step.
        steps: Steps of one epoch (a unit of checkpoints only: nothing is ever shown twice).
    """

    world: PathWorld
    batch: int = 128
    steps: int = 300

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The words of the world."""
        return path_vocabulary(self.world)

    @property
    def vocabulary_size(self) -> int:
        """Number of ids."""
        return len(self.vocabulary)

    def batches(self, epoch: int) -> Iterator[Batch]:
        """Fresh documents; half of them ask for the path, half for the key."""
        rng = np.random.default_rng([self.world.seed, 12, epoch])
        drawn = self._draw(rng, self.batch * self.steps)
        for rows in np.split(np.arange(len(drawn["key"])), self.steps):
            yield self._batch({name: values[rows] for name, values in drawn.items()})

    def _draw(self, rng: np.random.Generator, number: int) -> dict[str, np.ndarray]:
        world = self.world
        ambiguous = rng.random(number) < world.ambiguous_share
        pair_neutral = rng.random(number) < world.pair_neutral_share
        pairs = rng.integers(len(world.task_pairs), size=number)
        key, task, other_task = self._paths(rng, ambiguous, pair_neutral, pairs)
        index = self._pair_index(task, other_task)
        place = rng.integers(world.partners.shape[-1], size=number)
        other_key = np.where(ambiguous, world.partners[index, key, place], key)
        return {
            "key": key, "task": task, "other_key": other_key, "other_task": np.where(ambiguous, other_task, task),
            "key_first": rng.random(number) < 0.5, "task_first": rng.random(number) < 0.5,
            "asks_key": rng.random(number) < 0.5, "ambiguous": ambiguous,
        }  # fmt: skip

    def _paths(
        self, rng: np.random.Generator, ambiguous: np.ndarray, pair_neutral: np.ndarray, pairs: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The path of each document, and the other task that it would show."""
        world, number = self.world, len(ambiguous)
        # Path-neutral and unambiguous documents draw the whole path.
        whole, rest = (_cells(rng, mass, number) for mass in (world.pi, np.maximum(world.unambiguous, 0)))
        path = np.where(ambiguous, whole, rest)
        key, task = path // world.tasks, path % world.tasks
        other_task = (task + rng.integers(1, world.tasks, size=number)) % world.tasks
        # Pair-neutral ones draw the key, then a pair of tasks, then one task of the pair.
        neutral_key = rng.choice(world.keys, number, p=np.array(world.prior_key))
        pair = world.task_pairs[pairs]
        prior = np.array(world.prior_task)
        first, second = prior[neutral_key, pair[:, 0]], prior[neutral_key, pair[:, 1]]
        takes_second = (rng.random(number) < second / (first + second)).astype(np.int64)
        rows = np.arange(number)
        use = ambiguous & pair_neutral
        return (
            np.where(use, neutral_key, key),
            np.where(use, pair[rows, takes_second], task),
            np.where(use, pair[rows, 1 - takes_second], other_task),
        )

    def _pair_index(self, task: np.ndarray, other: np.ndarray) -> np.ndarray:
        table = np.zeros((self.world.tasks,) * 2, dtype=np.int64)
        for index, (first, second) in enumerate(self.world.task_pairs):
            table[first, second] = table[second, first] = index
        return table[task, other]

    def _batch(self, drawn: dict[str, np.ndarray]) -> Batch:
        written = path_documents(self.world, self.vocabulary, drawn)
        chance = np.where(drawn["ambiguous"], answer_chance(self.world, drawn), 1.0)
        answer = np.zeros_like(written.target)
        answer[:, -2] = True
        return Batch(
            ids=torch.from_numpy(written.ids),
            target=torch.from_numpy(written.target),
            answer=torch.from_numpy(answer),
            floor=torch.from_numpy(-np.log(chance)).float(),
            other=torch.zeros(len(chance), dtype=torch.int64),
        )


def _cells(rng: np.random.Generator, mass: np.ndarray, number: int) -> np.ndarray:
    return rng.choice(mass.size, number, p=mass.ravel() / mass.sum())


def path_documents(world: PathWorld, vocabulary: Vocabulary, drawn: dict[str, np.ndarray]) -> Documents:
    """Write drawn documents."""
    key_id = vocabulary.id("k0")
    task_id = vocabulary.id("t0")
    answer_id = vocabulary.id("y0.0")
    key, other_key = drawn["key"] + key_id, drawn["other_key"] + key_id
    task, other_task = drawn["task"] + task_id, drawn["other_task"] + task_id
    questions = vocabulary.id_array([QUESTIONS["path"], QUESTIONS["key"]])
    slots = {
        "{a}": np.where(drawn["key_first"], key, other_key),
        "{b}": np.where(drawn["key_first"], other_key, key),
        "{first}": np.where(drawn["task_first"], task, other_task),
        "{second}": np.where(drawn["task_first"], other_task, task),
        "{question}": questions[drawn["asks_key"].astype(np.int64)],
        "{answer}": np.where(drawn["asks_key"], key, answer_id + drawn["key"] * world.tasks + drawn["task"]),
    }
    return render(TEMPLATE, vocabulary, slots, prompt=True)


def answer_chance(world: PathWorld, drawn: dict[str, np.ndarray]) -> np.ndarray:
    """The exact probability of the answer of ambiguous documents."""
    key, other_key, task, other_task = (drawn[name] for name in ("key", "other_key", "task", "other_task"))
    own = world.joint(key, task, other_task)
    same_key = own + world.joint(key, other_task, task)
    total = same_key + world.joint(other_key, task, other_task) + world.joint(other_key, other_task, task)
    return np.where(drawn["asks_key"], same_key, own) / total


def path_prompts(
    world: PathWorld, vocabulary: Vocabulary, items: dict[str, np.ndarray], *, binding: str, order: tuple[bool, bool]
) -> Documents:
    """The prompts of items (shortcut and correct paths) in one of the four orders of keys and tasks."""
    number = len(items["correct"])
    drawn = {
        "key": items["correct"], "task": items["correct_task"], "other_key": items["shortcut"],
        "other_task": items["shortcut_task"], "key_first": np.full(number, order[0]),
        "task_first": np.full(number, order[1]), "asks_key": np.full(number, binding == "key"),
    }  # fmt: skip
    return path_documents(world, vocabulary, drawn)
