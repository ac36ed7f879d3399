"""Tasks of inspect-ai and their logs: scripted replies go in, exactly their labels come out."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from importlib import import_module

import pytest

from latentkt.cli import main
from latentkt.errors import DataError, InputError, MissingExtraError, RunError
from latentkt.trapqa import builtin_items
from latentkt.trapqa.matching import Reply
from latentkt.trapqa.running import read_records, records_from_log
from latentkt.trapqa.running.inspect_log import save_log_records
from latentkt.trapqa.running.inspect_samples import match_reply, question_of, read_fields, samples_of

pytest.importorskip("inspect_ai")

# What is said of the right and the wrong candidate -> what it is. In the order of the samples, again and again.
SCRIPT = [
    ("{right}", "correct", "stop"),
    ("{wrong}.", "shortcut", "stop"),
    ("It cannot be {wrong}. The answer is **{right}**.", "correct", "stop"),
    ("Neither of them did it.", "off", "stop"),
    ("{right}... wait, no. {wrong}.", "shortcut", "stop"),
    ("<think>{right}?</think>\n{wrong}", "shortcut", "stop"),
    ("It is one of {right} and {wrong}, that is", "off", "max_tokens"),
    ("<think>So {right} has", "off", "max_tokens"),
    ("If he had won it, {wrong} would do.", "off", "stop"),
    ("Answer: {right}", "correct", "stop"),
]
N = 60


def _labels() -> dict[tuple[str, str], str]:
    keys = [(item.id, order) for item in builtin_items("scientist") for order in ("correct_first", "shortcut_first")]
    return {key: SCRIPT[n % len(SCRIPT)][1] for n, key in enumerate(keys[:N])}


def _reply(metadata: dict, n: int) -> tuple[str, str]:
    words, _, stop = SCRIPT[n % len(SCRIPT)]
    return words.format(right=metadata["correct"]["text"], wrong=metadata["shortcut"]["text"]), stop


def _model(said: dict[str, tuple[str, str]], confidence: str = "90"):
    """A model that says what is scripted for a prompt; it carries its usage, so nothing counts its tokens."""
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    def output(messages, tools, choice, config):
        text, stop = said[messages[0].text] if len(messages) == 1 else (confidence, "stop")
        made = ModelOutput.from_content("scripted-2026-01-01", text, stop_reason=stop)
        made.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return made

    return get_model("mockllm/model", custom_outputs=output, memoize=False)


def _evaluate(task, said, folder, **options):
    from inspect_ai import eval as evaluate

    options = {"display": "none", "log_dir": str(folder), **options}
    confidence = options.pop("confidence", "90")
    return evaluate(task, model=_model(said, confidence), **options)[0]


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Sixty scripted replies to the built-in names, in both orders."""
    from latentkt.trapqa.inspect_tasks import trapqa_names

    samples = samples_of("names", orders="both")[0][:N]
    said = {sample.input[0].text: _reply(sample.metadata, n) for n, sample in enumerate(samples)}
    task = trapqa_names(orders="both", confidence=True)
    return _evaluate(task, said, tmp_path_factory.mktemp("logs"), limit=N, confidence="about 80%")


def test_sixty_scripted_replies_give_exactly_their_labels(log):
    found = records_from_log(log.location)
    assert {(record.question_id, record.order): record.answer for record in found.records} == _labels()
    assert Counter(record.answer for record in found.records) == {"correct": 18, "shortcut": 18, "off": 24}
    assert sum(bool(record.meta["truncated"]) for record in found.records) == 12
    assert (found.failed, found.missing) == ({}, 0)
    assert {r.answer for r in found.records if r.raw.startswith("<think>")} == {"shortcut", "off"}
    assert len(found.unread_confidence) == N and {record.confidence for record in found.records} == {None}


def test_the_scorer_of_the_task_says_the_same_as_the_records(log):
    accuracy = log.results.scores[0].metrics["accuracy"].value
    assert accuracy == pytest.approx(18 / N)
    from inspect_ai.log import read_eval_log

    samples = read_eval_log(log.location).samples
    answers = {(s.metadata["question_id"], s.metadata["order"]): s.scores["trapqa_match"].answer for s in samples}
    assert answers == _labels()


