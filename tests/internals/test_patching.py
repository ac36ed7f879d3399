"""The staircase equals one plain forward a cell, on every family; identities that hold for any model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from latentkt.errors import InputError, RunError
from latentkt.internals import answer_lens, patch, patch_positions, patch_roles
from latentkt.internals.checks import Identities
from latentkt.internals.engines import engine_of
from latentkt.internals.engines.base import Patch
from latentkt.internals.lens import LensRun
from latentkt.internals.metrics import scorer_of, unembed_columns
from latentkt.internals.places import role_positions
from latentkt.internals.sources import Donor, Resample, Zero, mean_source
from tests.internals.making import CONTROL, ITEM, tiny_pair
from tests.models.tiny import FAMILIES, MORE_FAMILIES, tiny_handle


@pytest.mark.parametrize("family", FAMILIES)
def test_staircase_equals_one_forward_a_cell(family):
    handle = tiny_handle(family)
    pair = tiny_pair(handle)
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
    effects = patch_roles(handle, [tiny_pair(handle)], roles=("shortcut",))["effect"]
    assert (effects == 0).all()


def test_a_patch_from_the_run_itself_changes_nothing():
    handle = tiny_handle("llama")
    pair = tiny_pair(handle, source_text=ITEM)
    effects = patch_roles(handle, [pair], roles=("constraint", "last"), engine="reference")["effect"]
    np.testing.assert_allclose(effects, 0, atol=1e-5)


def test_a_patch_of_all_positions_reproduces_the_source():
    """Exactly so for the answers' first tokens; later ones also read the unpatched prompt through lower layers."""
    handle = tiny_handle("llama")
    pair = tiny_pair(handle, correct=" the", shortcut=" of")
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
    table = patch_roles(handle, [tiny_pair(handle)], roles=("option_correct",))
    assert table["effect"].isna().all() and (table["n_positions"] == 0).all()


def test_shifted_pairs_are_refused():
    handle = tiny_handle("llama")
    pair = tiny_pair(handle, source_text=CONTROL.replace("win", "win it"))
    with pytest.raises(InputError, match="shifted"):
        patch_roles(handle, [pair])


def test_nothing_of_the_users_is_changed():
    handle = tiny_handle("llama")
    ids = torch.tensor([tiny_pair(handle).base.ids])
    before = handle.logits(ids)
    patch_roles(handle, [tiny_pair(handle)])
    assert torch.equal(handle.logits(ids), before)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in handle.model.modules())


@pytest.mark.parametrize("family", FAMILIES)
def test_the_last_layer_of_the_lens_is_the_models_own_answer(family):
    handle = tiny_handle(family)
    pair = tiny_pair(handle)
    table, residuals = answer_lens(handle, [LensRun(pair.base, pair.answers, {"item": "a"})])
    truth = patch_roles(handle, [pair], roles=("last",), layers=[0], engine="reference")["base_value"].iloc[0]
    last = table[table["layer"] == handle.n_layers - 1].iloc[0]
    assert last["log_odds"] == pytest.approx(truth, abs=1e-4)
    assert last["kl_to_final"] == 0
    assert len(table) == handle.n_layers + 1 and residuals[0].shape == (handle.n_layers + 1, handle.d_model)


def test_lens_norms_every_vector_anew():
    handle = tiny_handle("llama")
    pair = tiny_pair(handle)
    table, residuals = answer_lens(handle, [LensRun(pair.base, pair.answers, {})])
    logp = handle.unembed(residuals[0]).log_softmax(-1)
    for entry in range(handle.n_layers + 1):
        rank = int((logp[entry] > logp[entry, pair.answers.correct_ids[0]]).sum())
        assert rank == table["rank_correct"].iloc[entry]


def test_role_positions_follow_the_alignment():
    handle = tiny_handle("llama")
    pair = tiny_pair(handle)
    cells = role_positions(pair, "constraint")
    assert cells.base == pair.base.positions("constraint") and cells.source == cells.base


