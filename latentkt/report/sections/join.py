"""Does frequency explain the items? Measured dominance against the prior counted in a corpus."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from latentkt import plots
from latentkt.join import prior_verdict
from latentkt.report.blocks import Block, Finding, Grid, Note, Picture, Section
from latentkt.report.wording import caption_of_run, plural

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.join import Verdict
    from latentkt.results import Run
    from latentkt.stats import Interval

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
    "answer_length": "length of the answers (tokens, shortcut less correct)",
    "log_key_pair": "co-occurrence of the two keys (log of units with both)",
}
CERTIFICATES = 12  # rows on the page; the table has all


def section(run: Run) -> Section | None:
    """The section, or None without a table `join`."""
    if not run.has("join"):
        return None
    table = run.tables["join"]
    options = run.identity.get("options", {})
    verdict = prior_verdict(table, training_corpus=bool(options.get("training_corpus")))
    found = None if verdict.line is None else bool(verdict.line.slope_low > 0)
    findings = (Finding(verdict.sentence, found=found), _together(verdict), _certified(table))
    blocks: list[Block] = []
    if verdict.line is not None:
        line = verdict.line
        figure = plots.dominance_scatter(table, slope=line.slope, intercept=line.intercept, caption=caption_of_run(run))
        caption = (
            "One point an item. The line is fitted with errors in both coordinates; its interval resamples families. "
            f"Taking the prior for known, the slope would be {line.ordinary:+.2f}."
        )
        blocks.append(Picture.of(figure, alt=verdict.sentence, caption=caption))
    blocks.append(_rivals(verdict))
    blocks += [_certificates(table)] if table["gamma_lower"].notna().any() else []
    blocks += [_listed(verdict)] if verdict.listed else []
    blocks.append(Note(f"Counted: {', '.join(options.get('corpus', []))}. {verdict.caveat}".strip()))
    return Section("join", TITLE, INTRO, findings, tuple(blocks))


def _together(verdict: Verdict) -> Finding:
    """What it does that the two keys occur together."""
    effect = verdict.partial["log_key_pair"]
    if np.isnan(effect.value):
        return Finding("No effect of keys that occur together could be fitted: too few items whose pair is counted.")
    there = effect.defined and effect.excludes(0.0)
    ending = "." if there else ": not distinguishable from no effect."
    text = (
        f"Beside the prior, dominance changes by {_with_ends(effect)} standard deviations for each standard deviation "
        f"of the two keys' co-occurrence ({plural(effect.n, 'item')}){ending}"
    )
    return Finding(text, found=there if effect.defined else None)


def _certified(table: pd.DataFrame) -> Finding:
    known = table[table["gamma_lower"].notna()]
    proved = known[known["certified"].astype(bool)]
    measured = proved["dominance"].dropna()
    text = (
        f"Of {plural(len(known), 'item')} with counted paths the priors alone certify {len(proved)} as "
        f"shortcut-dominated, under the "
        "limits stated in the guide (confidence .9, nothing known of mixed paths, the prompt without evidence of its "
        "own)."
    )
    if len(measured):
        text += f" Measured dominance is above 0 in {(measured > 0).sum()} of these {len(measured)}."
    return Finding(text, found=None)


def _rivals(verdict: Verdict) -> Grid:
    rows = []
    for name, correlation in verdict.rivals.items():
        beside = _with_ends(verdict.partial[name]) if name in verdict.partial else "–"
        rows.append((NAMES.get(name, name), _with_ends(correlation), beside, str(correlation.n)))
    columns = ("explanation", "correlation with dominance", "beside the prior (standardised)", "items")
    families = verdict.rivals["log_prior_ratio"].clusters
    over = "items" if families is None else plural(families, "family", "families")
    caption = f"The prior and its rivals, with 95 % intervals over {over}."
    return Grid(columns, tuple(rows), caption, numeric=frozenset(columns[1:]))


def _with_ends(interval: Interval) -> str:
    if np.isnan(interval.value):
        return "–"
    return f"{interval:+.2f}" if interval.defined else f"{interval.value:+.2f}"


def _certificates(table: pd.DataFrame) -> Grid:
    """The certificate of each item, the safest first."""
    known = table[table["gamma_lower"].notna()].sort_values("margin", ascending=False, kind="stable")
    rows = tuple(_certificate(row) for row in known.head(CERTIFICATES).to_dict("records"))
    columns = ("item", "log prior ratio", "γ at least", "margin, nats", "certified", "measured dominance, nats")
    more = f" The first {CERTIFICATES} of {len(known)}; the table join has all." if len(known) > CERTIFICATES else ""
    caption = f"The certificate of each item: γ = P(y_s) − P(y*) is at least this, by the priors and the limits.{more}"
    return Grid(columns, rows, caption, numeric=frozenset(columns[1:]))


def _certificate(row: Mapping[Hashable, Any]) -> tuple[str, ...]:
    return (
        str(row["item"]),
        f"{row['log_prior_ratio']:+.1f} [{_end(row['low'])}, {_end(row['high'])}]",
        f"{row['gamma_lower']:+.2f}",
        f"{row['margin']:+.1f}",
        "yes" if row["certified"] else "no",
        "–" if np.isnan(row["dominance"]) else f"{row['dominance']:+.1f}",
    )


def _end(value: float) -> str:
    return ("+∞" if value > 0 else "−∞") if np.isinf(value) else f"{value:+.1f}"


def _listed(verdict: Verdict) -> Grid:
    reasons: dict[str, list[str]] = {}
    for item, reason in verdict.listed.items():
        reasons.setdefault(reason, []).append(item)
    rows = tuple((reason, str(len(items)), ", ".join(sorted(items)[:6])) for reason, items in sorted(reasons.items()))
    return Grid(
        ("why it is not plotted", "items", "such as"), rows, "Items that are listed only.", numeric=frozenset({"items"})
    )
