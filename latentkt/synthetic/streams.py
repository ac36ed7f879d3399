"""The stream of documents of a fact world: an epoch of choices, statements and questions in steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch

from latentkt.synthetic.documents import (
    Choices,
    Documents,
    choice_documents,
    draw_choices,
    draw_facts,
    world_vocabulary,
)
from latentkt.synthetic.exact import answer_probability
from latentkt.synthetic.training import Batch
from latentkt.synthetic.vocabulary import PAD, Vocabulary

if TYPE_CHECKING:
    from latentkt.synthetic.world import World

__all__ = ["Epoch", "FactStream", "join_batch"]


@dataclass(frozen=True, slots=True)
class Epoch:
    """The documents of one epoch: choices as data and as text, and the rest."""

    choices: Choices
    choice_documents: Documents
    fact_documents: Documents


@dataclass(frozen=True)
class FactStream:
    """Redraws the corpus of a world for each epoch, the counts kept exactly.

    Args:
        world: The world.
        batch: Choice documents a step; the other documents are spread over the same steps.
        redraw: False: every epoch shows the documents of the first (a fixed corpus, which can be memorised).
    """

    world: World
    batch: int = 64
    redraw: bool = True

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The words of the world."""
        return world_vocabulary(self.world)

    @property
    def vocabulary_size(self) -> int:
        """Number of ids."""
        return len(self.vocabulary)

    @property
    def steps(self) -> int:
        """Batches of one epoch."""
        return max(1, round(int(self.world.counts.sum()) / self.batch))

    def epoch(self, number: int) -> Epoch:
        """Draw the documents of an epoch; they depend on the world and the number alone."""
        return self._draw([self.world.seed, 2, number if self.redraw else 0])

    def fresh(self) -> Epoch:
        """Documents of the same corpus that were never trained on."""
        return self._draw([self.world.seed, 3])

    def _draw(self, seed: list[int]) -> Epoch:
        rng = np.random.default_rng(seed)
        choices = draw_choices(self.world, rng)
        written = choice_documents(self.world, self.vocabulary, choices, rng=rng)
        return Epoch(choices, written, draw_facts(self.world, self.vocabulary, rng))

    def batches(self, epoch: int) -> Iterator[Batch]:
        """The epoch's documents in a new order, all of them, in `steps` parts of nearly equal size."""
        drawn = self.epoch(epoch)
        rng = np.random.default_rng([self.world.seed, 4, epoch])
        floor = -np.log(answer_probability(self.world, drawn.choices))
        entity = self.vocabulary.id_array(self.world.entities)
        other = entity[drawn.choices.key + drawn.choices.partner - drawn.choices.answer]
        choice_parts = np.array_split(rng.permutation(len(drawn.choices)), self.steps)
        fact_parts = np.array_split(rng.permutation(len(drawn.fact_documents.ids)), self.steps)
        for here, there in zip(choice_parts, fact_parts, strict=True):
            yield join_batch(drawn.choice_documents, here, drawn.fact_documents, there, floor[here], other[here])


def join_batch(
    choices: Documents, here: np.ndarray, facts: Documents, there: np.ndarray, floor: np.ndarray, other: np.ndarray
) -> Batch:
    """One batch of choice documents (their answers marked) and other documents, padded to one length."""
    length = max(choices.ids.shape[1], facts.ids.shape[1])
    parts = [(choices, here), (facts, there)]
    ids = np.full((len(here) + len(there), length), PAD)
    target = np.zeros(ids.shape, dtype=bool)
    answer = np.zeros(ids.shape, dtype=bool)
    start = 0
    for documents, rows in parts:
        stop, width = start + len(rows), documents.ids.shape[1]
        ids[start:stop, :width] = documents.ids[rows]
        target[start:stop, :width] = documents.target[rows]
        start = stop
    answer[: len(here), choices.ids.shape[1] - 2] = True
    keep = int((ids != PAD).any(0).sum())
    return Batch(
        ids=torch.from_numpy(ids[:, :keep]),
        target=torch.from_numpy(target[:, :keep]),
        answer=torch.from_numpy(answer[:, :keep]),
        floor=torch.from_numpy(floor).float(),
        other=torch.from_numpy(other),
    )
