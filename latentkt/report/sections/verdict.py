"""For each item: what is answered, and what becomes of its constraint?"""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

from latentkt import plots
from latentkt.report.blocks import Block, Finding, Grid, Note, Picture, Section
from latentkt.report.wording import caption_of_run, plural

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.results import Run

__all__ = ["TITLE", "section"]

TITLE = "Verdict by item"
INTRO = (
    "From the measurements alone. The answer: solved, shortcut followed, or undecided (under half a nat, or the option "
    "orders disagree). The constraint: read where patching it between item and control moves the answer more than 95 "
    "of "
    "100 placebo patches in its family do; decisive where that takes the answer across zero, outweighed where not."
)
COLUMNS = ("item", "answer", "constraint", "log-odds", "effect", "placebos' 95 %", "decided after layer", "sureness")
READ = ("read but outweighed", "read and decisive")
MOST = 60


def section(run: Run) -> Section | None:
    """The section, or None without a table `verdict`."""
    if not run.has("verdict") or not len(run.tables["verdict"]):
        return None
    verdict = run.tables["verdict"]
    patched = verdict[verdict["effect"].notna()]
    measured = patched[patched["constraint"] != "not measurable"]
    findings = [_answers(verdict), _readings(measured)]
    blocks: list[Block] = []
    if len(patched):
        blocks.append(
            Picture.of(
                plots.verdict_by_item(verdict, caption=caption_of_run(run)),
                alt=f"Log-odds and constraint effect by item. {' '.join(finding.text for finding in findings)}",
                caption="A marker right of its tick: the constraint is read.",
            )
        )
        blocks.append(_grid(patched))
    blocks.append(Note(_note(verdict, patched)))
    return Section("verdict", TITLE, INTRO, tuple(findings), tuple(blocks))


def _answers(verdict: pd.DataFrame) -> Finding:
    counts = verdict["answer"].value_counts()
    said = ", ".join(f"{counts.get(name, 0)} {name}" for name in ("solved", "shortcut followed", "undecided"))
    return Finding(f"Of {plural(len(verdict), 'item')}: {said}.")


def _readings(measured: pd.DataFrame) -> Finding:
    if measured.empty:
        return Finding("Whether a constraint is read could be measured in no item.")
    counts = measured["constraint"].value_counts()
    read = int(measured["constraint"].isin(READ).sum())
    said = ", ".join(f"{counts.get(name, 0)} {name}" for name in ("unread", *READ))
    sure = f"mean sureness {100 * measured['sureness'].mean():.0f} %"
    text = f"Of {plural(len(measured), 'item')} whose constraint could be measured: {said} ({sure})."
    return Finding(text, found=read > 0)


def _grid(patched: pd.DataFrame) -> Grid:
    rows = tuple(
        (
            *(str(row[name]) for name in ("item", "answer", "constraint")),
            *(f"{row['log_odds']:+.2f}", f"{row['effect']:+.2f}"),
            "—" if isnan(row["threshold"]) else f"{row['threshold']:.2f}",
            "—" if isnan(row["decision_layer"]) else f"{row['decision_layer']:.0f}",
            f"{100 * row['sureness']:.0f} % ({row['n_combinations']} measured)",
        )
        for row in patched.head(MOST).to_dict("records")
    )
    more = f" {len(patched) - MOST} more are in the table." if len(patched) > MOST else ""
    return Grid(
        COLUMNS,
        rows,
        "One row an item, nats. Sureness: share of the combinations of option order, placebo donor and direction "
        "that give the same reading; one that was not measured does not give it." + more,
        numeric=frozenset(COLUMNS[3:]),
    )


def _note(verdict: pd.DataFrame, patched: pd.DataFrame) -> str:
    rest = verdict[verdict["constraint"] == "not measurable"]
    reasons = rest["reason"].value_counts()
    said = "; ".join(f"{count}: {reason}" for reason, count in reasons.items())
    lost = f"Not measurable in {plural(len(rest), 'item')} ({said}). " if len(rest) else ""
    return (
        f"{lost}The layer of decision is the first from which the lens keeps the final sign; it is left out where "
        "the lens "
        "lies more than 1 nat (KL) from the final output there. A verdict speaks of what patches at the constraint "
        "do, not "
        "of why."
    )
