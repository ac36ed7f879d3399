"""How a run asks: everything that its answers depend on besides the model and the items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from latentkt.errors import InputError
from latentkt.trapqa.running.questions import Orders, check_conditions

__all__ = ["Mode", "RunOptions"]

Mode = Literal["logprob", "generate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options of a run; they are checked when they are made.

    Attributes:
        conditions: What is asked, in this order.
        mode: `logprob` scores both answers and takes the likelier one; `generate` lets the model write and matches it.
        orders: `both`, or `seeded`: one a question, drawn from the seed and the question's id, so that it is the same
            in every condition and whatever else is asked.
        seed: Of the orders and of sampling.
        limit: At most so many items a condition, of those that it can be asked of.
        setting: What to call the model in the records; None: its name.
        template: `chat` or `plain`; None: chat where the tokenizer has a template.
        system: As in `latentkt.trapqa.render`.
        prompt_template: A text in place of the built-in one; for names, profiles, neutral and real_life.
        max_new_tokens: Longest reply; one that is longer is flagged as truncated.
        temperature: 0 takes the likeliest token each time, anything above samples.
        top_p: Nucleus of sampling.
        confidence: Ask for confidence in a second turn (`generate` and chat only).
        batch_size: Questions that are asked, and written, at once.
    """

    conditions: tuple[str, ...]
    mode: Mode = "logprob"
    orders: Orders = "seeded"
    seed: int = 0
    limit: int | None = None
    setting: str | None = None
    template: Literal["chat", "plain"] | None = None
    system: str | None = None
    prompt_template: str | None = None
    max_new_tokens: int = 64
    temperature: float = 0.0
    top_p: float = 1.0
    confidence: bool = False
    batch_size: int = 16

    def __post_init__(self) -> None:
        check_conditions(self.conditions)
        for name, value, allowed in (
            ("mode", self.mode, get_args(Mode)),
            ("orders", self.orders, get_args(Orders)),
            ("template", self.template, ("chat", "plain", None)),
        ):
            if value not in allowed:
                raise InputError(
                    f"{name} is wrong", expected=f"one of {', '.join(map(str, allowed))}", found=repr(value)
                )
        for name, number, low in (
            ("limit", 1 if self.limit is None else self.limit, 1),
            ("max_new_tokens", self.max_new_tokens, 1),
            ("batch_size", self.batch_size, 1),
        ):
            if number < low:
                raise InputError(f"{name} is wrong", expected=f">= {low}", found=number)
        if not self.temperature >= 0 or not 0 < self.top_p <= 1:
            found = f"{self.temperature}, {self.top_p}"
            raise InputError("decoding is wrong", expected="temperature >= 0 and 0 < top_p <= 1", found=found)
        if self.confidence and (self.mode != "generate" or self.template == "plain"):
            raise InputError(
                "confidence is asked in a second turn",
                expected="mode 'generate' and a chat template",
                found=f"mode {self.mode!r}, template {self.template!r}",
            )
        if self.setting is not None and not self.setting.strip():
            raise InputError("setting is blank", expected="a name for the model and its settings")

    def decoding(self) -> dict[str, object]:
        """What the records' provenance says about how replies were made; empty where none were."""
        if self.mode == "logprob":
            return {}
        sampled = {"temperature": self.temperature, "top_p": self.top_p} if self.temperature else {}
        return {"do_sample": bool(self.temperature), "max_new_tokens": self.max_new_tokens, **sampled}
