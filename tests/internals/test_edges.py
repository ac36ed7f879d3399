"""Edge attribution against runs by hand, nodes and path patching; circuits against single cuts and full ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from latentkt.errors import DataError, InputError, RunError
from latentkt.internals import (
    LOGITS,
    Choice,
    Node,
    atp,
    edge_attribution,
    engine_of,
    faithfulness,
    patch,
    receivers,
    verification,
)
from latentkt.internals.circuits import CutEdges, all_edges, all_nodes
from latentkt.internals.edges import exact_effects
from latentkt.internals.engines.base import Patch
from latentkt.internals.gradient import slopes
from latentkt.internals.metrics import scorer_of
from latentkt.internals.places import role_positions
from latentkt.internals.sources import Zero, mean_source
from tests.internals.making import tiny_pair
from tests.internals.planted import HEAD, LAYER, planted_handle, planted_pair
from tests.models.tiny import FAMILIES, MORE_FAMILIES, tiny_handle

NONE = Choice(top=0, sample=0)
EVERY = (*FAMILIES, *MORE_FAMILIES)


def by_hand(handle, pair, sender, receiver, share):
    """The edge with a share of the sender's change: plain runs, all between held, one receiver given the rest."""
    engine, scorer = engine_of(handle, "reference"), scorer_of(pair, pair.base.ids)
    ids = torch.tensor([pair.base.ids])
    everywhere = tuple(range(ids.shape[1]))
    key = (sender.site, sender.layer)
    held = [(site, layer) for site in ("attn_out", "mlp_out") for layer in range(handle.n_layers)]
    base = engine.values(pair.base.ids, [*held, key])
    source = engine.values(pair.source.ids, [key])[key]
    moved = base[key].clone()
    at = (slice(None), sender.head) if sender.head is not None else (slice(None),)
    moved[at] += share * (source - base[key])[at]
    own = ("attn_out" if sender.site == "z" else sender.site, sender.layer)

    def behind(site, layer):
        after = (site, layer) == ("mlp_out", sender.layer) and own[0] == "attn_out"
        return (site, layer) != own and (sender.site == "resid_pre" or layer > sender.layer or after)

    got, seen = (receiver.site, receiver.layer), []
    edits = {k: Patch(*k, everywhere, base[k]).edit for k in held if behind(*k) and k != got}

    def note(value):
        seen.append(value.detach().clone())
        return value

    engine.run(ids, edits={key: Patch(*key, everywhere, moved).edit, **edits, got: note})
    values = seen[0][0] if receiver.head is None else seen[0][0][:, receiver.head]
    cell = (Patch(*got, everywhere, values, receiver.head),)
    return engine.sweep(scorer, [cell])[0].value - engine.score(scorer).value


@pytest.mark.parametrize("family", EVERY)
def test_an_edge_is_the_slope_of_the_edge_by_hand(family):
    handle = tiny_handle(family)
    pair = tiny_pair(handle)
    table = edge_attribution(handle, [pair], choice=NONE).set_index(["sender", "receiver"])["predicted"]
    last = handle.n_layers - 1
    edges = [
        (Node("resid_pre", 0), Node("v", last, 1)),
        (Node("z", 0, 2), Node("q", 1, 3)),
        (Node("z", 0, 1), Node("mlp_out", last)),
        (Node("mlp_out", 0), Node("k", 1, handle.n_kv_heads - 1)),
    ]
    for sender, receiver in edges:
        up, down = (by_hand(handle, pair, sender, receiver, share) for share in (0.02, -0.02))
        found = table[sender.name, receiver.name]
        assert found == pytest.approx((up - down) / 0.04, rel=0.05, abs=2e-3), (sender, receiver)
    assert table.abs().max() > 1e-2


