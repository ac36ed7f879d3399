"""The lean block gives what the model's own block gives, and stands aside wherever it might not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils import parametrize

from latentkt.internals import engine_of, patch, patch_roles
from latentkt.internals import replay as replaying
from latentkt.internals.lean import is_lean
from latentkt.internals.metrics import scorer_of
from latentkt.internals.replay import Replay, Suffix
from tests.internals.making import CONTROL, ITEM, llama, tiny_pair
from tests.models.tiny import FAMILIES, tiny_handle

LLAMAS = {
    "grouped, biases": {},
    "no biases": {"attention_bias": False, "mlp_bias": False},
    "every head its own keys": {"num_key_value_heads": 4},
    "wide heads": {"head_dim": 12},
    "sdpa": {"attn_implementation": "sdpa"},
    "scaled angles": {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 500.0}},
}


def recorded(handle):
    pair = tiny_pair(handle)
    return engine_of(handle).record(scorer_of(pair, pair.base.ids).branches)


def steps(handle, run, lengths, rows=3):
    """A replay of packed suffixes, and what enters a layer there."""
    n_tokens = run.resid.shape[1]
    replay = Replay(
        handle, run, [Suffix(torch.arange(n_tokens - length, n_tokens)) for length in lengths], chunk_tokens=16
    )
    noise = torch.Generator().manual_seed(0)
    h = run.resid[1, replay.tokens][None] + torch.randn(rows, sum(lengths), handle.d_model, generator=noise)
    return replay, h


@pytest.mark.parametrize("lengths", [(5,), (2, 4, 7), (0,)], ids=["one", "packed", "whole run"])
@pytest.mark.parametrize("changes", LLAMAS.values(), ids=LLAMAS)
def test_it_gives_what_the_models_block_gives(changes, lengths, monkeypatch):
    handle = llama(**changes)
    run = recorded(handle)
    lengths = tuple(length or run.resid.shape[1] for length in lengths)
    replay, h = steps(handle, run, lengths)
    entered = h.clone()
    assert is_lean(handle.arch.layers[1], run.calls[1])
    lean = replay.layer(1, h)
    assert torch.equal(h, entered)
    monkeypatch.setattr(replaying, "is_lean", lambda *_: False)
    own = replay.layer(1, h)
    assert own.std() > 0.1
    torch.testing.assert_close(lean, own, atol=1e-5, rtol=1e-5)


def test_a_recorded_run_is_reproduced_layer_by_layer():
    handle = llama()
    run = recorded(handle)
    tokens = torch.arange(3, run.resid.shape[1])
    replay = Replay(handle, run, [Suffix(tokens)])
    for layer in range(handle.n_layers):
        found = replay.layer(layer, run.resid[layer, tokens][None])[0]
        torch.testing.assert_close(found, run.resid[layer + 1, tokens], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "llama"])
def test_other_families_run_their_own_blocks(family):
    handle = tiny_handle(family)
    assert not any(map(is_lean, handle.arch.layers, recorded(handle).calls))


class Doubled(nn.Module):
    """A weight that is not what lies in memory."""

    def forward(self, weight):
        return 2 * weight


class Adapted(nn.Linear):
    """A projection with something of its own."""

    def forward(self, x):
        return super().forward(x) + 1


def hooked(layer):
    return layer.mlp.up_proj.register_forward_hook(lambda module, args, out: out + 1).remove


def hooked_whole(layer):
    return layer.register_forward_hook(lambda module, args, out: out + 1).remove


def hooked_before(layer):
    return layer.post_attention_layernorm.register_forward_pre_hook(lambda module, args: (args[0] + 1,)).remove


def hooked_everywhere(layer):
    norm = layer.input_layernorm
    change = lambda module, args, out: out + 1 if module is norm else None  # noqa: E731
    return nn.modules.module.register_module_forward_hook(change).remove


def offloaded(layer):
    own = layer.self_attn.o_proj.forward
    layer.self_attn.o_proj.forward = lambda x: own(x) + 1
    return lambda: delattr(layer.self_attn.o_proj, "forward")


def adapted(layer):
    layer.self_attn.v_proj.__class__ = Adapted
    return lambda: setattr(layer.self_attn.v_proj, "__class__", nn.Linear)


class Wrapped(nn.Module):
    """A projection inside another module, as adapters have it: what it lets be seen is the inner one's."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    weight = property(lambda self: self.inner.weight)
    bias = property(lambda self: self.inner.bias)

    def forward(self, x):
        return self.inner(x) + 1


def wrapped(layer):
    own = layer.mlp.down_proj
    layer.mlp.down_proj = Wrapped(own).eval()
    return lambda: setattr(layer.mlp, "down_proj", own)


def parametrised(layer):
    parametrize.register_parametrization(layer.mlp.down_proj, "weight", Doubled())
    return lambda: parametrize.remove_parametrizations(layer.mlp.down_proj, "weight", leave_parametrized=False)


def other_attention(layer):
    own = type(layer.self_attn)

    def forward(self, *args, **kwargs):
        out, *rest = own.forward(self, *args, **kwargs)
        return (out + 1, *rest)

    layer.self_attn.__class__ = type("Theirs", (own,), {"forward": forward})
    return lambda: setattr(layer.self_attn, "__class__", own)


