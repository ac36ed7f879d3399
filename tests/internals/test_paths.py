"""Path patching equals direct attribution, plain patching and hand-made runs where these say what it must be."""

from __future__ import annotations

import numpy as np
import pytest

from latentkt.errors import InputError
from latentkt.internals import LOGITS, Node, attribute, engine_of, patch, path_patch
from latentkt.internals.engines.base import Patch
from latentkt.internals.lens import LensRun
from latentkt.internals.metrics import scorer_of
from tests.internals.making import ITEM, tiny_pair
from tests.internals.planted import HEAD, LAYER, planted_handle, planted_pair
from tests.models.tiny import tiny_handle


def pair_of(handle):
    return tiny_pair(handle, correct=" the", shortcut=" is")


@pytest.mark.parametrize("family", ["gpt2", "llama", "neox_parallel"])
def test_the_direct_path_with_frozen_norm_is_the_difference_of_attributions(family):
    handle = tiny_handle(family)
    pair = pair_of(handle)
    senders = [Node("z", 1, 0), Node("z", 2, 3), Node("mlp_out", 0), Node("resid_pre", 0)]
    table = path_patch(handle, [pair], senders=senders, norm="frozen")
    runs = [LensRun(run, pair.answers, {"which": name}) for name, run in (("base", pair.base), ("source", pair.source))]
    rows = attribute(handle, runs).set_index(["which", "component", "layer", "head"])["contribution"]
    norm = handle.arch.final_norm
    from latentkt.models.norms import read_norm

    key = ("resid_post", handle.n_layers - 1)
    base, source = (engine_of(handle).values(run.ids, [key])[key][-1] for run in (pair.base, pair.source))
    ratio = float(read_norm(norm).scale(source) / read_norm(norm).scale(base))
    for sender, effect in zip(senders, table["effect"], strict=True):
        name = {
            "mlp_out": ("mlp", sender.layer, -1),
            "z": ("head", sender.layer, sender.head),
            "resid_pre": ("embedding", -1, -1),
        }[sender.site]
        assert effect == pytest.approx(rows[("source", *name)] * ratio - rows[("base", *name)], abs=1e-4)
    assert table["effect"].abs().max() > 1e-3


def test_live_others_and_the_read_out_make_a_plain_patch():
    handle = tiny_handle("gemma2")
    pair = pair_of(handle)
    path = path_patch(handle, [pair], senders=[Node("attn_out", 0), Node("mlp_out", 1)], others="live")
    plain = [
        patch(handle, [pair], sites=(site,), layers=[layer], where=("all",), metric="first_token")["effect"].item()
        for site, layer in (("attn_out", 0), ("mlp_out", 1))
    ]
    np.testing.assert_allclose(path["effect"], plain, atol=1e-4)
    frozen = path_patch(handle, [pair], senders=[Node("attn_out", 0), Node("mlp_out", 1)])
    assert (path["effect"] - frozen["effect"]).abs().max() > 1e-3


@pytest.mark.parametrize("engine", ["fast", "reference", "transformer_lens", "nnsight"])
def test_a_path_through_one_head_is_what_it_is_by_hand(engine):
    """Sender: head 1 of layer 0; receiver: v of layer 1; the MLP of layer 0 is held."""
    handle = tiny_handle("llama")
    pair = pair_of(handle)
    table = path_patch(handle, [pair], senders=[Node("z", 0, 1)], receivers=[Node("v", 1)], engine=engine)
    reference = engine_of(handle, "reference")
    base = reference.values(pair.base.ids, [("z", 0), ("resid_pre", 1)])
    source = reference.values(pair.source.ids, [("z", 0)])
    delta = (source["z", 0] - base["z", 0])[:, 1] @ handle.arch.out_weight(0)[1]
    block = handle.arch.layers[1]
    normed = block.input_layernorm(base["resid_pre", 1] + delta)
    v = block.self_attn.v_proj(normed).view(len(pair.base.ids), handle.n_kv_heads, handle.d_head)
    scorer = scorer_of(pair, pair.base.ids, "first_token")
    cell = (Patch("v", 1, tuple(range(len(pair.base.ids))), v),)
    by_hand = reference.sweep(scorer, [cell])[0].value - reference.score(scorer).value
    assert table["effect"].item() == pytest.approx(by_hand, abs=1e-4) and abs(by_hand) > 1e-3


