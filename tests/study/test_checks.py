"""What a study refuses before it begins, and what it makes of batches of which nothing is left."""

from __future__ import annotations

import errno
import json

import numpy as np
import pandas as pd
import pytest
import torch

from latentkt.cli import main
from latentkt.errors import DataError, InputError
from latentkt.models import handle_from_hf
from latentkt.results import files
from latentkt.study import StudyOptions, reading
from latentkt.study import work as stage_work
from latentkt.study.checks import check_prompts
from latentkt.study.context import Context
from latentkt.study.presets import select_items
from latentkt.study.stages import plan
from latentkt.study.workers import Pool
from latentkt.trapqa import ItemSet, builtin_items, load_items, mark_item, save_items
from tests.models.tiny import tiny_handle, tiny_model, tiny_tokenizer

SAME = mark_item(
    id="same",
    kind="action",
    family="tool_required",
    text="I hold [[shortcut: a hammer]] and [[constraint: screws]]. Do I {option_a} or {option_b}?",
    control={"constraint": "nailss"},
    correct="née",  # the tiny tokenizer folds accents
    shortcut="nee",
)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--limit", "0"], "limit is out of range"),
        (["--limit", "-3"], "limit is out of range"),
        (["--workers", "0"], "workers is out of range"),
        (["--window", "0"], "window is out of range"),
        (["--seed", "-1"], "seed is out of range"),
        (["--seed", str(2**32)], "seed is out of range"),
        (["--training-corpus"], "--corpus"),
        (["--template", "plain", "--system", "Be brief."], "no system prompt"),
        (["--out", "a" * 300], "cannot look into"),
    ],
)
def test_options_are_refused_before_anything_is_written(words, said, tiny_folder, tiny_items, tmp_path, capsys):
    out = [] if "--out" in words else ["--out", str(tmp_path / "run")]
    assert main(["study", str(tiny_folder), "--items", str(tiny_items), *out, *words]) == 2
    error = capsys.readouterr().err
    assert said in error and len(error.splitlines()) < 25
    assert not list(tmp_path.iterdir())


def test_resume_needs_the_folder(tiny_folder, tiny_items, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["study", str(tiny_folder), "--items", str(tiny_items), "--resume"]) == 2
    assert "--out" in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_chat_without_a_template_leaves_no_folder(tiny_items, tmp_path, capsys):
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = None
    tiny_model("llama", num_hidden_layers=2).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    words = [str(tmp_path / "model"), "--items", str(tiny_items), "--out", str(tmp_path / "run")]
    assert main(["study", *words, "--template", "chat"]) == 2
    assert "no chat template" in capsys.readouterr().err and not (tmp_path / "run").exists()


def context_of(items, handle=None, *, file: str | None = "mine.jsonl") -> Context:
    return Context(handle or tiny_handle(), {item.id: item for item in items}, StudyOptions(model="tiny", items=file))


def test_items_whose_answers_look_alike_are_named_with_their_file(tiny_items, tmp_path, tiny_folder, capsys):
    known = load_items(tiny_items)
    save_items(ItemSet((*known, SAME), known.patterns), tmp_path / "five.jsonl")
    words = [str(tiny_folder), "--items", str(tmp_path / "five.jsonl"), "--out", str(tmp_path / "run")]
    assert main(["study", *words]) == 2
    error = capsys.readouterr().err
    assert "five.jsonl: 1 of 5 items" in error and "'same'" in error and "to do:" in error
    assert not (tmp_path / "run").exists()


def test_prompts_longer_than_the_context_are_named(tiny_items):
    items = tuple(load_items(tiny_items))
    model = tiny_model("llama", num_hidden_layers=2, max_position_embeddings=100)
    with pytest.raises(DataError, match="4 of 4 items") as refused:
        check_prompts(context_of(items, handle_from_hf(model, tiny_tokenizer(), name="short")), items)
    assert "mine.jsonl" in str(refused.value) and "tokens" in str(refused.value)


def test_builtin_items_that_a_model_refuses_are_left_to_the_stages(tiny_items):
    items = (*load_items(tiny_items), SAME)
    check_prompts(context_of(items, file=None), items)
    with pytest.raises(DataError):
        check_prompts(context_of((SAME,), file=None), (SAME,))


def test_a_batch_of_which_nothing_is_left_has_no_rows():
    context, cells = context_of((SAME,)), (("same", "correct_first"),)
    answers, lens = stage_work.answers(context, cells), stage_work.lens(context, cells)
    assert len(answers["answers"]) == 0 and len(answers["answers_skipped"]) == 3
    assert len(lens["lens"]) == len(lens["activations"]) == 0 and len(lens["lens_skipped"]) == 2
    probes = reading.probes(context, (None, {"activations": lens["activations"]}))
    assert len(probes["probe"]) == 0 and len(probes["probe_skipped"]) == 1


def test_ties_are_right_nowhere_and_what_is_not_finite_is_neither_right_nor_wrong():
    frame = pd.DataFrame(
        {
            "item": ["a"] * 4,
            "order": ["correct_first"] * 4,
            "which": ["item", "control", "item", "control"],
            "right": ["correct", "shortcut"] * 2,
            "log_odds": [0.0, 0.0, np.nan, -1.0],
            "first_option_is_correct": [True, False, True, False],
        }
    )
    found = stage_work._with_neutral(frame)
    np.testing.assert_array_equal(found["is_right"], [0.0, 0.0, np.nan, 1.0])
    assert found["answer"].isna().tolist() == [True, True, True, False]


@pytest.mark.parametrize("limit", [1, 3, 5, 20])
def test_what_a_limit_leaves_is_measured_as_without_it(limit):
    """The preset's choice within a limit is contained in the preset's choice without one."""
    items = tuple(builtin_items())

    def inside(options):
        return {cell for stage in plan(items, options) if stage.name == "lens" for b in stage.batches for cell in b}

    small, whole = inside(StudyOptions("m", limit=limit)), inside(StudyOptions("m"))
    assert small <= whole and len(small) == 2 * min(limit, 8)


def test_fewer_than_one_item_cannot_be_selected():
    with pytest.raises(InputError):
        select_items(tuple(builtin_items()), per_kind=-3, seed=0)


def _threads(context, batch):
    return {"threads": torch.get_num_threads()}


def test_one_worker_has_one_thread_and_gives_the_others_back():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with Pool(dict, workers=1) as pool:
            assert [tables["threads"] for _, tables in pool.run(_threads, [(0, None)])] == [1]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_full_disk_is_one_screen_and_can_be_gone_on_with(tiny_folder, tiny_items, tmp_path, monkeypatch, capsys):
    words = ["study", str(tiny_folder), "--items", str(tiny_items), "--out", str(tmp_path / "run"), "--workers", "1"]
    full, calls = files.os.fsync, []

    def fsync(descriptor):
        calls.append(descriptor)
        if len(calls) > 40:
            raise OSError(errno.ENOSPC, "No space left on device")
        full(descriptor)

    monkeypatch.setattr(files.os, "fsync", fsync)
    assert main(words) == 2
    error = capsys.readouterr().err
    assert "No space left" in error and "--resume" in error and len(error.splitlines()) < 25
    assert json.loads((tmp_path / "run" / "metadata.json").read_text())["finished"] is False
    assert not list((tmp_path / "run").rglob(".unfinished-*")) and not (tmp_path / "run" / "report.html").exists()
    monkeypatch.setattr(files.os, "fsync", full)
    assert main([*words, "--resume"]) == 0
