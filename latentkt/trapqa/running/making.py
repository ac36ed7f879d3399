"""From what was answered to a record: the same for models on this machine and for logs of hosted ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from latentkt.trapqa.items import ProbeRole, TrapItem
from latentkt.trapqa.matching import Reply, match_truth
from latentkt.trapqa.running.questions import Question
from latentkt.trapqa.running.records import Record

__all__ = ["ProbeAnswer", "answer_record", "probe_answer", "probe_record"]


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """What was answered to one probe question.

    Attributes:
        role: Which probe question.
        predicted: True for yes, False for no, None where it is neither.
        correct: Whether that is right; an answer that is neither is wrong, as an off-option answer is.
        raw: What the model wrote, or None.
        more: Anything else for the record's `meta`.
    """

    role: ProbeRole
    predicted: bool | None
    correct: bool
    raw: str | None
    more: Mapping[str, Any]


def probe_answer(item: TrapItem, role: ProbeRole, reply: Reply, raw: str) -> ProbeAnswer:
    """Match a reply to a probe question."""
    predicted, match = match_truth(reply)
    probe = item.probe(role)
    assert probe is not None
    more = {"rule": match.rule, "truncated": match.truncated}
    return ProbeAnswer(role, predicted, predicted is probe.answer, raw, more)


def probe_record(question: Question, setting: str, answers: Sequence[ProbeAnswer], meta: Mapping[str, Any]) -> Record:
    """The record of a question's probe questions."""
    found: dict[str, Any] = {}
    for answer in answers:
        found[f"probe_{answer.role}_correct"] = answer.correct
        found[f"probe_{answer.role}_predicted"] = answer.predicted
    raws = [f"{answer.role}: {answer.raw}" for answer in answers if answer.raw is not None]
    more = {f"{answer.role}_{name}": value for answer in answers for name, value in answer.more.items()}
    return _record(question, setting, {**meta, **more}, raw="\n".join(raws) or None, **found)


def answer_record(
    question: Question,
    setting: str,
    answer: str,
    meta: Mapping[str, Any],
    *,
    raw: str | None = None,
    log_odds: float | None = None,
    confidence: float | None = None,
) -> Record:
    """The record of an answer to an item."""
    return _record(question, setting, meta, raw=raw, answer=answer, log_odds=log_odds, confidence=confidence)


def _record(question: Question, setting: str, meta: Mapping[str, Any], **found: Any) -> Record:
    item = question.item
    return Record(
        question_id=item.id,
        setting=setting,
        condition=question.condition,
        order=question.order,
        family=item.family or None,
        aspect=item.aspect,
        constraint_kind=item.constraint_kind,
        correct_fame=item.meta.get("correct_fame"),
        shortcut_fame=item.meta.get("shortcut_fame"),
        meta={"kind": item.kind, "polarity": item.polarity, **meta},
        **found,
    )
