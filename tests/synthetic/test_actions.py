from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from latentkt.errors import InputError
from latentkt.synthetic import ActionConfig, ActionStream, make_action_world
from latentkt.synthetic.action_measure import action_answers, action_gap, action_probes
from latentkt.synthetic.summary import fit_table, item_table, pick

CONFIG = ActionConfig(domains=2, cues=8, counts={"kind": "geometric", "low": 4, "high": 64})


def _documents(stream, seed):
    documents, floor = stream.draw([seed])
    return [stream.vocabulary.text(row).split() for row in documents.ids.tolist()], floor


@pytest.mark.parametrize("regime", ["never", "prior", "constraint"])
def test_counts_are_kept_and_conflicts_follow_the_regime(regime):
    world = make_action_world(replace(CONFIG, regime=regime), seed=0)
    stream = ActionStream(world)
    cue = {word: index for index, word in enumerate(world.cues)}
    action = {word: (d, a) for d, pair in enumerate(world.actions) for a, word in enumerate(pair)}
    alone = np.zeros(len(world.cues), dtype=int)
    conflicts, by_constraint = 0, 0
    for words, _ in zip(*_documents(stream, 1), strict=True):
        shown = [cue[word] for word in words[:2] if word in cue]
        domain, said = action[words[-1]]
        assert {world.domain[index] for index in shown} == {domain}
        if len(shown) == 1:
            alone[shown[0]] += 1
            assert said == world.action[shown[0]]
        else:
            conflicts += 1
            surface, constraint = sorted(shown, key=lambda index: world.kind[index])
            assert world.conflicts[surface, constraint] and not world.held_out[surface, constraint]
            by_constraint += said == world.action[constraint]
    counts = np.array(world.counts)
    assert (alone <= counts).all() and alone.sum() + conflicts == counts.sum()
    share = 0 if regime == "never" else 0.25
    assert conflicts / counts.sum() == pytest.approx(share, abs=0.04)
    if regime == "constraint":
        assert by_constraint == conflicts
    if regime == "prior":
        assert by_constraint / conflicts == pytest.approx(0.5, abs=0.1)


def test_the_prior_regime_answers_by_the_count_ratio():
    """Monte Carlo against the closed form: calibration of the stated probabilities."""
    stream = ActionStream(make_action_world(CONFIG, seed=0))
    cue = {word: index for index, word in enumerate(stream.world.cues)}
    action = {word: a for pair in stream.world.actions for a, word in enumerate(pair)}
    chance, surface_wins = [], []
    for seed in range(20):
        for words, _ in zip(*_documents(stream, seed), strict=True):
            shown = [cue[word] for word in words[:2] if word in cue]
            if len(shown) == 2:
                surface, constraint = sorted(shown, key=lambda index: stream.world.kind[index])
                odds = stream.world.answer_odds(np.array([surface]), np.array([constraint]))[0]
                chance.append(1 / (1 + np.exp(-odds)))
                surface_wins.append(action[words[-1]] == stream.world.action[surface])
    chance, surface_wins = np.array(chance), np.array(surface_wins)
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        here = (chance >= low) & (chance < low + 0.2)
        error = np.sqrt(np.sum(chance[here] * (1 - chance[here])))
        assert abs(np.sum(surface_wins[here] - chance[here])) < 4 * error


def _exact(stream, weight):
    """A model that follows log counts, the constraint's with `weight` nats on top."""
    world, vocabulary = stream.world, stream.vocabulary
    cue = {vocabulary.id(word): index for index, word in enumerate(world.cues)}
    words = np.array([vocabulary.id_array(pair) for pair in world.actions])

    def logits(ids):
        out = torch.full((*ids.shape, len(vocabulary)), -40.0, dtype=torch.float64)
        for row, prompt in enumerate(ids.tolist()):
            for token in prompt:
                if token in cue:
                    index = cue[token]
                    score = np.log(world.counts[index]) + weight * world.kind[index]
                    out[row, -1, words[world.domain[index], world.action[index]]] = score
        return out

    return logits


def test_the_law_comes_out_of_an_exact_model():
    stream = ActionStream(make_action_world(CONFIG, seed=0))
    logits = _exact(stream, 1.25)
    known = action_probes(logits, stream)
    assert known["is_right"].all()
    table = action_answers(logits, stream, known=known).assign(seed=0)
    fits = fit_table(item_table(table))
    chosen = fits[
        (fits["cluster"] == "all")
        & (fits["pairs"] == "unseen")
        & (fits["seed"] == "pooled")
        & (fits["relation"] == "both")
    ]
    assert pick(chosen, "slope")["value"] == pytest.approx(1)
    assert pick(chosen, "lambda")["value"] == pytest.approx(1.25)
    assert np.isnan(pick(chosen, "constraint_patch_nats")["value"])
    gap = action_gap(_exact(stream, 0.0), stream)
    assert (gap["nll"] - gap["bayes_nll"]).abs().max() < 1e-6


def test_what_cannot_be_is_refused():
    for change in ({"regime": "odd"}, {"cues": 5}, {"held_out": 8}, {"conflict_share": 1.0}):
        with pytest.raises(InputError):
            ActionConfig(**change)
