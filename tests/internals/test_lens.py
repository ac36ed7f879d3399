"""The lens ends at the model's own output, whatever engine reads it, and norms every vector anew."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from latentkt.errors import InputError
from latentkt.internals import answer_lens, token_lens
from latentkt.internals.lens import LensRun
from tests.internals.making import tiny_pair
from tests.models.tiny import tiny_handle


def run_of(handle):
    pair = tiny_pair(handle)
    return LensRun(pair.base, pair.answers, {"item": "a"})


@pytest.mark.parametrize("engine", ["reference", "transformer_lens", "nnsight"])
def test_the_answer_lens_is_the_same_by_every_engine(engine):
    handle = tiny_handle("gemma2")
    fast, residuals = answer_lens(handle, [run_of(handle)])
    other, seen = answer_lens(handle, [run_of(handle)], engine=engine)
    for column in ("log_odds", "logp_correct", "first_token_log_odds", "kl_to_final"):
        np.testing.assert_allclose(fast[column], other[column], atol=1e-4, err_msg=column)
    np.testing.assert_array_equal(fast["rank_correct"], other["rank_correct"])
    torch.testing.assert_close(residuals[0], seen[0], atol=1e-4, rtol=0)


@pytest.mark.parametrize("family", ["gpt2", "llama", "gemma2"])
def test_the_last_layer_at_every_position_is_the_models_own_output(family):
    handle = tiny_handle(family)
    run = run_of(handle)
    table = token_lens(handle, [run], rows_at_once=3)
    logp = handle.logits(torch.tensor([run.prompt.ids]))[0].log_softmax(-1)
    at = run.answers.first_difference
    correct, shortcut = run.answers.correct_ids[at], run.answers.shortcut_ids[at]
    last = table[table["layer"] == handle.n_layers - 1]
    np.testing.assert_allclose(last["first_token_log_odds"], logp[:, correct] - logp[:, shortcut], atol=1e-4)
    np.testing.assert_allclose(last["p_shortcut"], logp[:, shortcut].exp(), atol=1e-5)
    np.testing.assert_array_equal(last["rank_correct"], (logp > logp[:, [correct]]).sum(-1))
    np.testing.assert_allclose(last["kl_to_final"], 0, atol=1e-6)
    first = table[table["layer"] == 0]
    assert (first["kl_to_final"] > 1e-3).all() and list(first["role"]) == list(run.prompt.roles)
    assert len(table) == (handle.n_layers + 1) * len(run.prompt.ids)


def test_the_divergence_is_from_the_models_own_distribution_to_the_lens():
    """KL(final ‖ lens) = Σ p_final (log p_final − log p_lens), at the last token and at every token."""
    handle = tiny_handle("llama")
    run = run_of(handle)
    table, residuals = answer_lens(handle, [run])
    logp = handle.unembed(residuals[0]).log_softmax(-1)
    truth = (logp[-1].exp() * (logp[-1] - logp)).sum(-1)
    np.testing.assert_allclose(table["kl_to_final"], truth, atol=1e-4)
    other_way = (logp.exp() * (logp - logp[-1])).sum(-1)
    assert (truth - other_way).abs().max() > 0.1
    tokens = token_lens(handle, [run], positions=[-1])
    np.testing.assert_allclose(tokens["kl_to_final"], truth, atol=1e-4)


def test_a_lens_on_chosen_positions_takes_those_rows():
    handle = tiny_handle("llama")
    run = run_of(handle)
    every, one = token_lens(handle, [run]), token_lens(handle, [run], positions=[-1])
    last = every[every["position"] == len(run.prompt.ids) - 1]
    np.testing.assert_allclose(one["first_token_log_odds"], last["first_token_log_odds"], atol=1e-5)
    with pytest.raises(InputError, match="position of a lens"):
        token_lens(handle, [run], positions=[99])
