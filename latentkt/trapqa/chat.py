"""Where a message stands in a chat prompt: found by rendering markers in its place, and proved by rendering it.

Only `tokenizer.apply_chat_template` writes chat prompts. A template that changes the message (strips it, say) would
move spans unseen, and is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from latentkt.errors import InputError

__all__ = ["ChatFrame", "ChatTokenizer", "chat_frame", "default_system"]

_USER = "LATENTKT0USER0MESSAGE"
_SYSTEM = "LATENTKT0SYSTEM0MESSAGE"
_REMOVED = ("none", "")
Message = dict[str, str]


class ChatTokenizer(Protocol):
    """What rendering needs of a tokenizer."""

    def apply_chat_template(self, conversation: Any, **options: Any) -> Any:
        """Write messages as a prompt."""


@dataclass(frozen=True, slots=True)
class ChatFrame:
    """What a chat template writes around one user message.

    Attributes:
        before_system: Markup before the system prompt; all of the markup before the message where there is none.
        system: The system prompt as it stands in the prompt, or None where there is none.
        before_user: Markup between the system prompt and the message.
        after_user: Markup that ends the message.
        cue: The header after which the answer is written.
        system_messages: The system message that was given to the template, if any.
    """

    before_system: str
    system: str | None
    before_user: str
    after_user: str
    cue: str
    system_messages: tuple[Message, ...]


def chat_frame(tokenizer: ChatTokenizer, message: str, *, system: str | None) -> ChatFrame:
    """Find what the template writes around `message`, and prove it.

    Args:
        tokenizer: The model's tokenizer, with a chat template.
        message: The user's message.
        system: None keeps the template's default system prompt, "none" removes it, any other text replaces it.

    Raises:
        InputError: The tokenizer has no chat template, the template takes no system prompt, or it changes the text.
    """
    default = _default_parts(tokenizer)
    given = _system_messages(system, default)
    marked = (*({**each, "content": each["content"] and _SYSTEM} for each in given), _user(_USER))
    before, after = _cut(_apply(tokenizer, marked), _USER, "message")
    before_system, text, before_user = _cut_system(before, system, default)
    after_user, cue = _cue(tokenizer, marked, after)
    expected = before_system + (text or "") + before_user + message + after
    found = _apply(tokenizer, (*given, _user(message)))
    if found != expected:
        raise InputError(
            "the chat template changes the text that it is given",
            expected="system prompt and message as they are, between fixed markup",
            found=_difference(expected, found),
            fix='use template="plain", or a text that the template leaves alone (no space at its ends)',
        )
    return ChatFrame(before_system, text, before_user, after_user, cue, given)


def default_system(tokenizer: ChatTokenizer) -> str | None:
    """The system prompt that the template writes when none is given, or None.

    Raises:
        InputError: The tokenizer has no chat template.
    """
    parts = _default_parts(tokenizer)
    return None if parts is None else parts[1]


def _default_parts(tokenizer: ChatTokenizer) -> tuple[str, str, str] | None:
    """The template's own system prompt, between the markup around it, as it stands before a lone message."""
    before, _ = _cut(_apply(tokenizer, (_user(_USER),)), _USER, "message")
    try:
        text = _apply(tokenizer, ({"role": "system", "content": _SYSTEM}, _user(_USER)))
        start, end = _cut(_cut(text, _USER, "message")[0], _SYSTEM, "system prompt")
    except InputError:
        return None  # a template that takes no system prompt has none that could be told from its markup
    if not (before.startswith(start) and before.endswith(end) and len(before) > len(start) + len(end)):
        return None
    return start, before[len(start) : len(before) - len(end)], end


def _system_messages(system: str | None, default: tuple[str, str, str] | None) -> tuple[Message, ...]:
    """An empty system message takes a template's own system prompt away."""
    if system is None or (system in _REMOVED and default is None):
        return ()
    return ({"role": "system", "content": "" if system in _REMOVED else system},)


def _cut_system(before: str, system: str | None, default: tuple[str, str, str] | None) -> tuple[str, str | None, str]:
    if system is None:
        return default or (before, None, "")
    if system not in _REMOVED:
        start, end = _cut(before, _SYSTEM, "system prompt")
        return start, system, end
    if default is not None and default[1] in before:
        raise InputError("the chat template writes its own system prompt in spite of an empty one", found=default[1])
    return before, None, ""


def _user(text: str) -> Message:
    return {"role": "user", "content": text}


def _apply(tokenizer: ChatTokenizer, messages: tuple[Message, ...], *, cue: bool = True) -> str:
    from jinja2 import TemplateError

    if not getattr(tokenizer, "chat_template", None):
        raise InputError("the tokenizer has no chat template", fix='use template="plain"')
    try:
        return tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=cue)
    except (TemplateError, ValueError, TypeError) as error:
        raise InputError(
            f"the chat template refuses the messages: {error}",
            found=f"roles {', '.join(message['role'] for message in messages)}",
            fix='leave out system=…, or use template="plain"',
        ) from error


def _cut(text: str, marker: str, what: str) -> tuple[str, str]:
    if text.count(marker) != 1:
        raise InputError(
            f"the chat template does not write the {what} once", expected="once", found=f"{text.count(marker)} times"
        )
    before, _, after = text.partition(marker)
    return before, after


def _cue(tokenizer: ChatTokenizer, messages: tuple[Message, ...], after: str) -> tuple[str, str]:
    """Split the markup after the message into its end and the header of the answer; all is cue where none is added."""
    _, closing = _cut(_apply(tokenizer, messages, cue=False), _USER, "message")
    return (closing, after[len(closing) :]) if after.startswith(closing) and after != closing else ("", after)


def _difference(expected: str, found: str) -> str:
    shorter = min(len(expected), len(found))
    at = next((i for i in range(shorter) if expected[i] != found[i]), shorter)
    return f"{found[at : at + 40]!r} where {expected[at : at + 40]!r} was given"
