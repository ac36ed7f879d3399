"""Does the model give the right answer, and does the constraint move it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from latentkt import plots
from latentkt.plots.summaries import interval_of, item_minus_control, right_answers, share_of
from latentkt.report.blocks import Finding, Note, Picture, Section
from latentkt.report.wording import caption_of_run, effect, p_text, plural, share
from latentkt.stats import sign_flip

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.results import Run

__all__ = ["TITLE", "section"]

TITLE = "Answers"
INTRO = (
    "Each trap item was asked with its control, in both orders of the options. A model prefers the answer whose whole "
    "string it gives the larger probability. In the item y* is right, in a flip control y_s: a model that always "
    "follows the shortcut is right in the controls and wrong in the items."
)
METHOD = (
    "Raw log-odds of two strings also depend on their length and wording. What counts is therefore the difference "
    "between item and control, in which the strings cancel. Intervals in the text are 95 % by family: families, not "
    "items, are what was sampled."
)


def section(run: Run) -> Section | None:
    """The section, or None without a table `answers`."""
    if not run.has("answers"):
        return None
    answers, caption = run.tables["answers"], caption_of_run(run)
    right, pairs = right_answers(answers), item_minus_control(answers)
    findings = [*_accuracy(right), *_difference(pairs), *_all_four(right)]
    pictures = [
        Picture.of(
            plots.accuracy_by_kind(answers, caption=caption),
            alt=f"Share of right answers by kind and option order. {' '.join(f.text for f in _accuracy(right))}",
            caption="Read item and control together: a constraint that is understood lifts both above chance, a "
            "preference for one answer lifts one and lowers the other.",
        ),
    ]
    if len(pairs):
        pictures += _pictures_of_pairs(answers, pairs, caption)
    return Section("answers", TITLE, INTRO, tuple(findings), (*pictures, Note(METHOD)))


def _pictures_of_pairs(answers: pd.DataFrame, pairs: pd.DataFrame, caption: str) -> list[Picture]:
    words = [finding.text for finding in _difference(pairs)]
    return [
        Picture.of(
            plots.item_against_control(answers, caption=caption),
            alt=f"Log-odds in the item against the control, one point an item. {words[0]}",
            caption="A point above the diagonal is an item whose constraint moves the model towards y*.",
        ),
        Picture.of(
            plots.differences_by_family(answers, caption=caption),
            alt=f"Item minus control, by family. {' '.join(words)}",
            caption="The spread between the large dots is what the intervals are made of.",
        ),
    ]


def _accuracy(right: pd.DataFrame) -> list[Finding]:
    names = {"item": "In the items the model answers", "control": "In the controls it answers"}
    tables = {which: right[right["which"] == which] for which in names}
    return [share(names[which], share_of(table, "is_right")) for which, table in tables.items() if len(table)]


def _difference(pairs: pd.DataFrame) -> list[Finding]:
    """The constraint's effect over all items, then by kind; nothing where no item was asked with its control."""
    if pairs.empty:
        return []
    whole = effect("The constraint moves the log-odds of y* by", interval_of(pairs, "difference").interval)
    test = sign_flip(pairs["difference"], pairs["family"].tolist())
    findings = [Finding(f"{whole.text.rstrip('.')}; sign-flip test over families, {p_text(test.p)}.", whole.found)]
    kinds = sorted(pairs["kind"].unique())
    for kind in kinds if len(kinds) > 1 else []:
        inside = interval_of(pairs[pairs["kind"] == kind], "difference").interval
        findings.append(effect(f"In {kind} items the constraint moves it by", inside))
    return findings


def _all_four(right: pd.DataFrame) -> list[Finding]:
    """Items answered rightly in item and control, in both orders: what following the constraint would mean."""
    prompts = right.groupby("item")["is_right"].agg(["size", "mean"])
    complete = prompts[prompts["size"] == 4]
    if complete.empty:
        return []
    always = int((complete["mean"] == 1.0).sum())
    return [
        Finding(
            f"{always} of {plural(len(complete), 'item')} are answered rightly in all four prompts (item and control, "
            f"both orders); four fair coins would do so in {len(complete) / 16:.1f}."
        )
    ]
