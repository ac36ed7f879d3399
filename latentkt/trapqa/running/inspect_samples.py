"""Questions as samples of inspect-ai, and samples as questions again: a log holds all that a record needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, cast

from latentkt.errors import DataError, InputError
from latentkt.trapqa.items import Candidate, Control, ProbeQuestion, TrapItem
from latentkt.trapqa.matching import Match, Reply, match_answer, match_truth, read_reply
from latentkt.trapqa.rendering import Order, Rendered
from latentkt.trapqa.running.questions import Given, Orders, Question, grouped, numbered, plan_questions
from latentkt.trapqa.running.sources import load_source

__all__ = ["FORMAT", "first_reply", "judged", "question_of", "read_fields", "samples_of"]

FORMAT = 1
"""Version of the metadata of a sample."""


class _Messages:
    """A chat template that adds nothing: what is rendered with it is the user's message."""

    chat_template = "messages"

    def apply_chat_template(self, conversation: Any, **options: Any) -> str:
        return "".join(message["content"] for message in conversation)


def read_fields(text: str | None) -> dict[str, str] | None:
    """A field map written as `question=FIELD,correct=FIELD`.

    Raises:
        InputError: It is written otherwise.
    """
    if not text:
        return None
    pairs = [part.partition("=") for part in text.split(",")]
    if any(not name.strip() or not value.strip() for name, _, value in pairs):
        raise InputError("the field map cannot be read", expected="question=FIELD,correct=FIELD", found=text)
    return {name.strip(): value.strip() for name, _, value in pairs}


def samples_of(
    condition: str, *, items: str | None = None, orders: str = "seeded", seed: int = 0, fields: str | None = None
) -> tuple[list[Any], dict[str, Any]]:
    """The samples of a task, and what its log says about them.

    Raises:
        InputError: An option is wrong, or no item fits the condition.
    """
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ChatMessageUser

    if orders not in ("seeded", "both"):
        raise InputError("orders is wrong", expected="seeded or both", found=repr(orders))
    source = load_source(items, [condition], fields=read_fields(fields))
    plan = plan_questions(source.given, orders=cast(Orders, orders), seed=seed)
    samples = [
        Sample(
            id=" ".join(str(part) for part in (prompt.item_id, prompt.condition, prompt.order) if part),
            input=[ChatMessageUser(content=prompt.messages[-1]["content"])],
            target=prompt.correct,
            metadata=_metadata(question, prompt),
        )
        for question in plan.questions
        for prompt in question.prompts(template="chat", tokenizer=_Messages())
    ]
    if not samples:
        raise InputError(f"no item of {source.name} can be asked in the condition {condition!r}")
    facts = {"items": source.name, "items_sha256": source.sha256[condition], "orders": orders, "seed": seed}
    return samples, {"latentkt": FORMAT, "condition": condition, **facts, "skipped": grouped(plan.skipped)}


def _metadata(question: Question, prompt: Rendered) -> dict[str, Any]:
    """All of the item that a record needs; its profiles and spans stay at home."""
    item = question.item
    role = prompt.condition.removeprefix("probe_") if question.condition == "probes" else None
    probe = next((asdict(each) for each in item.probe_questions if each.role == role), None)
    return {
        "latentkt": FORMAT,
        "question_id": item.id,
        "condition": question.condition,
        "order": question.order,
        "kind": item.kind,
        "family": item.family,
        "aspect": item.aspect,
        "constraint_kind": item.constraint_kind,
        "polarity": item.polarity,
        "correct": {"text": item.correct.text, "aliases": list(item.correct.aliases)},
        "shortcut": {"text": item.shortcut.text, "aliases": list(item.shortcut.aliases)},
        "fame": {name: item.meta[name] for name in ("correct_fame", "shortcut_fame") if name in item.meta},
        "numbered": numbered(prompt),
        "probe": probe,
    }


def question_of(metadata: Mapping[str, Any], where: str) -> Question:
    """The question that a sample asks.

    Raises:
        DataError: The sample is not one of these tasks'.
    """
    if metadata.get("latentkt") != FORMAT:
        raise DataError(
            f"{where}: no sample of a task of latentkt",
            expected=f"metadata of format {FORMAT}",
            found=", ".join(metadata) or "no metadata",
        )
    probe = metadata["probe"]
    item = TrapItem(
        id=metadata["question_id"],
        kind=metadata["kind"],
        family=metadata["family"],
        text="",
        correct=Candidate(metadata["correct"]["text"], tuple(metadata["correct"]["aliases"])),
        shortcut=Candidate(metadata["shortcut"]["text"], tuple(metadata["shortcut"]["aliases"])),
        spans={},
        control=Control("neutral", "", {}),
        aspect=metadata["aspect"],
        constraint_kind=metadata["constraint_kind"],
        polarity=metadata["polarity"],
        probe_questions=() if probe is None else (ProbeQuestion(**probe),),
        meta=metadata["fame"],
    )
    return Question(Given(item), metadata["condition"], cast(Order | None, metadata["order"]))


def first_reply(messages: Sequence[Any], stop: str | None) -> tuple[str, Reply]:
    """The first thing that the model said, whole and without its reasoning."""
    said = next((message for message in messages if message.role == "assistant"), None)
    if said is None:
        return "", Reply("")
    parts = said.content if isinstance(said.content, list) else []
    reasoning = "\n".join(part.reasoning for part in parts if part.type == "reasoning")
    raw = str(said.text)
    return (f"<think>{reasoning}</think>\n{raw}" if reasoning else raw), read_reply(raw, stop=stop, reasoning=reasoning)


def judged(metadata: Mapping[str, Any], messages: Sequence[Any], stop: str | None) -> tuple[str, bool, Match]:
    """What the first reply of a sample was matched to; see `match_reply`."""
    _, reply = first_reply(messages, stop)
    return match_reply(question_of(metadata, "sample"), metadata, reply)


def match_reply(question: Question, metadata: Mapping[str, Any], reply: Reply) -> tuple[str, bool, Match]:
    """What a reply was matched to: its words for it, whether it is right, and the match."""
    if question.condition == "probes":
        predicted, match = match_truth(reply)
        return str(predicted), predicted is question.item.probe_questions[0].answer, match
    order = metadata["numbered"]
    match = match_answer(reply, question.item.correct, question.item.shortcut, numbered=order and tuple(order))
    return match.answer, match.answer == "correct", match