@pytest.mark.parametrize("family", ["gpt2", "llama", "gemma2", "neox_parallel"])
def test_every_site_by_role_and_head_equals_the_reference(family):
    handle = tiny_handle(family)
    pair = tiny_pair(handle)
    for heads in (False, True):
        sites = ("z", "q", "k", "v", "pattern") if heads else tuple(s for s in handle.arch.sites if s != "pattern")
        options = {"sites": sites, "where": ("constraint", "last"), "layers": [0, 1], "heads": heads}
        fast = patch(handle, [pair], **options)
        slow = patch(handle, [pair], engine="reference", **options)
        np.testing.assert_allclose(fast["effect"], slow["effect"], atol=1e-4)
        np.testing.assert_array_equal(fast["effect"].isna(), slow["effect"].isna())
        assert fast["self_patch_error"].max() < 1e-4 and fast["full_patch_error"].max() < 1e-4
        absent = fast[fast["site"].isin(["k", "v"]) & (fast["head"] >= handle.n_kv_heads)]
        assert absent["effect"].isna().all() and fast.drop(absent.index)["effect"].notna().all()


def test_a_pattern_patch_is_what_transformer_lens_makes_of_an_edited_pattern():
    handle = tiny_handle("llama")
    pair = tiny_pair(handle, correct=" the", shortcut=" of")
    ours = patch(handle, [pair], sites=("pattern",), where=("last",), layers=[1], metric="first_token")
    bridge = engine_of(handle, "transformer_lens")
    last = len(pair.base.ids) - 1
    pattern = bridge.run(torch.tensor([pair.source.ids]), capture=[("pattern", 1)]).activations["pattern", 1]

    def edit(value):
        value = value.clone()
        value[:, :, last] = pattern[:, :, last]
        return value

    logits = bridge.run(torch.tensor([pair.base.ids]), edits={("pattern", 1): edit}).logits[0, -1]
    correct, shortcut = pair.answers.correct_ids[0], pair.answers.shortcut_ids[0]
    assert ours["patched_value"].item() == pytest.approx(float(logits[correct] - logits[shortcut]), abs=1e-4)
    assert abs(ours["effect"].item()) > 1e-4


def test_positions_have_their_tokens_and_roles_and_windows_their_width():
    handle = tiny_handle("llama")
    pair = tiny_pair(handle)
    table = patch_positions(handle, [pair], sites=("attn_out",), window=2)
    one = table[table["layer"] == 0]
    assert "".join(one["token"]) == pair.base.text and list(one["role"]) == list(pair.base.roles)
    assert table[table["layer"] == handle.n_layers - 1]["effect"].isna().all()  # the window would leave the model
    assert (table["window"] == 2).all()
    slow = patch_positions(handle, [pair], sites=("attn_out",), window=2, engine="reference")
    np.testing.assert_allclose(table["effect"], slow["effect"], atol=1e-4)
    assert (table["effect"].dropna().abs() > 1e-3).any()


def test_skipping_unchanged_cells_changes_no_number():
    handle = tiny_handle("llama")
    pair = tiny_pair(handle)
    skipped = patch_positions(handle, [pair], sites=("resid_post", "z"))
    run = patch_positions(handle, [pair], sites=("resid_post", "z"), skip_unchanged=False)
    np.testing.assert_allclose(skipped["effect"], run["effect"], atol=1e-4)
    before = skipped["position"] < pair.alignment.first_difference
    assert (skipped[before]["effect"] == 0).all() and before.any()


def test_a_users_metric_is_used_and_its_shape_checked():
    handle = tiny_handle("llama")

    def margin(logits):
        return logits[:, 5] - logits[:, 6]

    pair = tiny_pair(handle, metric=margin)
    fast, slow = (patch_roles(handle, [pair], engine=engine) for engine in ("fast", "reference"))
    np.testing.assert_allclose(fast["patched_value"], slow["patched_value"], atol=1e-4)
    assert (fast["metric"] == "margin").all() and fast["effect"].abs().max() > 1e-3
    with pytest.raises(InputError, match="wrong shape"):
        patch_roles(handle, [pair], metric=lambda logits: logits.sum())


