from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from latentkt.errors import InputError
from latentkt.synthetic import Cluster, FactStream, WorldConfig, bayes_dominance, make_world, path_likelihood
from latentkt.synthetic.exact import answer_probability
from latentkt.synthetic.pathmodel import fact_model

SMALL = WorldConfig(
    levels=4,
    clusters=(Cluster("a", 0.3, noise=0.4), Cluster("b", 0.2, noise=0.1)),
    counts={"kind": "table", "values": [5, 10, 30, 60]},
    held_same=0,
    held_opposed=1,
)


@pytest.fixture(scope="module")
def world():
    return make_world(SMALL, seed=0)


def _every_prompt(world):
    """All (relation, first, second, word) with both orders of the pair."""
    size = len(world.entities)
    grid = np.meshgrid(np.arange(2), np.arange(size), np.arange(size), np.arange(2), indexing="ij")
    relation, first, second, word = (part.ravel() for part in grid)
    keep = first != second
    return relation[keep], first[keep], second[keep], word[keep]


def test_likelihoods_sum_to_one(world):
    """Σ over partners and words of P(z|k,t) is 1 for every key: held-out pairs aside, which no document shows."""
    relation, key, partner, word = _every_prompt(world)
    chance = path_likelihood(world, relation, key, partner, world.cluster[relation, key], word)
    chance = np.where(world.held_out[relation, key, partner], 0, chance)
    total = np.zeros(world.counts.shape)
    np.add.at(total, (relation, key), chance)
    assert np.allclose(total, 1)


def test_the_closed_form_is_what_the_corpus_does(world):
    """Frequencies over 600 epochs, prompt by prompt, lie where the closed form puts them."""
    stream = FactStream(world)
    size = len(world.entities)
    shown = np.zeros((2, size, size, 2))
    for epoch in range(600):
        c = stream.epoch(epoch).choices
        np.add.at(shown, (c.relation, c.key, c.partner, c.word), 1)
    relation, first, second, word = _every_prompt(world)
    own, other = shown[relation, first, second, word], shown[relation, second, first, word]
    seen = (own + other > 200) & (world.cluster[relation, first] == world.cluster[relation, second])
    dominance = bayes_dominance(world, relation, first, second, word)[seen]
    expected = 1 / (1 + np.exp(-dominance))
    n, k = (own + other)[seen], own[seen]
    z = (k - n * expected) / np.sqrt(np.maximum(n * expected * (1 - expected), 1e-9))
    determined = (expected == 0) | (expected == 1)
    assert np.all(k[determined] == (n * expected)[determined])
    assert seen.sum() > 100
    assert np.abs(z[~determined]).max() < 5
    assert np.mean(z[~determined] ** 2) == pytest.approx(1, abs=0.25)


def test_same_polarity_is_the_count_ratio_and_opposed_adds_lambda(world):
    relation, first, second, word = _every_prompt(world)
    ratio = np.log(world.counts)[relation, first] - np.log(world.counts)[relation, second]
    value = bayes_dominance(world, relation, first, second, word)
    polarity, cluster = world.polarity, world.cluster
    together = cluster[relation, first] == cluster[relation, second]
    same = together & (polarity[relation, first] == polarity[relation, second]) & (word == polarity[relation, first])
    assert np.allclose(value[same], ratio[same])
    noise = np.array([0.4, 0.1])[cluster[relation, first]]
    trap = together & (polarity[relation, first] != polarity[relation, second]) & (word == polarity[relation, second])
    assert np.allclose(value[trap], (ratio - np.log((1 - noise) / noise))[trap])


def test_where_the_corpus_says_nothing_there_is_no_number():
    world = make_world(WorldConfig(), seed=0)
    pairs = np.argwhere(world.pairing_matrix("opposed")[0])
    first, second = pairs[world.cluster[0, pairs[:, 0]] == 0].T
    relation = np.zeros(len(first), dtype=int)
    assert np.isnan(bayes_dominance(world, relation, first, second, world.polarity[0, second])).all()
    with pytest.raises(InputError, match="no answer"):
        fact_model(world, relation=0, shortcut=int(first[0]), correct=int(second[0]), word=0)


@pytest.mark.parametrize("labels", ["drawn", "permuted"])
def test_the_key_task_model_agrees(labels):
    """Every prompt of a small world through the posterior over all keys and tasks."""
    world = make_world(replace(SMALL, labels=labels), seed=2)
    relation, first, second, word = _every_prompt(world)
    value = bayes_dominance(world, relation, first, second, word)
    rng = np.random.default_rng(0)
    # A prompt names the attribute of one option's cluster: here those of one cluster only.
    together = world.cluster[relation, first] == world.cluster[relation, second]
    for place in rng.choice(np.flatnonzero(~np.isnan(value) & together), 150, replace=False):
        model, paths = fact_model(
            world, relation=int(relation[place]), shortcut=int(first[place]), correct=int(second[place]),
            word=int(word[place]),
        )  # fmt: skip
        answer = model.predictive()
        with np.errstate(divide="ignore"):
            assert np.log(answer[paths.y_s] / answer[paths.y_0]) == pytest.approx(value[place], abs=1e-9)
        assert answer[[paths.y_s, paths.y_0]].sum() == pytest.approx(1)


def test_the_ideal_predictor_follows_the_constraint(world):
    pair = np.argwhere(world.pairing_matrix("opposed")[0])[0]
    word = int(world.polarity[0, pair[1]])
    model, paths = fact_model(world, relation=0, shortcut=int(pair[0]), correct=int(pair[1]), word=word, ideal=True)
    assert model.predictive()[paths.y_0] == 1


def test_the_floor_of_the_loss(world):
    """The mean of -log P(answer) is the entropy of the answers: it agrees with the same mean over other draws."""
    stream = FactStream(world)
    values = [-np.log(answer_probability(world, stream.epoch(n).choices)) for n in range(40)]
    means = np.array([value.mean() for value in values])
    assert np.isfinite(means).all()
    expected = np.concatenate(
        [np.stack([answer_probability(world, stream.epoch(n).choices)]).ravel() for n in range(40, 80)]
    )
    assert means.mean() == pytest.approx(-np.log(expected).mean(), abs=0.01)
