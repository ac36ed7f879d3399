"""From trap items to what is measured: runs (a prompt with its answers) and pairs (item and control, both ways)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from latentkt.errors import InputError
from latentkt.internals.lens import LensRun
from latentkt.models import encode, encode_answers, make_pair
from latentkt.trapqa import render

if TYPE_CHECKING:
    from latentkt.models import ModelHandle, Pair
    from latentkt.trapqa import Rendered, TrapItem

__all__ = ["DIRECTIONS", "encode_run", "item_run", "pairs_of_item", "runs_of"]

RUN_COLUMNS = (
    "item", "kind", "family", "polarity", "which", "order", "template", "condition", "right", "first_option_is_correct",
)  # fmt: skip
"""Meta of `item_run`."""
PAIR_COLUMNS = (
    "item", "kind", "family", "polarity", "order", "template", "direction", "base", "source", "base_right",
    "source_right",
)  # fmt: skip
"""Meta of `pairs_of_item`."""
DIRECTIONS = {"control_to_item": ("item", "control"), "item_to_control": ("control", "item")}
"""Direction -> (base, source): activations go from the source run into the base run."""


def encode_run(handle: ModelHandle, rendered: Rendered, meta: dict[str, object]) -> LensRun:
    """Tokenise a rendered prompt with its two answers.

    Raises:
        InputError: The prompt does not fit, or its answers cannot be scored under this tokenizer.
    """
    name = f"{rendered.which} {rendered.item_id!r}"
    prompt = encode(handle, rendered.text, chat=rendered.chat, spans=rendered.spans, name=name)
    correct, shortcut = (rendered.answer_prefix + text for text in (rendered.correct, rendered.shortcut))
    answers = encode_answers(handle, prompt, correct, shortcut, name=name)
    return LensRun(prompt, answers, meta)


def item_run(
    handle: ModelHandle,
    item: TrapItem,
    *,
    which: str = "item",
    order: str = "correct_first",
    template: str = "chat",
    system: str | None = None,
    condition: str | None = None,
) -> LensRun:
    """One prompt of an item (`item`, `control` or `neutral`) with its answers, and the columns that name it.

    Args:
        handle: The model.
        item: The item.
        which: `item`, `control`, or `neutral` (the options without the question).
        order: Which of the item's answers is shown first.
        template: `chat` or `plain`.
        system: As in `latentkt.trapqa.render`.
        condition: None for the item's own.

    Raises:
        InputError: The prompt or the answers are refused for this model.
    """
    neutral = which == "neutral"
    wanted: dict[str, Any] = {
        "which": "item" if neutral else which,
        "condition": "neutral" if neutral else condition,
        "order": order,
        "template": template,
    }
    rendered = render(item, system=system, tokenizer=handle.tokenizer, **wanted)
    right = rendered.right
    first_is_correct = None if right is None else (right == "correct") == (order == "correct_first")
    meta: dict[str, object] = {
        "item": item.id,
        "kind": item.kind,
        "family": item.family,
        "polarity": item.polarity,
        "which": which,
        "order": order,
        "template": template,
        "condition": rendered.condition,
        "right": right,
        "first_option_is_correct": first_is_correct,
    }
    return encode_run(handle, rendered, meta)


def runs_of(handle: ModelHandle, given: Iterable[LensRun | Pair | TrapItem]) -> Iterator[LensRun]:
    """Prompts with their answers: runs as they are, both runs of a pair, item and control of a trap item.

    A pair's runs have the columns `pair` and `run` (`base` or `source`) beside its meta. An item is shown with its
    right answer first, in chat where the tokenizer has a template.

    Raises:
        InputError: Something else is given, or an item's prompt is refused for this model.
    """
    from latentkt.models import Pair
    from latentkt.trapqa import TrapItem

    template = "chat" if handle.has_chat_template else "plain"
    for one in given:
        if isinstance(one, LensRun):
            yield one
        elif isinstance(one, Pair):
            for name, prompt in (("base", one.base), ("source", one.source)):
                yield LensRun(prompt, one.answers, {**one.meta, "pair": one.name, "run": name})
        elif isinstance(one, TrapItem):
            for which in ("item", "control"):
                yield item_run(handle, one, which=which, template=template)
        else:
            raise InputError("what is read", expected="runs, pairs or trap items", found=type(one).__name__)


def pairs_of_item(handle: ModelHandle, item: TrapItem, **options: object) -> list[Pair]:
    """The item and its control as pairs, one a direction.

    Args:
        handle: The model.
        item: The item.
        **options: `order`, `template`, `system`, `condition` as in `item_run`.

    Raises:
        LatentKTError: A prompt is refused for this model, or the two cannot be aligned.
    """
    runs = {which: item_run(handle, item, which=which, **options) for which in ("item", "control")}  # type: ignore[arg-type]
    meta = {key: runs["item"].meta[key] for key in ("item", "kind", "family", "polarity", "order", "template")}
    pairs = []
    for direction, (base, source) in DIRECTIONS.items():
        columns = {**meta, "direction": direction, "base": base, "source": source}
        columns |= {"base_right": runs[base].meta["right"], "source_right": runs[source].meta["right"]}
        pairs.append(
            make_pair(
                handle,
                runs[base].prompt,
                runs[source].prompt,
                correct=runs["item"].answers.correct,
                shortcut=runs["item"].answers.shortcut,
                name=f"{item.id} {direction}",
                meta=columns,
            )
        )
    return pairs