def projected(handle, receiver, normed):
    """A receiver's value on a normed input, module by module."""
    site, layer, _ = receiver
    if handle.arch.family.name == "gpt2":
        block = handle.arch.layers[layer]
        if site == "mlp_out":
            return block.mlp(normed)
        part = block.attn.c_attn(normed).split(handle.d_model, -1)["qkv".index(site)]
        return part.view(len(normed), handle.n_heads, handle.d_head)
    block = handle.arch.layers[layer]
    if site == "mlp_out":
        out = block.mlp(normed)
        return block.post_feedforward_layernorm(out) if handle.arch.post_norms else out
    return getattr(block.self_attn, f"{site}_proj")(normed).view(len(normed), -1, handle.d_head)


@pytest.mark.parametrize("receiver", [Node("q", 1), Node("k", 1), Node("v", 1), Node("mlp_out", 1)])
@pytest.mark.parametrize("family", ["gpt2", "llama", "gemma2"])
def test_a_frozen_norm_in_front_of_a_receiver_is_its_closed_form(family, receiver):
    """What is read moves by gain × (sent − mean) / base scale, whatever is sent."""
    handle = tiny_handle(family)
    pair = pair_of(handle)
    reference, n = engine_of(handle, "reference"), len(pair.base.ids)
    frozen, free = (
        path_patch(handle, [pair], senders=[Node("attn_out", 0)], receivers=[receiver], norm=norm)["effect"].item()
        for norm in ("frozen", "recomputed")
    )
    resid = ("resid_mid" if receiver.site == "mlp_out" else "resid_pre", 1)
    base = reference.values(pair.base.ids, [("attn_out", 0), resid])
    delta = reference.values(pair.source.ids, [("attn_out", 0)])["attn_out", 0] - base["attn_out", 0]
    norm = handle.arch.mlp_norm(1) if receiver.site == "mlp_out" else handle.arch.attn_norm(receiver.layer)
    centred = delta - delta.mean(-1, keepdim=True) if norm.centred else delta
    value = projected(handle, receiver, norm(base[resid]) + norm.gain * centred / norm.scale(base[resid]))
    scorer = scorer_of(pair, pair.base.ids, "first_token")
    cell = (Patch(receiver.site, receiver.layer, tuple(range(n)), value.detach()),)
    by_hand = reference.sweep(scorer, [cell])[0].value - reference.score(scorer).value
    assert frozen == pytest.approx(by_hand, abs=1e-5) and abs(by_hand) > 2e-4
    assert abs(frozen - free) > 2e-5
    assert not any(module._forward_hooks for module in handle.model.modules())


def test_receivers_get_what_the_sender_sends_them_and_not_each_others_output():
    """Two MLPs in a row, and one head of q: each receiver is held while the next one's input is read."""
    handle = tiny_handle("llama")
    pair = pair_of(handle)
    reference, n = engine_of(handle, "reference"), len(pair.base.ids)
    keys = [("attn_out", 0), ("resid_mid", 1), ("resid_mid", 2), ("resid_pre", 1)]
    base = reference.values(pair.base.ids, keys)
    delta = reference.values(pair.source.ids, [("attn_out", 0)])["attn_out", 0] - base["attn_out", 0]
    blocks, everywhere = handle.arch.layers, tuple(range(n))
    scorer = scorer_of(pair, pair.base.ids, "first_token")

    def effect(*cell):
        return reference.sweep(scorer, [cell])[0].value - reference.score(scorer).value

    mlps = [
        Patch(
            "mlp_out",
            at,
            everywhere,
            blocks[at].mlp(blocks[at].post_attention_layernorm(base["resid_mid", at] + delta)),
        )
        for at in (1, 2)
    ]
    receivers = [Node("mlp_out", 1), Node("mlp_out", 2)]
    table = path_patch(handle, [pair], senders=[Node("attn_out", 0)], receivers=receivers)
    assert table["effect"].item() == pytest.approx(effect(*mlps), abs=1e-5)
    q = blocks[1].self_attn.q_proj(blocks[1].input_layernorm(base["resid_pre", 1] + delta)).view(n, 4, -1)
    table = path_patch(handle, [pair], senders=[Node("attn_out", 0)], receivers=[Node("q", 1, 2)])
    assert table["effect"].item() == pytest.approx(effect(Patch("q", 1, everywhere, q[:, 2], 2)), abs=1e-5)
    assert abs(effect(Patch("q", 1, everywhere, q)) - table["effect"].item()) > 1e-4


