"""The smoke preset from the command line to the report, and what must not happen to a run."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest

from latentkt.cli import main
from latentkt.errors import InputError, RunError
from latentkt.results import load_run
from latentkt.synthetic import PRESETS, check_run, network_folder, preset, run_preset, run_summary, run_sweep
from latentkt.synthetic.run import TABLES

from .conftest import TINY, TINY_TRAINING


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    out = tmp_path_factory.mktemp("synthetic") / "smoke"
    assert main(["synthetic", "run", "--preset", "smoke", "--seeds", "0", "--out", str(out)]) == 0
    return load_run(out)


def test_the_smoke_preset_writes_everything(smoke):
    assert set(TABLES) | {"pairs", "fits"} == set(smoke.tables)
    assert set(run_summary(smoke)["seeds"]) == {"0"}
    assert (smoke.path / "report.html").stat().st_size > 10_000
    assert {path.name for path in (smoke.path / "figures").iterdir()} == {
        "dominance_law.svg", "trap_errors.svg", "training_curve.svg",
    }  # fmt: skip
    training = smoke.tables["training"]
    assert training["answer_nll"].iloc[-1] < training["answer_nll"].iloc[0]
    assert "seconds" not in training
    assert check_run(smoke) == []


def test_an_existing_run_is_refused_and_resuming_changes_nothing(smoke, capsys):
    out = str(smoke.path)
    assert main(["synthetic", "run", "--preset", "smoke", "--seeds", "0", "--out", out]) == 2
    assert "exists" in capsys.readouterr().err
    before = {path.name: path.read_bytes() for path in (smoke.path / "tables").iterdir()}
    assert main(["synthetic", "run", "--preset", "smoke", "--seeds", "0", "--out", out, "--resume"]) == 0
    assert before == {path.name: path.read_bytes() for path in (smoke.path / "tables").iterdir()}


def test_the_saved_network_opens_and_answers_as_measured(smoke):
    """The Hugging Face folder gives the log-odds that the tables hold."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from latentkt.synthetic import load_world

    folder = network_folder(smoke.path, 0)
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    world = load_world(folder / "world.json")
    row = smoke.tables["choices"].query("order == 'correct_first' and pairing == 'opposed'").iloc[5]
    relation = next(r for r in world.relations if r.name == row["relation"])
    shortcut, correct = (world.entities[int(row[role])] for role in ("shortcut", "correct"))
    attribute = relation.attributes[relation.cluster[int(row["correct"])]]
    # The note is redrawn for each item; some note gives the stored value.
    found = []
    for note in ("scholar", "teacher", "writer", "member", "visitor", "resident"):
        word = ("indeed", "not")[int(row["word"])]
        text = f"{correct} or {shortcut} : {note} did {word} {relation.verb} {attribute} ?"
        with torch.no_grad():
            log_p = model(**tokenizer(text, return_tensors="pt")).logits[0, -1].double().log_softmax(-1)
        ids = [tokenizer.convert_tokens_to_ids(name) for name in (shortcut, correct)]
        found.append(float(log_p[ids[0]] - log_p[ids[1]]))
    assert min(abs(value - row["dominance"]) for value in found) < 1e-4


def test_open_model_reads_the_saved_network(smoke):
    """The library's own opening checks pass, and string scores agree with the tables' odds up to the terminator."""
    from latentkt import models
    from latentkt.synthetic import load_world

    folder = network_folder(smoke.path, 0)
    handle = models.open_model(str(folder))
    world = load_world(folder / "world.json")
    row = smoke.tables["choices"].query("order == 'correct_first' and pairing == 'same'").iloc[3]
    relation = next(r for r in world.relations if r.name == row["relation"])
    shortcut, correct = (world.entities[int(row[role])] for role in ("shortcut", "correct"))
    attribute = relation.attributes[relation.cluster[int(row["correct"])]]
    word = ("indeed", "not")[int(row["word"])]
    scores = []
    for note in ("scholar", "teacher", "writer", "member", "visitor", "resident"):
        text = f"{correct} or {shortcut} : {note} did {word} {relation.verb} {attribute} ?"
        encoded = models.encode(handle, text, chat=False, spans={})
        answers = models.encode_answers(handle, encoded, f" {correct}", f" {shortcut}")
        assert len(answers.correct_ids) == 2  # the name and the newline, which the network knows
        scores.append(-float(models.score_answers(handle, [encoded], [answers]).first_token_log_odds[0]))
    assert min(abs(score - row["dominance"]) for score in scores) < 1e-4


