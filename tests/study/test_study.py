"""The main job on a tiny model: complete, reproducible, resumable after a kill, and refused where it cannot work."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from latentkt.cli import main
from latentkt.results import load_run
from latentkt.study import StudyOptions, study

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def run_folder(tiny_folder, tiny_items, tmp_path_factory):
    options = StudyOptions(model=str(tiny_folder), items=str(tiny_items))
    return study(options, out=tmp_path_factory.mktemp("runs") / "whole", workers=1)


def tables_of(folder):
    return {path.name: path.read_bytes() for path in sorted((folder / "tables").glob("*.parquet"))}


def test_every_item_is_asked_in_every_way(run_folder):
    answers = load_run(run_folder).tables["answers"]
    assert len(answers) == 4 * 3 * 2  # items, {item, control, neutral}, orders
    assert answers.groupby(["which", "order"]).size().eq(4).all()
    assert answers.loc[answers["which"] == "neutral", "is_right"].isna().all()
    np.testing.assert_allclose(
        answers["corrected_log_odds"], answers["log_odds"] - answers["neutral_log_odds"], atol=1e-12
    )


def test_a_pair_of_unequal_length_is_listed_not_dropped(run_folder):
    run = load_run(run_folder)
    skipped = run.tables["skipped"]
    unequal = skipped[skipped["reason"].str.contains("unequal length")]
    patched = set(run.tables["patch"]["item"])
    assert set(unequal["item"]) | patched == {"shelf", "tent", "wash", "tank"}
    assert not set(unequal["item"]) & patched
    assert len(unequal), "the fixture holds a pair of unequal length"


def test_patching_in_both_directions_and_lens_ends_at_the_answer(run_folder):
    run = load_run(run_folder)
    patch, lens, answers = run.tables["patch"], run.tables["lens"], run.tables["answers"]
    assert set(patch["direction"]) == {"control_to_item", "item_to_control"}
    last = lens[lens["layer"] == 1].set_index(["item", "which", "order"])["log_odds"]
    asked = answers.set_index(["item", "which", "order"])["log_odds"].reindex(last.index)
    np.testing.assert_allclose(last, asked, atol=1e-4)
    base = patch.groupby(["item", "base", "order"])["base_value"].first()
    np.testing.assert_allclose(base, asked.reindex(base.index), atol=1e-4)


def test_report_stands_beside_the_tables(run_folder):
    assert (run_folder / "report.html").stat().st_size > 10_000
    assert len((run_folder / "items.jsonl").read_text().splitlines()) == 4


def test_same_seed_same_bytes_whatever_the_number_of_processes(run_folder, tiny_folder, tiny_items, tmp_path):
    options = StudyOptions(model=str(tiny_folder), items=str(tiny_items))
    again = study(options, out=tmp_path / "again", workers=2)
    assert tables_of(again) == tables_of(run_folder)


def test_a_killed_study_resumes_to_the_same_bytes(run_folder, tiny_folder, tiny_items, tmp_path):
    out = tmp_path / "killed"
    command = [sys.executable, "-m", "latentkt", "study", str(tiny_folder), "--items", str(tiny_items)]
    command += ["--out", str(out), "--workers", "1"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not list(out.glob("parts/lens/*.parquet")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    finished = out.exists() and json.loads((out / "metadata.json").read_text())["finished"]
    assert not finished, "it was killed too late to show anything"
    assert main([*command[3:], "--resume"]) == 0
    assert tables_of(out) == tables_of(run_folder)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_workers_end_with_a_killed_parent(tiny_folder, tiny_items, tmp_path):
    """A worker that outlived its parent would hold a model in memory and wait for work for ever."""
    out = tmp_path / "killed"
    command = [sys.executable, "-m", "latentkt", "study", str(tiny_folder), "--items", str(tiny_items)]
    command += ["--out", str(out), "--workers", "2"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not list(out.glob("parts/*/*.parquet")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    workers = children_of(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(workers) >= 2
    while any(Path(f"/proc/{pid}").exists() for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]


def children_of(pid):
    """Processes whose parent is `pid`."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = path.read_text().rpartition(")")[2].split()[1]
        except OSError:  # it ended meanwhile
            continue
        if parent == str(pid):
            found.append(path.parent.name)
    return found


