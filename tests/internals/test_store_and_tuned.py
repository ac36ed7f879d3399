"""Stores hold what a run gives and know their model; a tuned lens comes nearer to the model than the plain one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from latentkt.errors import DataError, InputError, RunError
from latentkt.internals import answer_lens, collect, engine_of, load_tuned_lens, open_store, train_tuned_lens, tuned
from latentkt.internals.lens import LensRun
from latentkt.models import encode
from latentkt.trapqa import builtin_items
from tests.internals.making import tiny_pair
from tests.models.tiny import tiny_handle

WORDS = ("the chemist did not win", "an old man is at the door", "in the end no one did", "to read or not to read")


def runs_of(handle):
    pair = tiny_pair(handle)
    return [LensRun(pair.base, pair.answers, {"item": "a"}), LensRun(pair.source, pair.answers, {"item": "b"})]


def test_a_store_holds_the_values_of_a_run_and_refuses_another_model(tmp_path):
    handle = tiny_handle("llama", bos=True)
    runs = runs_of(handle)
    store = collect(handle, runs, tmp_path / "store", sites=("resid_post", "k"), layers=[0, 2])
    assert store.keys == [("resid_post", 0), ("resid_post", 2), ("k", 0), ("k", 2)]
    assert store.rows["is_special"].sum() == 2 and set(store.rows.loc[store.rows["is_special"], "position"]) == {0}
    for n, run in enumerate(runs):
        truth = engine_of(handle, "reference").values(run.prompt.ids, [("k", 2)])["k", 2]
        np.testing.assert_allclose(store["k", 2][store.rows["prompt"] == n], truth, atol=1e-5)
    with pytest.raises(RunError, match="exists"):
        collect(handle, runs, tmp_path / "store")
    with pytest.raises(DataError, match="another model"):
        open_store(tmp_path / "store", handle=tiny_handle("llama", seed=1, bos=True))
    with pytest.raises(InputError, match="does not hold"):
        store["z", 0]


def test_a_store_of_chosen_positions_and_without_specials(tmp_path):
    handle = tiny_handle("llama", bos=True)
    runs = runs_of(handle)
    last = collect(handle, runs, tmp_path / "last", positions="last")
    assert list(last.rows["position"]) == [len(run.prompt.ids) - 1 for run in runs]
    role = collect(handle, runs, tmp_path / "role", positions="constraint")
    assert set(role.rows["role"]) == {"constraint"}
    plain = collect(handle, runs, tmp_path / "plain", specials=False)
    assert not plain.rows["is_special"].any()
    for options, words in (
        ({"sites": ("pattern",)}, "patterns"),
        ({"positions": [99]}, "position"),
        ({"positions": "x"}, "no act"),
    ):
        with pytest.raises(InputError, match=words):
            collect(handle, runs, tmp_path / "bad", **options)
    assert not (tmp_path / "bad").exists()


def test_a_store_holds_every_layer_unless_told_otherwise(tmp_path):
    handle = tiny_handle("llama")
    store = collect(handle, runs_of(handle), tmp_path / "all", positions="last")
    assert store.keys == [("resid_post", layer) for layer in range(handle.n_layers)]


def test_translators_are_affine_and_trained_on_other_prompts_than_they_are_measured_on(monkeypatch):
    handle = tiny_handle("llama", bos=True)
    prompts = [encode(handle, text, chat=False) for text in WORDS]
    seen, stream = [], tuned._stream

    def noted(engine, chosen):
        seen.append({prompt.text for prompt in chosen})
        return stream(engine, chosen)

    monkeypatch.setattr(tuned, "_stream", noted)
    lens, table = train_tuned_lens(handle, prompts, steps=3)
    held, trained = seen
    assert not held & trained and held | trained == set(WORDS) and len(held) == 1
    ordinary = sum(not special for prompt in prompts if prompt.text in held for special in prompt.is_special)
    assert set(table["n_tokens"]) == {ordinary} and prompts[0].is_special[0]
    x = torch.randn(2, handle.d_model)
    assert lens.bias.abs().max() > 0
    torch.testing.assert_close(lens(1, x), x + x @ lens.matrix[1].T + lens.bias[1])
    torch.testing.assert_close(lens(handle.n_layers, x), x)


def test_a_store_takes_pairs_and_items_as_well(tmp_path):
    handle = tiny_handle("llama")
    pair, item = tiny_pair(handle), builtin_items("scientist").items[0]
    store = collect(handle, [pair], tmp_path / "pair", layers=[1], positions="last")
    assert list(store.rows["run"]) == ["base", "source"] and set(store.rows["pair"]) == {pair.name}
    for row, prompt in enumerate((pair.base, pair.source)):
        truth = engine_of(handle).values(prompt.ids, [("resid_post", 1)])["resid_post", 1][-1]
        np.testing.assert_allclose(store["resid_post", 1][row], truth, atol=1e-5)
    store = collect(handle, [item], tmp_path / "item", layers=[1], positions="last")
    assert list(store.rows["which"]) == ["item", "control"] and set(store.rows["template"]) == {"chat"}
    assert store.metadata["model"]["weight_hash"] == handle.weight_hash
    with pytest.raises(InputError, match="runs, pairs or trap items"):
        collect(handle, ["text"], tmp_path / "text")


def test_a_tuned_lens_is_nearer_to_the_model_and_belongs_to_it(tmp_path):
    handle = tiny_handle("llama")
    prompts = [encode(handle, text, chat=False) for text in WORDS for _ in range(2)]
    lens, table = train_tuned_lens(handle, prompts, steps=150, learning_rate=5e-3)
    assert (table["kl_tuned"] < 0.8 * table["kl_logit"]).all()
    found = load_tuned_lens(lens.save(tmp_path / "lens.safetensors"), handle)
    rows, _ = answer_lens(handle, runs_of(handle), translate=found)
    plain, _ = answer_lens(handle, runs_of(handle))
    assert (rows["lens"] == "tuned").all() and torch.equal(found.matrix, lens.matrix)
    last = rows["layer"] == handle.n_layers - 1
    np.testing.assert_allclose(rows[last]["log_odds"], plain[last]["log_odds"], atol=1e-6)
    assert (rows[~last]["log_odds"] - plain[~last]["log_odds"]).abs().max() > 1e-3
    with pytest.raises(DataError, match="another model"):
        load_tuned_lens(tmp_path / "lens.safetensors", tiny_handle("llama", seed=1))
    with pytest.raises(InputError, match="prompts to train on"):
        train_tuned_lens(handle, prompts[:1])
