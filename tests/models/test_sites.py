"""Sites hold what their names say, on every family, and hooks leave nothing behind."""

from __future__ import annotations

import pytest
import torch

from latentkt.errors import InputError, RunError
from latentkt.models import attached
from tests.models.tiny import FAMILIES, MORE_FAMILIES, tiny_handle

IDS = torch.tensor([[30, 9, 44, 12, 60, 75, 8, 33, 21], [31, 40, 44, 12, 17, 75, 8, 33, 50]])
BLOCK_SITES = ("resid_pre", "resid_post", "attn_out", "mlp_out", "z", "q", "k", "v", "pattern")


def values(handle, layer=1, ids=IDS):
    return {name: v for (name, _), v in handle.record(ids, None, [(s, layer) for s in handle.arch.sites]).items()}


@pytest.mark.parametrize("family", FAMILIES + MORE_FAMILIES)
def test_shapes_and_that_values_are_heads_times_pattern(family):
    handle = tiny_handle(family)
    seen = values(handle)
    n = IDS.shape[1]
    for name, heads in (
        ("z", handle.n_heads),
        ("q", handle.n_heads),
        ("k", handle.n_kv_heads),
        ("v", handle.n_kv_heads),
    ):
        assert seen[name].shape == (2, n, heads, handle.d_head)
    assert seen["pattern"].shape == (2, handle.n_heads, n, n)
    assert torch.allclose(seen["pattern"].sum(-1), torch.ones(2, handle.n_heads, n), atol=1e-5)
    assert seen["pattern"].triu(1).abs().max() == 0
    # z = pattern times the values of the key/value head that the query head reads
    v = seen["v"].repeat_interleave(handle.n_heads // handle.n_kv_heads, dim=2)
    z = torch.einsum("bhqk,bkhd->bqhd", seen["pattern"], v)
    assert torch.allclose(z, seen["z"], atol=1e-5)


@pytest.mark.parametrize("family", [f for f in FAMILIES if not tiny_handle(f).arch.post_norms])
def test_heads_through_the_output_projection_give_attn_out(family):
    handle = tiny_handle(family)
    seen = values(handle)
    out = torch.einsum("bqhd,hdm->bqm", seen["z"], handle.arch.out_weight(1))
    bias = handle.arch.out_proj(1).bias
    assert torch.allclose(out if bias is None else out + bias, seen["attn_out"], atol=1e-5)


@pytest.mark.parametrize("family", ["gpt2", "opt", "bloom"])
def test_queries_and_keys_give_the_pattern(family):
    """Families without rotary: softmax of the scaled products, with BLOOM's linear biases."""
    handle = tiny_handle(family)
    seen = values(handle)
    scores = torch.einsum("bqhd,bkhd->bhqk", seen["q"], seen["k"]) / handle.d_head**0.5
    n = IDS.shape[1]
    if family == "bloom":
        slopes = torch.tensor([2.0 ** (-8 * (h + 1) / 4) for h in range(4)])
        scores = scores + slopes[:, None, None] * torch.arange(n)
    scores = scores.masked_fill(torch.ones(n, n).triu(1).bool(), -torch.inf)
    assert torch.allclose(scores.softmax(-1), seen["pattern"], atol=1e-5)


@pytest.mark.parametrize("family", ["llama", "neox_parallel"])
def test_queries_and_keys_before_rotary_give_the_pattern_after_it(family):
    import importlib

    handle = tiny_handle(family)
    seen = values(handle)
    home = importlib.import_module(type(handle.model).__module__)
    cos, sin = handle.arch.rotary(seen["resid_pre"], torch.arange(IDS.shape[1])[None])
    k = seen["k"].repeat_interleave(handle.n_heads // handle.n_kv_heads, dim=2)
    q, k = home.apply_rotary_pos_emb(seen["q"].transpose(1, 2), k.transpose(1, 2), cos, sin)
    scores = q @ k.transpose(-1, -2) / handle.d_head**0.5
    scores = scores.masked_fill(torch.ones(IDS.shape[1], IDS.shape[1]).triu(1).bool(), -torch.inf)
    assert torch.allclose(scores.softmax(-1), seen["pattern"], atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_replacing_a_site_by_itself_changes_nothing(family):
    handle = tiny_handle(family)
    plain = handle.logits(IDS)
    for name in handle.arch.sites:
        if name != "pattern":
            edited = handle.edited_logits(IDS, None, {(name, 1): lambda value: value.clone()})
            assert (edited - plain).abs().max() < 1e-5, name


@pytest.mark.parametrize("family", FAMILIES)
def test_replacing_a_site_by_the_other_run_is_seen_downstream(family):
    """resid_mid and attn_out carry the other run's values on; q, k, v together bring its attention."""
    handle = tiny_handle(family)
    other = values(handle, ids=IDS.flip(0))
    plain = handle.logits(IDS)

    def run(*names):
        return handle.edited_logits(IDS, None, {(name, 1): lambda _, n=name: other[n] for name in names})

    assert torch.allclose(run("resid_pre"), plain.flip(0), atol=1e-4)
    assert torch.allclose(run("resid_post"), plain.flip(0), atol=1e-4)
    assert torch.allclose(run("z"), run("attn_out"), atol=1e-4)
    assert torch.allclose(run("q", "k", "v"), run("attn_out"), atol=1e-4)
    assert (run("attn_out") - plain).abs().max() > 1e-2
    assert (run("mlp_out") - plain).abs().max() > 1e-2
    assert torch.allclose(run("mlp_out", "attn_out", "resid_pre"), plain.flip(0), atol=1e-4)
    if "resid_mid" in handle.arch.sites:
        assert torch.allclose(run("resid_mid"), plain.flip(0), atol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_one_head_is_replaced_alone(family):
    """Changing one head of q, k or v leaves every other head of the three alone."""
    handle = tiny_handle(family)
    before = values(handle)
    for name in "qkv":

        def edit(value):
            value = value.clone()
            value[:, :, 1] += 1.0
            return value

        with attached([(handle.arch.site(name, 1), edit)]):
            after = values(handle)
        for other in "qkv":
            changed = (after[other] - before[other]).abs().amax((0, 1, 3)) > 1e-6
            assert changed.tolist() == [other == name and head == 1 for head in range(len(changed))]


def test_gradients_pass_through_a_replaced_site():
    handle = tiny_handle("gpt2")
    delta = torch.zeros(2, IDS.shape[1], 4, 8, requires_grad=True)
    logits = handle.edited_logits(IDS, None, {("k", 0): lambda value: value + delta})
    logits[0, -1, 10].backward()
    assert delta.grad[0].abs().sum() > 0
    assert delta.grad[1].abs().sum() == 0


def test_a_replaced_site_lets_the_gradient_of_what_it_leaves_alone_pass():
    handle = tiny_handle("gpt2")
    grads = []
    for edits in ({}, {("k", 1): lambda value: value.clone()}):
        delta = torch.zeros(2, IDS.shape[1], 32, requires_grad=True)
        change = {("resid_pre", 1): lambda value, delta=delta: value + delta}
        handle.edited_logits(IDS, None, {**edits, **change})[0, -1, 10].backward()
        grads.append(delta.grad)
    assert torch.allclose(*grads, atol=1e-6)
    assert grads[0].abs().max() > 0


def test_resid_mid_sees_a_changed_resid_pre_whichever_is_named_first():
    handle = tiny_handle("llama")
    seen = {}
    handle.edited_logits(
        IDS,
        None,
        {
            ("resid_mid", 1): lambda value: seen.update(mid=value),
            ("attn_out", 1): lambda value: seen.update(attn=value),
            ("resid_pre", 1): lambda value: torch.ones_like(value),
        },
    )
    assert torch.allclose(seen["mid"], 1 + seen["attn"], atol=1e-6)


def test_sites_that_a_model_lacks_are_refused_by_name():
    with pytest.raises(InputError, match=r"resid_mid.*parallel"):
        tiny_handle("neox_parallel").arch.site("resid_mid", 0)
    with pytest.raises(InputError, match=r"pattern.*eager"):
        tiny_handle("llama", attn="sdpa").arch.site("pattern", 0)
    with pytest.raises(InputError, match="unknown site"):
        tiny_handle().arch.site("hook_z", 0)
    with pytest.raises(InputError, match="layer 3"):
        tiny_handle().arch.site("z", 3)


def test_the_pattern_cannot_be_replaced():
    with pytest.raises(RunError, match="pattern"):
        tiny_handle().edited_logits(IDS, None, {("pattern", 0): lambda value: value})


def test_only_own_hooks_are_removed_also_after_an_error():
    handle = tiny_handle("opt")
    block = handle.arch.layers[1]
    mine = block.register_forward_hook(lambda *_: None)
    before = hooks(handle)
    try:
        with pytest.raises(ZeroDivisionError):
            handle.edited_logits(IDS, None, {("mlp_out", 1): lambda _: 1 / 0})
        assert hooks(handle) == before
    finally:
        mine.remove()


def hooks(handle):
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in handle.model.modules())


def test_an_edit_that_never_ran_is_an_error():
    handle = tiny_handle()
    with pytest.raises(RunError, match="never computed"), attached([(handle.arch.site("z", 0), lambda _: None)]):
        pass


def test_the_norms_are_read_in_closed_form():
    handle = tiny_handle("gemma2")
    x = torch.randn(5, 32)
    norm = handle.arch.part(0, "input_layernorm")
    assert torch.allclose(handle.arch.attn_norm(0)(x), norm(x), atol=1e-6)
    assert (handle.arch.attn_norm(0).gain - 1).abs().max() > 0.1
