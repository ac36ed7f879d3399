from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from latentkt.synthetic import FactStream, NetworkConfig, TrainingConfig, WorldConfig, make_world

TINY = WorldConfig(levels=4, counts={"kind": "table", "values": [2, 4, 6, 8]}, held_same=0, held_opposed=1)
TINY_TRAINING = TrainingConfig(network=NetworkConfig(layers=2, width=16, heads=2), epochs=3, batch=16, warm_up=3)


@pytest.fixture
def tiny_stream() -> FactStream:
    return FactStream(replace(make_world(TINY, seed=0), questions=(2, 1), statements=(2, 0.5)), batch=16)


def exact_logits(stream, table):
    """A model that knows the closed form: log P(answer | prompt) as logits, by looking the prompt up."""

    def logits(ids: torch.Tensor) -> torch.Tensor:
        out = torch.full((*ids.shape, len(stream.vocabulary)), -40.0, dtype=torch.float64)
        for row, prompt in enumerate(ids.tolist()):
            for token, value in table(prompt).items():
                out[row, -1, token] = value
        return out

    return logits


def bayes_table(stream, *, evidence: float = 0.0, slope: float = 1.0):
    """Answers by slope · log counts, minus `evidence` for an option whose polarity is not the stated one; questions are
    answered rightly."""
    world, vocabulary = stream.world, stream.vocabulary
    entity = {index: place for place, index in enumerate(vocabulary.id_array(world.entities).tolist())}
    verb = {vocabulary.id(relation.verb): index for index, relation in enumerate(world.relations)}
    attribute = {
        vocabulary.id(word): (index, cluster)
        for index, relation in enumerate(world.relations)
        for cluster, word in enumerate(relation.attributes)
    }
    words = {vocabulary.id("indeed"): 0, vocabulary.id("not"): 1}
    logs = np.log(world.counts)

    def table(prompt: list[int]) -> dict[int, float]:
        options = [token for token in prompt if token in entity]
        relation = next(verb[token] for token in prompt if token in verb)
        if len(options) == 1:
            _, cluster = next(attribute[token] for token in prompt if token in attribute)
            key = entity[options[0]]
            true = world.cluster[relation, key] == cluster and world.polarity[relation, key] == 0
            return {vocabulary.id("yes"): 9.0 if true else -9.0, vocabulary.id("no"): 0.0}
        word = next(words[token] for token in prompt if token in words)
        scores = [
            slope * logs[relation, entity[token]] - evidence * (world.polarity[relation, entity[token]] != word)
            for token in options
        ]
        total = np.logaddexp(*scores)
        return {token: float(score - total) for token, score in zip(options, scores, strict=True)}

    return table
