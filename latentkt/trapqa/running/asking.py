"""Asking a model on this machine: by the probabilities of both answers, or by letting it write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from latentkt.errors import LatentKTError
from latentkt.trapqa.items import ProbeRole
from latentkt.trapqa.matching import CONFIDENCE_QUESTION, Reply, match_answer, read_confidence, read_reply
from latentkt.trapqa.rendering import Rendered, Template
from latentkt.trapqa.running.making import ProbeAnswer, answer_record, probe_answer, probe_record
from latentkt.trapqa.running.options import RunOptions
from latentkt.trapqa.running.questions import Question, Skipped, numbered
from latentkt.trapqa.running.records import Record
from latentkt.trapqa.running.writing import Decoding, write_replies

if TYPE_CHECKING:
    from latentkt.models import Encoded, ModelHandle

__all__ = ["ask"]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question with its prompts as the model reads them."""

    question: Question
    prompts: tuple[Rendered, ...]
    encoded: tuple[Encoded, ...]


def ask(
    handle: ModelHandle, questions: Sequence[Question], options: RunOptions, *, setting: str, template: Template
) -> tuple[list[Record], list[Skipped]]:
    """Ask some questions.

    Args:
        handle: The model.
        questions: What to ask; each prompt is a conversation of its own.
        options: How.
        setting: What to call the model in the records.
        template: `chat` or `plain`.

    Returns:
        A record a question, in order; and the questions that this model refuses (too long for it, or an answer that its
        tokenizer cannot separate), with the reason.
    """
    asked, skipped = [], []
    for question in questions:
        try:
            asked.append(_prepare(handle, question, options, template))
        except LatentKTError as error:
            skipped.append(Skipped(question.item.id, question.condition, error.what))
    if not asked:
        return [], skipped
    if options.mode == "logprob":
        records, refused = _score(handle, asked, setting)
        return records, [*skipped, *refused]
    return _generate(handle, asked, options, setting), skipped


def _prepare(handle: ModelHandle, question: Question, options: RunOptions, template: Template) -> _Asked:
    from latentkt.models import encode

    prompts = question.prompts(
        template=template, system=options.system, tokenizer=handle.tokenizer, prompt_template=options.prompt_template
    )
    encoded = tuple(
        encode(handle, prompt.text, chat=prompt.chat, spans=prompt.spans, name=question.item.id) for prompt in prompts
    )
    return _Asked(question, prompts, encoded)


def _score(handle: ModelHandle, asked: Sequence[_Asked], setting: str) -> tuple[list[Record], list[Skipped]]:
    from latentkt.models import encode_answers, score_answers

    ready, skipped, answers = [], [], []
    for each in asked:
        try:
            mine = [
                encode_answers(
                    handle, encoded, p.answer_prefix + p.correct, p.answer_prefix + p.shortcut, name=p.item_id
                )
                for p, encoded in zip(each.prompts, each.encoded, strict=True)
            ]
        except LatentKTError as error:
            skipped.append(Skipped(each.question.item.id, each.question.condition, error.what))
            continue
        ready.append(each)
        answers += mine
    if not ready:
        return [], skipped
    scores = score_answers(handle, [encoded for each in ready for encoded in each.encoded], answers)
    odds = iter(zip(scores.log_odds.tolist(), scores.first_token_log_odds.tolist(), strict=True))
    return [_scored_record(each, setting, [next(odds) for _ in each.prompts]) for each in ready], skipped


def _scored_record(each: _Asked, setting: str, odds: list[tuple[float, float]]) -> Record:
    meta: dict[str, Any] = {"mode": "logprob"}
    if each.question.condition != "probes":
        value, first = odds[0]
        side = "correct" if value > 0 else "shortcut" if value < 0 else "off"
        return answer_record(each.question, setting, side, {**meta, "first_token_log_odds": first}, log_odds=value)
    answers = []
    for prompt, (value, _) in zip(each.prompts, odds, strict=True):
        likelier = prompt.correct if value > 0 else prompt.shortcut if value < 0 else None
        predicted = None if likelier is None else likelier == "Yes"
        answers.append(ProbeAnswer(_role(prompt), predicted, value > 0, None, {"log_odds": value}))
    return probe_record(each.question, setting, answers, meta)


def _role(prompt: Rendered) -> ProbeRole:
    return "eliminative" if prompt.condition == "probe_eliminative" else "compatibility"


def _generate(handle: ModelHandle, asked: Sequence[_Asked], options: RunOptions, setting: str) -> list[Record]:
    prompts = [encoded.ids for each in asked for encoded in each.encoded]
    chat = asked[0].prompts[0].chat
    keys = [f"{p.item_id} {p.condition} {p.order}" for each in asked for p in each.prompts]
    replies = _write(handle, prompts, keys, options, chat=chat)
    confidences = iter(_confidences(handle, asked, replies, options))
    written, records = iter(replies), []
    for each in asked:
        mine = [next(written) for _ in each.prompts]
        if each.question.condition == "probes":
            records.append(_probe_record(each, setting, mine))
            continue
        item, (raw, reply) = each.question.item, mine[0]
        match = match_answer(reply, item.correct, item.shortcut, numbered=numbered(each.prompts[0]))
        meta: dict[str, Any] = {"mode": "generate", "rule": match.rule, "truncated": match.truncated}
        confidence = None
        if options.confidence:
            meta["confidence_raw"] = next(confidences)
            confidence = read_confidence(meta["confidence_raw"])
        records.append(answer_record(each.question, setting, match.answer, meta, raw=raw, confidence=confidence))
    return records


def _probe_record(each: _Asked, setting: str, replies: list[tuple[str, Reply]]) -> Record:
    answers = [
        probe_answer(each.question.item, _role(prompt), reply, raw)
        for prompt, (raw, reply) in zip(each.prompts, replies, strict=True)
    ]
    return probe_record(each.question, setting, answers, {"mode": "generate"})


def _confidences(
    handle: ModelHandle, asked: Sequence[_Asked], replies: Sequence[tuple[str, Reply]], options: RunOptions
) -> list[str]:
    """What the model says to the confidence question, after its own answer; items only."""
    if not options.confidence:
        return []
    turns, keys, at = [], [], 0
    for each in asked:
        if each.question.condition != "probes":
            prompt, (_, reply) = each.prompts[0], replies[at]
            said = [{"role": "assistant", "content": reply.text}, {"role": "user", "content": CONFIDENCE_QUESTION}]
            turns.append([*prompt.messages, *said])
            keys.append(f"{prompt.item_id} {prompt.condition} {prompt.order} confidence")
        at += len(each.prompts)
    texts = [handle.tokenizer.apply_chat_template(t, tokenize=False, add_generation_prompt=True) for t in turns]
    ids = [tuple(handle.tokenizer(text, add_special_tokens=False)["input_ids"]) for text in texts]
    return [raw for raw, _ in _write(handle, ids, keys, options, chat=True)] if ids else []


def _write(
    handle: ModelHandle, prompts: Sequence[tuple[int, ...]], keys: Sequence[str], options: RunOptions, *, chat: bool
) -> list[tuple[str, Reply]]:
    """What the model writes after each prompt, with and without its reasoning."""
    decoding = Decoding(
        max_new_tokens=options.max_new_tokens,
        temperature=options.temperature,
        top_p=options.top_p,
        seed=options.seed,
    )
    written = write_replies(handle, prompts, keys, decoding, chat=chat)
    return [(each.raw, read_reply(each.raw, stop="stop" if each.ended else "length")) for each in written]
