from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from latentkt.cli import main
from latentkt.errors import InputError
from latentkt.keytask import bound_ratio
from latentkt.results import load_run
from latentkt.synthetic import PathStream, RTestConfig, make_path_world, path_model, verdict
from latentkt.synthetic.rstream import answer_chance
from latentkt.synthetic.rtest import (
    PREDICTIONS,
    REGRESSORS,
    check_design,
    check_exact,
    exact_dominance,
    fit_r,
    path_answers,
    path_items,
)
from latentkt.synthetic.rworld import path_world_from_dict


@pytest.fixture(scope="module", params=["pair-neutral", "path-neutral"])
def corpus(request) -> str:
    return request.param


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_exact_predictor_returns_the_corpus_prediction(corpus, seed):
    world = make_path_world(corpus, seed=seed)
    items = path_items(world)
    found = check_exact(world, items).set_index("binding")
    for binding, expected in PREDICTIONS[corpus].items():
        assert found.loc[binding, list(REGRESSORS)].to_numpy(dtype=float) == pytest.approx(expected, abs=1e-3)
        assert found.loc[binding, "r2"] == pytest.approx(1)
    assert found.loc["task", "r2"] < 0.9  # not linear


def test_a_mixture_lies_between():
    world = replace(make_path_world("pair-neutral", seed=0), pair_neutral_share=0.5)
    row = check_exact(world, path_items(world)).set_index("binding").loc["path"]
    assert 0.3 < row["log_r"] < 0.8


@pytest.mark.parametrize("binding", ["path", "key", "task"])
def test_the_key_task_model_agrees(corpus, binding):
    world = make_path_world(corpus, seed=3)
    items = path_items(world).sample(25, random_state=0)
    expected = exact_dominance(world, items, binding)
    for row, value in zip(items.itertuples(), expected, strict=True):
        shortcut, correct = (row.shortcut, row.shortcut_task), (row.correct, row.correct_task)
        model, paths = path_model(world, shortcut=shortcut, correct=correct, binding=binding)
        answer = model.predictive()
        assert np.log(answer[paths.y_s] / answer[paths.y_0]) == pytest.approx(value)
        w = model.posterior()
        kappa = w[paths.k_s].sum()
        tau_s, tau_0 = w[paths.k_s, paths.t_s] / kappa, w[paths.k_0, paths.t_0] / (1 - kappa)
        assert np.log(bound_ratio(binding, kappa=kappa, tau_s=tau_s, tau_0=tau_0)) == pytest.approx(value)


def test_documents_keep_the_prior_and_the_posterior(corpus):
    """Drawn paths have frequencies π(k, t), and among ambiguous documents of one prompt the exact posterior."""
    world = make_path_world(corpus, seed=0, keys=6, tasks=3, ambiguous_share=0.6, held_shifts=1)
    drawn = PathStream(world)._draw(np.random.default_rng(0), 400_000)
    counts = np.zeros(world.pi.shape)
    np.add.at(counts, (drawn["key"], drawn["task"]), 1)
    expected = world.pi * counts.sum()
    assert np.sum((counts - expected) ** 2 / expected) < 40  # chi-square, 17 degrees of freedom
    assert drawn["ambiguous"].mean() == pytest.approx(0.6, abs=0.005)
    here = {name: values[drawn["ambiguous"]] for name, values in drawn.items()}
    frame = pd.DataFrame({name: here[name] for name in ("key", "task", "other_key", "other_task")})
    ends = [np.sort([here[name], here[f"other_{name}"]], axis=0) for name in ("key", "task")]
    frame["prompt"] = [str(pair) for pair in zip(*ends[0], *ends[1], strict=True)]
    frame["chance"] = answer_chance(world, {**here, "asks_key": np.zeros(len(frame), dtype=bool)})
    seen = frame.groupby(["prompt", "key", "task"]).agg(n=("chance", "size"), chance=("chance", "first")).reset_index()
    total = seen.groupby("prompt")["n"].transform("sum")
    z = (seen["n"] - total * seen["chance"]) / np.sqrt(total * seen["chance"] * (1 - seen["chance"]))
    assert z.abs().max() < 5
    assert (z**2).mean() == pytest.approx(1, abs=0.35)


def test_held_out_combinations_are_never_shown(corpus):
    world = make_path_world(corpus, seed=0)
    items = path_items(world)
    assert items["unseen"].mean() == pytest.approx(2 / 11.5, abs=0.01)
    drawn = PathStream(world)._draw(np.random.default_rng(0), 100_000)
    shown = {
        (min(k, j), max(k, j), min(t, u), max(t, u))
        for k, j, t, u in zip(*(drawn[n].tolist() for n in ("key", "other_key", "task", "other_task")), strict=True)
    }
    held = items[items["unseen"]]
    for row in held.itertuples():
        tasks = sorted((row.shortcut_task, row.correct_task))
        assert (row.shortcut, row.correct, *tasks) not in shown


