"""Attention knockout against a mask that is added to the scores, and on the planted head."""

from __future__ import annotations

import inspect
from contextlib import contextmanager

import numpy as np
import pytest
import torch

from latentkt.errors import InputError
from latentkt.internals import engine_of, knockout
from latentkt.internals.attention_cuts import cut_pattern, sink_positions
from latentkt.internals.lens import LensRun
from latentkt.models import encode
from tests.internals.making import tiny_pair
from tests.internals.planted import HEAD, LAYER, planted_handle, planted_pair
from tests.models.tiny import FAMILIES, MORE_FAMILIES, tiny_handle


def run_of(pair):
    return LensRun(pair.base, pair.answers, {"item": "a", "family": "f"})


@contextmanager
def masked(handle, layers, queries, keys):
    """The model's own attention with the lowest number added to these scores."""
    removers = []

    def hook(module, args, kwargs):
        bound = inspect.signature(module.forward).bind(*args, **kwargs).arguments
        mask = bound["attention_mask"]
        mask = mask.clone()
        for q in queries:
            for k in keys:
                if k != q:
                    mask[..., q, k] = torch.finfo(mask.dtype).min
        kwargs = {**kwargs, "attention_mask": mask}
        place = list(inspect.signature(module.forward).parameters).index("attention_mask")
        return (args[:place] if len(args) > place else args), kwargs

    try:
        for layer in layers:
            removers.append(handle.arch.attention(layer).register_forward_pre_hook(hook, with_kwargs=True))
        yield
    finally:
        for remover in removers:
            remover.remove()


def by_mask(handle, run, layers, queries, keys):
    """Log-odds of the whole answers and of their first tokens, one plain forward an answer."""
    odds = []
    with torch.no_grad(), masked(handle, layers, queries, keys):
        for ids in (run.answers.correct_ids, run.answers.shortcut_ids):
            whole = torch.tensor([[*run.prompt.ids, *ids]])
            logp = handle.logits(whole)[0, len(run.prompt) - 1 : -1].double().log_softmax(-1)
            odds.append(float(logp[range(len(ids)), list(ids)].sum()))
    return odds[0] - odds[1]


@pytest.mark.parametrize("family", (*FAMILIES, *MORE_FAMILIES))
@pytest.mark.parametrize("window", [1, 2])
def test_a_cut_is_a_mask_before_the_softmax(family, window):
    handle = tiny_handle(family)
    run = run_of(tiny_pair(handle))
    edges = [("constraint", "last"), ("shortcut", "constraint"), ("rest", "last"), ("last", "shortcut")]
    table = knockout(handle, [run], edges=edges, window=window)
    rows = table.set_index(["from_role", "to_role", "layer"])
    plain = by_mask(handle, run, [], [], [])
    assert table["base_value"].iloc[0] == pytest.approx(plain, abs=1e-4)
    assert table["no_cut_error"].max() < 1e-4
    for read, reading in edges[:3]:
        keys = [p for p in run.prompt.positions(read) if p != 0]
        queries = [len(run.prompt) - 1] if reading == "last" else run.prompt.positions(reading)
        for layer in range(handle.n_layers):
            found = rows.loc[(read, reading, layer)]
            if layer + window > handle.n_layers:
                assert np.isnan(found["effect"])
                continue
            truth = by_mask(handle, run, range(layer, layer + window), queries, keys) - plain
            assert found["effect"] == pytest.approx(truth, abs=2e-4), (read, reading, layer)
    assert table["effect"].abs().max() > 1e-2
    absent = table[table["to_role"] == "shortcut"]  # nothing of `last` stands in front of it
    assert absent["effect"].isna().all() and (absent["n_queries"] == 0).all() and absent["attention"].isna().all()


def test_rows_sum_to_one_and_nothing_else_changes():
    pattern = torch.randn(3, 7, 7, generator=torch.Generator().manual_seed(0)).masked_fill(
        ~torch.ones(7, 7, dtype=torch.bool).tril(), -torch.inf
    )
    pattern = pattern.softmax(-1)
    rows = cut_pattern(pattern, [2, 4, 6], [1, 4])
    torch.testing.assert_close(rows.sum(-1), torch.ones(3, 3))
    assert (rows[:, :, 1] == 0).all() and (rows[0, :, 4] == 0).all() and (rows[2, :, 4] == 0).all()
    assert (rows[1, :, 4] > 0).all()  # a token goes on reading itself
    ratio = rows[2][:, [0, 2, 3, 5, 6]] / pattern[:, 6][:, [0, 2, 3, 5, 6]]
    torch.testing.assert_close(ratio, ratio[:, :1].expand_as(ratio))
    torch.testing.assert_close(cut_pattern(pattern, [5], []), pattern[:, 5][None])


