"""Attribution adds up to the model's own difference on every family; heads' rows split by role."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from latentkt.errors import InputError, RunError
from latentkt.internals import attribute, engine_of, head_table
from latentkt.internals.lens import LensRun
from tests.internals.making import tiny_pair
from tests.models.tiny import FAMILIES, MORE_FAMILIES, tiny_handle

EVERY = (*FAMILIES, *MORE_FAMILIES)


def run_of(handle, **options):
    pair = tiny_pair(handle, **options)
    return LensRun(pair.base, pair.answers, {"item": "a"})


def own_difference(handle, run):
    at = run.answers.first_difference
    logits = handle.logits(torch.tensor([[*run.prompt.ids, *run.answers.correct_ids[:at]]]))[0, -1]
    return float(logits[run.answers.correct_ids[at]] - logits[run.answers.shortcut_ids[at]])


@pytest.mark.parametrize("norm", ["frozen", "recomputed"])
@pytest.mark.parametrize("family", EVERY)
def test_rows_sum_to_the_models_own_difference(family, norm):
    handle = tiny_handle(family)
    run = run_of(handle)
    table = attribute(handle, [run], norm=norm)
    assert table["contribution"].sum() == pytest.approx(own_difference(handle, run), abs=1e-4)
    assert (table["completeness_error"].abs() < 1e-4).all()
    heads = table[table["component"] == "head"]
    assert len(heads) == handle.n_layers * handle.n_heads and (heads["contribution"].abs() > 1e-5).all()
    if family == "gemma2":
        assert table.set_index("component")["contribution"]["softcap_remainder"] != 0
    if family == "phi":
        assert abs(table.set_index("component")["contribution"]["unembedding_bias"]) > 1e-3


def test_a_heads_row_is_what_the_difference_loses_without_it_when_the_norm_is_recomputed():
    handle = tiny_handle("llama")
    run = run_of(handle)
    last = handle.n_layers - 1
    row = attribute(handle, [run], norm="recomputed").query(f"component == 'mlp' and layer == {last}")
    without = engine_of(handle, "reference").run(
        torch.tensor([[*run.prompt.ids, *run.answers.correct_ids[: run.answers.first_difference]]]),
        edits={("mlp_out", last): torch.zeros_like},
    )
    at = run.answers.first_difference
    logits = without.logits[0, -1]
    left = float(logits[run.answers.correct_ids[at]] - logits[run.answers.shortcut_ids[at]])
    assert row["contribution"].item() == pytest.approx(own_difference(handle, run) - left, abs=1e-4)


@pytest.mark.parametrize("family", ["gpt2", "llama", "gemma2", "neox_parallel", "olmo2"])
def test_the_head_table_splits_the_attribution_by_role(family):
    handle = tiny_handle(family)
    run = run_of(handle)
    table, whole = head_table(handle, [run]), attribute(handle, [run])
    by_head = table.groupby(["layer", "head"])
    np.testing.assert_allclose(by_head["attention"].sum(), 1, atol=1e-5)
    direct = whole[whole["component"] == "head"].set_index(["layer", "head"])["contribution"]
    np.testing.assert_allclose(by_head["direct_effect"].first(), direct, atol=1e-6)
    np.testing.assert_allclose(by_head["contribution"].sum(), direct, atol=1e-4)
    seen = table[table["attention"] > 0]
    np.testing.assert_allclose(seen["attention"] * seen["ov_effect"], seen["contribution"], atol=1e-9)
    assert table.loc[table["attention"] == 0, "ov_effect"].isna().all()


def test_other_engines_give_the_same_rows():
    handle = tiny_handle("gemma2")
    run = run_of(handle)
    fast = attribute(handle, [run])["contribution"]
    for engine in ("reference", "transformer_lens", "nnsight"):
        np.testing.assert_allclose(attribute(handle, [run], engine=engine)["contribution"], fast, atol=1e-4)


def test_rows_that_do_not_add_up_are_an_error():
    handle = tiny_handle("llama")
    engine = engine_of(handle)
    run = engine.run

    def wrong(ids, mask=None, **options):
        found = run(ids, mask, **options)
        found.activations["mlp_out", 1].mul_(1.1)
        return found

    engine.run = wrong
    with pytest.raises(RunError, match="does not add up"):
        attribute(engine, [run_of(handle)])


def test_an_unknown_norm_and_a_missing_pattern_are_refused():
    with pytest.raises(InputError, match="norm of the attribution"):
        attribute(tiny_handle("llama"), [], norm="none")
    handle = tiny_handle("llama", attn="sdpa")
    with pytest.raises(InputError, match="pattern"):
        head_table(handle, [run_of(handle)])
