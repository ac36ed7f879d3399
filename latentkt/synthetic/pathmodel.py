"""The exact predictor of a world as a latent key-task model, so that every tool for such models applies to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latentkt.errors import InputError
from latentkt.keytask import KeyTaskModel, PathPair
from latentkt.synthetic.exact import path_likelihood

if TYPE_CHECKING:
    from latentkt.synthetic.rworld import PathWorld
    from latentkt.synthetic.world import World

__all__ = ["fact_model", "path_model"]


def fact_model(
    world: World, *, relation: int, shortcut: int, correct: int, word: int, ideal: bool = False
) -> tuple[KeyTaskModel, PathPair]:
    """One choice prompt as a model: keys are the entities, tasks the relations, and the answer is the key's name.

    Args:
        world: The world.
        relation: Task that the prompt is about.
        shortcut: One option.
        correct: The other option, whose cluster's attribute the prompt names.
        word: Polarity that the prompt states.
        ideal: The noise-free predictor: an option whose polarity is not the stated one is ruled out.

    Raises:
        InputError: If no document of the world shows these options with this word (0/0).

    Example:
        >>> from latentkt.synthetic import WorldConfig, make_world
        >>> world = make_world(WorldConfig(), seed=0)
        >>> first, second = np.argwhere(world.pairing_matrix("same")[0])[0]
        >>> word = int(world.polarity[0, first])
        >>> model, paths = fact_model(world, relation=0, shortcut=int(first), correct=int(second), word=word)
        >>> ratio = model.predictive()[paths.y_s] / model.predictive()[paths.y_0]
        >>> bool(np.isclose(ratio, world.counts[0, first] / world.counts[0, second]))
        True
    """
    counts = world.counts.T.astype(float)
    key_prior = counts.sum(1)
    likelihood = np.zeros(counts.shape)
    options = np.array([shortcut, correct])
    cluster = world.cluster[relation, [correct, correct]]
    likelihood[options, relation] = path_likelihood(
        world, np.full(2, relation), options, options[::-1], cluster, np.full(2, word)
    )
    if ideal:
        agrees = world.polarity[relation, options] == word
        likelihood[options, relation] = agrees & (world.cluster[relation, options] == cluster)
    if not likelihood.any():
        raise InputError(
            "the corpus defines no answer to this prompt",
            expected="options and a polarity word that some document shows",
            found=f"{world.entities[shortcut]} or {world.entities[correct]}, word {word}: probability 0",
        )
    emission = np.broadcast_to(np.eye(len(counts))[:, None, :], (*counts.shape, len(counts)))
    if world.labels == "permuted" and world.cluster[relation, shortcut] == cluster[0]:
        emission = emission.copy()
        emission[options[:, None], :, options[None, :]] = 0.5
    model = KeyTaskModel.from_probabilities(
        key_prior / key_prior.sum(), counts / key_prior[:, None], likelihood, emission
    )
    paths = PathPair(k_s=shortcut, t_s=relation, k_0=correct, t_0=relation, y_s=shortcut, y_0=correct)
    return model, paths


def path_model(
    world: PathWorld, *, shortcut: tuple[int, int], correct: tuple[int, int], binding: str
) -> tuple[KeyTaskModel, PathPair]:
    """One ambiguous prompt of the R-test as a model.

    Args:
        world: The world.
        shortcut: (k_s, t_s).
        correct: (k*, t*), with another key and another task.
        binding: What the answer names: "path", "key" or "task".

    Example:
        >>> from latentkt.synthetic import make_path_world
        >>> world = make_path_world("pair-neutral", seed=0)
        >>> model, paths = path_model(world, shortcut=(0, 1), correct=(3, 2), binding="path")
        >>> model.n_keys, model.n_tasks, model.n_answers
        (24, 4, 96)
    """
    keys, tasks = (shortcut[0], correct[0]), (shortcut[1], correct[1])
    likelihood = np.zeros(world.pi.shape)
    for key in keys:
        for task, other in (tasks, tasks[::-1]):
            joint = world.joint(np.array([key]), np.array([task]), np.array([other]))[0]
            likelihood[key, task] = joint / world.pi[key, task]
    number, every = (world.keys, world.tasks), np.indices(world.pi.shape)
    answer = {"path": every[0] * world.tasks + every[1], "key": every[0], "task": every[1]}[binding]
    answers = {"path": number[0] * number[1], "key": number[0], "task": number[1]}[binding]
    model = KeyTaskModel.from_probabilities(world.prior_key, world.prior_task, likelihood, np.eye(answers)[answer])
    return model, PathPair(
        k_s=shortcut[0], t_s=shortcut[1], k_0=correct[0], t_0=correct[1],
        y_s=int(answer[shortcut]), y_0=int(answer[correct]),
    )  # fmt: skip