@pytest.mark.parametrize("window", [1, 2])
def test_heads_are_cut_one_by_one(window):
    handle = tiny_handle("llama")
    run = run_of(tiny_pair(handle))
    options = {"edges": [("constraint", "last")], "window": window, "layers": [0, 1]}
    heads = knockout(handle, [run], heads=True, **options)
    assert set(heads["head"]) == set(range(handle.n_heads))
    weight = handle.arch.out_proj(0)
    assert weight is not None
    reference = knockout(handle, [run], heads=True, engine="reference", **options)
    np.testing.assert_allclose(heads["effect"], reference["effect"], atol=1e-4)
    whole = knockout(handle, [run], **options).set_index("layer")
    shares = heads.groupby("layer")["attention"].mean()
    np.testing.assert_allclose(shares, whole["attention"], atol=1e-6)
    assert heads.groupby("layer")["effect"].sum()[1] != pytest.approx(whole["effect"][1], abs=1e-6)


@pytest.mark.parametrize("engine", ["reference", "transformer_lens", "nnsight"])
def test_every_engine_cuts_the_same(engine):
    handle = tiny_handle("llama")
    run = run_of(tiny_pair(handle))
    edges = [("constraint", "last"), ("shortcut", "constraint")]
    ours, theirs = (knockout(handle, [run], edges=edges, engine=one) for one in ("fast", engine))
    np.testing.assert_allclose(ours["effect"], theirs["effect"], atol=1e-4)


def test_sinks_stay_readable_unless_asked():
    handle = tiny_handle("llama", bos=True)
    prompt = encode(handle, "the chemist did not win\na:", chat=False, spans={"constraint": [(12, 19)]})
    base = tiny_pair(tiny_handle("llama")).answers
    run = LensRun(prompt, base, {"item": "a", "family": "f"})
    assert prompt.is_special[0] and prompt.roles[0] == "template"
    even = [torch.ones(2, len(prompt), len(prompt)).tril().softmax(-1)] * 2
    assert sink_positions(prompt, even) == {0}
    greedy = torch.full((2, len(prompt), len(prompt)), 0.05)
    greedy[:, :, 5] = 0.6
    assert sink_positions(prompt, [greedy]) == {0, 5}
    kept, cut = (knockout(handle, [run], edges=[("template", "last"), ("all", "last")], sinks=s) for s in (False, True))
    assert kept.loc[kept["from_role"] == "template", "effect"].isna().all()
    assert (kept.loc[kept["from_role"] == "all", "n_sinks_left_out"] >= 1).all() and (
        cut["n_sinks_left_out"] == 0
    ).all()
    assert cut["effect"].notna().all() and cut["attention"].max() > kept["attention"].max()


@pytest.mark.parametrize("works", [True, False])
def test_the_planted_edge_is_found_and_not_when_the_head_is_zeroed(works):
    handle = planted_handle(works=works)
    pair = planted_pair(handle)
    edges = [("constraint", "last"), ("shortcut", "last"), ("shortcut", "constraint")]
    table = knockout(handle, [run_of(pair)], edges=edges, heads=True, metric="first_token")
    effect = table.set_index(["from_role", "to_role", "layer", "head"])["effect"]
    planted = ("constraint", "last", LAYER, HEAD)
    assert (effect[planted] < -1) if works else abs(effect[planted]) < 1e-5
    np.testing.assert_allclose(effect.drop(planted), 0, atol=2e-3)
    found = table.set_index(["from_role", "to_role", "layer", "head"])["attention"]
    assert found[planted] > 0.9


def test_what_cannot_be_is_refused_and_grad_mode_is_kept():
    handle = tiny_handle("llama")
    run = run_of(tiny_pair(handle))
    for options, words in (({"layers": [7]}, "unknown layer"), ({"window": 9}, "window"), ({"metric": "x"}, "metric")):
        with pytest.raises(InputError, match=words):
            knockout(handle, [run], **options)
    with pytest.raises(InputError, match="eager"):
        knockout(tiny_handle("llama", attn="sdpa"), [run])
    assert torch.is_grad_enabled() and engine_of(handle).handle is handle
