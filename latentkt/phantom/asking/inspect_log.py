"""Logs of inspect-ai as answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentkt.errors import RunError
from latentkt.phantom.answers import Answer, check_unique, write_answers
from latentkt.phantom.asking.inspect_samples import answer_of, question_of
from latentkt.phantom.asking.run import summary_lines
from latentkt.trapqa.running.inspect_log import (
    expected_samples,
    parameters,
    provenance,
    provider_tells,
    read_log,
    refuse_epochs,
    refuse_unfinished,
    setting_of,
)
from latentkt.trapqa.running.journal import meta_path, now, write_meta

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog

__all__ = ["LogAnswers", "answers_from_log", "save_log_answers"]


@dataclass(frozen=True, slots=True)
class LogAnswers:
    """Answers of some logs.

    Attributes:
        answers: One a sample; a sample that ended in an error is an answer with `error`, so that it is counted.
        missing: How many samples the logs were to hold and do not.
        provenance: Of each log: the exact model, provider parameters, dates, ids of the run.
    """

    answers: tuple[Answer, ...]
    missing: int
    provenance: tuple[dict[str, Any], ...]

    def lines(self) -> list[str]:
        """What was read, in a few lines of text."""
        found = [f"{len(self.answers)} answers", *summary_lines(self.answers)]
        return [*found, *([f"  {self.missing} samples are not in the log"] if self.missing else [])]


def answers_from_log(*paths: str | Path, setting: str | None = None, partial: bool = False) -> LogAnswers:
    """Read logs of the task `latentkt/phantom`.

    Args:
        paths: Logs (`.eval` or `.json`).
        setting: What to call the model and its settings; None: the model's id and its reasoning parameters.
        partial: Take what is there of logs that were not finished; the samples that are missing are counted.

    Raises:
        MissingExtraError: inspect-ai is not installed.
        InputError: A log cannot be read.
        DataError: A log was not finished (without `partial`), is not of this task, or asked a question twice.
    """
    answers: list[Answer] = []
    facts, missing = [], 0
    for path in map(Path, paths):
        log = read_log(path)
        refuse_unfinished(log, path, partial=partial)
        samples = log.samples or []
        missing += max(0, expected_samples(log) - len(samples))
        refuse_epochs(samples, path)
        answers += [_answer(log, sample, path, setting or setting_of(log)) for sample in samples]
        facts.append(provenance(log, path))
    check_unique(answers, "the logs together")
    return LogAnswers(tuple(answers), missing, tuple(facts))


def _answer(log: EvalLog, sample: Any, path: Path, setting: str) -> Answer:
    question = question_of(sample.metadata or {}, f"{path}, sample {sample.id!r}")
    if sample.error:
        return question.answer(setting=setting, model=log.eval.model, error=sample.error.message, finished=False)
    asked = parameters(log)
    budget = asked.get("reasoning_tokens") or asked.get("reasoning_effort") or asked.get("effort")
    return answer_of(
        question,
        messages=sample.messages,
        output=sample.output,
        setting=setting,
        tells=provider_tells(log),
        budget=budget,
    )


def save_log_answers(found: LogAnswers, out: Path, *, command: Sequence[str] | None = None) -> None:
    """Write the answers of logs, and beside them their provenance.

    Raises:
        RunError: The file exists.
    """
    if out.exists() or meta_path(out).exists():
        raise RunError(f"{out} exists", expected="a new file", found="answers", fix="choose another name")
    write_answers(found.answers, out)
    model = {"model": ", ".join(sorted({each["model"] for each in found.provenance}))}
    session = {"read": now(), "command": list(command or []), "missing": found.missing}
    write_meta(out, {"identity": {"model": model, "logs": list(found.provenance)}, "sessions": [session]})
