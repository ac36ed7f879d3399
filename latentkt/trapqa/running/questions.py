"""Which questions a run asks, in which order of the options, and what it leaves out."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from latentkt.errors import InputError
from latentkt.trapqa.chat import ChatTokenizer
from latentkt.trapqa.items import TrapItem
from latentkt.trapqa.rendering import Order, Rendered, Template, render, render_given, render_probe
from latentkt.trapqa.running.records import CONDITIONS, Key
from latentkt.trapqa.templates import CONDITIONS as BY_KIND
from latentkt.trapqa.templates import Condition

__all__ = [
    "Given",
    "Orders",
    "Plan",
    "Question",
    "Skipped",
    "check_conditions",
    "grouped",
    "numbered",
    "plan_questions",
    "seeded_order",
]

Orders = Literal["seeded", "both"]
Side = Literal["correct", "shortcut"]
_NUMBERS = re.compile(r"^ *(?:1[.)]|\(?A[.)])", re.M)
_BOTH: tuple[Order, Order] = ("correct_first", "shortcut_first")


@dataclass(frozen=True, slots=True)
class Given:
    """An item, and the prompt that its data set brings with it.

    Attributes:
        item: The item.
        prompt: Its user message, word for word; None where the library writes it.
        order: The order of the options, where the prompt or the item's text fixes it.
        template: The template that the item needs, where it is not the built-in one.
    """

    item: TrapItem
    prompt: str | None = None
    order: Order | None = None
    template: str | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """One thing to ask: an item under a condition in an order; for `probes`, its one or two probe questions.

    Attributes:
        given: The item.
        condition: One of `records.CONDITIONS`.
        order: Order of the options; None for probe questions.
    """

    given: Given
    condition: str
    order: Order | None

    @property
    def item(self) -> TrapItem:
        """The item that is asked."""
        return self.given.item

    def key(self, setting: str) -> Key:
        """The key of its record."""
        return self.item.id, setting, self.condition, self.order

    def prompts(
        self,
        *,
        template: Template,
        system: str | None = None,
        tokenizer: ChatTokenizer | None = None,
        prompt_template: str | None = None,
    ) -> tuple[Rendered, ...]:
        """The prompts of the question, each a conversation of its own: one, or one a probe question."""
        if self.condition == "probes":
            roles = [probe.role for probe in self.item.probe_questions]
            return tuple(
                render_probe(self.item, role, template=template, system=system, tokenizer=tokenizer) for role in roles
            )
        assert self.order is not None
        condition = cast(Condition, self.condition)
        if self.given.prompt is not None:
            given = render_given(
                self.item,
                self.given.prompt,
                condition=condition,
                order=self.order,
                template=template,
                system=system,
                tokenizer=tokenizer,
            )
            return (given,)
        made = render(
            self.item,
            condition=condition,
            order=self.order,
            template=template,
            system=system,
            tokenizer=tokenizer,
            prompt_template=prompt_template or self.given.template,
        )
        return (made,)


@dataclass(frozen=True, slots=True)
class Skipped:
    """An item that was not asked.

    Attributes:
        question_id: The item.
        condition: The condition it was not asked in.
        reason: Why.
    """

    question_id: str
    condition: str
    reason: str


def grouped(skipped: Iterable[Skipped]) -> list[dict[str, Any]]:
    """Skipped items for a file: the ids of each condition and reason, in order.

    Example:
        >>> grouped([Skipped("a", "names", "too long"), Skipped("b", "names", "too long")])
        [{'condition': 'names', 'reason': 'too long', 'question_ids': ['a', 'b']}]
    """
    ids: dict[tuple[str, str], list[str]] = {}
    for each in skipped:
        ids.setdefault((each.condition, each.reason), []).append(each.question_id)
    return [{"condition": name, "reason": reason, "question_ids": ids[name, reason]} for name, reason in ids]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run asks, and what it leaves out because the condition does not fit.

    Attributes:
        questions: The questions, by condition, in the order of the items.
        skipped: The items that a condition cannot be asked of.
    """

    questions: tuple[Question, ...]
    skipped: tuple[Skipped, ...]


def numbered(prompt: Rendered) -> tuple[Side, Side] | None:
    """Which answer stands first and which second, where the prompt numbers its options (1, 2 or A, B)."""
    if prompt.order is None or not _NUMBERS.search(prompt.text):
        return None
    return ("correct", "shortcut") if prompt.order == "correct_first" else ("shortcut", "correct")


def check_conditions(conditions: Sequence[str]) -> None:
    """Refuse conditions that do not exist, none, or one twice.

    Raises:
        InputError: The conditions are wrong.
    """
    if not conditions or len(set(conditions)) < len(conditions) or set(conditions) - set(CONDITIONS):
        expected = f"one or more of {', '.join(CONDITIONS)}, each once"
        raise InputError("conditions are wrong", expected=expected, found=", ".join(conditions) or "none")


def seeded_order(seed: int, question_id: str) -> Order:
    """The order drawn for a question; it depends on nothing but the seed and the id.

    Example:
        >>> seeded_order(0, "q1") == seeded_order(0, "q1")
        True
    """
    return _BOTH[hashlib.sha256(f"{seed}\n{question_id}".encode()).digest()[0] & 1]


def plan_questions(
    source: Mapping[str, Sequence[Given]],
    *,
    orders: Orders = "seeded",
    seed: int = 0,
    limit: int | None = None,
) -> Plan:
    """Choose what is asked.

    Args:
        source: Condition -> the items that are there for it (see `load_source`).
        orders: `seeded` (one a question, the same in all conditions) or `both`.
        seed: Of the orders.
        limit: At most so many items a condition, counted after those that do not fit it are left out.

    Returns:
        The plan; items that do not fit a condition are listed in it.
    """
    questions: list[Question] = []
    skipped: list[Skipped] = []
    for condition, items in source.items():
        reasons = [(given, _misfit(given.item, condition)) for given in items]
        skipped += [Skipped(given.item.id, condition, reason) for given, reason in reasons if reason]
        fitting = [given for given, reason in reasons if not reason][:limit]
        for given in fitting:
            questions += [Question(given, condition, order) for order in _orders(given, condition, orders, seed)]
    return Plan(tuple(questions), tuple(skipped))


def _misfit(item: TrapItem, condition: str) -> str | None:
    if condition == "probes":
        return None if item.probe_questions else "it has no probe questions"
    if condition not in BY_KIND[item.kind]:
        return f"items of kind {item.kind!r} are not asked in this condition"
    if condition == "profiles" and None in (item.correct.profile, item.shortcut.profile):
        return "a candidate has no profile"
    return None


def _orders(given: Given, condition: str, orders: Orders, seed: int) -> Iterable[Order | None]:
    if condition == "probes":
        return (None,)
    if given.order is not None:  # its words are written, and show one order
        return (given.order,)
    return _BOTH if orders == "both" else (seeded_order(seed, given.item.id),)
