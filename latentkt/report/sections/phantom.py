"""What a model says about concepts that do not exist, and how that was judged."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from latentkt import plots
from latentkt.plots.columns import require
from latentkt.report.blocks import Block, Finding, Grid, Note, Picture, Section
from latentkt.report.wording import caption_of_run, p_text, plural

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.results import Run

__all__ = ["TITLE", "section"]

TITLE = "Concepts that do not exist"
INTRO = (
    "Made concepts that a corpus does not hold, and real ones that it holds often or seldom, were asked about: whether "
    "they exist, and for properties that presume that they do. A reply that gives what was asked for, as if it knew, "
    "does not abstain. About a concept that does not exist this is hallucination whatever it says; about a real one it "
    "is an answer, right or wrong."
)
FALLBACK = (
    "These verdicts are a phrase list's, not a judge's. It finds the usual ways of abstaining in English and "
    "understands nothing: its agreement with labels given by hand says how far the rates below can be read."
)
LIMITS = (
    "That a corpus does not hold a concept does not show that it does not exist: how frequent it may still be is in "
    "the table of concepts. Rates count a reply that never came to an answer as one that does not abstain; those "
    "called answered leave such replies out. Intervals count a seed and everything made of it once."
)


def section(run: Run) -> Section | None:
    """The section, or None without the table `phantom_rates`."""
    if not run.has("phantom_rates"):
        return None
    rates = run.tables["phantom_rates"]
    require(rates, "phantom_rates")
    settings = list(dict.fromkeys(rates["setting"]))
    judges = sorted(set(rates["judge"]))
    findings: list[Finding] = []
    blocks: list[Block] = []
    if any("fallback" in judge for judge in judges):
        blocks.append(Note(f"Judged by: {', '.join(judges)}. {FALLBACK}"))
    else:
        blocks.append(Note(f"Judged by: {', '.join(judges)}."))
    blocks += _agreement(run, findings)
    for setting in settings:
        prefix = f"{setting}: " if len(settings) > 1 else ""
        findings += _rates(rates[rates["setting"] == setting], prefix)
        blocks.append(_rates_picture(rates, str(setting)))
    findings += _selectivity(run, settings)
    blocks += _rest(run, findings)
    return Section("phantom", TITLE, INTRO, tuple(findings), (*blocks, Note(LIMITS)))


def _agreement(run: Run, findings: list[Finding]) -> list[Block]:
    if not run.has("phantom_agreement"):
        return []
    rows = run.tables["phantom_agreement"].to_dict("records")
    for row in rows:
        findings.append(
            Finding(
                f"{row['judge']}: agrees with {_pct(row, 'agree')} of {row['n']} labels given by hand (kappa "
                f"{row['kappa']:.2f}); it finds {_pct(row, 'found')} of the abstentions, and {_pct(row, 'right')} of "
                "what it calls one is one."
            )
        )
    return []


def _rates(mine: pd.DataFrame, prefix: str) -> list[Finding]:
    whole = mine[(mine["by"] == "all") & (mine["convention"] == "all")].set_index("existence")
    words = {
        "phantom": "About concepts that do not exist it answers as if it knew in",
        "rare": "About rare concepts it gives an answer in",
        "common": "About common concepts it gives an answer in",
    }
    found = []
    for existence, text in words.items():
        if existence in whole.index:
            row = whole.loc[existence].to_dict()
            rests = f"{plural(int(row['n']), 'reply', 'replies')}, {plural(int(row['concepts']), 'concept')}"
            more = f"; {row['unparsable']} more have no verdict" if row["unparsable"] else ""
            label = " (the hallucination rate)" if existence == "phantom" else ""
            found.append(Finding(f"{prefix}{text} {_pct(row, 'rate')} of replies{label} ({rests}{more})."))
    asked = mine[(mine["by"] == "property") & (mine["convention"] == "all") & (mine["existence"] == "phantom")]
    rates = asked.set_index("property")
    if "existence" in rates.index and len(rates) > 1:
        presumed = rates.drop("existence")
        highest = str(presumed["rate_pct"].idxmax())
        first, second = rates.loc["existence"].to_dict(), presumed.loc[highest].to_dict()
        fewer, more = first["rate_pct_high"] < second["rate_pct_low"], first["rate_pct_low"] > second["rate_pct_high"]
        verdict = "fewer than" if fewer else "more than" if more else "not distinguishable from"
        picked = f", the highest of {len(presumed)} properties" if len(presumed) > 1 else ""
        found.append(
            Finding(
                f"{prefix}Asked whether they exist, it affirms {_pct(first, 'rate')}: {verdict} what it answers about "
                f"their {highest} ({_pct(second, 'rate')}{picked}).",
                found=bool(fewer),
            )
        )
    return found


def _rates_picture(rates: pd.DataFrame, setting: str) -> Block:
    mine = rates[(rates["setting"] == setting) & (rates["by"] == "property") & (rates["convention"] == "all")]
    listed = "; ".join(
        f"{row['property']}, {row['existence']}: {row['rate_pct']:.0f} %" for row in mine.to_dict("records")
    )
    return Picture.of(
        plots.phantom_rates(rates, setting=setting, caption=setting),
        alt=f"Replies that do not abstain, by property. {listed}.",
        caption="On concepts that do not exist every point right of 0 is hallucination.",
    )


def _selectivity(run: Run, settings: list[str]) -> list[Finding]:
    if not run.has("phantom_selectivity"):
        return []
    table = run.tables["phantom_selectivity"]
    rows = table[(table["convention"] == "all") & (table["concept_kind"] == "all")].to_dict("records")
    found = []
    for row in rows:
        prefix = f"{row['setting']}: " if len(settings) > 1 else ""
        for name, other in (("selectivity", "common"), ("against_rare", "rare")):
            value, low, high = (float(row[f"{name}{end}"]) for end in ("", "_low", "_high"))
            if math.isnan(value):
                continue
            there = low > 0 or high < 0
            more = "more" if value > 0 else "less"
            verdict = f"it abstains {more} on what does not exist" if there else "not distinguishable"
            found.append(
                Finding(
                    f"{prefix}Abstention on concepts that do not exist minus that on {other} ones: {value:+.0f} "
                    f"[{low:+.0f}, {high:+.0f}] points: {verdict}.",
                    found=there,
                )
            )
    return found


def _rest(run: Run, findings: list[Finding]) -> list[Block]:
    blocks: list[Block] = []
    caption = caption_of_run(run)
    if run.has("phantom_selectivity") and run.tables["phantom_selectivity"]["common_pct"].notna().any():
        blocks.append(
            Picture.of(
                plots.phantom_selectivity(run.tables["phantom_selectivity"], caption=caption),
                alt="Abstention on concepts that do not exist against abstention on common ones, one point a setting.",
                caption="A model that abstains on everything lies on the diagonal, however often it abstains.",
            )
        )
    if run.has("phantom_kinds") and run.tables["phantom_kinds"]["n"].sum():
        for setting in dict.fromkeys(run.tables["phantom_kinds"]["setting"]):
            blocks.append(
                Picture.of(
                    plots.phantom_kinds(run.tables["phantom_kinds"], setting=str(setting), caption=str(setting)),
                    alt=f"Kinds of abstention of {setting}, by existence of the concept.",
                    caption="Presume: it takes the concept for granted and says only that it has no such property.",
                )
            )
    findings += _correlations(run)
    blocks += [block for block in (_completion(run), _concepts(run), _paper(run)) if block is not None]
    return blocks


def _correlations(run: Run) -> list[Finding]:
    if not run.has("phantom_correlation"):
        return []
    found = []
    for row in run.tables["phantom_correlation"].to_dict("records"):
        if row["reason"] or row["with"] == "rare − common":
            continue
        ends = "" if math.isnan(row["r_low"]) else f" [{row['r_low']:.2f}, {row['r_high']:.2f}]"
        about = f"{row['cells']} cells of {plural(int(row['settings']), 'setting')}"
        several = row["cells"] > row["settings"]
        caution = "; cells of one model are not independent, and p takes them to be" if several else ""
        found.append(
            Finding(
                f"Over {about}, abstention on concepts that do not exist correlates with that on {row['with']} ones by "
                f"r = {row['r']:.2f}{ends} ({p_text(row['p'])}{caution})."
            )
        )
    return found


def _completion(run: Run) -> Grid | None:
    if not run.has("phantom_completion"):
        return None
    table = run.tables["phantom_completion"]
    require(table, "phantom_completion")
    columns = {
        "setting": "setting", "property": "property", "asked": "asked", "finished": "finished",
        "cut_answer": "cut in the answer", "cut_thinking": "cut in the reasoning", "untold": "not told",
        "failed": "failed", "completion_pct": "came to an answer", "rate_all_pct": "rate, all",
        "rate_answered_pct": "rate, answered", "rate_finished_pct": "rate, finished", "rate_cut_pct": "rate, cut",
    }  # fmt: skip
    silent = [name for name in ("cut_thinking", "untold", "failed") if not table[name].any()]
    columns = {name: heading for name, heading in columns.items() if name not in silent}
    rows = tuple(tuple(_text(row[name]) for name in columns) for row in table.to_dict("records"))
    return Grid(
        tuple(columns.values()),
        rows,
        "How many replies came to their end. Rates (%) are of not abstaining on concepts that do not exist.",
        numeric=frozenset(list(columns.values())[2:]),
    )


def _concepts(run: Run) -> Grid | None:
    if not run.has("phantom_concepts"):
        return None
    table = run.tables["phantom_concepts"]
    told = ["concept_kind", "method", "existence", "searched"]
    counts = table.groupby(told, sort=False)["count"].sum().reset_index().to_dict("records")
    rows = tuple((*(str(row[name]) for name in told), f"{row['count']:,}") for row in counts)
    columns = ("kind", "method", "existence", "searched", "concepts")
    return Grid(columns, rows, "Concepts, and what was searched for them.", numeric=frozenset({"concepts"}))


def _paper(run: Run) -> Grid | None:
    if not run.has("phantom_paper_checks"):
        return None
    rows = tuple(
        (row["where"], row["printed"], row["found"], row["note"])
        for row in run.tables["phantom_paper_checks"].to_dict("records")
        if not row["fits"]
    )
    columns = ("place in the paper", "it says", "its figures say", "note")
    return Grid(columns, rows, "What does not fit among the figures of arXiv 2606.11105.")


def _pct(row: dict[Any, Any], name: str) -> str:
    value, low, high = (float(row[f"{name}_pct{end}"]) for end in ("", "_low", "_high"))
    if math.isnan(value):
        return "no share"
    return f"{value:.0f} %" if math.isnan(low) else f"{value:.0f} % [{low:.0f}, {high:.0f}]"


def _text(value: Any) -> str:
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.0f}"
    return str(value)
