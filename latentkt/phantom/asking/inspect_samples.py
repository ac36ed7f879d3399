"""Questions as samples of inspect-ai, and samples as answers again: a log holds all that an answer needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from latentkt.errors import DataError
from latentkt.phantom.answers import Answer
from latentkt.phantom.asking.questions import Question, digest, questions_of
from latentkt.phantom.builtin import builtin_concepts
from latentkt.phantom.concepts import Concept, load_concepts
from latentkt.phantom.prompts import Prompt
from latentkt.trapqa.running.inspect_samples import first_reply

__all__ = ["FORMAT", "answer_of", "question_of", "samples_of"]

FORMAT = 1
"""Version of the metadata of a sample."""


def samples_of(
    concepts: str | None = None, *, properties: str | None = None, per_property: int = 1, seed: int = 0
) -> tuple[list[Any], dict[str, Any]]:
    """The samples of the task, and what its log says about them.

    Raises:
        InputError: An option is wrong.
        DataError: The concepts cannot be read.
    """
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ChatMessageUser

    found = load_concepts(concepts) if concepts else builtin_concepts()
    drawn: dict[str, Any] = {"per_property": per_property, "seed": seed}
    if properties:
        drawn["properties"] = tuple(name.strip() for name in properties.split(","))
    questions = questions_of(found, **drawn)
    samples = [
        Sample(id=q.prompt.id, input=[ChatMessageUser(content=q.prompt.text)], target="", metadata=_metadata(q))
        for q in questions
    ]
    facts = {"concepts": concepts or "built-in", "questions_sha256": digest(questions), "seed": seed}
    return samples, {"latentkt_phantom": FORMAT, **facts}


def _metadata(question: Question) -> dict[str, Any]:
    return {
        "latentkt_phantom": FORMAT,
        "prompt": question.prompt.to_dict(),
        "concept": question.concept.to_dict(),
    }


def question_of(metadata: Mapping[str, Any], where: str) -> Question:
    """The question that a sample asks.

    Raises:
        DataError: The sample is not of this task.
    """
    if metadata.get("latentkt_phantom") != FORMAT:
        raise DataError(
            f"{where}: no sample of the task latentkt/phantom",
            expected=f"metadata of format {FORMAT}",
            found=", ".join(metadata) or "no metadata",
        )
    prompt, concept = dict(metadata["prompt"]), dict(metadata["concept"])
    return Question(
        Prompt(**{**prompt, "span": tuple(prompt["span"])}),
        Concept(**{**concept, "parents": tuple(concept["parents"])}),
    )


def answer_of(
    question: Question,
    *,
    messages: Any,
    output: Any,
    setting: str,
    tells: bool = True,
    budget: int | str | None = None,
) -> Answer:
    """The answer that a sample holds.

    Args:
        question: What was asked.
        messages: The sample's messages.
        output: The model's output: why it stopped, what it used.
        setting: What to call the model and its settings.
        tells: Whether the provider says why a reply stopped. Where it does not, only reasoning that never ends is known
            to have been cut off.
        budget: What was allowed for reasoning.
    """
    _, reply = first_reply(messages, output.stop_reason if tells else None)
    usage = output.usage
    thinking = getattr(usage, "reasoning_tokens", None) if usage else None
    if thinking is None and not reply.reasoning and tells:
        thinking = 0
    return question.answer(
        setting=setting,
        model=output.model or None,
        answer=reply.text,
        reasoning=reply.reasoning,
        finished=False if reply.truncated else True if tells else None,
        truncated=("answer" if reply.text else "thinking") if reply.truncated else None,
        thinking_tokens=thinking,
        thinking_budget=budget,
        meta={"stop": output.stop_reason, **({"usage": _usage(usage)} if usage else {})},
    )


def _usage(usage: Any) -> dict[str, Any]:
    values = usage.model_dump(exclude_none=True) if hasattr(usage, "model_dump") else asdict(usage)
    return {name: value for name, value in values.items() if isinstance(value, int | float)}
