"""What one model's tokenizer makes of a set: lengths of prompts, spans and answers, and the items it does not take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from latentkt.errors import LatentKTError
from latentkt.trapqa.items import TrapItem, Which
from latentkt.trapqa.rendering import Order, render

if TYPE_CHECKING:
    from latentkt.models import AnswerSet, Encoded, ModelHandle

__all__ = ["Share", "TokenReport", "token_report"]

_COVERING = ("template", "system", "answer", "rest")


@dataclass(frozen=True, slots=True)
class Share:
    """A count out of a total; prints as `3 of 8 (38 %)`.

    Attributes:
        count: How many.
        total: Out of how many.
    """

    count: int
    total: int

    @property
    def value(self) -> float:
        """The share; NaN where the total is 0."""
        return self.count / self.total if self.total else float("nan")

    def __str__(self) -> str:
        return f"{self.count} of {self.total}" + (f" ({100 * self.value:.0f} %)" if self.total else "")


@dataclass(frozen=True, slots=True)
class TokenReport:
    """What a model's tokenizer makes of the set.

    Attributes:
        model: The model's name.
        template: `chat` or `plain`.
        equal_length: Pairs whose item and control have equally many tokens, in both orders.
        equal_spans: Pairs whose spans have equally many tokens, role by role.
        unequal: Ids of the pairs that are not of equal length.
        longest: Tokens of the longest prompt.
        correct_longer: Items whose correct answer has more tokens than the shortcut answer.
        shortcut_longer: Items whose shortcut answer has more.
        refused: (id, reason) of items that this model's tokenizer does not take.
    """

    model: str
    template: str
    equal_length: Share
    equal_spans: Share
    unequal: tuple[str, ...]
    longest: int
    correct_longer: Share
    shortcut_longer: Share
    refused: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Pair:
    item_id: str
    equal_length: bool
    equal_spans: bool
    longest: int
    correct_minus_shortcut: int


def token_report(items: Sequence[TrapItem], handle: ModelHandle) -> TokenReport:
    """Encode every item and control, in both orders and each item's own condition, and compare.

    Args:
        items: The items.
        handle: The model; chat prompts where it has a chat template, else plain ones.
    """
    pairs, refused = [], []
    for item in items:
        try:
            pairs.append(_measure(item, handle))
        except LatentKTError as error:
            refused.append((item.id, str(error).replace("\n", ";")))
    total = len(pairs)
    return TokenReport(
        model=handle.name,
        template="chat" if handle.has_chat_template else "plain",
        equal_length=Share(sum(pair.equal_length for pair in pairs), total),
        equal_spans=Share(sum(pair.equal_spans for pair in pairs), total),
        unequal=tuple(pair.item_id for pair in pairs if not pair.equal_length),
        longest=max((pair.longest for pair in pairs), default=0),
        correct_longer=Share(sum(pair.correct_minus_shortcut > 0 for pair in pairs), total),
        shortcut_longer=Share(sum(pair.correct_minus_shortcut < 0 for pair in pairs), total),
        refused=tuple(refused),
    )


def _measure(item: TrapItem, handle: ModelHandle) -> _Pair:
    both = [[_encode(item, which, order, handle) for which in get_args(Which)] for order in get_args(Order)]
    prompts = [prompt for pair in both for prompt, _ in pair]
    answers = both[0][0][1]
    return _Pair(
        item_id=item.id,
        equal_length=all(len(base) == len(source) for (base, _), (source, _) in both),
        equal_spans=all(_span_lengths(base) == _span_lengths(source) for (base, _), (source, _) in both),
        longest=max(map(len, prompts)),
        correct_minus_shortcut=len(answers.correct_ids) - len(answers.shortcut_ids),
    )


def _encode(item: TrapItem, which: Which, order: Order, handle: ModelHandle) -> tuple[Encoded, AnswerSet]:
    from latentkt.models import encode, encode_answers

    chat = handle.has_chat_template
    tokenizer = handle.tokenizer if chat else None
    prompt = render(item, which=which, order=order, template="chat" if chat else "plain", tokenizer=tokenizer)
    encoded = encode(handle, prompt.text, chat=chat, spans=prompt.spans, name=f"{which} of {item.id!r}")
    correct, shortcut = (prompt.answer_prefix + text for text in (prompt.correct, prompt.shortcut))
    return encoded, encode_answers(handle, encoded, correct, shortcut, name=item.id)


def _span_lengths(encoded: Encoded) -> dict[str, list[int]]:
    spans = encoded.spans.items()
    return {role: [stop - first for first, stop in ranges] for role, ranges in spans if role not in _COVERING}