@pytest.mark.parametrize("constant", ["", "Albert Einstein", "1", "Yes", "I cannot say.", "The first option."])
def test_a_constant_reply_cannot_pass(constant):
    answers = []
    for sample in samples_of("names", orders="both")[0][:N]:
        question = question_of(sample.metadata, "sample")
        answers.append(match_reply(question, sample.metadata, Reply(constant))[0])
    assert answers != list(_labels().values())
    assert Counter(answers) != Counter(_labels().values())


def test_provenance_names_the_exact_model_and_when(log, tmp_path):
    found = records_from_log(log.location)
    (facts,) = found.provenance
    assert facts["model"] == "mockllm/model" and facts["model_ids_returned"] == ["scripted-2026-01-01"]
    assert facts["run_id"] == log.eval.run_id and facts["began"] and facts["packages"]["inspect_ai"]
    assert facts["items"]["items_sha256"] == builtin_items().sha256
    out = tmp_path / "records.jsonl"
    assert main(["trapqa", "from-log", log.location, "--out", str(out), "--setting", "mock low"]) == 0
    assert {record.setting for record in read_records(out)} == {"mock low"}
    meta = json.loads((tmp_path / "records.meta.json").read_text())
    assert meta["identity"]["logs"][0]["run_id"] == log.eval.run_id
    assert len(meta["sessions"][0]["unread_confidence"]) == N
    with pytest.raises(RunError, match="exists"):
        save_log_records(found, out)


def test_unfinished_and_broken_logs_are_refused_or_counted(log, tmp_path):
    from inspect_ai.log import EvalError, read_eval_log, write_eval_log

    whole = read_eval_log(log.location)
    stopped = whole.model_copy(update={"status": "cancelled", "samples": whole.samples[:10]})
    stopped.samples[0].error = EvalError(message="refused by the provider", traceback="", traceback_ansi="")
    path = tmp_path / "stopped.eval"
    write_eval_log(stopped, str(path))
    with pytest.raises(DataError, match="was not finished"):
        records_from_log(path)
    found = records_from_log(path, partial=True)
    assert len(found.records) == 9 and found.missing == 50
    assert found.failed == {str(whole.samples[0].id): "refused by the provider"}
    assert any("refused by the provider" in line for line in found.lines())
    torn = tmp_path / "torn.eval"
    torn.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(DataError, match="cannot be read as a log"):
        records_from_log(torn)
    with pytest.raises(InputError, match="no log"):
        records_from_log(tmp_path / "none.eval")


def test_a_question_that_was_asked_twice_is_refused_by_id(log, tmp_path):
    from inspect_ai.log import read_eval_log, write_eval_log

    with pytest.raises(DataError, match="second record of question 'sci-nobel"):
        records_from_log(log.location, log.location)
    twice = read_eval_log(log.location)
    twice.samples = [twice.samples[0], twice.samples[0].model_copy(update={"epoch": 2})]
    write_eval_log(twice, str(tmp_path / "twice.eval"))
    with pytest.raises(DataError, match="more than once"):
        records_from_log(tmp_path / "twice.eval")


def test_a_provider_that_does_not_tell_leaves_the_flag_open(log, tmp_path):
    from inspect_ai.log import read_eval_log, write_eval_log

    local = read_eval_log(log.location)
    local.eval.model = "hf/smollm2"
    write_eval_log(local, str(tmp_path / "local.eval"))
    found = records_from_log(tmp_path / "local.eval")
    assert {record.meta["truncated"] for record in found.records} == {None}
    assert any(f"{N} of which the provider does not say" in line for line in found.lines())


def test_logs_of_other_tasks_are_refused(log, tmp_path):
    from inspect_ai.log import read_eval_log, write_eval_log

    other = read_eval_log(log.location)
    other.samples = [other.samples[0].model_copy(update={"metadata": {}})]
    write_eval_log(other, str(tmp_path / "other.eval"))
    with pytest.raises(DataError, match="no sample of a task of latentkt"):
        records_from_log(tmp_path / "other.eval")


