"""Every measurement gives the reference's numbers on every engine, also with edits in place."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from latentkt.errors import InputError
from latentkt.internals import (
    Node,
    answer_lens,
    attribute,
    edited,
    engine_of,
    head_table,
    patch,
    path_patch,
    token_lens,
)
from latentkt.internals.lens import LensRun
from tests.internals.making import tiny_pair
from tests.models.tiny import tiny_handle

FAMILIES = ("gpt2", "llama", "neox_parallel", "gemma2")


def everything(engine):
    """(name, table, column of nats) of each measurement."""
    pair = tiny_pair(engine.handle, correct=" the", shortcut=" is")
    runs = [LensRun(pair.base, pair.answers, {})]
    roles = {"where": ("constraint", "last"), "layers": [0, 1], "metric": "first_token"}
    inner = {"senders": [Node("z", 0, 1), Node("mlp_out", 0)], "receivers": [Node("v", 1), Node("mlp_out", 2)]}
    yield "patch", patch(engine, [pair], sites=("resid_post", "mlp_out", "k"), **roles), "effect"
    yield "heads", patch(engine, [pair], sites=("z",), heads=True, check=False, **roles), "effect"
    yield "lens", answer_lens(engine, runs)[0], "log_odds"
    yield "token lens", token_lens(engine, runs, positions=[-1, -2]), "first_token_log_odds"
    yield "attribution", attribute(engine, runs), "contribution"
    yield "recomputed", attribute(engine, runs, norm="recomputed"), "contribution"
    yield "head table", head_table(engine, runs), "contribution"
    yield "direct path", path_patch(engine, [pair], senders=[Node("z", 1)]), "effect"
    yield "inner path", path_patch(engine, [pair], **inner), "effect"
    yield "frozen path", path_patch(engine, [pair], norm="frozen", **inner), "effect"


@pytest.fixture(scope="module")
def truth():
    return {family: list(everything(engine_of(tiny_handle(family), "reference"))) for family in FAMILIES}


@pytest.mark.parametrize("name", ["fast", "transformer_lens", "nnsight"])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_measurement_is_the_references(truth, family, name):
    found = everything(engine_of(tiny_handle(family), name))
    for (what, table, column), (_, expected, _) in zip(found, truth[family], strict=True):
        np.testing.assert_allclose(table[column], expected[column], atol=1e-4, err_msg=what)
        assert np.nanmax(expected[column].abs()) > 1e-4, what


def halved(value):
    return 0.5 * value


@pytest.mark.parametrize("family", ["gpt2", "gemma2"])
def test_measurements_with_edits_are_those_of_a_model_with_halved_weights(family):
    """Halving what the MLP of layer 1 adds is halving its last map, bias and all (or the norm behind it)."""
    from latentkt.models import handle_from_hf
    from tests.models.tiny import tiny_model, tiny_tokenizer

    model = tiny_model(family)
    if family == "gpt2":
        model.transformer.h[1].mlp.c_proj.weight.data *= 0.5
        model.transformer.h[1].mlp.c_proj.bias.data *= 0.5
    else:
        gain = model.model.layers[1].post_feedforward_layernorm.weight.data
        gain.copy_(0.5 * (1 + gain) - 1)  # applied as 1 + weight
    changed = handle_from_hf(model, tiny_tokenizer(), name="halved")
    plain = tiny_handle(family)
    engine = edited(plain, {("mlp_out", 1): halved})
    for (what, table, column), (_, expected, _) in zip(everything(engine), everything(engine_of(changed)), strict=True):
        np.testing.assert_allclose(table[column], expected[column], atol=1e-4, err_msg=what)
    moved = answer_lens(plain, [run for run in [_run(plain)]])[0]["log_odds"]
    assert (moved - answer_lens(engine, [_run(plain)])[0]["log_odds"]).abs().max() > 1e-3
    assert engine.name == "fast, edited"


def _run(handle):
    pair = tiny_pair(handle, correct=" the", shortcut=" is")
    return LensRun(pair.base, pair.answers, {})


def test_an_edit_of_a_measurement_comes_behind_the_standing_one():
    handle = tiny_handle("llama")
    ids = torch.tensor([[5, 9, 11]])
    engine = edited(handle, {("z", 0): lambda z: z + 1})
    both = engine.run(ids, edits={("z", 0): lambda z: 2 * z}).logits
    by_hand = engine_of(handle, "reference").run(ids, edits={("z", 0): lambda z: 2 * (z + 1)}).logits
    torch.testing.assert_close(both, by_hand, atol=1e-4, rtol=0)
    with pytest.raises(InputError, match="unknown site"):
        edited(handle, {("resid", 0): halved})
    with pytest.raises(InputError, match="options of engine"):
        engine_of(handle, "reference", memory_mb=100)
