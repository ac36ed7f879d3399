"""Which questions are asked: prompts, each with its concept."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from latentkt.errors import DataError, InputError
from latentkt.phantom.answers import Answer
from latentkt.phantom.concepts import Concept
from latentkt.phantom.prompts import Prompt, make_prompts

__all__ = ["Question", "digest", "questions_of"]


@dataclass(frozen=True, slots=True)
class Question:
    """One question about one concept.

    Attributes:
        prompt: The question.
        concept: The concept.
    """

    prompt: Prompt
    concept: Concept

    def answer(self, *, setting: str, **said: Any) -> Answer:
        """The answer to it; `said` are the fields of `Answer` that tell what was said."""
        return Answer(
            prompt_id=self.prompt.id,
            concept_id=self.concept.id,
            concept=self.concept.concept,
            concept_kind=self.concept.kind,
            category=self.concept.category,
            group=self.concept.group,
            method=self.concept.method,
            existence=self.concept.existence,
            property=self.prompt.property,
            variant=self.prompt.variant,
            question=self.prompt.text,
            setting=setting,
            **said,
        )


def questions_of(
    concepts: Sequence[Concept],
    prompts: Iterable[Prompt] | None = None,
    *,
    limit: int | None = None,
    **drawn: Any,
) -> list[Question]:
    """Questions about concepts.

    Args:
        concepts: The concepts.
        prompts: The questions; None draws them (see `make_prompts`).
        limit: At most so many questions, the first.
        drawn: Arguments of `make_prompts`: `properties`, `per_property`, `seed`, `pools`.

    Raises:
        InputError: There is nothing to ask, or the limit is under 1.
        DataError: A prompt's concept is not among the concepts.
    """
    if limit is not None and limit < 1:
        raise InputError("limit is wrong", expected=">= 1", found=limit)
    by_id = {concept.id: concept for concept in concepts}
    found = []
    for prompt in make_prompts(concepts, **drawn) if prompts is None else prompts:
        if prompt.concept_id not in by_id:
            raise DataError(
                f"prompt {prompt.id!r} asks about a concept that is not there",
                expected="a concept of the file",
                found=prompt.concept_id,
            )
        found.append(Question(prompt, by_id[prompt.concept_id]))
    if not found:
        raise InputError("there is nothing to ask", expected="at least one question")
    return found[:limit]


def digest(questions: Sequence[Question]) -> str:
    """Hash of what is asked, in its order."""
    text = "\n".join(f"{q.prompt.id}\t{q.concept.existence}\t{q.prompt.text}" for q in questions)
    return hashlib.sha256(text.encode()).hexdigest()