def other_activation(layer):
    own, layer.mlp.act_fn = layer.mlp.act_fn, nn.GELU().eval()
    return lambda: setattr(layer.mlp, "act_fn", own)


@pytest.mark.parametrize(
    "change",
    [
        hooked,
        hooked_whole,
        hooked_before,
        hooked_everywhere,
        offloaded,
        adapted,
        wrapped,
        parametrised,
        other_attention,
        other_activation,
    ],
)
def test_what_a_user_hangs_on_a_block_is_run(change):
    handle = llama()
    pair = tiny_pair(handle)
    layer = handle.arch.layers[1]
    plain = patch_roles(handle, [pair])["patched_value"]
    undo = change(layer)
    try:
        assert not is_lean(layer, recorded(handle).calls[1])
        fast, slow = (patch_roles(handle, [pair], engine=engine)["patched_value"] for engine in ("fast", "reference"))
    finally:
        undo()
    np.testing.assert_allclose(fast, slow, atol=1e-4)
    assert (fast - plain).abs().max() > 1e-3
    assert is_lean(layer, recorded(handle).calls[1])


@pytest.mark.parametrize("name", ["LlamaMLP.forward", "apply_rotary_pos_emb", "eager_attention_forward"])
def test_functions_that_somebody_has_exchanged_are_run(name, monkeypatch):
    from transformers.models.llama import modeling_llama

    handle = llama()
    call, layer = recorded(handle).calls[1], handle.arch.layers[1]
    where, _, function = name.rpartition(".")
    monkeypatch.setattr(getattr(modeling_llama, where, modeling_llama), function, lambda *args, **kwargs: None)
    assert not is_lean(layer, call)
    monkeypatch.undo()
    assert is_lean(layer, call)


def test_training_mode_and_half_precision_run_the_models_own_block():
    handle = llama()
    call, layer = recorded(handle).calls[1], handle.arch.layers[1]
    layer.self_attn.train()
    assert not is_lean(layer, call)
    layer.eval()
    assert is_lean(layer, call)
    layer.mlp.up_proj.to(torch.bfloat16)
    assert not is_lean(layer, call)


def test_an_attention_that_somebody_registered_is_run():
    handle = llama()
    call, layer = recorded(handle).calls[1], handle.arch.layers[1]
    layer.self_attn.config._attn_implementation = "theirs"
    assert not is_lean(layer, call)


def test_a_call_with_other_arguments_runs_the_models_own_block():
    handle = llama()
    call, layer = recorded(handle).calls[1], handle.arch.layers[1]
    angles = call.by_token
    others = ({"by_token": {}}, {"by_token": {**angles, "gate": torch.ones(1)}}, {"alibi": torch.zeros(4, 1, 3)})
    assert is_lean(layer, call) and not any(is_lean(layer, replace(call, **other)) for other in others)


def test_a_weight_of_another_kind_runs_the_models_own_block():
    class Packed(nn.Parameter):
        pass

    handle = llama()
    call, layer = recorded(handle).calls[1], handle.arch.layers[1]
    layer.mlp.up_proj.weight = Packed(layer.mlp.up_proj.weight.data)
    assert not is_lean(layer, call)


def test_a_scale_of_attention_that_was_set_is_kept():
    handle = llama()
    pair = tiny_pair(handle)
    before = patch_roles(handle, [pair])["patched_value"]
    for layer in handle.arch.layers:
        layer.self_attn.scaling *= 3
    assert is_lean(handle.arch.layers[1], recorded(handle).calls[1])
    fast, slow = (patch_roles(handle, [pair], engine=engine)["patched_value"] for engine in ("fast", "reference"))
    np.testing.assert_allclose(fast, slow, atol=1e-4)
    assert (fast - before).abs().max() > 1e-3


def test_weights_are_read_when_they_are_needed():
    handle = llama()
    pair = tiny_pair(handle)
    before = patch_roles(handle, [pair])["patched_value"]
    with torch.no_grad():
        for name in ("q_proj", "v_proj", "o_proj"):
            getattr(handle.arch.layers[2].self_attn, name).weight.mul_(-1.5)
    fast, slow = (patch_roles(handle, [pair], engine=engine)["patched_value"] for engine in ("fast", "reference"))
    np.testing.assert_allclose(fast, slow, atol=1e-4)
    assert (fast - before).abs().max() > 1e-3


def test_sweeps_of_both_directions_equal_one_forward_a_cell():
    handle = llama(attention_bias=False, mlp_bias=False)
    pairs = [
        tiny_pair(handle),
        tiny_pair(handle, base_text=CONTROL, source_text=ITEM, name="back"),
        tiny_pair(handle, base_text="A" + ITEM, source_text="A" + CONTROL, name="longer"),
    ]
    options = {"where": "positions", "sites": ("resid_post", "z", "k"), "layers": [0, 1]}
    fast, slow = (patch(handle, pairs, engine=engine, **options)["effect"] for engine in ("fast", "reference"))
    np.testing.assert_allclose(fast, slow, atol=1e-4)
    assert fast.abs().max() > 1e-2
