"""A finished prompt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from latentkt.trapqa.chat import Message
from latentkt.trapqa.items import Spans, Which
from latentkt.trapqa.pieces import Order

__all__ = ["Rendered"]


@dataclass(frozen=True, slots=True)
class Rendered:
    """A prompt, and what stands where in it.

    Attributes:
        text: The prompt.
        spans: Role -> code-point ranges of `text`, in order; every character has exactly one role.
        chat: Whether a chat template wrote it.
        messages: The messages that the chat template was given; one user message where it was not.
        correct: The item's correct answer as the prompt shows it ("Yes" or "No" for a probe question).
        shortcut: The item's other answer, likewise. In a flip control this is the right one.
        right: Which of the two is right under this prompt; None where neither is.
        item_id: The item.
        which: `item` or `control`.
        condition: The condition, or `probe_eliminative`, `probe_compatibility`.
        order: Which of the item's answers is shown first; None for a probe question, which shows none.
        system: The system prompt that stands in the prompt (a template's own is recorded too), or None.
        prompt_template: The template that was filled.
    """

    text: str
    spans: Spans
    chat: bool
    messages: tuple[Message, ...]
    correct: str
    shortcut: str
    right: Literal["correct", "shortcut"] | None
    item_id: str
    which: Which
    condition: str
    order: Order | None
    system: str | None
    prompt_template: str

    @property
    def answer_prefix(self) -> str:
        """What stands between the prompt and an answer: one space in plain prompts, nothing in chat."""
        return "" if self.chat else " "
