"""A question as a model on this machine reads it, with the place of the concept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from latentkt.errors import InputError
from latentkt.trapqa.chat import ChatTokenizer, chat_frame

if TYPE_CHECKING:
    from latentkt.models import ModelHandle
    from latentkt.phantom.prompts import Prompt

__all__ = ["PLAIN_CUE", "Rendered", "render_question", "template_of"]

PLAIN_CUE = "\nAnswer:"


@dataclass(frozen=True, slots=True)
class Rendered:
    """A prompt.

    Attributes:
        text: The whole prompt.
        span: Where the concept stands in it: code points, start and end.
        chat: Whether it is a rendered conversation.
    """

    text: str
    span: tuple[int, int]
    chat: bool


def render_question(
    prompt: Prompt, *, template: str, system: str | None = None, tokenizer: ChatTokenizer | None = None
) -> Rendered:
    """Write a question as a prompt.

    Args:
        prompt: The question.
        template: `chat`: one user message in the tokenizer's own template; `plain`: the question and a line "Answer:".
        system: In chat: None keeps the template's own system prompt, "none" removes it, any other text replaces it.
        tokenizer: Needed for chat.

    Raises:
        InputError: There is no chat template, or it changes the question.
    """
    if template == "plain":
        return Rendered(prompt.text + PLAIN_CUE, prompt.span, False)
    if tokenizer is None:
        raise InputError("a chat prompt needs the tokenizer", expected="tokenizer=handle.tokenizer", found="None")
    frame = chat_frame(tokenizer, prompt.text, system=system)
    before = frame.before_system + (frame.system or "") + frame.before_user
    start, end = (len(before) + at for at in prompt.span)
    return Rendered(before + prompt.text + frame.after_user + frame.cue, (start, end), True)


def template_of(handle: ModelHandle, template: str | None) -> str:
    """The template that is used: `chat` where the tokenizer has one, unless `plain` is asked for.

    Raises:
        InputError: Chat is asked for, and the tokenizer has no template.
    """
    if template == "chat" and not handle.has_chat_template:
        raise InputError(f"model {handle.name!r} has no chat template", fix="ask with --template plain")
    return template or ("chat" if handle.has_chat_template else "plain")
