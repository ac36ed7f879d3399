"""Logs of inspect-ai as records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentkt.errors import DataError, InputError, MissingExtraError, RunError
from latentkt.trapqa.matching import read_confidence
from latentkt.trapqa.running.inspect_samples import first_reply, match_reply, question_of
from latentkt.trapqa.running.journal import meta_path, now, write_meta
from latentkt.trapqa.running.making import ProbeAnswer, answer_record, probe_answer, probe_record
from latentkt.trapqa.running.questions import Question, Skipped, grouped
from latentkt.trapqa.running.records import Record, check_unique, join_probes, write_records

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample

_SILENT = ("hf/",)
"""Providers that say "stop" where a limit cut the reply off, too, and count padding as tokens: it cannot be told."""

__all__ = [
    "LogRecords",
    "expected_samples",
    "parameters",
    "provenance",
    "provider_tells",
    "read_log",
    "records_from_log",
    "refuse_epochs",
    "refuse_unfinished",
    "save_log_records",
    "setting_of",
]


@dataclass(frozen=True, slots=True)
class LogRecords:
    """Records of some logs, and what the logs lack.

    Attributes:
        records: The records.
        failed: Id of each sample that ended in an error -> the error. They have no record.
        missing: How many samples the logs were to hold and do not.
        unread_confidence: Ids of samples whose confidence is no number from 0 to 100; it is missing there.
        provenance: Of each log: the exact model, provider parameters, dates, ids of the run.
    """

    records: tuple[Record, ...]
    failed: dict[str, str]
    missing: int
    unread_confidence: tuple[str, ...]
    provenance: tuple[dict[str, Any], ...]

    def lines(self) -> list[str]:
        """What was read, in a few lines of text."""
        off = sum(record.answer == "off" for record in self.records)
        answers = [record.meta.get("truncated") for record in self.records if record.condition != "probes"]
        found = [f"{len(self.records)} records; {off} off-option, {answers.count(True)} cut off by a limit"]
        untold = answers.count(None)
        found += [f"  {untold} of which the provider does not say whether a limit cut them off"] if untold else []
        found += [f"  no record of {name}: {error}" for name, error in self.failed.items()]
        found += [f"  {self.missing} samples are not in the log"] if self.missing else []
        found += [f"  confidence of {name} is no number from 0 to 100" for name in self.unread_confidence]
        return found


def records_from_log(*paths: str | Path, setting: str | None = None, partial: bool = False) -> LogRecords:
    """Read logs of the tasks of `latentkt.trapqa.inspect_tasks`.

    Replies are matched again, so a log gives the same records as a run of today's matcher would.

    Args:
        paths: Logs (`.eval` or `.json`); those of the probe questions are joined with the others.
        setting: What to call the model and its settings; None: the model's id and its reasoning parameters.
        partial: Take what is there of logs that were not finished; the samples that are missing are counted.

    Raises:
        MissingExtraError: inspect-ai is not installed.
        InputError: A log cannot be read.
        DataError: A log was not finished (without `partial`), is not of these tasks, or asked a question twice.
    """
    records: list[Record] = []
    failed: dict[str, str] = {}
    unread: list[str] = []
    facts, missing = [], 0
    for path in map(Path, paths):
        log = read_log(path)
        refuse_unfinished(log, path, partial=partial)
        name = setting or setting_of(log)
        samples = log.samples or []
        missing += max(0, expected_samples(log) - len(samples))
        failed |= {str(sample.id): sample.error.message for sample in samples if sample.error}
        answered = [sample for sample in samples if not sample.error]
        refuse_epochs(answered, path)
        found, vague = _records(answered, name, path, tells=provider_tells(log))
        records += found
        unread += vague
        facts.append(provenance(log, path))
    check_unique([(record, "the logs together") for record in records])
    return LogRecords(tuple(join_probes(records)), failed, missing, tuple(unread), tuple(facts))


def read_log(path: Path) -> EvalLog:
    """A log of inspect-ai.

    Raises:
        MissingExtraError: inspect-ai is not installed.
        InputError: There is no such file.
        DataError: It cannot be read as a log.
    """
    try:
        from inspect_ai.log import read_eval_log
    except ImportError as error:
        raise MissingExtraError("inspect_ai", extra="eval", purpose="reading a log of inspect-ai") from error
    if not path.is_file():
        raise InputError(f"no log {path}", expected="a log of inspect-ai (.eval or .json)")
    try:
        return read_eval_log(str(path))
    except Exception as error:  # a torn zip, a torn JSON, another format: whatever its reader says
        raise DataError(
            f"{path} cannot be read as a log of inspect-ai",
            expected="a whole .eval or .json log",
            found=f"{type(error).__name__}: {str(error)[:200]}",
            fix="a half-written log: run `inspect eval-retry` on it",
        ) from error


def expected_samples(log: EvalLog) -> int:
    """How many samples a log was to hold."""
    epochs, limit = log.eval.config.epochs or 1, log.eval.config.limit
    expected = (log.eval.dataset.samples or 0) * epochs
    return min(expected, limit * epochs) if isinstance(limit, int) else expected


def provider_tells(log: EvalLog) -> bool:
    """Whether the provider of a log says why a reply stopped."""
    return not log.eval.model.startswith(_SILENT)


def refuse_unfinished(log: EvalLog, path: Path, *, partial: bool) -> None:
    """Refuse a log that was not finished, unless `partial`.

    Raises:
        DataError: It was not.
    """
    if log.status != "success" and not partial:
        raise DataError(
            f"{path} was not finished",
            expected="status success",
            found=f"status {log.status}, {len(log.samples or [])} samples",
            fix="run `inspect eval-retry` on it, or take what is there with --partial",
        )


def refuse_epochs(samples: Sequence[EvalSample], path: Path) -> None:
    """Refuse a log that asked a question more than once.

    Raises:
        DataError: Names the questions.
    """
    repeated = sorted({str(sample.id) for sample in samples if sample.epoch > 1})
    if repeated:
        raise DataError(
            f"{path} asked {len(repeated)} questions more than once",
            expected="one epoch",
            found=", ".join(repeated[:5]),
            fix="run the task with --epochs 1",
        )


def _records(samples: Sequence[EvalSample], setting: str, path: Path, *, tells: bool) -> tuple[list[Record], list[str]]:
    records: list[Record] = []
    unread: list[str] = []
    probes: dict[str, tuple[Question, list[ProbeAnswer]]] = {}
    for sample in samples:
        metadata = sample.metadata or {}
        question = question_of(metadata, f"{path}, sample {sample.id!r}")
        raw, reply = first_reply(sample.messages, sample.store.get("first_stop") or sample.output.stop_reason)
        if question.condition == "probes":
            probe = question.item.probe_questions[0]
            mine = probes.setdefault(question.item.id, (question, []))[1]
            if any(each.role == probe.role for each in mine):
                raise DataError(f"{path}: the {probe.role} probe question of {question.item.id!r} stands twice")
            mine.append(probe_answer(question.item, probe.role, reply, raw))
            continue
        _, _, match = match_reply(question, metadata, reply)
        meta = {"mode": "generate", "rule": match.rule, "truncated": match.truncated if tells else None}
        said = _confidence(sample)
        confidence = None
        if said is not None:
            meta["confidence_raw"] = said
            confidence = read_confidence(said)
            unread += [] if confidence is not None else [str(sample.id)]
        records.append(answer_record(question, setting, match.answer, meta, raw=raw, confidence=confidence))
    records += [probe_record(q, setting, answers, {"mode": "generate"}) for q, answers in probes.values()]
    return records, unread


def _confidence(sample: EvalSample) -> str | None:
    """What was said in the second turn, where there was one."""
    said = [message for message in sample.messages if message.role == "assistant"]
    return first_reply(said[1:], None)[1].text if len(said) > 1 else None


def setting_of(log: EvalLog) -> str:
    """A name for the model and its settings: its id and what was asked of its reasoning."""
    asked = parameters(log)
    named = [name for name in ("reasoning_effort", "reasoning_tokens", "effort") if name in asked]
    return " ".join([log.eval.model, *(f"{name}={asked[name]}" for name in named)])


def parameters(log: EvalLog) -> dict[str, Any]:
    """What was asked of the provider: the model's parameters, and over them those of the run."""
    both = (log.eval.model_generate_config, log.plan.config)
    return {k: v for config in both for k, v in config.model_dump(exclude_none=True, mode="json").items()}