@pytest.mark.slow
def test_inside_the_networks(smoke, tmp_path):
    """Patching every embedding gives the control, attributions add up, the last layer of the lens is the model."""
    from latentkt.synthetic import run_inside

    run = run_inside(smoke, out=tmp_path / "inside", number=4)
    read = {"probe_layers", "verdict", "atp", "edges", "knockout", "faithfulness"}
    assert set(run.tables) == {"lens", "patch", "patch_shortcut", "attribution", "probe", *read}
    assert run.tables["faithfulness"]["none_error"].abs().max() < 1e-4
    assert run.tables["knockout"]["no_cut_error"].abs().max() < 1e-4 and run.tables["knockout"]["effect"].notna().all()
    assert run.tables["atp"]["exact"].notna().sum() > 0 and run.tables["edges"]["n_edges"].nunique() == 1
    lens = run.tables["lens"]
    assert set(lens["kind"]) == {"independent", "cooccurring"} and set(lens["layer"]) == {-1, 0, 1}
    assert lens.loc[lens["layer"] == 1, "kl_to_final"].abs().max() < 1e-6
    assert run.tables["patch"]["full_patch_error"].abs().max() < 1e-4
    assert run.tables["attribution"]["completeness_error"].abs().max() < 1e-3
    assert set(run.tables["patch"]["role"]) >= {"shortcut", "constraint", "last"}
    with pytest.raises(InputError, match="no fact world"):
        run_inside(run, out=tmp_path / "again")


def _tiny():
    return replace(preset("smoke"), world=TINY, training=replace(TINY_TRAINING, epochs=2))


def test_an_interrupted_run_ends_as_an_unbroken_one(tmp_path, monkeypatch):
    whole = run_preset(_tiny(), seeds=[0, 1], out=tmp_path / "whole")
    from latentkt.synthetic import keeping as module

    train = module.train

    def interrupted(*args, seed, **kwargs):
        if seed == 1:
            raise KeyboardInterrupt
        return train(*args, seed=seed, **kwargs)

    monkeypatch.setattr(module, "train", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_preset(_tiny(), seeds=[0, 1], out=tmp_path / "broken")
    monkeypatch.undo()
    with pytest.raises(RunError):
        run_preset(_tiny(), seeds=[0, 1], out=tmp_path / "broken")
    resumed = run_preset(_tiny(), seeds=[0, 1], out=tmp_path / "broken", resume=True)
    for name in whole.tables:
        assert (tmp_path / "whole" / "tables" / f"{name}.parquet").read_bytes() == (
            tmp_path / "broken" / "tables" / f"{name}.parquet"
        ).read_bytes()
    assert resumed.finished


def test_a_sweep_runs_every_level(tmp_path):
    settings = {"world.levels": 4, "world.held_same": 0, "world.held_opposed": 1, "epochs": 1}
    sweep = run_sweep("smoke", over="rho", values=[0.1, 0.4], seeds=[0], settings=settings, out=tmp_path / "sweep")
    table = sweep.tables["sweep"]
    assert sorted(table["level"].unique()) == [0.1, 0.4]
    assert (tmp_path / "sweep" / "runs" / "rho-0.4" / "summary.json").exists()
    with pytest.raises(InputError, match="each once"):
        run_sweep("smoke", over="rho", values=[0.1, 0.1], seeds=[0], out=tmp_path / "twice")


def test_impossible_settings_are_refused_before_anything_is_written(tmp_path):
    for settings, words in (({"rho": 0.9}, "opposed_share"), ({"colour": 1}, "no setting"), ({"depth": 0}, "under 1")):
        with pytest.raises(InputError, match=words):
            run_preset(preset("smoke", settings), seeds=[0], out=tmp_path / "run")
    with pytest.raises(InputError, match="each once"):
        run_preset(preset("smoke"), seeds=[0, 0], out=tmp_path / "run")
    with pytest.raises(RunError, match="does not exist here"):
        run_preset(preset("smoke", {"training.device": "quantum"}), seeds=[0], out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    assert main(["synthetic", "run", "--preset", "smoke", "--out", str(tmp_path / "run"), "--set", "rho"]) == 2


def test_presets_are_what_they_say():
    assert PRESETS["uninformative"].world.clusters[0].noise == 0.5
    assert PRESETS["long"].training.epochs == 28
    assert PRESETS["soft"].training.soft_labels
    assert PRESETS["large"].training.device == "cuda"
    assert [cluster.opposed_share for cluster in PRESETS["small"].world.clusters] == [0.0, 0.2]
    assert preset("small", {"noise": 0.2, "depth": 4}).training.network.layers == 4


def test_the_corpus_command(tmp_path, capsys):
    assert main(["synthetic", "corpus", "--preset", "smoke", "--out", str(tmp_path / "text")]) == 0
    assert (tmp_path / "text" / "corpus.patterns.json").exists()
    assert main(["synthetic", "corpus", "--preset", "action-prior", "--out", str(tmp_path / "other")]) == 2
    assert "documents in" in capsys.readouterr().out


def test_json_of_the_summary_has_no_nan(smoke):
    json.loads((smoke.path / "summary.json").read_text(), parse_constant=lambda name: pytest.fail(name))
    assert isinstance(smoke.tables["fits"], pd.DataFrame)


def test_a_sweep_promises_nothing():
    """Its worlds are not the preset's, so the preset's promises are not held against them."""
    sweep = SimpleNamespace(identity={"preset": "small"}, has=lambda name: name == "sweep")
    assert check_run(sweep) == []