def test_an_existing_run_is_refused_without_resume(run_folder, tiny_folder, tiny_items, capsys):
    code = main(["study", str(tiny_folder), "--items", str(tiny_items), "--out", str(run_folder)])
    assert code == 2 and "--resume" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model": "no/such/folder/anywhere"}, "no/such/folder"),
        ({"items": "missing.jsonl"}, "missing.jsonl"),
        ({"empty": True}, "empty.jsonl"),
    ],
)
def test_bad_input_is_one_screen_and_exit_code_2(change, said, tiny_folder, tiny_items, tmp_path, capsys):
    items = str(tiny_items)
    if change.get("empty"):
        items = str(tmp_path / "empty.jsonl")
        Path(items).write_text("")
    code = main(
        [
            "study",
            change.get("model", str(tiny_folder)),
            "--items",
            change.get("items", items),
            "--out",
            str(tmp_path / "run"),
        ]
    )
    error = capsys.readouterr().err
    assert code == 2 and said in error and len(error.splitlines()) < 25
    assert not (tmp_path / "run").exists()


def test_a_study_of_unequal_pairs_only_still_reports(tiny_folder, tiny_items, tmp_path):
    """Everything of a stage may be skipped: the run is whole, and says so."""
    lines = [line for line in tiny_items.read_text().splitlines() if json.loads(line)["id"] == "shelf"]
    lines = [json.dumps({**json.loads(line), "paths": None}) for line in lines]
    (tmp_path / "one.jsonl").write_text("\n".join(lines) + "\n")
    options = StudyOptions(model=str(tiny_folder), items=str(tmp_path / "one.jsonl"))
    run = load_run(study(options, out=tmp_path / "run", workers=1))
    assert not run.has("patch") and not run.has("probe")
    assert {"patching", "probes"} <= set(run.tables["skipped"]["stage"])
    assert "Patching by role" in (run.path / "report.html").read_text()


def test_a_corpus_adds_priors_certificates_and_the_scatter(tiny_folder, tiny_items, tmp_path):
    """Counts of a text that is written here, beside what the network does; the priors are those of the text."""
    text = ["The screws turn."] * 8 + ["A hammer, to hit."] * 60 + ["To wash a car, drive."] * 9 + ["Near: walk."] * 40
    path = tmp_path / "corpus"
    path.mkdir()
    for number in range(6):
        lines = [json.dumps({"text": line, "source": f"book {number}"}) for line in text]
        (path / f"{number}.jsonl").write_text("\n".join(lines) + "\n")
    options = StudyOptions(model=str(tiny_folder), items=str(tiny_items), corpus=(str(path),), window=10)
    run = load_run(study(options, out=tmp_path / "run", workers=1))
    join = run.tables["join"].set_index("item")
    assert join.loc["shelf", ["shortcut_units", "correct_units"]].tolist() == [360, 48]
    assert join.loc["shelf", "log_prior_ratio"] == pytest.approx(np.log(360 / 48), abs=0.05)
    asked = run.tables["answers"]
    asked = asked[(asked["item"] == "shelf") & (asked["which"] == "item")]
    assert join.loc["shelf", "dominance"] == pytest.approx(-asked["corrected_log_odds"].mean())
    assert join.loc["tank", "why_not"] == "neither path occurs" and not join.loc["tank", "plotted"]
    page = (run.path / "report.html").read_text()
    assert "Prior and dominance" in page and "nothing here tests that training" in page


def test_a_corpus_without_patterns_is_refused_before_the_model_is_opened(tiny_items, tmp_path, capsys):
    lines = [{**json.loads(line), "paths": None} for line in tiny_items.read_text().splitlines()]
    (tmp_path / "bare.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    code = main(["study", "no-such-model", "--items", str(tmp_path / "bare.jsonl"), "--corpus", str(tmp_path)])
    assert code == 2 and "--corpus" in capsys.readouterr().err
