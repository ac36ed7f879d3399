"""Numbers put into words, the same way everywhere."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from latentkt.report.blocks import Finding

if TYPE_CHECKING:
    from latentkt.results import Run
    from latentkt.stats import Interval

__all__ = ["caption_of_run", "effect", "p_text", "plural", "rests_on", "share"]


def plural(count: int, one: str, many: str | None = None) -> str:
    """A count with its noun.

    Example:
        >>> plural(1, "family", "families"), plural(3, "item")
        ('1 family', '3 items')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def rests_on(interval: Interval) -> str:
    """What a number rests on.

    Example:
        >>> from latentkt.stats import Interval
        >>> rests_on(Interval(0.5, 0.4, 0.6, 0.95, "student-t on cluster means", 64, 8))
        '64 items, 8 families'
    """
    words = plural(interval.n, "item")
    return words if interval.clusters is None else f"{words}, {plural(interval.clusters, 'family', 'families')}"


def share(subject: str, interval: Interval, *, chance: float = 0.5) -> Finding:
    """A share of prompts answered rightly, held against chance.

    Example:
        >>> from latentkt.stats import Interval
        >>> print(share("It answers", Interval(0.51, 0.45, 0.57, 0.95, "", 104, 14)).text)
        It answers 51 % [45, 57] of prompts rightly (104 items, 14 families): not distinguishable from chance (50 %).
    """
    if not interval.defined:
        seen = f"{subject} {100 * interval.value:.0f} % of prompts rightly ({rests_on(interval)})"
        return Finding(f"{seen}: too few for an interval.")
    there = interval.excludes(chance)
    verdict = ("above" if interval.value > chance else "below") if there else "not distinguishable from"
    given = f"{subject} {interval:.0%} of prompts rightly ({rests_on(interval)})"
    return Finding(f"{given}: {verdict} chance ({100 * chance:.0f} %).", found=there)


def effect(
    subject: str, interval: Interval, *, unit: str = "nats", none: str = "not distinguishable from no effect"
) -> Finding:
    """An effect held against none.

    Example:
        >>> from latentkt.stats import Interval
        >>> print(effect("The constraint moves it by", Interval(0.2, -0.1, 0.5, 0.95, "", 64, 8)).text)
        The constraint moves it by +0.20 [-0.10, +0.50] nats (64 items, 8 families): not distinguishable from no effect.
    """
    if not interval.defined:
        return Finding(f"{subject} {interval.value:+.2f} {unit} ({rests_on(interval)}): too few for an interval.")
    there = interval.excludes(0.0)
    ending = "." if there else f": {none}."
    return Finding(f"{subject} {interval:+.2f} {unit} ({rests_on(interval)}){ending}", found=there)


def p_text(p: float) -> str:
    """A p value in words.

    Example:
        >>> p_text(0.0004), p_text(0.0321), p_text(float("nan"))
        ('p < 0.001', 'p = 0.032', 'p not defined')
    """
    if math.isnan(p):
        return "p not defined"
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def caption_of_run(run: Run) -> str:
    """What the caption of every figure says of the run: preset and model."""
    model = run.identity.get("model", {})
    name = model.get("model") or model.get("id") if isinstance(model, dict) else model
    preset = run.identity.get("preset")
    return ", ".join(part for part in (f"preset {preset}" if preset else "", str(name or "")) if part)