@pytest.mark.parametrize("family", ["neox_parallel", "bloom", "opt", "olmo2", "phi"])
def test_a_frozen_norm_leaves_a_sender_of_the_base_value_without_effect_on_every_family(family):
    handle = tiny_handle(family)
    pair = tiny_pair(handle, correct=" the", shortcut=" is", source_text=ITEM)
    for receiver in (Node("v", 1), Node("mlp_out", 1)):
        table = path_patch(handle, [pair], senders=[Node("attn_out", 0)], receivers=[receiver], norm="frozen")
        assert table["effect"].item() == pytest.approx(0, abs=1e-5)
    other = path_patch(
        handle, [pair_of(handle)], senders=[Node("attn_out", 0)], receivers=[Node("mlp_out", 1)], norm="frozen"
    )
    assert abs(other["effect"].item()) > 1e-4


@pytest.mark.parametrize("works", [True, False])
@pytest.mark.parametrize("norm", ["frozen", "recomputed"])
def test_the_planted_path_into_the_values_of_the_head_is_found(works, norm):
    """Layer 0 writes feature 2 at the marked token; the planted head's values read it there, and nothing else does."""
    handle = planted_handle(works=works, relay=True)
    pair = planted_pair(handle)
    senders = [Node("mlp_out", 0), *(Node("z", 0, head) for head in range(4))]
    for receiver, expected in ((Node("v", LAYER), True), (Node("q", LAYER), False), (Node("mlp_out", LAYER), False)):
        table = path_patch(handle, [pair], senders=senders, receivers=[receiver], norm=norm).set_index("sender")
        found = table["effect"].pop("mlp_out.0")
        np.testing.assert_allclose(table["effect"].drop("mlp_out.0", errors="ignore"), 0, atol=1e-5)
        assert (found < -1) if works and expected else abs(found) < 1e-4, receiver


@pytest.mark.parametrize("works", [True, False])
def test_the_planted_head_alone_has_a_direct_path(works):
    handle = planted_handle(works=works)
    pair = planted_pair(handle)
    senders = [Node("z", layer, head) for layer in (0, 1) for head in range(4)]
    effect = path_patch(handle, [pair], senders=senders).set_index("sender")["effect"]
    found = effect[f"z.{LAYER}.{HEAD}"]
    np.testing.assert_allclose(effect.drop(f"z.{LAYER}.{HEAD}"), 0, atol=1e-5)
    assert (found < -1) if works else abs(found) < 1e-5


def test_paths_that_cannot_be_are_refused():
    handle = tiny_handle("llama")
    pair = pair_of(handle)
    for options, words in (
        ({"senders": [Node("q", 0)]}, "cannot send"),
        ({"senders": [Node("z", 0)], "receivers": [Node("z", 1)]}, "cannot receive"),
        ({"senders": [Node("z", 2)], "receivers": [Node("v", 1)]}, "no receiver behind"),
        ({"senders": [Node("z", 0)], "receivers": [LOGITS, Node("v", 1)]}, "receivers"),
        ({"senders": [Node("z", 0)], "norm": "none"}, "norm and others"),
    ):
        with pytest.raises(InputError, match=words):
            path_patch(handle, [pair], **options)
    with pytest.raises(InputError, match="begin alike"):
        path_patch(handle, [tiny_pair(handle)], senders=[Node("z", 0)])