@pytest.mark.parametrize("family", (*FAMILIES, *MORE_FAMILIES))
def test_a_few_logits_are_those_of_the_whole_vocabulary(family):
    handle = tiny_handle(family)
    resid = 3 * torch.randn(5, 2, handle.d_model, generator=torch.Generator().manual_seed(0))
    few, whole = unembed_columns(handle, resid, [7, 3]), handle.unembed(resid)
    torch.testing.assert_close(few, whole[..., [7, 3]], atol=1e-5, rtol=1e-5)


def test_the_first_differing_token_of_answers_that_begin_alike():
    handle = tiny_handle("llama")
    pair = tiny_pair(handle, correct=" is it", shortcut=" is an")
    at = pair.answers.first_difference
    assert at == 2
    fast, slow = (patch_roles(handle, [pair], engine=engine, metric="first_token") for engine in ("fast", "reference"))
    np.testing.assert_allclose(fast["patched_value"], slow["patched_value"], atol=1e-4)
    logp = handle.logits(torch.tensor([[*pair.base.ids, *pair.answers.correct_ids[:at]]]))[0, -1].log_softmax(-1)
    truth = float(logp[pair.answers.correct_ids[at]] - logp[pair.answers.shortcut_ids[at]])
    assert fast["base_value"].iloc[0] == pytest.approx(truth, abs=1e-4)


def test_sources_other_than_the_source_run():
    handle = tiny_handle("llama")
    engine = engine_of(handle)
    pair = tiny_pair(handle)
    other = tiny_pair(handle, base_text="The plumber did not lose\nB:", source_text="The plumber did the lose\nB:")
    key = ("resid_post", 1)
    options = {"layers": [1], "where": ("constraint",)}

    def effect(source):
        return patch(engine, [pair], source=source, **options)["effect"].item()

    def by_hand(values):
        cell = (Patch(*key, pair.base.positions("constraint"), values),)
        scorer = scorer_of(pair, pair.base.ids)
        reference = engine_of(handle, "reference")
        return reference.sweep(scorer, [cell])[0].value - reference.score(scorer).value

    donor = engine.values(other.base.ids, [key])[key][list(other.base.positions("constraint"))]
    assert effect(Donor({pair.name: other.base})) == pytest.approx(by_hand(donor), abs=1e-4)
    assert effect(Resample({"other": other.base})) == pytest.approx(by_hand(donor), abs=1e-4)
    assert np.isnan(effect(Donor({})))
    pool = [("f", pair.base), ("g", other.base), ("g", other.source)]
    mean = mean_source(engine, pool, [key])
    third = engine.values(other.source.ids, [key])[key][list(other.source.positions("constraint"))]
    rows = torch.cat([donor, third]).mean(0, keepdim=True).expand(len(donor), -1)
    assert effect(mean) == pytest.approx(by_hand(rows), abs=1e-4)
    with pytest.warns(UserWarning, match="zero ablation"):
        zero = effect(Zero())
    assert zero == pytest.approx(by_hand(torch.zeros_like(donor)), abs=1e-4)
    kinds = patch(engine, [pair], source=mean, **options)["source_kind"]
    assert list(kinds) == ["mean over role, other families"]


@pytest.mark.parametrize("engine", ["transformer_lens", "nnsight"])
def test_measurements_do_not_ask_which_engine_they_have(engine):
    handle = tiny_handle("llama")
    options = {"sites": ("resid_post", "mlp_out"), "layers": [0, 1], "metric": "first_token"}
    fast = patch_roles(handle, [tiny_pair(handle)], **options)
    other = patch_roles(handle, [tiny_pair(handle)], engine=engine, **options)
    np.testing.assert_allclose(fast["effect"], other["effect"], atol=1e-4)
    assert (other["engine"] == engine).all()


def test_a_broken_identity_is_an_error():
    handle = tiny_handle("llama")
    engine = engine_of(handle)
    sweep = engine.sweep

    def wrong(scorer, cells):
        scores = sweep(scorer, cells)
        return [*scores[:-1], replace(scores[-1], value=scores[-1].value + 0.01)]

    engine.sweep = wrong
    with pytest.raises(RunError, match="does not reproduce the source"):
        patch_roles(engine, [tiny_pair(handle)])


