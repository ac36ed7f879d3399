"""How questions are asked: everything that answers depend on besides the model and the concepts."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from latentkt.errors import InputError

__all__ = ["AskOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskOptions:
    """Options of asking; they are checked when they are made.

    Attributes:
        setting: What to call the model in the answers; None: its name.
        template: `chat` or `plain`; None: chat where the tokenizer has a template.
        system: A system prompt in place of the template's own; "none" removes that.
        max_new_tokens: Longest answer.
        thinking_budget: Tokens allowed for reasoning on top of `max_new_tokens`; None where the model does not reason.
        temperature: 0 takes the likeliest token each time, anything above samples.
        top_p: Nucleus of sampling.
        seed: Of sampling.
        batch_size: Questions that are asked, and written down, at once.
    """

    setting: str | None = None
    template: Literal["chat", "plain"] | None = None
    system: str | None = None
    max_new_tokens: int = 128
    thinking_budget: int | None = None
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    batch_size: int = 16

    def __post_init__(self) -> None:
        if self.template not in ("chat", "plain", None):
            raise InputError("template is wrong", expected="chat, plain or None", found=repr(self.template))
        for name, number in (
            ("max_new_tokens", self.max_new_tokens),
            ("batch_size", self.batch_size),
            ("thinking_budget", 1 if self.thinking_budget is None else self.thinking_budget),
        ):
            if number < 1:
                raise InputError(f"{name} is wrong", expected=">= 1", found=number)
        if not self.temperature >= 0 or not 0 < self.top_p <= 1:
            found = f"{self.temperature}, {self.top_p}"
            raise InputError("decoding is wrong", expected="temperature >= 0 and 0 < top_p <= 1", found=found)
        if self.setting is not None and not self.setting.strip():
            raise InputError("setting is blank", expected="a name for the model and its settings")

    @property
    def limit(self) -> int:
        """Tokens of a whole reply."""
        return self.max_new_tokens + (self.thinking_budget or 0)

    def identity(self) -> dict[str, Any]:
        """What the answers depend on; `batch_size` is not of it."""
        return {name: value for name, value in asdict(self).items() if name not in ("setting", "batch_size")}