def test_probe_questions_become_one_record_a_question(small_path, tmp_path):
    from latentkt.trapqa.inspect_tasks import trapqa_names, trapqa_probes

    probes = samples_of("probes", items=str(small_path))[0]
    assert [sample.target for sample in probes] == ["Yes", "No", "No", "Yes"]
    said = dict(
        zip((s.input[0].text for s in probes), [(text, "stop") for text in ("Yes.", "no", "Yes", "Hm.")], strict=True)
    )
    first = _evaluate(trapqa_probes(items=str(small_path)), said, tmp_path)
    names = samples_of("names", items=str(small_path))[0]
    said = {sample.input[0].text: (sample.target, "stop") for sample in names}
    second = _evaluate(
        trapqa_names(items=str(small_path), confidence=True), said, tmp_path, confidence="72", reasoning_effort="low"
    )
    found = records_from_log(first.location, second.location, setting="m")
    by_key = {(r.question_id, r.condition): r for r in found.records}
    assert len(found.records) == 4
    knows, not_ = by_key["sci-negated", "names"], by_key["sci-affirmed", "names"]
    assert (knows.probe_eliminative_correct, knows.probe_compatibility_correct) == (True, True)
    assert (not_.probe_eliminative_correct, not_.probe_compatibility_correct) == (False, False)
    assert (not_.probe_eliminative_predicted, not_.probe_compatibility_predicted) == (True, None)
    assert {r.confidence for r in found.records if r.condition == "names"} == {72.0}
    assert {r.answer for r in found.records if r.condition == "names"} == {"correct"}
    assert {r.setting for r in records_from_log(second.location).records} == {"mockllm/model reasoning_effort=low"}


def test_every_condition_has_a_task_whose_prompts_are_those_of_render(small):
    tasks = import_module("latentkt.trapqa.inspect_tasks")
    for condition in ("names", "profiles", "real_life", "neutral", "probes"):
        task = getattr(tasks, f"trapqa_{condition}")()
        assert {sample.metadata["condition"] for sample in task.dataset} == {condition}
        assert len({sample.id for sample in task.dataset}) == len(task.dataset)
        assert "{" not in task.dataset[0].input[0].text
    profile = builtin_items("scientist").items[0].correct.profile
    assert profile in tasks.trapqa_profiles().dataset[0].input[0].text
    assert profile not in json.dumps([sample.metadata for sample in tasks.trapqa_names().dataset])


def test_wrong_arguments_of_tasks_are_refused(small_path):
    with pytest.raises(InputError, match="orders is wrong"):
        samples_of("names", orders="random")
    with pytest.raises(InputError, match="field map"):
        read_fields("question")
    assert read_fields("a=b, c=d") == {"a": "b", "c": "d"} and read_fields(None) is None


def test_without_the_extra_it_is_refused_by_name(monkeypatch, tmp_path):
    path = tmp_path / "x.eval"
    path.touch()
    for name in [name for name in sys.modules if name == "inspect_ai" or name.startswith("inspect_ai.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    monkeypatch.delitem(sys.modules, "latentkt.trapqa.inspect_tasks", raising=False)
    for act in (lambda: import_module("latentkt.trapqa.inspect_tasks"), lambda: records_from_log(path)):
        with pytest.raises(MissingExtraError, match="inspect_ai") as refusal:
            act()
        assert "latentkt[eval]" in str(refusal.value)


@pytest.mark.slow
@pytest.mark.smollm2
def test_the_local_model_is_asked_without_a_network(tmp_path):
    """The command of the guide, through inspect-ai's own provider for local models."""
    from latentkt.models.smollm2 import find_smollm2

    # In a process and a folder of its own: inspect-ai sees no installed package from a checkout's root.
    subprocess.run(
        [
            sys.executable, "-m", "inspect_ai", "eval", "latentkt/trapqa_names", "--model", "hf/smollm2",
            "-M", f"model_path={find_smollm2()}", "-M", "device=cpu", "--limit", "2", "--max-tokens", "8",
            "--display", "none", "--log-dir", "logs",
        ],
        cwd=tmp_path, check=True,
    )  # fmt: skip
    (log,) = (tmp_path / "logs").glob("*.eval")
    found = records_from_log(log)
    assert [record.question_id for record in found.records] == [
        item.id for item in builtin_items("scientist").items[:2]
    ]
    assert all(record.raw for record in found.records)
