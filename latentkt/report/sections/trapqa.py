"""What a model answers to trap items, condition by condition, and what the question adds to its options."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latentkt import plots
from latentkt.errors import DataError
from latentkt.plots.columns import require
from latentkt.plots.summaries import interval_of, share_of
from latentkt.report.blocks import Block, Finding, Grid, Note, Picture, Section
from latentkt.report.wording import caption_of_run, effect, plural, share

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.results import Run
    from latentkt.stats import Interval

__all__ = ["TITLE", "section"]

TITLE = "TrapQA"
INTRO = (
    "Each item was asked in conversations of its own: with the names of the two options, with both profiles, as an "
    "everyday scenario, with the options alone (neutral), and as two yes-or-no questions about the decisive fact "
    "(probes). An answer that is neither option counts as wrong and is shown apart."
)
WORDS = {
    "names": "With names only",
    "profiles": "With both profiles in the prompt",
    "real_life": "In everyday scenarios",
}
READING = (
    "Evidence is dominance after the options alone minus dominance after the whole prompt: what the question itself "
    "adds in favour of y*. The options alone are not assumed to be neutral; they are measured, with the same strings "
    "in the same order, so length and wording of the answers cancel in the difference."
)
LIMITS = (
    "What these numbers can show of a small model: whether one of two strings is likelier to it by itself, and whether "
    "the question moves that. What they cannot show where the probe questions are not answered above chance: that it "
    "follows a shortcut in spite of knowing better. A wrong answer is then as well explained by not knowing the fact, "
    "and a right one by luck or by a preference for the string. Nothing here carries over to larger models."
)


def section(run: Run) -> Section | None:
    """The section, or None without a table `trapqa`."""
    if "trapqa" not in run.tables:
        return None
    records = run.tables["trapqa"]
    require(records, "trapqa")
    records = records.assign(item=records["question_id"], family=records["family"].fillna("no family"))
    findings: list[Finding] = []
    blocks: list[Block] = []
    for setting, mine in records.groupby("setting", sort=True, observed=True):
        prefix = f"{setting}: " if records["setting"].nunique() > 1 else ""
        found, pictures = _setting(mine, prefix, caption_of_run(run))
        findings += found
        blocks += pictures
    return Section("trapqa", TITLE, INTRO, tuple(findings), (_answers(records), *blocks, Note(READING), Note(LIMITS)))


def _setting(records: pd.DataFrame, prefix: str, caption: str) -> tuple[list[Finding], list[Block]]:
    findings = [*_shares(records, prefix), *_first_option(records, prefix), *_probes(records, prefix)]
    table = _evidence(records)
    if table is None:
        return findings, []
    words = _evidence_findings(table, prefix)
    drawn = table[table["evidence"].notna()]
    if drawn.empty:
        return [*findings, *words], []
    picture = Picture.of(
        plots.evidence_by_item(drawn, caption=caption),
        alt=f"Dominance with the question against dominance from the options alone. {' '.join(f.text for f in words)}",
        caption="The further below the diagonal, the more the question speaks for y*.",
    )
    return [*findings, *words], [picture]


def _shares(records: pd.DataFrame, prefix: str) -> list[Finding]:
    findings = []
    for condition, words in WORDS.items():
        asked = records[(records["condition"] == condition) & records["answer"].notna()]
        if len(asked):
            right = asked.assign(is_right=(asked["answer"] == "correct").astype(float))
            findings.append(share(f"{prefix}{words} it answers", share_of(right, "is_right")))
    return findings


def _first_option(records: pd.DataFrame, prefix: str) -> list[Finding]:
    chosen = records[records["condition"].isin(WORDS) & records["answer"].isin(["correct", "shortcut"])]
    if chosen.empty:
        return []
    first = chosen["order"].str.removesuffix("_first") == chosen["answer"]
    interval = share_of(chosen.assign(first=first.astype(float)), "first")
    return [_held_against_half(f"{prefix}It takes the option that is shown first in", "of its answers", interval)]


def _held_against_half(before: str, after: str, interval: Interval) -> Finding:
    if not interval.defined:
        return Finding(f"{before} {100 * interval.value:.0f} % {after}: too few for an interval.")
    there = interval.excludes(0.5)
    side = "more often than half" if interval.value > 0.5 else "less often than half"
    verdict = side if there else "not distinguishable from half"
    return Finding(f"{before} {interval:.0%} {after}: {verdict}.", found=there)


def _probes(records: pd.DataFrame, prefix: str) -> list[Finding]:
    probes = records[records["condition"] == "probes"]
    if probes.empty:
        return []
    both = probes[["probe_eliminative_correct", "probe_compatibility_correct"]].astype("Float64")
    known = both.sum(axis=1, min_count=2)
    states = ", ".join(f"{name} {int((known == n).sum())}" for n, name in ((2, "both"), (1, "one"), (0, "neither")))
    right = probes.assign(is_right=both.mean(axis=1).astype("float64")).dropna(subset="is_right")
    finding = share(f"{prefix}It answers the probe questions right:", share_of(right, "is_right"))
    return [finding, Finding(f"{prefix}Of {plural(len(probes), 'question')} it knows {states} of the two facts.")]


def _evidence(records: pd.DataFrame) -> pd.DataFrame | None:
    from latentkt.trapqa.running import evidence

    try:
        table = evidence(records)
    except DataError:  # the model wrote its answers: there are no log-odds
        return None
    return table if len(table) else None


def _evidence_findings(table: pd.DataFrame, prefix: str) -> list[Finding]:
    whole = table[table["evidence"].notna()]
    findings = []
    for condition, words in WORDS.items():
        mine = whole[whole["condition"] == condition]
        if len(mine):
            subject = f"{prefix}{words} the question adds"
            findings.append(effect(subject, interval_of(mine, "evidence").interval, unit="nats of evidence for y*"))
    if len(whole):
        alone = float(np.abs(whole.drop_duplicates("item")["neutral_dominance"]).mean())
        findings.append(
            Finding(f"{prefix}The options alone differ by {alone:.2f} nats in the mean, in either direction.")
        )
    lacking = len(table) - len(whole)
    if lacking:
        findings.append(Finding(f"{prefix}{plural(lacking, 'answer')} have no neutral prompt in the same order."))
    return findings


def _answers(records: pd.DataFrame) -> Grid:
    asked = records[records["answer"].notna()]
    cut = asked["truncated"].fillna(False).astype(bool) if "truncated" in asked else np.zeros(len(asked), dtype=bool)
    asked = asked.assign(cut=cut)
    rows = []
    for (setting, condition), mine in asked.groupby(["setting", "condition"], sort=True, observed=True):
        counts = mine["answer"].value_counts()
        numbers = [int(counts.get(answer, 0)) for answer in ("correct", "shortcut", "off")]
        cells = [len(mine), *numbers, int(mine["cut"].sum())]
        rows.append((str(setting), str(condition), *map(str, cells)))
    columns = ("setting", "condition", "answers", "y*", "y_s", "off-option", "cut off")
    return Grid(
        columns, tuple(rows), "Answers by condition. After the neutral prompt neither option is right.",
        numeric=frozenset(columns[2:]),
    )  # fmt: skip
