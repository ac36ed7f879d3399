"""Gradient attribution against finite differences, closed forms and exact patching."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from latentkt.errors import InputError
from latentkt.internals import Choice, atp, engine_of, patch, verification
from latentkt.internals.engines.base import Patch
from latentkt.internals.metrics import scorer_of
from latentkt.internals.plans import Sweep, plans_of
from latentkt.internals.sources import SourceRun, Zero
from latentkt.models import handle_from_hf
from tests.internals.making import tiny_pair
from tests.internals.planted import HEAD, LAYER, planted_handle, planted_pair
from tests.models.tiny import FAMILIES, MORE_FAMILIES, tiny_handle, tiny_model, tiny_tokenizer

NONE = Choice(top=0, sample=0)
SMOOTH = ("resid_pre", "resid_mid", "resid_post", "attn_out", "mlp_out", "z", "q", "k", "v")


def sites_of(handle):
    return tuple(site for site in SMOOTH if site in handle.arch.sites)


def linear_handle():
    """No norms, even attention, no MLP: logits are a linear map of any activation."""
    model = tiny_model("llama")
    for layer in model.model.layers:
        layer.input_layernorm = layer.post_attention_layernorm = torch.nn.Identity()
        for parameter in (*layer.self_attn.q_proj.parameters(), *layer.mlp.down_proj.parameters()):
            parameter.data.zero_()
    model.model.norm = torch.nn.Identity()
    return handle_from_hf(model, tiny_tokenizer(), name="linear", check=False)


@pytest.mark.parametrize("family", (*FAMILIES, *MORE_FAMILIES))
def test_a_prediction_is_the_slope_of_the_exact_effect(family):
    """A hundredth of the way from base to source, to both sides, by plain hooks."""
    handle = tiny_handle(family)
    pair = tiny_pair(handle)
    engine = engine_of(handle, "reference")
    scorer = scorer_of(pair, pair.base.ids)
    layers = (0, handle.n_layers - 1)
    table = atp(handle, [pair], sites=sites_of(handle), where=("constraint", "last"), layers=layers, choice=NONE)
    for site in sites_of(handle):
        sweep = Sweep((site,), layers, ("constraint", "last"), False, 1, SourceRun(), None, True, False)
        for plan in plans_of(engine, pair, sweep):
            (found,) = table[
                (table["site"] == site) & (table["layer"] == plan.layer) & (table["role"] == plan.place.role)
            ]["predicted"]
            (step,) = plan.cell
            own = engine.values(pair.base.ids, [(site, plan.layer)])[site, plan.layer][list(step.positions)]
            cells = [(replace(step, values=own + share * (step.values - own)),) for share in (0.01, -0.01)]
            up, down = (score.value for score in engine.sweep(scorer, cells))
            assert found == pytest.approx((up - down) / 0.02, rel=0.03, abs=4e-3), (site, plan.layer, plan.place.role)
    assert table["predicted"].abs().max() > 0.05


@pytest.mark.parametrize("method", ["atp", "ig"])
def test_in_a_linear_model_predictions_are_exact(method):
    handle = linear_handle()
    pair = tiny_pair(handle, correct=" the", shortcut=" is")
    options = {"sites": ("resid_pre", "resid_post", "attn_out", "z", "v"), "metric": "first_token", "heads": True}
    table = atp(handle, [pair], method=method, choice=Choice(top=30, sample=60), **options)
    run = table[table["exact"].notna()]
    np.testing.assert_allclose(run["predicted"], run["exact"], atol=2e-4)
    assert run["exact"].abs().max() > 0.1 and set(run["site"]) == set(options["sites"])
    assert table["completeness_error"].abs().max() < 1e-4
    check = verification(table).iloc[0]
    assert check["slope"] == pytest.approx(1, abs=1e-2) and check["rank_correlation"] > 0.98


@pytest.mark.parametrize("family", ["gpt2", "llama", "gemma2", "neox_parallel"])
def test_integrated_gradients_are_complete_in_the_limit(family):
    handle = tiny_handle(family)
    pair = tiny_pair(handle)

    def error(method, steps):
        table = atp(handle, [pair], sites=("resid_pre",), layers=[0], method=method, steps=steps, choice=NONE)
        gap = table["source_value"].iloc[0] - table["base_value"].iloc[0]
        assert table["predicted"].sum() - gap == pytest.approx(table["completeness_error"].iloc[0], abs=1e-4)
        return abs(table["completeness_error"].iloc[0])

    coarse, fine = error("ig", 5), error("ig", 40)
    assert fine < 2e-3 and fine < max(coarse, 1e-3)  # in between it need not fall


def test_integrated_gradients_are_the_mean_over_midpoints():
    """Written out: hooks that set the embeddings, finite differences at an inner site."""
    handle = tiny_handle("llama")
    pair = tiny_pair(handle)
    engine, scorer = engine_of(handle, "reference"), scorer_of(pair, pair.base.ids)
    base, source = (engine.values(run.ids, [("resid_pre", 0), ("mlp_out", 1)]) for run in (pair.base, pair.source))
    everywhere = tuple(range(len(pair.base.ids)))
    total = 0.0
    for step in range(5):
        share = (step + 0.5) / 5
        moved = base["resid_pre", 0] + share * (source["resid_pre", 0] - base["resid_pre", 0])
        embedding = Patch("resid_pre", 0, everywhere, moved)
        (at_point,) = [
            engine.run(
                torch.tensor([pair.base.ids]), capture=[("mlp_out", 1)], edits={("resid_pre", 0): embedding.edit}
            )
        ]
        here = at_point.activations["mlp_out", 1][0, -1]
        change = 0.02 * (source["mlp_out", 1] - base["mlp_out", 1])[-1]
        cells = [(embedding, Patch("mlp_out", 1, everywhere[-1:], (here + sign * change)[None])) for sign in (1, -1)]
        up, down = (score.value for score in engine.sweep(scorer, cells))
        total += (up - down) / 0.04 / 5
    table = atp(handle, [pair], sites=("mlp_out",), layers=[1], where=("last",), method="ig", choice=NONE)
    assert table["predicted"].item() == pytest.approx(total, rel=0.02, abs=1e-3) and abs(total) > 1e-3


@pytest.mark.parametrize("family", ["llama", "gemma2", "qwen3", "gpt2", "bloom"])
def test_the_qk_fix_lets_the_patch_through_the_softmax(family):
    """One plain run a layer with the patched q or k gives the heads' outputs; from there on the gradient is taken."""
    handle, place = tiny_handle(family), ("constraint",)
    pair = tiny_pair(handle, correct=" the", shortcut=" is")
    engine = engine_of(handle, "reference")
    options = {"where": place, "heads": True, "choice": NONE, "metric": "first_token"}
    fixed = atp(handle, [pair], sites=("q", "k"), qk_fix=True, **options)
    plain = atp(handle, [pair], sites=("q", "k"), **options)
    scorer = scorer_of(pair, pair.base.ids, "first_token")
    ids = torch.tensor([scorer.branches.sequences[0]])
    assert len(set(scorer.branches.sequences)) == 1
    for site, layer in (("q", 0), ("k", 1)):
        sweep = Sweep((site,), (layer,), place, True, 1, SourceRun(), "first_token", True, False)
        before = engine.run(
            ids,
            capture=[("z", layer)],
            grad_of=lambda logits: scorer.numbers(logits[:, len(pair.base.ids) - 1 :])[0, 0],
        )
        for plan in plans_of(engine, pair, sweep):
            if plan.cell is None:
                continue
            after = engine.run(ids, edits={(site, layer): plan.cell[0].edit}, capture=[("z", layer)])
            change = after.activations["z", layer] - before.activations["z", layer]
            expected = float((change * before.grads["z", layer]).sum())
            rows = fixed[(fixed["site"] == site) & (fixed["layer"] == layer) & (fixed["head"] == plan.head)]
            assert rows["predicted"].item() == pytest.approx(expected, abs=2e-4)
    assert (fixed["predicted"] - plain["predicted"]).abs().max() > 1e-3