def test_a_draw_is_never_the_base_and_a_mean_leaves_special_tokens_out():
    handle = tiny_handle("llama", bos=True)
    engine, pair = engine_of(handle), tiny_pair(handle)
    other = tiny_pair(handle, base_text="The plumber did not lose\nB:", source_text="The plumber did the lose\nB:")
    key, options = ("resid_post", 1), {"layers": [1], "where": ("constraint",), "check": False}
    expected = patch(engine, [pair], source=Donor({pair.name: other.base}), **options)["effect"].item()
    for seed in range(6):
        drawn = Resample({"a": pair.base, "b": other.base}, seed)
        assert patch(engine, [pair], source=drawn, **options)["effect"].item() == pytest.approx(expected, abs=1e-5)
    mean = mean_source(engine, [("g", other.base)], [key], over="position")
    labels = {label for _, label in mean.sums["g"]}
    assert other.base.is_special[0] and labels == set(range(1, len(other.base.ids)))


def test_a_donor_of_single_positions_gives_the_partner_in_the_role():
    handle = tiny_handle("llama")
    engine, pair = engine_of(handle), tiny_pair(handle)
    other = tiny_pair(
        handle, base_text="Now the plumber did not lose\nB:", source_text="Now the plumber did the lose\nB:"
    )
    options = {"layers": [1], "where": "positions", "check": False}
    table = patch(engine, [pair], source=Donor({pair.name: other.base}), **options).set_index("position")["effect"]
    ours, theirs = pair.base.positions("constraint"), other.base.positions("constraint")
    values = engine.values(other.base.ids, [("resid_post", 1)])["resid_post", 1]
    scorer, reference = scorer_of(pair, pair.base.ids), engine_of(handle, "reference")
    cells = [(Patch("resid_post", 1, (p,), values[[q]]),) for p, q in zip(ours, theirs, strict=True)]
    truth = [score.value - reference.score(scorer).value for score in reference.sweep(scorer, cells)]
    np.testing.assert_allclose(table[list(map(float, ours))], truth, atol=1e-4)
    unlike = [p for p in range(len(pair.base.ids)) if pair.base.roles[p] == "rest"]
    assert len(unlike) != len(other.base.positions("rest")) and table[list(map(float, unlike))].isna().all()


def test_the_identities_are_a_patch_of_the_last_token_by_itself_and_of_all_embeddings():
    handle = tiny_handle("llama")
    pair, engine = tiny_pair(handle), engine_of(handle)
    own, whole = Identities.of(engine, pair, ("z",), (0, 1, 2), scorer_of(pair, pair.base.ids)).cells
    last = len(pair.base.ids) - 1
    assert (own[0].site, own[0].layer, own[0].positions) == ("z", 1, (last,))
    torch.testing.assert_close(own[0].values, engine.values(pair.base.ids, [("z", 1)])["z", 1][[last]])
    assert (whole[0].site, whole[0].layer) == ("resid_pre", 0)
    assert whole[0].positions == tuple(range(pair.alignment.first_difference, last + 1))


def test_a_pattern_over_other_keys_cannot_be_put_in():
    handle = tiny_handle("llama")
    pair = tiny_pair(handle)
    longer = tiny_pair(handle, base_text="The chemist of note did not win\nA:")
    options = {"sites": ("pattern",), "where": ("constraint",), "layers": [1], "heads": True, "check": False}
    table = patch(handle, [pair], source=Donor({pair.name: longer.base}), **options)
    assert table["effect"].isna().all() and len(table) == handle.n_heads
    same = patch(handle, [pair], source=Donor({pair.name: pair.source}), **options)
    assert same["effect"].notna().all()


def test_bad_requests_are_refused_before_work():
    handle = tiny_handle("neox_parallel")
    pairs = [tiny_pair(handle)]
    for options, words in (
        ({"sites": ("resid",)}, "unknown site"),
        ({"sites": ("resid_mid",)}, "no site 'resid_mid'"),
        ({"layers": [7]}, "unknown layer"),
        ({"engine": "quick"}, "unknown engine"),
        ({"window": 9}, "window"),
        ({"heads": True}, "has no heads"),
        ({"where": "everywhere"}, "where to patch"),
        ({"metric": "probability"}, "unknown metric"),
    ):
        with pytest.raises(InputError, match=words):
            patch(handle, pairs, **options)
