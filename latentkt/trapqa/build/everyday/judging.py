"""A second opinion on everyday items: a language model reads item and control, and is not told what is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from latentkt.trapqa.build.everyday.proof import without_halves
from latentkt.trapqa.build.language import Failure, generate
from latentkt.trapqa.build.log import StageLog
from latentkt.trapqa.items import TrapItem, Which
from latentkt.trapqa.running.questions import seeded_order

if TYPE_CHECKING:
    from inspect_ai.model import Model

__all__ = ["Opinion", "judge_items"]

STAGE = "second opinion"
_PROMPT = """\
Here is a question about an everyday scene:

{text}

First option: {first}
Second option: {second}

Judge it as a careful reader with ordinary knowledge.
decides_for: which option the scene leaves: first, second, both (a thoughtful person could defend either), or neither.
plausible: whether the scene could happen, and whether both options are things that somebody might consider.
well_formed: whether it is good English that is understood in one way.
needs_expert: whether the answer depends on special knowledge.
reason: one sentence."""


@dataclass
class Opinion:
    """What the model says of one text."""

    decides_for: Literal["first", "second", "both", "neither"]
    plausible: bool
    well_formed: bool
    needs_expert: bool
    reason: str


def judge_items(
    items: Sequence[TrapItem],
    model: str | Model,
    log: StageLog,
    *,
    seed: int = 0,
    retries: int = 2,
    journal: str | Path | None = None,
) -> list[TrapItem]:
    """Keep the items of which a model says that item and control each leave the option that they should.

    An item without a usable opinion is removed too, with the kind of failure; mirror images fall together.

    Args:
        items: The items.
        model: A model of inspect-ai.
        log: Where removals go.
        seed: For the order of the options, and passed on to the model.
        retries: How often a reply of the wrong form is sent back.
        journal: Where answers are kept as they come.
    """
    asked: list[tuple[TrapItem, Which]] = [(item, which) for item in items for which in get_args(Which)]
    prompts = [_prompt(item, which, seed) for item, which in asked]
    replies = generate(model, prompts, Opinion, retries=retries, seed=seed, temperature=0.0, journal=journal)
    broken: dict[str, tuple[str, str]] = {}
    for (item, which), reply in zip(asked, replies, strict=True):
        problem = _problem(item, which, reply, seed)
        if problem:
            broken.setdefault(item.id, (problem[0], f"{which}: {problem[1]}"))
    return without_halves(items, broken, log, STAGE)


def _options(item: TrapItem, which: Which, seed: int) -> tuple[str, str]:
    pair = item.correct.text, item.shortcut.text
    return pair if seeded_order(seed, f"{item.id} {which}") == "correct_first" else pair[::-1]


def _prompt(item: TrapItem, which: Which, seed: int) -> str:
    first, second = _options(item, which, seed)
    text = item.question(which)[0].replace("{option_a}", first).replace("{option_b}", second)
    return _PROMPT.format(text=text, first=first, second=second)


def _problem(item: TrapItem, which: Which, reply: Opinion | Failure, seed: int) -> tuple[str, str] | None:
    if isinstance(reply, Failure):
        return f"model: {reply.why}", reply.detail
    right = item.correct.text if item.right(which) == "correct" else item.shortcut.text
    wanted = "first" if _options(item, which, seed)[0] == right else "second"
    leaves = reply.decides_for if reply.decides_for in ("both", "neither") else "the other"
    checks = {
        f"model: the scene leaves {leaves}": reply.decides_for == wanted,
        "model: not plausible": reply.plausible,
        "model: not well formed": reply.well_formed,
        "model: needs an expert": not reply.needs_expert,
    }
    return next(((rule, reply.reason) for rule, holds in checks.items() if not holds), None)
