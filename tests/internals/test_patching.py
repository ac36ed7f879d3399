"""The staircase equals one plain forward a cell, on every family; identities that hold for any model."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.models.tiny import FAMILIES, tiny_handle

from latentkt.errors import InputError
from latentkt.internals import answer_lens, patch_roles
from latentkt.internals.lens import LensRun
from latentkt.internals.places import role_positions
from latentkt.internals.engines import engine_of
from latentkt.internals.metrics import scorer_of
from latentkt.models import encode, make_pair

ITEM = "The chemist did not win\nA:"
CONTROL = "The chemist did the win\nA:"


def make(handle, *, base=ITEM, source=CONTROL, correct=" Ann", shortcut=" Bob"):
    def prompt(text):
        start = text.index("did ")
        stop = start + len("did not")
        spans = {"shortcut": [(4, 11)], "constraint": [(start, stop)]}
        return encode(handle, text, chat=False, spans=spans)

    return make_pair(handle, prompt(base), prompt(source), correct=correct, shortcut=shortcut, name="tiny", meta={"item": "a"})


@pytest.mark.parametrize("family", FAMILIES)
def test_staircase_equals_one_forward_a_cell(family):
    handle = tiny_handle(family)
    pair = make(handle)
    roles = ("shortcut", "constraint", "last")
    fast = patch_roles(handle, [pair], roles=roles)
    slow = patch_roles(handle, [pair], roles=roles, engine="reference")
    for column in ("base_value", "source_value", "patched_value", "effect", "first_token_effect"):
        np.testing.assert_allclose(fast[column], slow[column], atol=1e-4, err_msg=column)
    live = fast[fast["role"] != "shortcut"]
    assert (live["effect"].abs() > 1e-3).any(), "a test in which nothing moves shows nothing"


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_positions_before_the_first_difference_have_no_effect(family):
    handle = tiny_handle(family)
    effects = patch_roles(handle, [make(handle)], roles=("shortcut",))["effect"]
    assert (effects == 0).all()


def test_a_patch_from_the_run_itself_changes_nothing():
    handle = tiny_handle("llama")
    pair = make(handle, source=ITEM)
    effects = patch_roles(handle, [pair], roles=("constraint", "last"), engine="reference")["effect"]
    np.testing.assert_allclose(effects, 0, atol=1e-5)


def test_a_patch_of_all_positions_reproduces_the_source():
    """Exactly so for the answers' first tokens; later ones also read the unpatched prompt through lower layers."""
    handle = tiny_handle("llama")
    pair = make(handle, correct=" the", shortcut=" of")
    assert pair.answers.first_difference == 0
    table = patch_roles(handle, [pair], roles=("all",))
    table = table.set_index("layer")
    reference = engine_of(handle, "reference")
    runs = (pair.base, pair.source)
    truth = [reference.score(scorer_of(pair, run.ids)).first_token_log_odds for run in runs]
    np.testing.assert_allclose(table["first_token_effect"], truth[1] - truth[0], atol=1e-4)
    assert abs(truth[1] - truth[0]) > 1e-2


def test_a_role_that_does_not_exist_is_nan_and_never_zero():
    handle = tiny_handle("llama")
    table = patch_roles(handle, [make(handle)], roles=("option_correct",))
    assert table["effect"].isna().all() and (table["n_positions"] == 0).all()


def test_shifted_pairs_are_refused():
    handle = tiny_handle("llama")
    pair = make(handle, source=CONTROL.replace("win", "win it"))
    with pytest.raises(InputError, match="shifted"):
        patch_roles(handle, [pair])


def test_nothing_of_the_users_is_changed():
    handle = tiny_handle("llama")
    ids = torch.tensor([make(handle).base.ids])
    before = handle.logits(ids)
    patch_roles(handle, [make(handle)])
    assert torch.equal(handle.logits(ids), before)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in handle.model.modules())


@pytest.mark.parametrize("family", FAMILIES)
def test_the_last_layer_of_the_lens_is_the_models_own_answer(family):
    handle = tiny_handle(family)
    pair = make(handle)
    table, residuals = answer_lens(handle, [LensRun(pair.base, pair.answers, {"item": "a"})])
    truth = patch_roles(handle, [pair], roles=("last",), layers=[0], engine="reference")["base_value"].iloc[0]
    last = table[table["layer"] == handle.n_layers - 1].iloc[0]
    assert last["log_odds"] == pytest.approx(truth, abs=1e-4)
    assert last["kl_to_final"] == 0
    assert len(table) == handle.n_layers + 1 and residuals[0].shape == (handle.n_layers + 1, handle.d_model)


def test_lens_norms_every_vector_anew():
    handle = tiny_handle("llama")
    pair = make(handle)
    table, residuals = answer_lens(handle, [LensRun(pair.base, pair.answers, {})])
    logp = handle.unembed(residuals[0]).log_softmax(-1)
    for entry in range(handle.n_layers + 1):
        rank = int((logp[entry] > logp[entry, pair.answers.correct_ids[0]]).sum())
        assert rank == table["rank_correct"].iloc[entry]


def test_role_positions_follow_the_alignment():
    handle = tiny_handle("llama")
    pair = make(handle)
    cells = role_positions(pair, "constraint")
    assert cells.base == pair.base.positions("constraint") and cells.source == cells.base
