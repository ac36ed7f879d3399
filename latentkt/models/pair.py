"""A pair: two prompts, their alignment and two answers. It is all that measurements inside a model know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from latentkt.errors import InputError
from latentkt.models.alignment import Alignment, align
from latentkt.models.answers import AnswerSet, encode_answers
from latentkt.models.tokens import Encoded, encode

if TYPE_CHECKING:
    from torch import Tensor

    from latentkt.models.handle import ModelHandle

__all__ = ["Metric", "Pair", "make_pair"]

Metric = Callable[["Tensor"], "Tensor"]


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """A base prompt and a source prompt with the answers whose log-odds are measured.

    Attributes:
        name: The pair's name in tables, such as the item's id.
        base: The prompt of the run that is changed.
        source: The prompt of the run that activations come from.
        alignment: Which source token stands for each base token.
        answers: The two answers; they have the same ids after both prompts.
        metric: Takes the logits at the prompt's last position, `[batch, vocab]`, and gives `[batch]`; None stands
            for the answer log-odds, log P(y*) − log P(y_s), in nats.
        meta: Columns that a measurement copies into its table (family, order, direction, …).
    """

    name: str
    base: Encoded
    source: Encoded
    alignment: Alignment
    answers: AnswerSet
    metric: Metric | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)

    def swapped(self) -> Pair:
        """The same pair with base and source exchanged; answers, metric and meta stay what they are."""
        alignment = align(self.source, self.base, name=self.name)
        return Pair(self.name, self.source, self.base, alignment, self.answers, self.metric, self.meta)


def make_pair(
    handle: ModelHandle,
    base: Encoded | str,
    source: Encoded | str,
    *,
    correct: str,
    shortcut: str,
    name: str = "pair",
    metric: Metric | None = None,
    meta: Mapping[str, Any] | None = None,
) -> Pair:
    """Make a pair from two prompts and two answers.

    Args:
        handle: The model.
        base: A prompt, encoded, or a plain text without spans.
        source: The other prompt, the same way.
        correct: y* (with its leading space where the prompts are plain).
        shortcut: y_s, the same.
        name: The pair's name in tables and errors.
        metric: See `Pair`.
        meta: See `Pair`.

    Raises:
        InputError: One prompt is a conversation and the other is not, the spans do not match, an answer is refused,
            or the answers get other ids after the source than after the base.
    """
    prompts = [
        encode(handle, prompt, chat=False, name=f"{side} of {name}") if isinstance(prompt, str) else prompt
        for side, prompt in (("base", base), ("source", source))
    ]
    if prompts[0].chat != prompts[1].chat:
        raise InputError(f"{name} mixes a plain prompt and a conversation", expected="both plain, or both chat")
    answers, after_source = (encode_answers(handle, prompt, correct, shortcut, name=name) for prompt in prompts)
    if answers != after_source:
        raise InputError(
            f"the answers of {name} get other ids after the source than after the base",
            expected=[list(answers.correct_ids), list(answers.shortcut_ids)],
            found=[list(after_source.correct_ids), list(after_source.shortcut_ids)],
            fix="let both prompts end with the same words",
        )
    return Pair(name, prompts[0], prompts[1], align(*prompts, name=name), answers, metric, dict(meta or {}))