def test_the_qk_fix_finds_what_a_saturated_softmax_hides():
    """The planted head attends to the marked token with all its weight; a key that offers nothing frees it."""
    handle = planted_handle()
    attention = handle.model.model.layers[LAYER].self_attn
    weight = attention.q_proj.weight.clone()
    try:
        with torch.no_grad():
            attention.q_proj.weight[HEAD * 8 + 3, 2] = 1.5 * weight[HEAD * 8 + 3, 0]  # −1 in feature 2: asks for less
            attention.q_proj.weight *= 4
        pair = planted_pair(handle)
        options = {"sites": ("k",), "where": ("constraint",), "layers": [LAYER], "heads": True, "metric": "first_token"}
        handle.model.model.embed_tokens.weight.data[pair.source.ids[pair.source.positions("constraint")[0]], 1] = 0.0
        tables = {fix: atp(handle, [pair], qk_fix=fix, **options) for fix in (False, True)}
        row = {fix: table[table["head"] == HEAD // 2].iloc[0] for fix, table in tables.items()}
        exact = row[True]["exact"]
        assert exact < -1 and abs(row[False]["predicted"]) < 1e-3 and row[True]["predicted"] < 0.3 * exact
    finally:
        attention.q_proj.weight.data.copy_(weight)


def test_pairs_alone_together_and_padded_give_the_same_numbers():
    handle = tiny_handle("gemma2")
    longer = {"base_text": "The old chemist did not win it\nA:", "source_text": "The old chemist did the win it\nA:"}
    pairs = [tiny_pair(handle, name="short"), tiny_pair(handle, name="long", **longer)]
    pairs.append(tiny_pair(handle, name="other", correct=" the", shortcut=" is"))
    options = {"sites": ("resid_post", "z", "q"), "heads": True, "choice": NONE}
    for method in ("atp", "ig"):
        alone = pd.concat([atp(handle, [pair], method=method, **options) for pair in pairs], ignore_index=True)
        together = atp(handle, pairs, batch=3, method=method, **options)
        np.testing.assert_allclose(alone["predicted"], together["predicted"], atol=1e-4)
        assert list(alone["pair"]) == list(together["pair"])


@pytest.mark.parametrize("engine", ["reference", "transformer_lens", "nnsight"])
def test_every_engine_predicts_the_same(engine):
    handle = tiny_handle("llama")
    pair = tiny_pair(handle)
    options = {"sites": ("resid_post", "mlp_out", "z", "k"), "where": ("constraint", "last"), "heads": True}
    ours = atp(handle, [pair], choice=NONE, **options)
    for changes in ({}, {"method": "ig"}, {"qk_fix": True}):
        ours = atp(handle, [pair], choice=NONE, **options, **changes)
        theirs = atp(handle, [pair], choice=NONE, engine=engine, **options, **changes)
        np.testing.assert_allclose(ours["predicted"], theirs["predicted"], atol=2e-4)


def test_exact_effects_are_those_of_patching_and_the_choice_is_what_it_says():
    handle = tiny_handle("gpt2")
    pair = tiny_pair(handle)
    table = atp(handle, [pair], sites=("attn_out",), choice=Choice(top=5, sample=10, seed=1))
    exact = patch(handle, [pair], sites=("attn_out",), where="positions")
    np.testing.assert_allclose(table["exact"].dropna(), exact["effect"][table["exact"].notna()], atol=1e-4)
    live = table[~table["unchanged"]]
    assert set(live.nlargest(5, "predicted", keep="all").index) <= set(live.index)
    assert set(live["predicted"].abs().nlargest(5).index) == set(table.index[table["is_top"]])
    assert (table["exact"].notna() == (table["is_top"] | table["is_sampled"])).all()
    ranks = live["predicted"].abs().rank(ascending=False, method="first")[live["is_sampled"]]
    strata = np.array_split(np.arange(1, len(live) + 1), 10)
    assert [sum(ranks.isin(stratum)) for stratum in strata] == [1] * 10
    assert (table.loc[table["unchanged"], "predicted"] == 0).all() and table["unchanged"].any()
    again = atp(handle, [pair], sites=("attn_out",), choice=Choice(top=5, sample=10, seed=2))
    assert list(again["is_sampled"]) != list(table["is_sampled"])


def test_a_missed_cell_is_counted():
    rows = pd.DataFrame(
        {"pair": "a", "method": "atp", "predicted": [5.0, 4.0, 0.1, 0.1, 0.1], "exact": [4.0, 4.0, 0.1, -3.0, np.nan],
         "is_top": [True, True, False, False, False], "is_sampled": [False, True, True, True, False]}
    )  # fmt: skip
    found = verification(rows).iloc[0]
    assert (found["misses"], found["n_sampled"], found["missed_share"]) == (1, 3, 0.5)
    assert found["missed_share_high"] > 0.9 and found["slope"] == pytest.approx((16 + 0.01 - 0.3) / 16.02)


@pytest.mark.parametrize("works", [True, False])
def test_the_planted_head_is_found_and_not_when_it_is_zeroed(works):
    handle = planted_handle(works=works)
    pair = planted_pair(handle)
    for method in ("atp", "ig"):
        table = atp(handle, [pair], sites=("z",), where=("last",), heads=True, method=method, metric="first_token")
        found = table.set_index(["layer", "head"])["predicted"]
        gap = table["source_value"].iloc[0] - table["base_value"].iloc[0]
        if not works:
            np.testing.assert_allclose(found, 0, atol=1e-5)
            assert verification(table)["misses"].iloc[0] == 0
            continue
        assert found.abs().idxmax() == (LAYER, HEAD) and found[LAYER, HEAD] < 0.3 * gap < 0
        np.testing.assert_allclose(found.drop((LAYER, HEAD)), 0, atol=1e-4)
        assert table["exact"][table["is_top"]].min() == pytest.approx(gap, rel=1e-2)


def test_the_users_weights_and_grad_mode_are_as_they_were_also_after_an_error():
    handle = tiny_handle("gpt2")
    pair = tiny_pair(handle)

    def failing(logits):
        raise ZeroDivisionError

    for metric, error in ((failing, ZeroDivisionError), (lambda logits: logits[:, 0].detach(), InputError)):
        with pytest.raises(error):
            atp(handle, [pair], metric=metric)
        assert torch.is_grad_enabled() and not any(p.requires_grad for p in handle.model.parameters())
    found = atp(handle, [pair], sites=("z",), layers=[0])
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            again = atp(handle, [pair], sites=("z",), layers=[0])
            assert not torch.is_grad_enabled() and torch.is_inference_mode_enabled() == (mode is torch.inference_mode)
        np.testing.assert_array_equal(found["predicted"], again["predicted"])
    assert all(p.grad is None for p in handle.model.parameters())


def test_what_cannot_be_is_refused():
    handle = tiny_handle("neox_parallel")
    pair = tiny_pair(handle)
    for options, words in (
        ({"sites": ("resid_mid",)}, "no site 'resid_mid'"),
        ({"sites": ("pattern",)}, "no attribution"),
        ({"method": "deep"}, "method"),
        ({"method": "ig", "steps": 4}, "steps"),
        ({"qk_fix": True, "source": Zero()}, "source run"),
        ({"layers": [9]}, "unknown layer"),
    ):
        with pytest.raises(InputError, match=words):
            atp(handle, [pair], **options)
    with pytest.raises(InputError, match="multiple of 10"):
        Choice(sample=7)
