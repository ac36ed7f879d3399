"""The task of inspect-ai and its logs: scripted replies go in, exactly their answers come out."""

from __future__ import annotations

import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from latentkt.cli import main
from latentkt.errors import DataError
from latentkt.phantom import Concept, save_concepts
from latentkt.phantom.answers import read_answers
from latentkt.phantom.asking import answers_from_log
from latentkt.phantom.asking.inspect_samples import samples_of
from latentkt.phantom.prompts import BASIC

pytest.importorskip("inspect_ai")

# What is said, why it stopped -> answer, finished, truncated.
SCRIPT = [
    ("It is a sail.", "stop", ("It is a sail.", True, None)),
    ("It is a sai", "max_tokens", ("It is a sai", False, "answer")),
    ("<think>so</think>I do not know.", "stop", ("I do not know.", True, None)),
    ("<think>so far", "max_tokens", ("", False, "thinking")),
]


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    from inspect_ai import eval as evaluate
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    from latentkt.phantom.inspect_tasks import phantom

    folder = tmp_path_factory.mktemp("logs")
    save_concepts([Concept.make("brine ohmage", kind="term", category="c")], folder / "c.jsonl")
    samples, _ = samples_of(str(folder / "c.jsonl"))
    said = {sample.input[0].text: SCRIPT[n] for n, sample in enumerate(samples)}

    def output(messages, tools, choice, config):
        text, stop, _ = said[messages[0].text]
        made = ModelOutput.from_content("scripted-1", text, stop_reason=stop)
        made.usage = ModelUsage(input_tokens=1, output_tokens=9, total_tokens=10, reasoning_tokens=7)
        return made

    model = get_model("mockllm/model", custom_outputs=output, memoize=False)
    task = phantom(concepts=str(folder / "c.jsonl"))
    return evaluate(task, model=model, display="none", log_dir=str(folder), reasoning_effort="low")[0]


def test_answers_of_a_log_are_what_was_said(log, tmp_path, capsys):
    found = answers_from_log(log.location)
    by_property = {a.property: (a.answer, a.finished, a.truncated) for a in found.answers}
    assert [by_property[name] for name in BASIC] == [told for _, _, told in SCRIPT]
    assert {(a.setting, a.thinking_budget, a.thinking_tokens) for a in found.answers} == {
        ("mockllm/model reasoning_effort=low", "low", 7)
    }
    assert found.provenance[0]["model_ids_returned"] == ["scripted-1"]
    out = tmp_path / "a.jsonl"
    assert main(["phantom", "ask", "--from-log", log.location, "--out", str(out), "--setting", "mock"]) == 0
    assert {answer.setting for answer in read_answers(out)} == {"mock"}
    assert "cut off in the answer 1, in the reasoning 1" in capsys.readouterr().out


def test_the_score_of_the_task_is_the_phrase_lists_and_says_so(log):
    (score,) = log.results.scores
    assert score.name == "phrase_list_says_it_abstains"
    assert score.metrics["mean"].value == pytest.approx(0.25)  # "I do not know." alone


def test_a_provider_that_does_not_tell_and_one_that_failed(log, tmp_path):
    from inspect_ai.log import EvalError, read_eval_log, write_eval_log

    local = read_eval_log(log.location)
    local.eval.model = "hf/smollm2"
    local.samples[0].error = EvalError(message="out of memory", traceback="", traceback_ansi="")
    write_eval_log(local, str(tmp_path / "local.eval"))
    first, *rest = answers_from_log(tmp_path / "local.eval").answers
    assert first.error == "out of memory" and first.finished is False
    assert [a.finished for a in rest] == [None, None, False]  # reasoning that never ends is seen all the same
    other = read_eval_log(log.location)
    other.samples[0].metadata = {}
    write_eval_log(other, str(tmp_path / "other.eval"))
    with pytest.raises(DataError, match="no sample of the task"):
        answers_from_log(tmp_path / "other.eval")


def test_the_entry_point_names_the_task():
    root = Path(__file__).parents[2]
    points = tomllib.loads((root / "pyproject.toml").read_text())["project"]["entry-points"]["inspect_ai"]
    module = import_module(points["latentkt"])
    assert {"phantom", "trapqa_names"} <= set(module.__all__)
    assert module.phantom().dataset[0].metadata["concept"]["concept"]


@pytest.mark.slow
@pytest.mark.smollm2
def test_the_local_model_is_asked_without_a_network(tmp_path):
    """The command of the guide, through inspect-ai's own provider for local models."""
    from inspect_ai import eval as evaluate

    from latentkt.inspect_tasks import phantom
    from latentkt.models.smollm2 import find_smollm2

    evaluated = evaluate(
        phantom(),
        model="hf/smollm2",
        model_args={"model_path": str(find_smollm2()), "device": "cpu"},
        limit=6,
        max_tokens=8,
        display="none",
        log_dir=str(tmp_path),
    )[0]
    found = answers_from_log(evaluated.location)
    assert len(found.answers) == 6 and all(answer.answer and answer.finished is None for answer in found.answers)