@pytest.mark.parametrize("family", EVERY)
@pytest.mark.parametrize("method", ["eap", "eap_ig"])
def test_the_edges_of_a_sender_add_up_to_its_node(family, method):
    handle = tiny_handle(family)
    pair = tiny_pair(handle)
    edges = edge_attribution(handle, [pair], method=method, choice=NONE)
    sites = ("resid_pre", "z", "mlp_out")
    by_node = {"eap": "atp", "eap_ig": "ig"}[method]
    nodes = atp(handle, [pair], sites=sites, where=("all",), heads=True, method=by_node, choice=NONE)
    nodes = nodes.set_index(["site", "layer", "head"])["predicted"]
    sums = edges.groupby(["sender_site", "sender_layer", "sender_head"])["predicted"].sum()
    np.testing.assert_allclose(sums, nodes.reindex(sums.index), atol=1e-4)
    assert len(sums) == len(all_nodes(handle)) and len(edges) == len(all_edges(handle)) == edges["n_edges"].iloc[0]
    assert set(edges.loc[edges["receiver_site"] == "k", "receiver_head"]) == set(range(handle.n_kv_heads))
    assert edges["completeness_error"].notna().all() and sums.abs().max() > 1e-2


@pytest.mark.parametrize("family", ["gpt2", "llama", "neox_parallel", "bloom", "gptj"])
def test_a_single_cut_edge_is_the_path_patch_of_it(family):
    """Two ways that share no code between sender and receiver: held runs, and reading the stream anew."""
    handle = tiny_handle(family)
    pair = tiny_pair(handle, correct=" the", shortcut=" is")  # they differ in the first token: the logits read the last
    engine, scorer = engine_of(handle), scorer_of(pair, pair.base.ids)
    place = role_positions(pair, "all").behind(pair.alignment.first_difference)
    edges = all_edges(handle)[:: len(all_edges(handle)) // 14]
    edges += [(Node("z", handle.n_layers - 1, 1), LOGITS)]
    truth = exact_effects(engine, pair, place, scorer, edges)
    keys = [("resid_pre", 0), *((s, layer) for layer in range(handle.n_layers) for s in ("z", "attn_out", "mlp_out"))]
    source = {key: value[list(place.source)] for key, value in engine.values(pair.source.ids, keys).items()}
    base = engine.score(scorer).value
    for edge, expected in zip(edges, truth, strict=True):
        edits = CutEdges(handle, place.base, source, [edge]).edits()
        (found,) = slopes(engine, [scorer], [], edits=edits, gradient=False)
        assert found.score.value - base == pytest.approx(expected, abs=1e-4), edge
    assert np.abs(truth[:-1]).max() > 1e-3 and abs(truth[-1]) > 1e-3


@pytest.mark.parametrize("family", EVERY)
@pytest.mark.parametrize("of", ["nodes", "edges"])
def test_nothing_kept_is_the_source_run_and_everything_kept_the_base_run(family, of):
    handle = tiny_handle(family)
    pair = tiny_pair(handle)
    table = faithfulness(handle, [pair], of=of, shares=(0.3,))
    engine = engine_of(handle, "reference")
    base, source = (engine.score(scorer_of(pair, run.ids)).value for run in (pair.base, pair.source))
    keep = table[table["curve"] == "keep"].groupby("share")["value"]
    assert keep.first()[0.0] == pytest.approx(source, abs=1e-4) and keep.first()[1.0] == pytest.approx(base, abs=1e-4)
    assert table["none_error"].max() < 1e-4 and (table["ablation"] == "source_run").all()
    if abs(base - source) < 0.5:
        assert table[["faithfulness", "area"]].isna().all().all()
    removed = table[(table["curve"] == "remove") & (table["share"] == 1)]["value"]
    np.testing.assert_allclose(removed, source, atol=1e-4)


def test_one_replaced_node_is_a_patch():
    handle = tiny_handle("llama")
    pair = tiny_pair(handle)
    table = faithfulness(handle, [pair], curves=("remove",), shares=(1 / 16,), rankings=("atp",))
    scores = atp(handle, [pair], sites=("resid_pre", "z", "mlp_out"), where=("all",), heads=True, choice=NONE)
    scores = scores[scores["site"] != "resid_pre"]  # the input goes last
    top = scores.loc[scores["predicted"].abs().idxmax()]
    exact = patch(handle, [pair], sites=(top["site"],), layers=[top["layer"]], where=("all",), heads=top["head"] >= 0)
    exact = exact[exact["head"] == top["head"]]["patched_value"].item()
    assert table.loc[table["n"] == 1, "value"].item() == pytest.approx(exact, abs=1e-4)


def test_area_and_distance_are_trapezoids_over_the_share():
    handle = tiny_handle("phi3")
    table = faithfulness(handle, [tiny_pair(handle)], shares=(0.25, 0.5), rankings=("atp",), curves=("keep",))
    x, y = table["share"].to_numpy(), table["faithfulness"].to_numpy()
    area = sum((x[i + 1] - x[i]) * (y[i] + y[i + 1]) / 2 for i in range(len(x) - 1))
    gap = table["base_value"] - table["none_value"]
    np.testing.assert_allclose(y, (table["value"] - table["none_value"]) / gap)
    assert table["area"].iloc[0] == pytest.approx(area) and (table["n_kept"] == table["n"]).all()
    assert table["distance"].iloc[0] == pytest.approx(np.trapezoid(np.abs(1 - y), x))


@pytest.mark.parametrize("works", [True, False])
def test_the_planted_path_alone_keeps_the_answer(works):
    """Embedding, the head, and their edges: kept, they keep it; removed, it is gone. A zeroed head leaves no curve."""
    handle = planted_handle(works=works)
    pair = planted_pair(handle)
    options = {"metric": "first_token", "rankings": None}
    edges = edge_attribution(handle, [pair], choice=Choice(top=3, sample=0), metric="first_token")
    if not works:
        np.testing.assert_allclose(edges["predicted"], 0, atol=1e-5)
        for of in ("nodes", "edges"):
            assert faithfulness(handle, [pair], of=of, **options)["faithfulness"].isna().all()
        return
    top = edges.reindex(edges["predicted"].abs().sort_values(ascending=False).index)[:2]
    assert {tuple(row) for row in top[["sender", "receiver"]].to_numpy()} == {
        ("resid_pre.0", f"v.{LAYER}.{HEAD // 2}"), (f"z.{LAYER}.{HEAD}", "logits"),
    }  # fmt: skip
    gap = edges["source_value"].iloc[0] - edges["base_value"].iloc[0]
    np.testing.assert_allclose(top["exact"], gap, rtol=1e-2)
    for of, n in (("nodes", 2), ("edges", 3)):
        table = faithfulness(handle, [pair], of=of, shares=(n / (11 if of == "nodes" else 90),), **options)
        known = table[(table["ranking"] != "random") & (table["n"] > 0) & (table["n"] < table["n_all"])]
        kept = known[known["curve"] == "keep"]["faithfulness"]
        gone = known[known["curve"] == "remove"]["faithfulness"]
        assert kept.iloc[0] == pytest.approx(1, abs=0.02) and gone.iloc[0] == pytest.approx(0, abs=0.02)
        area = table.groupby(["curve", "ranking"])["area"].first()
        assert area["keep", "random"] < area["keep"].drop("random").iloc[0]


@pytest.mark.parametrize("engine", ["reference", "transformer_lens", "nnsight"])
def test_every_engine_gives_the_same_edges_and_curves(engine):
    handle = tiny_handle("llama")
    pair = tiny_pair(handle)
    ours, theirs = (edge_attribution(handle, [pair], choice=Choice(2, 0), engine=one) for one in ("fast", engine))
    np.testing.assert_allclose(ours["predicted"], theirs["predicted"], atol=1e-4)
    np.testing.assert_allclose(ours["exact"].dropna(), theirs["exact"].dropna(), atol=1e-4)
    for of in ("nodes", "edges"):
        options = {"of": of, "shares": (0.2,), "rankings": ("random",)}
        ours, theirs = (faithfulness(handle, [pair], engine=one, **options) for one in ("fast", engine))
        np.testing.assert_allclose(ours["value"], theirs["value"], atol=1e-4)


def test_rows_that_are_kept_say_how_much_is_left_out():
    handle = tiny_handle("gpt2")
    pair = tiny_pair(handle)
    whole = edge_attribution(handle, [pair], choice=Choice(2, 10))
    few = edge_attribution(handle, [pair], choice=Choice(2, 10), keep=20)
    assert len(few) < len(whole) == whole["n_edges"].iloc[0] == few["n_edges"].iloc[0]
    share = few["predicted"].abs().sum() / whole["predicted"].abs().sum()
    assert few["kept_share"].iloc[0] == pytest.approx(share) and whole["kept_share"].iloc[0] == pytest.approx(1)
    assert verification(few)["n_sampled"].iloc[0] == 10
    by_role = edge_attribution(handle, [pair], choice=NONE, role="last")
    assert by_role["predicted"].sum() != pytest.approx(whole["predicted"].sum(), abs=1e-4)


def test_a_ranking_made_on_other_pairs_is_used_and_named():
    handle = tiny_handle("phi3")
    pair, other = tiny_pair(handle), tiny_pair(handle, name="other", correct=" the", shortcut=" is")
    sites = {"sites": ("resid_pre", "z", "mlp_out"), "where": ("all",), "heads": True, "choice": NONE}
    table = faithfulness(handle, [pair], scores=atp(handle, [other], **sites))
    assert set(table["ranking"]) == {"given atp", "random"} and set(table["ranked_on"]) == {"other pairs", "nothing"}
    own = faithfulness(handle, [pair], scores=atp(handle, [pair], **sites), rankings=("given", "atp"))
    assert set(own["ranked_on"]) == {"pair"}
    values = own.pivot_table(index=["curve", "n"], columns="ranking", values="value")
    np.testing.assert_allclose(values["given atp"], values["atp"], atol=1e-6)
    others = [("g", other.base), ("g", other.source)]
    keys = [("resid_pre", 0), *((site, layer) for layer in range(3) for site in ("z", "mlp_out"))]
    mean = mean_source(engine_of(handle), others, keys)
    averaged = faithfulness(handle, [pair], source=mean, rankings=("atp",), shares=(0.2,))
    assert set(averaged["ablation"]) == {"mean over role, other families"} and averaged["value"].notna().all()
    with pytest.warns(UserWarning, match="zero"):
        zeroed = faithfulness(handle, [pair], source=Zero(), rankings=("random",), shares=())
    assert set(zeroed["ablation"]) == {"zero"} and zeroed["source_value"].isna().all()


def test_what_cannot_be_is_refused():
    handle = tiny_handle("llama")
    pair = tiny_pair(handle)
    for options, words in (
        ({"of": "neurons"}, "faithfulness of what"),
        ({"rankings": ("eap",)}, "ranking of nodes"),
        ({"rankings": ("given",)}, "needs scores"),
        ({"curves": ("both",)}, "curves"),
        ({"shares": (2.0,)}, "shares"),
        ({"of": "edges", "source": Zero()}, "source run only"),
    ):
        with pytest.raises(InputError, match=words):
            faithfulness(handle, [pair], **options)
    with pytest.raises(DataError, match="scores of nodes"):
        faithfulness(handle, [pair], scores=edge_attribution(handle, [pair], choice=NONE))
    with pytest.raises(InputError, match="method"):
        edge_attribution(handle, [pair], method="atp")
    with pytest.raises(InputError, match="no aligned tokens of a role"):
        edge_attribution(handle, [pair], role="constrain")
    with pytest.raises(InputError, match="edges that are kept"):
        edge_attribution(handle, [pair], keep=-1)


def test_gradients_that_do_not_add_up_are_refused():
    truth = torch.tensor([1.0, -2.0])
    receivers._agree(truth + 3e-3, truth, 0)
    with pytest.raises(RunError, match="do not add up"):
        receivers._agree(truth + 5e-3, truth, 0)
