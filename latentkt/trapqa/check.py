"""How a set of items is balanced: what a model could exploit without reading, and what a measurement needs.

Loading refuses what is wrong with an item (`latentkt.trapqa.clauses`). This report counts what is right with each
item and wrong with all of them together: an answer that is always the longer one, a sentence that stands everywhere,
pairs whose two prompts have unequal numbers of tokens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from latentkt.errors import InputError
from latentkt.trapqa.items import ItemSet, TrapItem, Which
from latentkt.trapqa.rendering import render
from latentkt.trapqa.sentences import Repeat, repeated_sentences
from latentkt.trapqa.token_check import Share, TokenReport, token_report

if TYPE_CHECKING:
    from latentkt.models import ModelHandle

__all__ = ["CheckReport", "Share", "TokenReport", "check_items"]

REPEAT_LIMIT = 3
EQUAL_LENGTH_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The balance of a set.

    Attributes:
        n_items: Number of items.
        counts: Field -> value -> number of items (kind, family, aspect, constraint kind, polarity, control, which
            roles the control changes, level).
        probe_golds: (role, polarity or `all`) -> share of probe questions whose right answer is yes.
        first_by_alphabet: Items whose correct answer stands first in the alphabet.
        gold_first: (which, order) -> share of prompts that show the right answer first; without neutral controls.
        constraint_after_shortcut: Items whose constraint begins after their shortcut span does.
        constraint_place: Kind -> where the constraint begins on average, as a fraction of the text.
        correct_longer: Items whose correct answer has more characters than the shortcut answer.
        shortcut_longer: Items whose shortcut answer has more.
        answer_characters: Mean number of characters of (correct, shortcut) answers.
        repeats: Sentences that stand in more items than the limit after masking names and years.
        with_paths: Items that name paths (all of which have patterns, or loading had refused).
        tokens: What the model's tokenizer makes of the set, or None where no model was named.
    """

    n_items: int
    counts: dict[str, dict[str, int]]
    probe_golds: dict[tuple[str, str], Share]
    first_by_alphabet: Share
    gold_first: dict[tuple[str, str], Share]
    constraint_after_shortcut: Share
    constraint_place: dict[str, float]
    correct_longer: Share
    shortcut_longer: Share
    answer_characters: tuple[float, float]
    repeats: tuple[Repeat, ...]
    with_paths: Share
    tokens: TokenReport | None

    @property
    def notices(self) -> tuple[str, ...]:
        """What a reader should mend or know, one sentence each; empty where nothing stands out."""
        found = [
            f"{len(r.ids)} items hold the sentence {r.masked!r} (limit {REPEAT_LIMIT}): {', '.join(r.ids[:6])}"
            for r in self.repeats
        ]
        tokens = self.tokens
        if tokens is not None and tokens.equal_length.value < EQUAL_LENGTH_SHARE:
            found.append(
                f"item and control have equally many tokens in {tokens.equal_length} pairs only (aim: 90 %); "
                f"unequal: {', '.join(tokens.unequal[:12])}"
            )
        if tokens is not None:
            found += [f"item {item_id!r} is refused by {tokens.model}: {reason}" for item_id, reason in tokens.refused]
        return tuple(found)


def check_items(item_set: ItemSet, *, handle: ModelHandle | None = None) -> CheckReport:
    """Report the balance of a loaded set.

    Args:
        item_set: The items, already checked by loading.
        handle: An open model: adds what its tokenizer makes of the prompts and answers, in each item's own condition.

    Raises:
        InputError: The set is empty.

    Example:
        >>> from latentkt.trapqa import ItemSet, mark_item
        >>> item = mark_item(
        ...     id="screws", kind="action", family="tool_required",
        ...     text="With [[shortcut: a hammer]] and [[constraint: screws]], is it {option_a} or {option_b}?",
        ...     control={"constraint": "nails"}, correct="turning", shortcut="hitting")
        >>> report = check_items(ItemSet(items=(item,)))
        >>> print(report.constraint_after_shortcut)
        1 of 1 (100 %)
    """
    items = item_set.items
    if not items:
        raise InputError("no items to check", expected="at least one item", found="an empty set")
    return CheckReport(
        n_items=len(items),
        counts=_counts(items),
        probe_golds=_probe_golds(items),
        first_by_alphabet=_share(items, lambda i: i.correct.text.casefold() < i.shortcut.text.casefold()),
        gold_first=_gold_first(items),
        constraint_after_shortcut=_share(items, lambda i: _start(i, "constraint") > _start(i, "shortcut")),
        constraint_place=_constraint_place(items),
        correct_longer=_share(items, lambda i: len(i.correct.text) > len(i.shortcut.text)),
        shortcut_longer=_share(items, lambda i: len(i.correct.text) < len(i.shortcut.text)),
        answer_characters=(_mean(len(i.correct.text) for i in items), _mean(len(i.shortcut.text) for i in items)),
        repeats=repeated_sentences(items, limit=REPEAT_LIMIT),
        with_paths=_share(items, lambda i: i.paths is not None),
        tokens=None if handle is None else token_report(items, handle),
    )


def _share(items: Sequence[TrapItem], holds: Callable[[TrapItem], bool]) -> Share:
    return Share(sum(map(holds, items)), len(items))


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)


def _start(item: TrapItem, role: str) -> int:
    return min(start for start, _ in item.spans[role])


def _counts(items: Sequence[TrapItem]) -> dict[str, dict[str, int]]:
    fields: dict[str, Callable[[TrapItem], object]] = {
        "kind": lambda i: i.kind,
        "family": lambda i: i.family,
        "aspect": lambda i: i.aspect,
        "constraint_kind": lambda i: i.constraint_kind,
        "polarity": lambda i: i.polarity,
        "control": lambda i: i.control.kind,
        "control changes": lambda i: " and ".join(_changed_roles(i)),
        "level": lambda i: i.level,
    }
    return {
        name: {str(value): n for value, n in sorted(Counter(map(field, items)).items(), key=lambda pair: str(pair[0]))}
        for name, field in fields.items()
    }


def _changed_roles(item: TrapItem) -> list[str]:
    def words(which: Which, role: str) -> list[str]:
        text, spans = item.question(which)
        return [text[start:end] for start, end in spans[role]]

    return [role for role in sorted(item.spans) if words("item", role) != words("control", role)]


def _probe_golds(items: Sequence[TrapItem]) -> dict[tuple[str, str], Share]:
    golds: dict[tuple[str, str], list[bool]] = {}
    for item in items:
        for probe in item.probe_questions:
            for polarity in (item.polarity, "all"):
                golds.setdefault((probe.role, polarity), []).append(probe.answer)
    return {key: Share(sum(answers), len(answers)) for key, answers in sorted(golds.items())}


def _gold_first(items: Sequence[TrapItem]) -> dict[tuple[str, str], Share]:
    shown: dict[tuple[str, str], list[bool]] = {}
    for item in items:
        for which in ("item", "control"):
            for order in ("correct_first", "shortcut_first"):
                prompt = render(item, which=which, order=order, template="plain")
                if prompt.right is not None:
                    first = min(("correct", "shortcut"), key=lambda side: prompt.spans[f"option_{side}"][0])
                    shown.setdefault((which, order), []).append(first == prompt.right)
    return {key: Share(sum(firsts), len(firsts)) for key, firsts in shown.items()}


def _constraint_place(items: Sequence[TrapItem]) -> dict[str, float]:
    places: dict[str, list[float]] = {}
    for item in items:
        places.setdefault(item.kind, []).append(_start(item, "constraint") / len(item.text))
    return {kind: _mean(values) for kind, values in places.items()}
