"""What the presets must show, on networks trained here: minutes each. Bounds are not tuned to any seed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from latentkt.synthetic import check_run, preset, run_preset, run_r_test, verdict

pytestmark = pytest.mark.slow
EXPERIMENTS = Path(__file__).parents[2] / "experiments"


@pytest.mark.parametrize("name", ["small", "uninformative", "long"])
def test_a_preset_shows_what_it_promises(name, tmp_path):
    checks = check_run(run_preset(preset(name), seeds=[0, 1, 2], out=tmp_path / name))
    assert checks
    assert [str(check) for check in checks if not check.passed] == []


def test_the_r_test_confirms_each_corpus_and_refutes_the_other(tmp_path):
    run = run_r_test(seeds=[0, 1, 2], out=tmp_path / "run")
    for item in verdict(run.tables["r_fits"]):
        assert item.verdict == ("confirmed" if item.prediction == item.corpus else "refuted"), str(item)


@pytest.mark.parametrize("name", ["dominance_law", "cooccurrence"])
def test_an_experiment_says_refuted_where_its_prediction_is_false(name, tmp_path):
    """One seed in each world; exit code 0 means that the false world was refuted."""
    config = json.loads((EXPERIMENTS / "configs" / f"{name}.json").read_text())
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**config, "seeds": [0]}))
    command = [sys.executable, str(EXPERIMENTS / f"{name}.py"), "--config", str(path), "--out", str(tmp_path / "out")]
    assert subprocess.run(command, check=False).returncode == 0
    found = json.loads((tmp_path / "out" / "verdict.json").read_text())
    assert [outcome["verdict"] for outcome in found["outcomes"]] == ["confirmed", "refuted"]
