"""Path patching equals direct attribution, plain patching and hand-made runs where these say what it must be."""

from __future__ import annotations

import numpy as np
import pytest

from latentkt.errors import InputError
from latentkt.internals import LOGITS, Node, attribute, engine_of, patch, path_patch
from latentkt.internals.engines.base import Patch
from latentkt.internals.lens import LensRun
from latentkt.internals.metrics import scorer_of
from tests.internals.making import tiny_pair
from tests.internals.planted import HEAD, LAYER, planted_handle, planted_pair
from tests.models.tiny import tiny_handle


def pair_of(handle):
    return tiny_pair(handle, correct=" the", shortcut=" is")


@pytest.mark.parametrize("family", ["gpt2", "llama", "neox_parallel"])
def test_the_direct_path_with_frozen_norm_is_the_difference_of_attributions(family):
    handle = tiny_handle(family)
    pair = pair_of(handle)
    senders = [Node("z", 1, 0), Node("z", 2, 3), Node("mlp_out", 0)]
    table = path_patch(handle, [pair], senders=senders, norm="frozen")
    runs = [LensRun(run, pair.answers, {"which": name}) for name, run in (("base", pair.base), ("source", pair.source))]
    rows = attribute(handle, runs).set_index(["which", "component", "layer", "head"])["contribution"]
    norm = handle.arch.final_norm
    from latentkt.models.norms import read_norm

    key = ("resid_post", handle.n_layers - 1)
    base, source = (engine_of(handle).values(run.ids, [key])[key][-1] for run in (pair.base, pair.source))
    ratio = float(read_norm(norm).scale(source) / read_norm(norm).scale(base))
    for sender, effect in zip(senders, table["effect"], strict=True):
        name = ("mlp", sender.layer, -1) if sender.site == "mlp_out" else ("head", sender.layer, sender.head)
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
        ({"senders": [Node("z", 0)], "receivers": [Node("v", 1)], "norm": "frozen"}, "LOGITS only"),
    ):
        with pytest.raises(InputError, match=words):
            path_patch(handle, [pair], **options)
    with pytest.raises(InputError, match="begin alike"):
        path_patch(handle, [tiny_pair(handle)], senders=[Node("z", 0)])
