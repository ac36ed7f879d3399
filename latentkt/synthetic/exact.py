"""The exact predictor: what the corpus itself says about the answer, in closed form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latentkt.synthetic.documents import PAIRINGS

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from latentkt.synthetic.documents import Choices
    from latentkt.synthetic.world import World

__all__ = ["answer_probability", "bayes_dominance", "path_likelihood"]


def path_likelihood(
    world: World,
    relation: Int[np.ndarray, " item"],
    key: Int[np.ndarray, " item"],
    partner: Int[np.ndarray, " item"],
    cluster: Int[np.ndarray, " item"],
    word: Int[np.ndarray, " item"],
) -> Float[np.ndarray, " item"]:
    """P(z | k, t): the chance that a document counted for `key` shows these options and this polarity word.

    Option order and note are left out: they are the same for both options. Hold-outs do not enter: a held-out pair is
    answered as the rule that wrote all others would answer it.

    Args:
        world: The world.
        relation: The task.
        key: The entity that the document would be counted for.
        partner: The other option.
        cluster: Cluster whose attribute the document names.
        word: Polarity that the document states.
    """
    own = world.cluster[relation, key]
    opposed_share = np.array([item.opposed_share for item in world.clusters])[own]
    noise = np.array([item.noise for item in world.clusters])[own]
    agrees = word == world.polarity[relation, key]
    share = {"easy": world.easy_share, "opposed": opposed_share, "same": 1 - world.easy_share - opposed_share}
    heard = {"easy": agrees, "opposed": np.where(agrees, 1 - noise, noise), "same": agrees}
    result = np.zeros(len(key))
    for name in PAIRINGS:
        _, number = world.partners(name)
        with np.errstate(divide="ignore"):
            chance = share[name] * heard[name] / np.maximum(number[relation, key], 1)
        result = np.where(world.pairing_matrix(name)[relation, key, partner], chance, result)
    return np.where(own == cluster, result, 0.0)


def bayes_dominance(
    world: World,
    relation: Int[np.ndarray, " item"],
    shortcut: Int[np.ndarray, " item"],
    correct: Int[np.ndarray, " item"],
    word: Int[np.ndarray, " item"],
) -> Float[np.ndarray, " item"]:
    """Log P(y_s | z) - log P(y* | z) under the corpus, in nats; NaN where the corpus defines none (0/0).

    Example:
        >>> from latentkt.synthetic import WorldConfig, make_world
        >>> world = make_world(WorldConfig(), seed=0)
        >>> (first, second), zero = np.argwhere(world.pairing_matrix("same")[0])[:1].T[:, :, None][:, 0], np.array([0])
        >>> value = bayes_dominance(world, zero, first, second, world.polarity[0, first])
        >>> bool(np.isclose(value[0], np.log(world.counts[0, first] / world.counts[0, second])[0]))
        True
    """
    chance = _shortcut_probability(world, relation, shortcut, correct, word)
    with np.errstate(divide="ignore"):
        return np.log(chance) - np.log1p(-chance)


def answer_probability(world: World, choices: Choices) -> Float[np.ndarray, " document"]:
    """The exact probability of the answer that each document shows."""
    key = _shortcut_probability(world, choices.relation, choices.key, choices.partner, choices.word)
    return np.where(choices.answer == choices.key, key, 1 - key)


def _shortcut_probability(
    world: World, relation: np.ndarray, first: np.ndarray, second: np.ndarray, word: np.ndarray
) -> np.ndarray:
    """P(the answer is `first`), for documents about the attribute of the cluster of `first`."""
    cluster = world.cluster[relation, first]
    counts = world.counts
    weight = counts[relation, first] * path_likelihood(world, relation, first, second, cluster, word)
    other = counts[relation, second] * path_likelihood(world, relation, second, first, cluster, word)
    total = weight + other
    chance = np.divide(weight, total, out=np.full(len(first), np.nan), where=total > 0)
    if world.labels == "permuted":
        alike = cluster == world.cluster[relation, second]
        chance = np.where(alike & ~np.isnan(chance), 0.5, chance)
    return chance