def test_batches_say_what_was_drawn(corpus):
    stream = PathStream(make_path_world(corpus, seed=0), batch=64, steps=5)
    batches = list(stream.batches(0))
    assert len(batches) == 5
    for batch in batches:
        assert batch.answer.sum() == 64 and (batch.floor >= 0).all()
        for row in batch.ids.tolist():
            words = stream.vocabulary.text(row).split()
            a, b, first, second, question, answer = words
            if question == "?key":
                assert answer in (a, b)
            else:
                key, task = answer[1:].split(".")
                assert f"k{key}" in (a, b) and f"t{task}" in (first, second)
            assert (a == b) == (first == second)
    again = next(stream.batches(0))
    assert torch.equal(again.ids, batches[0].ids)
    assert not torch.equal(next(stream.batches(1)).ids, batches[0].ids)


def _exact_network(stream):
    """A network that answers by the exact predictor of its world."""
    world, vocabulary = stream.world, stream.vocabulary
    key0, task0, answer0 = (vocabulary.id(word) for word in ("k0", "t0", "y0.0"))

    def logits(ids):
        out = torch.full((*ids.shape, len(vocabulary)), -60.0, dtype=torch.float64)
        prompts = ids.numpy()
        keys, tasks = prompts[:, 1:3] - key0, prompts[:, 3:5] - task0
        rows = np.arange(len(prompts))
        for i in (0, 1):
            mass = [world.joint(keys[:, i], tasks[:, j], tasks[:, 1 - j]) for j in (0, 1)]
            for j in (0, 1):
                out[rows, -1, answer0 + keys[:, i] * world.tasks + tasks[:, j]] = torch.from_numpy(np.log(mass[j]))
            is_key = prompts[:, 5] == vocabulary.id("?key")
            out[rows[is_key], -1, prompts[is_key, 1 + i]] = torch.from_numpy(np.log(mass[0] + mass[1]))[is_key] + 30
        return out

    return logits


def test_an_exact_network_is_confirmed_by_its_corpus_and_refuted_by_the_other():
    tables = []
    for corpus in PREDICTIONS:
        for seed in (0, 1):
            stream = PathStream(make_path_world(corpus, seed=seed, keys=10))
            items = path_items(stream.world)
            tables.append(path_answers(_exact_network(stream), stream, items).assign(corpus=corpus, seed=seed))
    answers = pd.concat(tables, ignore_index=True)
    assert np.allclose(answers["dominance"], answers["bayes_dominance"])
    fits = fit_r(answers)
    for item in verdict(fits):
        assert item.verdict == ("confirmed" if item.prediction == item.corpus else "refuted")
        assert item.found.value == pytest.approx(PREDICTIONS[item.corpus]["path"][2], abs=1e-6)


def test_impossible_designs_are_refused():
    with pytest.raises(InputError, match=r"exceed the prior[\s\S]*R = 1"):
        replace(make_path_world("pair-neutral", seed=0), ambiguous_share=1.0)
    with pytest.raises(InputError, match="exceed the prior"):
        replace(make_path_world("pair-neutral", seed=0), ambiguous_share=0.95)
    with pytest.raises(InputError, match="three relations"):
        make_path_world("pair-neutral", seed=0, tasks=2)
    with pytest.raises(InputError, match="no row"):
        make_path_world("pair-neutral", seed=0, ambiguous_share=0.97, task_spread=3.0)
    with pytest.raises(InputError, match="unknown"):
        make_path_world("neutral", seed=0)
    flat = make_path_world("pair-neutral", seed=0, task_spread=0.0)
    with pytest.raises(InputError, match="does not vary"):
        check_design(path_items(flat))
    items = path_items(make_path_world("pair-neutral", seed=0))
    with pytest.raises(InputError, match="tell the regressors apart"):
        check_design(items.assign(log_r=items["log_rho_task"] + 0.1 * items["log_r"]))
    with pytest.raises(InputError, match="no such setting"):
        RTestConfig().with_settings({"colour": 1})


def test_worlds_are_data(corpus):
    import json

    world = make_path_world(corpus, seed=5)
    assert path_world_from_dict(json.loads(world.to_json())) == world


def test_a_short_run_writes_its_tables(tmp_path, capsys):
    settings = ["keys=8", "epochs=1", "steps=10", "batch=32", "ambiguous_share=0.4"]
    command = ["synthetic", "r-test", "--seeds", "0", "--out", str(tmp_path / "run"), "--set", *settings]
    assert main(command) == 0
    assert capsys.readouterr().out.count("prediction c_R") == 4
    run = load_run(tmp_path / "run")
    assert {"r_design", "r_exact", "r_answers", "training", "networks", "r_fits"} == set(run.tables)
    assert {item.corpus for item in verdict(run.tables["r_fits"])} == set(PREDICTIONS)
    assert (run.path / "figures" / "r_coefficients.svg").exists()
    assert "pair-neutral" in (run.path / "report.html").read_text(encoding="utf-8")
