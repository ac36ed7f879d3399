"""Judges: a language model with our prompts, reached through inspect-ai; and what every judge gives."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from latentkt.errors import InputError, MissingExtraError, RunError
from latentkt.phantom.judging.contract import (
    KIND_PROMPT,
    KIND_WORDS,
    VERDICT_PROMPT,
    VERDICT_WORDS,
    again,
    fill,
    read_word,
)

if TYPE_CHECKING:
    from inspect_ai.model import Model

    from latentkt.phantom.answers import Answer

__all__ = ["Judge", "ModelJudge", "Verdict", "model_judge"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a judge says of one answer.

    Attributes:
        judgement: `abstained`, `answered` or `unparsable`.
        kind: Kind of abstention; `unparsable` where it could not be read; None where there is none or it was not asked.
        meta: The judge's words, or the rule that decided.
    """

    judgement: str
    kind: str | None = None
    meta: dict[str, Any] = field(default_factory=dict, hash=False)


class Judge(Protocol):
    """Judges answers that there are; empty ones never reach it."""

    @property
    def name(self) -> str:
        """Its name in the answers, which says what it is."""

    @property
    def identity(self) -> dict[str, Any]:
        """All that its verdicts depend on."""

    def judge(self, answers: Sequence[Answer]) -> list[Verdict]:
        """A verdict an answer, in order."""


@dataclass(frozen=True, slots=True)
class ModelJudge:
    """A language model as judge.

    A reply that is not one word of the contract is asked for again, with the contract, up to `retries` times. What is
    then still no word is `unparsable`: it is never read as a verdict, and nothing else judges in its place.

    Attributes:
        model: A model of inspect-ai.
        retries: Further tries after a reply that cannot be read.
        kinds: Ask for the kind of each abstention.
        verdict_prompt: Text with the slots `{question}` and `{answer}`.
        kind_prompt: The same, for the kinds.
    """

    model: Model
    retries: int = 2
    kinds: bool = True
    verdict_prompt: str = VERDICT_PROMPT
    kind_prompt: str = KIND_PROMPT

    def __post_init__(self) -> None:
        if self.retries < 0:
            raise InputError("retries of the judge", expected=">= 0", found=self.retries)
        for name in ("verdict_prompt", "kind_prompt"):
            text = getattr(self, name)
            if any(text.count(slot) != 1 for slot in ("{question}", "{answer}")):
                raise InputError(f"{name} of the judge", expected="{question} and {answer}, once each", found=text[:80])

    @property
    def name(self) -> str:
        """The model's id."""
        return f"model {self.model}"

    @property
    def identity(self) -> dict[str, Any]:
        """Model, prompts, retries and how it decodes."""
        config = self.model.config.model_dump(exclude_none=True, mode="json")
        return {
            "judge": self.name,
            "retries": self.retries,
            "kinds": self.kinds,
            "verdict_prompt": self.verdict_prompt,
            "kind_prompt": self.kind_prompt,
            "parameters": config,
        }

    def judge(self, answers: Sequence[Answer]) -> list[Verdict]:
        """Judge answers, as many at once as the provider's limit on connections allows.

        Raises:
            RunError: The provider failed, after its own retries.
        """
        return asyncio.run(self._all(answers))

    async def _all(self, answers: Sequence[Answer]) -> list[Verdict]:
        try:
            return list(await asyncio.gather(*map(self._one, answers)))
        except Exception as error:  # whatever a provider's client raises
            raise RunError(
                f"the judge {self.name} failed",
                found=f"{type(error).__name__}: {str(error)[:300]}",
                fix="what was judged before is kept: go on with --resume; no other judge takes its place",
            ) from error

    async def _one(self, answer: Answer) -> Verdict:
        word, said = await self._ask(fill(self.verdict_prompt, answer), list(VERDICT_WORDS))
        meta: dict[str, Any] = {"judge_said": said}
        if word is None:
            return Verdict("unparsable", None, meta)
        judgement = VERDICT_WORDS[word]
        if judgement != "abstained" or not self.kinds:
            return Verdict(judgement, None, meta)
        kind, said = await self._ask(fill(self.kind_prompt, answer), list(KIND_WORDS))
        return Verdict(judgement, "unparsable" if kind is None else KIND_WORDS[kind], {**meta, "kind_said": said})

    async def _ask(self, prompt: str, words: Sequence[str]) -> tuple[str | None, list[str]]:
        """The word, and everything that was said on the way to it."""
        from inspect_ai.model import ChatMessageUser

        messages: list[Any] = [ChatMessageUser(content=prompt)]
        said: list[str] = []
        for _ in range(self.retries + 1):
            output = await self.model.generate(messages)
            said.append(output.completion)
            word = read_word(output.completion, words)
            if word is not None:
                return word, said
            messages += [output.message, ChatMessageUser(content=again(words))]
        return None, said


def model_judge(
    model: str, *, retries: int = 2, kinds: bool = True, max_tokens: int | None = None, **arguments: Any
) -> ModelJudge:
    """A judge by the name of its model.

    Args:
        model: As inspect-ai writes it: `google/gemini-2.5-flash`, `hf/NAME`.
        retries: See `ModelJudge`.
        kinds: See `ModelJudge`.
        max_tokens: Longest reply of the judge, reasoning included; None leaves it to the provider.
        arguments: Arguments of the model, such as `model_path` for `hf/NAME`.

    Raises:
        MissingExtraError: inspect-ai is not installed.
        InputError: There is no such model or provider.
    """
    try:
        from inspect_ai.model import GenerateConfig, get_model
    except ImportError as error:
        raise MissingExtraError("inspect_ai", extra="eval", purpose="judging with a language model") from error
    try:
        config = GenerateConfig(temperature=0.0, max_tokens=max_tokens)
        found = get_model(model, config=config, memoize=False, **arguments)
    except Exception as error:
        raise InputError(
            f"no judge {model!r}",
            expected="PROVIDER/MODEL of inspect-ai with its package and key, or `phrases`",
            found=f"{type(error).__name__}: {str(error)[:300]}",
        ) from error
    return ModelJudge(found, retries=retries, kinds=kinds)
