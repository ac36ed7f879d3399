"""TrapQA's tables: what was missed, what was known, and what else could explain it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from latentkt import plots
from latentkt.report.blocks import Block, Finding, Grid, Note, Picture, Section
from latentkt.report.wording import p_text, plural
from latentkt.trapqa.analysis.layouts import LAYOUTS
from latentkt.trapqa.analysis.output import PREFIX
from latentkt.trapqa.analysis.typeset import cells

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from latentkt.results import Run

__all__ = ["TITLE", "section"]

TITLE = "TrapQA: tables"
INTRO = (
    "Errors on trap items, and what the probe questions show of them. A probe question asks for one of the two facts "
    "that decide an item: the eliminative one rules the shortcut out, the compatibility one fits the right answer. An "
    "error is every answer that is not y*, answers off the options included."
)
METHOD = (
    "Counts are of answers: a question asked in both orders has two. Intervals are 95 %: Wilson's for rates, counting "
    "questions; tests use one answer a question. Settings share their questions, so intervals over settings resample "
    "whole questions."
)
PICTURES: dict[str, tuple[Callable[..., Figure], str]] = {
    "table1": (plots.trapqa_errors, "Profiles in context take the retrieval away and leave the comparison."),
    "table4": (plots.trapqa_probe_states, "Errors that remain where both facts are known are failures to use them."),
    "consensus": (
        plots.trapqa_consensus,
        "More than expected at the right end: settings share wrong answers.",
    ),
    "table9": (plots.trapqa_fame, "A liking for famous names would put the first series to the right of the second."),
    "calibration": (plots.trapqa_calibration, "A setting that knows what it does not know lies on the diagonal."),
    "everyday": (plots.trapqa_everyday, "Groups with few items have wide bars."),
}
ODDS = {
    "table2": "Where not both probes are right, the odds of an error are {} those where both are",
    "table5": "Where the eliminative fact is missed, the odds of an error are {} those where the compatibility fact is",
    "table9": "Where the wrong candidate is the more famous one, the odds of an error are {} those where it is not",
}
ALL = "all settings"


def section(run: Run) -> Section | None:
    """The section, or None without a table that begins with `trapqa_`."""
    tables = {name.removeprefix(PREFIX): run.tables[name] for name in run.tables if name.startswith(PREFIX)}
    shown = [name for name in LAYOUTS if name in tables]
    if not shown:
        return None
    findings = (*_errors(tables), *_associations(tables), *_polarity(tables), *_consensus(tables), *_first(tables))
    blocks: list[Block] = []
    for name in shown:
        if name in PICTURES:
            draw, words = PICTURES[name]
            blocks.append(Picture.of(draw(tables[name]), alt=f"{LAYOUTS[name].title}: the table below.", caption=words))
        blocks.append(_grid(name, tables[name]))
    blocks += [*_left_out(tables.get("left_out")), Note(METHOD)]
    return Section("trapqa_tables", TITLE, INTRO, findings, tuple(blocks))


def _grid(name: str, table: pd.DataFrame) -> Grid:
    layout = LAYOUTS[name]
    headings, rows = cells(name, table)
    numeric = frozenset(column.heading for column in layout.columns if column.kind != "text")
    caption = " ".join(part for part in (f"{layout.title.rstrip('.')}.", layout.note) if part)
    return Grid(tuple(headings), tuple(map(tuple, rows)), caption, numeric)


def _errors(tables: dict[str, pd.DataFrame]) -> Iterator[Finding]:
    """Error rates with their intervals."""
    named = {
        "table1": (("names", "names only"), ("profiles", "profiles in context")),
        "table11": (("", "everyday items"),),
    }
    for name, conditions in named.items():
        for row in _rows(tables, name):
            for prefix, words in conditions:
                key, n = (f"{prefix}_rate_pct", f"{prefix}_n") if prefix else ("rate_pct", "n")
                if not math.isnan(row[key]):
                    yield Finding(
                        f"{row['setting']}, {words}: {_rate(row, key)} errors ({plural(int(row[n]), 'answer')})."
                    )


def _associations(tables: dict[str, pd.DataFrame]) -> Iterator[Finding]:
    """What the paper reads as a difference, over all settings or in the only one."""
    table = tables.get("associations")
    if table is None:
        return
    for name, words in ODDS.items():
        own = table[table["table"] == name]
        rows = own[own["setting"] == ALL] if (own["setting"] == ALL).any() else own
        for row in rows.to_dict("records"):
            low, high = row["odds_ratio_low"], row["odds_ratio_high"]
            if math.isnan(row["odds_ratio"]):
                continue
            times = f"{row['odds_ratio']:.2f} [{low:.2f}, {high:.2f}] times"
            found = bool(low > 1 or high < 1) if not math.isnan(low) else None
            test = "" if row["setting"] == ALL else f"; Fisher's exact test, {p_text(row['p'])}"
            yield Finding(f"{words.format(times)} ({row['setting']}{test}).", found)


def _polarity(tables: dict[str, pd.DataFrame]) -> Iterator[Finding]:
    """How often the probes were answered yes, and whether Table 5 can be told from a liking for no."""
    for row in _rows(tables, "probe_bias"):
        roles = ("eliminative", "compatibility")
        said = " and ".join(f"{row[f'{role}_said_yes_pct']:.0f} % of {role} probes" for role in roles)
        right = " and ".join(f"{row[f'{role}_gold_yes_pct']:.0f} %" for role in roles)
        yield Finding(f"{row['setting']} answers yes to {said}; yes is right in {right}.")
        share = row["missed_elim_said_no_twice_pct"]
        if share >= 99.5 and row["eliminative_gold_yes_pct"] >= 99.5:
            yield Finding(
                f"{row['setting']}: the right answer to every eliminative probe is yes, so missing that fact is the "
                "same as answering no to both; Table 5 cannot tell the two apart."
            )


def _consensus(tables: dict[str, pd.DataFrame]) -> Iterator[Finding]:
    rows = list(_rows(tables, "consensus"))
    if not rows:
        return
    last, questions = rows[-1], sum(int(row["observed"]) for row in rows)
    beyond = last["p_at_least_one_difficulty"]
    yield Finding(
        f"{plural(int(last['observed']), 'question is', 'questions are')} missed by all {int(last['settings_wrong'])} "
        f"settings, of {questions:,}; {last['expected_independent']:.2f} would be if they erred independently, "
        f"{last['expected_one_difficulty']:.2f} if questions only differed in difficulty ({p_text(beyond)}).",
        found=beyond < 0.05,
    )


def _first(tables: dict[str, pd.DataFrame]) -> Iterator[Finding]:
    """Settings that take the first option too often or too seldom; the others are counted."""
    rows = [row for row in _rows(tables, "first_option") if not math.isnan(row["p"])]
    biased = [row for row in rows if row["p_holm"] < 0.05]
    for row in biased:
        where = f"{row['setting']}, {row['condition']}"
        text = f"{where}: the first option is taken in {row['first_balanced_pct']:.1f} % of answers"
        test = f"{row['test']} test, Holm-adjusted, {p_text(row['p_holm'])}"
        yield Finding(f"{text}, orders weighed alike ({test}).", found=True)
    if len(rows) > len(biased):
        rest = plural(len(rows) - len(biased), "pair")
        yield Finding(
            f"No bias to either place of the options is seen in {rest} of setting and condition.", found=False
        )


def _left_out(table: pd.DataFrame | None) -> list[Block]:
    """What each table leaves out, by reason."""
    if table is None or table.empty:
        return []
    whole = table["question_id"] == ""
    rows: list[tuple[str, ...]] = []
    for absent, part in ((False, table[~whole]), (True, table[whole])):
        groups = part.groupby(["table", "reason", "setting"], sort=False)["question_id"].agg(list).reset_index()
        for name, reason, setting, ids in groups.itertuples(index=False):
            shown = ", ".join(ids[:5]) + (", …" if len(ids) > 5 else "")
            rows.append((name, setting or "all", reason, "not available" if absent else f"{len(ids)}: {shown}"))
    caption = "What each table leaves out; all ids are in the table trapqa_left_out."
    return [Grid(("table", "setting", "reason", "questions"), tuple(rows), caption)]


def _rows(tables: dict[str, pd.DataFrame], name: str) -> Iterator[dict[Any, Any]]:
    if name in tables:
        yield from tables[name].to_dict("records")


def _rate(row: dict[Any, Any], key: str) -> str:
    return f"{row[key]:.1f} % [{row[f'{key}_low']:.1f}, {row[f'{key}_high']:.1f}]"
