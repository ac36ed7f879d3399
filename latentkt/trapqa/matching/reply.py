"""A reply without its reasoning, and whether it was cut off."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Reply", "read_reply"]

_TAGS = r"(?:think|thinking|thought|thoughts|reasoning|reflection|scratchpad)"
_OPEN = re.compile(rf"<{_TAGS}>", re.I)
_CLOSE = re.compile(rf"</{_TAGS}>", re.I)
# The markup in which some open models write a hidden channel before the one that is shown.
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)\s*<\|message\|>")
_TRUNCATING = frozenset({"length", "max_tokens", "model_length"})


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model wrote, taken apart.

    Attributes:
        text: What it answered; empty where only reasoning was written.
        reasoning: What it wrote before, or None.
        truncated: Whether a limit cut it off, in the answer or in the reasoning.
    """

    text: str
    reasoning: str | None = None
    truncated: bool = False


def read_reply(raw: str, *, stop: str | None = None, reasoning: str | None = None) -> Reply:
    """Cut the reasoning off a reply.

    Args:
        raw: All that the model wrote.
        stop: Why it stopped, in the words of the provider; `length`, `max_tokens` and `model_length` mean that a limit
            cut it off.
        reasoning: Reasoning that the provider returned apart from the text.

    Returns:
        The reply. Reasoning that never ends leaves no answer, and counts as cut off.

    Example:
        >>> read_reply("<think>Einstein? No.</think> Arthur Eddington")
        Reply(text='Arthur Eddington', reasoning='Einstein? No.', truncated=False)
        >>> read_reply("<think>Albert Einstein won it, so")
        Reply(text='', reasoning='Albert Einstein won it, so', truncated=True)
    """
    before, text, closed = _apart(raw)
    parts = [part.strip() for part in (reasoning, before) if part and part.strip()]
    return Reply(text.strip(), "\n".join(parts) or None, stop in _TRUNCATING or not closed)


def _apart(raw: str) -> tuple[str, str, bool]:
    """Reasoning, answer, and whether the reasoning came to its end. Some templates open the reasoning themselves."""
    closings = list(_CLOSE.finditer(raw))
    after = raw[closings[-1].end() :] if closings else raw
    before = raw[: closings[-1].start()] if closings else ""
    opening = _OPEN.search(after)
    if opening:
        return before + after[opening.end() :], after[: opening.start()], False
    channels = list(_CHANNEL.finditer(after))
    if channels:
        last = channels[-1]
        shown = after[last.end() :]
        if last[1] != "final":
            return before + shown, "", False
        before, after = before + after[: last.start()], re.sub(r"<\|\w+\|>\s*$", "", shown)
    return _OPEN.sub("", before), after, True
