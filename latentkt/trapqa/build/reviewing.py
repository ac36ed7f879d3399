"""A second opinion: a language model reads each item with both profiles, and is not told what is right."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from latentkt.trapqa.build.language import Failure, generate
from latentkt.trapqa.build.log import StageLog
from latentkt.trapqa.items import TrapItem

if TYPE_CHECKING:
    from inspect_ai.model import Model

__all__ = ["Verdict", "review"]

STAGE = "review"
_PROMPT = """\
Two people, with what is known of them:

First: {first}
{first_profile}

Second: {second}
{second_profile}

A question about one of them:
{text}

Judge it by the profiles and by what is generally known. A thing that a profile does not mention is not false for that.
description_fits_first, description_fits_second: whether everything but the decisive clause can be true of that person.
leaves: whom the whole question leaves: first, second, both, neither, or unknown if this cannot be verified.
names_somebody: whether the question gives a name of one of the two away.
well_formed: whether it is good English that a careful reader understands in one way.
reason: one sentence."""


@dataclass
class Verdict:
    """What the model says of an item."""

    description_fits_first: bool
    description_fits_second: bool
    leaves: Literal["first", "second", "both", "neither", "unknown"]
    names_somebody: bool
    well_formed: bool
    reason: str


def review(
    items: Sequence[TrapItem],
    model: str | Model,
    log: StageLog,
    *,
    seed: int = 0,
    retries: int = 2,
    journal: str | Path | None = None,
) -> list[TrapItem]:
    """The items that a model finds sound; the others go into the log with its reason.

    Args:
        items: The items.
        model: A model of inspect-ai, or its name.
        log: Gets the removals (stage `review`), items without a verdict among them.
        seed: Of the order in which the two people are shown.
        retries: How often a reply of the wrong form is sent back.
        journal: Keeps the replies.
    """
    firsts = [random.Random(f"{seed} {item.id}").random() < 0.5 for item in items]
    prompts = [_prompt(item, first) for item, first in zip(items, firsts, strict=True)]
    verdicts = generate(model, prompts, Verdict, retries=retries, seed=seed, temperature=0.0, journal=journal)
    kept = []
    for item, first, verdict in zip(items, firsts, verdicts, strict=True):
        if isinstance(verdict, Failure):
            log.remove(STAGE, item.id, f"no verdict: {verdict.why}", verdict.detail)
            continue
        rule = _objection(verdict, "first" if first else "second")
        if rule is None:
            kept.append(item)
        else:
            log.remove(STAGE, item.id, rule, verdict.reason)
    log.count(STAGE, kept=len(kept))
    return kept


def _prompt(item: TrapItem, correct_first: bool) -> str:
    first, second = (item.correct, item.shortcut) if correct_first else (item.shortcut, item.correct)
    return _PROMPT.format(
        first=first.text,
        first_profile=first.profile or "nothing",
        second=second.text,
        second_profile=second.profile or "nothing",
        text=item.text,
    )


def _objection(verdict: Verdict, correct: str) -> str | None:
    if not (verdict.description_fits_first and verdict.description_fits_second):
        return "model: the description does not fit both"
    if verdict.leaves != correct:
        left = "the other one" if verdict.leaves in ("first", "second") else verdict.leaves
        return f"model: it leaves {left}"
    if verdict.names_somebody:
        return "model: it names a candidate"
    return None if verdict.well_formed else "model: not well formed"
