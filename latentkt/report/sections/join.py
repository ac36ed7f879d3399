"""Does frequency explain the items? Measured dominance against the prior counted in a corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latentkt import plots
from latentkt.join import prior_verdict
from latentkt.report.blocks import Block, Finding, Grid, Note, Picture, Section
from latentkt.report.wording import plural

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.join import Verdict
    from latentkt.results import Run

__all__ = ["TITLE", "section"]

TITLE = "Prior and dominance"
INTRO = (
    "Each item names two paths, the shortcut's and the correct one. Their counts in a corpus give the log prior ratio, "
    "shortcut over correct. The theory predicts that dominance, log P(y_s) − log P(y*), rises with it, slope +1. "
    "Dominance is "
    "taken beyond the neutral prompt, so that the answer strings cancel."
)
NAMES = {
    "log_prior_ratio": "log prior ratio of the paths",
    "log_key_ratio": "log ratio of the keys alone",
    "answer_length": "length of the answers",
    "log_key_pair": "co-occurrence of the two keys",
}


def section(run: Run) -> Section | None:
    """The section, or None without a table `join`."""
    if not run.has("join"):
        return None
    table = run.tables["join"]
    options = run.identity.get("options", {})
    verdict = prior_verdict(table, training_corpus=bool(options.get("training_corpus")))
    found = None if verdict.line is None else verdict.line.slope_low > 0
    findings = (Finding(verdict.sentence, found=found), _certified(table))
    blocks: list[Block] = []
    if verdict.line is not None:
        figure = plots.dominance_scatter(table, slope=verdict.line.slope, intercept=verdict.line.intercept)
        blocks.append(Picture.of(figure, alt=verdict.sentence, caption="One point an item; bars are 95 % intervals."))
    blocks += [_rivals(verdict), _listed(verdict)]
    blocks.append(Note(f"Counted: {', '.join(options.get('corpus', []))}. {verdict.caveat}".strip()))
    return Section("join", TITLE, INTRO, findings, tuple(blocks))


def _certified(table: pd.DataFrame) -> Finding:
    known = table[table["gamma_lower"].notna()]
    proved = int(known["certified"].sum())
    text = (
        f"Of {plural(len(known), 'item')} with counted paths the priors alone certify {proved} as "
        f"shortcut-dominated, under the "
        "limits stated in the guide (confidence .9, nothing known of mixed paths, the prompt without evidence of its "
        "own)."
    )
    return Finding(text, found=None)


def _rivals(verdict: Verdict) -> Grid:
    rows = []
    for name, (correlation, n) in verdict.rivals.items():
        beside = verdict.partial.get(name, np.nan)
        shown = "–" if np.isnan(beside) else f"{beside:+.2f}"
        rows.append((NAMES.get(name, name), "–" if np.isnan(correlation) else f"{correlation:+.2f}", shown, str(n)))
    columns = ("explanation", "correlation with dominance", "beside the prior (standardised)", "items")
    return Grid(columns, tuple(rows), "The prior and its rivals.", numeric=frozenset(columns[1:]))


def _listed(verdict: Verdict) -> Grid:
    reasons: dict[str, list[str]] = {}
    for item, reason in verdict.listed.items():
        reasons.setdefault(reason, []).append(item)
    rows = tuple((reason, str(len(items)), ", ".join(sorted(items)[:6])) for reason, items in sorted(reasons.items()))
    return Grid(
        ("why it is not plotted", "items", "such as"), rows, "Items that are listed only.", numeric=frozenset({"items"})
    )
