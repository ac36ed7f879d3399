"""Plain runs beside a sweep, and packs that share products, give what one forward a cell gives."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from latentkt.errors import InputError
from latentkt.internals import engine_of, growing, patch, staircase
from latentkt.internals import replay as replaying
from latentkt.internals.budget import Budget
from latentkt.internals.engines.base import FromRun, Patch
from latentkt.internals.growing import grow
from latentkt.internals.metrics import scorer_of
from latentkt.internals.recording import record
from tests.internals.making import CONTROL, ITEM, llama, runs_of, tiny_pair
from tests.models.tiny import FAMILIES, tiny_handle

PAIRS = {
    "item": {},
    "control": {"base_text": CONTROL, "source_text": ITEM},
    "nothing alike": {"base_text": "A" + ITEM, "source_text": "B" + CONTROL},
    "another length": {"base_text": ITEM, "source_text": "The chemist did the win the win\nA:"},
    "long answers": {"correct": " Ann and Al", "shortcut": " Bo"},
    "the same run": {"source_text": ITEM},
}


def grown(handle, runs):
    """Runs that have gone through all layers alone."""
    found = grow(handle, runs)
    with torch.inference_mode():
        for _ in range(handle.n_layers):
            found.rise()
    return found


@pytest.mark.parametrize("changes", PAIRS.values(), ids=PAIRS)
def test_grown_runs_are_those_of_the_model(changes):
    handle = llama()
    runs = runs_of(tiny_pair(handle, **changes))
    for found, run in zip(grown(handle, runs).recordings, runs, strict=True):
        true = record(handle, run)
        assert found.branches == run and found.resid.shape == true.resid.shape and true.resid.std() > 0.1
        torch.testing.assert_close(found.resid, true.resid, atol=1e-5, rtol=1e-5)
        for layer in range(handle.n_layers):
            torch.testing.assert_close(found.keys[layer], true.keys[layer], atol=1e-5, rtol=1e-5)
            torch.testing.assert_close(found.values[layer], true.values[layer], atol=1e-5, rtol=1e-5)
            here, there = found.calls[layer], true.calls[layer]
            assert here.by_token.keys() == there.by_token.keys() and here.constant.keys() == there.constant.keys()
            torch.testing.assert_close(here.mask, there.mask)
            for mine, theirs in zip(here.by_token["position_embeddings"], there.by_token["position_embeddings"],
                                    strict=True):  # fmt: skip
                torch.testing.assert_close(mine, theirs)


def test_tokens_with_which_runs_begin_are_run_once():
    handle = llama()
    pair = tiny_pair(handle)
    runs = runs_of(pair)
    first = pair.alignment.first_difference
    assert first > 0
    assert len(grow(handle, runs)) == len(runs[0].packed) + len(runs[1].packed) - first


def hooked_model(handle):
    handle.model.base_model.register_forward_pre_hook(lambda module, args: None)


def hooked_layer(handle):
    handle.arch.layers[2].mlp.register_forward_hook(lambda module, args, out: None)


def replaced_forward(handle):
    handle.model.base_model.forward = handle.model.base_model.forward


def hooked_embedding(handle):
    handle.model.base_model.embed_tokens.register_forward_hook(lambda module, args, out: None)


def own_embedding(handle):
    own = type(handle.model.base_model.embed_tokens)
    handle.model.base_model.embed_tokens.__class__ = type("Theirs", (own,), {})


def hooked_angles(handle):
    handle.model.base_model.rotary_emb.register_forward_hook(lambda module, args, out: None)


def own_angles(handle):
    own = type(handle.model.base_model.rotary_emb)
    handle.model.base_model.rotary_emb.__class__ = type("Theirs", (own,), {})


def fewer_layers(handle):
    handle.model.config.num_hidden_layers = 2


def own_class(handle):
    own = type(handle.model.base_model)
    handle.model.base_model.__class__ = type("Theirs", (own,), {})


def angles_that_hang_on_length(handle):
    handle.model.base_model.rotary_emb.rope_type = "dynamic"


def in_training(handle):
    handle.model.base_model.training = True


CHANGES = [
    hooked_model, hooked_layer, hooked_embedding, own_embedding, hooked_angles, own_angles, replaced_forward,
    fewer_layers, own_class, angles_that_hang_on_length, in_training,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_model_with_something_of_its_own_runs_itself(change):
    handle = llama()
    runs = runs_of(tiny_pair(handle))
    assert grow(handle, runs) is not None
    change(handle)
    assert grow(handle, runs) is None


@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "llama"])
def test_other_families_run_themselves(family):
    handle = tiny_handle(family)
    assert grow(handle, runs_of(tiny_pair(handle))) is None


@pytest.mark.parametrize(
    ("name", "shape"), [("gate", (1, None, 1)), ("position_ids", (1, 1)), ("position_ids", (2, None))]
)
def test_a_layer_that_is_called_otherwise_runs_itself(name, shape, monkeypatch):
    handle = llama()
    own = growing.first_call

    def more(*args):
        entered, found = own(*args)
        return entered, {**found, name: torch.zeros([size or len(entered) for size in shape])}

    monkeypatch.setattr(growing, "first_call", more)
    assert grow(handle, runs_of(tiny_pair(handle))) is None


def test_nothing_is_left_on_the_model(monkeypatch):
    handle = llama()
    runs = runs_of(tiny_pair(handle))
    ids = torch.tensor([runs[0].prompt])
    before = handle.logits(ids)
    grow(handle, runs)
    first = handle.arch.layers[0]
    assert not first._forward_pre_hooks and torch.equal(handle.logits(ids), before)
    monkeypatch.setattr("transformers.DynamicCache", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        grow(handle, runs)
    assert not first._forward_pre_hooks


@pytest.mark.parametrize(
    ("where", "site", "metric"),
    [
        ("positions", "resid_post", "log_odds"),
        ("positions", "resid_pre", "first_token"),
        (("shortcut", "constraint", "last", "all"), "resid_pre", "log_odds"),
        (("shortcut", "constraint", "last", "all"), "resid_post", "first_token"),
    ],
)
def test_sweeps_with_growing_runs_equal_one_forward_a_cell(where, site, metric, monkeypatch):
    handle = llama()
    pairs = [tiny_pair(handle, **changes, name=name) for name, changes in PAIRS.items() if name != "another length"]
    grew = []
    monkeypatch.setattr("latentkt.internals.engines.fast.grow", lambda *a: grew.append(grow(*a)) or grew[-1])
    options = {"where": where, "sites": (site,), "metric": metric, "check": False, "skip_unchanged": False}
    fast, slow = (
        pd.concat([patch(handle, [pair], engine=engine, **options) for pair in pairs])
        for engine in ("fast", "reference")
    )
    for column in ("base_value", "source_value", "patched_value", "effect"):
        np.testing.assert_allclose(fast[column], slow[column], atol=1e-4)
    assert fast["effect"].abs().max() > 1e-2
    assert len(grew) == len(pairs) - 1 and None not in grew  # that of one and the same run needs no other


def test_runs_that_are_kept_do_not_grow_again(monkeypatch):
    grew = []
    monkeypatch.setattr("latentkt.internals.engines.fast.grow", lambda *a: grew.append(grow(*a)) or grew[-1])
    handle = llama()
    pair, engine = tiny_pair(handle), engine_of(handle)
    first, again = (patch(engine, [pair], where="positions", check=False)["effect"] for _ in range(2))
    assert len(grew) == 1
    np.testing.assert_allclose(first, again, atol=1e-5)


def test_a_checked_sweep_is_held_to_the_models_own_runs(monkeypatch):
    monkeypatch.setattr("latentkt.internals.engines.fast.grow", lambda *a: 1 / 0)
    handle = llama()
    table = patch(handle, [tiny_pair(handle)])
    assert table["full_patch_error"].max() < 1e-4


def test_shifted_pairs_grow_too():
    handle = llama()
    pair = tiny_pair(handle, **PAIRS["another length"])
    options = {"where": "positions", "check": False, "allow_shifted": True}
    fast, slow = (patch(handle, [pair], engine=engine, **options)["effect"] for engine in ("fast", "reference"))
    np.testing.assert_allclose(fast, slow, atol=1e-4)


def test_cells_that_ask_something_of_a_run_at_once_do_not_let_it_grow(monkeypatch):
    grew = []
    monkeypatch.setattr("latentkt.internals.engines.fast.grow", lambda *a: grew.append(grow(*a)) or grew[-1])
    handle = llama()
    pair = tiny_pair(handle)
    scorer, first, last = scorer_of(pair, pair.base.ids), pair.alignment.first_difference, len(pair.base.ids) - 1
    named = (Patch("resid_post", 0, (first,), FromRun(pair.source.ids, (first,))),)
    given = [Patch("k", 1, (last,), torch.ones(1, 2, 8)), Patch("resid_post", 0, (last,), torch.ones(1, 32))]
    for cells in ([named, (given[0],)], [named, (given[1],)], [named, ()], [(*named, *named)], [()], []):
        found = [[score.value for score in engine_of(handle, engine).sweep(scorer, cells)]
                 for engine in ("fast", "reference")]  # fmt: skip
        np.testing.assert_allclose(*found, atol=1e-4)
    assert len(grew) == 1  # a cell without a patch asks nothing


@pytest.mark.parametrize("chunk", [16, 90, 768])
@pytest.mark.parametrize("pack", [1, 5, 40])
def test_packs_that_climb_together_give_what_each_gives_alone(pack, chunk):
    handle = llama()
    pair = tiny_pair(handle)
    stream = {"where": "positions", "check": False, "skip_unchanged": False, "sites": ("resid_pre", "resid_post")}
    slow = patch(handle, [pair], engine="reference", **stream)["effect"]
    engine = engine_of(handle)
    engine._budget = Budget(pack_tokens=pack, chunk_tokens=chunk)
    np.testing.assert_allclose(patch(engine, [pair], **stream)["effect"], slow, atol=1e-4)
    options = {"where": "positions", "check": False, "skip_unchanged": False, "sites": ("resid_post", "z")}
    slow = patch(handle, [pair], engine="reference", **options)["effect"]
    engine = engine_of(handle)
    engine._budget = Budget(pack_tokens=pack, chunk_tokens=chunk)
    np.testing.assert_allclose(patch(engine, [pair], **options)["effect"], slow, atol=1e-4)
    engine.forget()
    roles = {**options, "where": ("shortcut", "constraint", "last"), "heads": True, "sites": ("z", "q")}
    slow = patch(handle, [pair], engine="reference", **roles)["effect"]
    np.testing.assert_allclose(patch(engine, [pair], **roles)["effect"], slow, atol=1e-4)


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_only_packs_of_lean_blocks_climb_together(family, monkeypatch):
    groups, own = [], staircase._climb
    monkeypatch.setattr(staircase, "_climb", lambda h, packs, *rest: groups.append(len(packs)) or own(h, packs, *rest))
    handle = tiny_handle(family)
    engine = engine_of(handle)
    engine._budget = Budget(pack_tokens=5)
    patch(engine, [tiny_pair(handle)], where="positions", check=False, skip_unchanged=False)
    assert (max(groups) > 1) == (family == "llama")


def test_a_sweep_that_breaks_off_leaves_no_half_run_behind(monkeypatch):
    handle = llama()
    pair, engine = tiny_pair(handle), engine_of(handle)
    options = {"where": "positions", "check": False}
    block = growing.lean_block

    def fails(layer, *rest):
        if layer is handle.arch.layers[1]:
            raise InputError("on the way")
        return block(layer, *rest)

    for module in (growing, replaying):
        monkeypatch.setattr(module, "lean_block", fails)
    with pytest.raises(InputError):
        patch(engine, [pair], **options)
    for module in (growing, replaying):
        monkeypatch.setattr(module, "lean_block", block)
    fast, slow = (patch(one, [pair], **options)["effect"] for one in (engine, engine_of(handle, "reference")))
    np.testing.assert_allclose(fast, slow, atol=1e-4)


def test_an_embedding_that_hangs_on_the_place_is_run():
    handle = llama()
    pair = tiny_pair(handle, correct=" the", shortcut=" is")
    later = pair.alignment.first_difference + 1

    def more(module, args, out):
        out = out.clone()
        out[:, later:] += 1.0
        return out

    hook = handle.model.base_model.embed_tokens.register_forward_hook(more)
    options = {"where": "positions", "check": False, "metric": "first_token"}
    try:
        fast, slow = (patch(handle, [pair], engine=engine, **options) for engine in ("fast", "reference"))
    finally:
        hook.remove()
    for column in ("base_value", "source_value", "patched_value"):
        np.testing.assert_allclose(fast[column], slow[column], atol=1e-4)


def test_what_is_kept_of_a_run_cannot_be_written_to():
    handle = llama()
    pair, engine = tiny_pair(handle), engine_of(handle)
    patch(engine, [pair], where="positions", check=False)
    values = engine.values(pair.source.ids, [("resid_post", 0)])["resid_post", 0]
    with pytest.raises(RuntimeError, match="nference"):
        values[2:4] *= 2