def provenance(log: EvalLog, path: Path) -> dict[str, Any]:
    """Appendix E.1 of the paper: which model exactly, when, with which parameters, in which run."""
    used = {sample.output.model for sample in log.samples or [] if sample.output.model}
    return {
        "log": path.name,
        "task": log.eval.task,
        "status": log.status,
        "model": log.eval.model,
        "model_ids_returned": sorted(used),
        "model_base_url": log.eval.model_base_url,
        "model_args": _plain(log.eval.model_args),
        "parameters": parameters(log),
        "run_id": log.eval.run_id,
        "eval_id": log.eval.eval_id,
        "created": str(log.eval.created),
        "began": str(log.stats.started_at),
        "ended": str(log.stats.completed_at),
        "packages": dict(log.eval.packages),
        "items": _plain(log.eval.metadata or {}),
    }


def _plain(value: Mapping[str, Any]) -> dict[str, Any]:
    return {
        str(k): v if isinstance(v, (str, int, float, bool, list, dict, type(None))) else str(v)
        for k, v in value.items()
    }


def save_log_records(found: LogRecords, out: Path, *, command: Sequence[str] | None = None) -> None:
    """Write the records of logs, and beside them their provenance and what the logs lack.

    Raises:
        RunError: The file exists.
    """
    if out.exists() or meta_path(out).exists():
        raise RunError(f"{out} exists", expected="a new file", found="records", fix="choose another name")
    session = {
        "read": now(),
        "command": list(command or []),
        "missing": found.missing,
        "skipped": grouped(Skipped(name, "log", reason) for name, reason in found.failed.items()),
        "unread_confidence": list(found.unread_confidence),
    }
    write_records(found.records, out)
    model = {"model": ", ".join(sorted({each["model"] for each in found.provenance}))}
    write_meta(out, {"identity": {"model": model, "logs": list(found.provenance)}, "sessions": [session]})
