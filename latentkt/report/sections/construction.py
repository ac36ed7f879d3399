"""How the items were made: what each stage left, the balance, and whether anything gives the answers away."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latentkt.report.blocks import Block, Finding, Grid, Note, Section

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.results import Run

__all__ = ["TITLE", "section"]

TITLE = "Construction of the items"
INTRO = (
    "The items of this run were constructed. Every stage counts what it was given, what it removed and by which rule. "
    "Artefact tests then try to find the right answers without the constraints; chance is one half."
)
READING = (
    "A set in which a test does better than chance is no benchmark: a model may be right for what the test saw. Items "
    "and controls can still be compared, because they share everything but the constraint. Which answer is the "
    "shortcut is a hypothesis of the construction; where a corpus was counted, the section on priors says more."
)


def section(run: Run) -> Section | None:
    """The section, or None where the items were not constructed."""
    if not run.has("construction_stages"):
        return None
    stages, balance = run.tables["construction_stages"], run.tables["construction_balance"]
    blocks: list[Block] = [_stages(stages), _balance(balance)]
    findings = [_kept(stages)]
    if run.has("construction_tests"):
        tests = run.tables["construction_tests"]
        findings.append(_verdict(tests))
        blocks.append(_tests(tests))
    else:
        findings.append(Finding("No artefact tests were run on the items.", found=None))
    return Section("construction", TITLE, INTRO, tuple(findings), (*blocks, Note(READING)))


def _kept(stages: pd.DataFrame) -> Finding:
    last = stages.iloc[-1]
    removed = int(stages["removed"].sum())
    text = f"Construction left {int(last['kept'])} items; its {len(stages)} stages removed {removed:,} things by rule."
    return Finding(text, found=None)


def _verdict(tests: pd.DataFrame) -> Finding:
    tried = tests[tests["items"] > 0]
    told = tried[tried["gives away"] == "yes"]
    if told.empty:
        best = tried.sort_values("right", kind="stable").iloc[-1]
        text = (
            f"None of {len(tried)} artefact tests finds the answers above chance; the highest is {_named(best)}, "
            f"{100 * best['right']:.0f} % [{100 * best['low']:.0f} %, {100 * best['high']:.0f} %] "
            f"of {int(best['items'])}."
        )
        return Finding(text, found=False)
    names = "; ".join(f"{_named(row)} {100 * row['right']:.0f} %" for _, row in told.iterrows())
    return Finding(f"The items are refused as a benchmark: artefact tests find the answers ({names}).", found=True)


def _named(test: pd.Series) -> str:
    return f"{test['test']} ({test['folds']})" if test["folds"] else str(test["test"])


def _stages(stages: pd.DataFrame) -> Grid:
    rows = tuple(
        (str(row["stage"]), f"{row['given']:,}", f"{row['removed']:,}", f"{row['kept']:,}", str(row["rules"]))
        for row in stages.to_dict("records")
    )
    columns = ("stage", "given", "removed", "kept", "removed by")
    return Grid(columns, rows, "Counts by stage. Stages have units of their own: people, pairs, statements, items.",
                numeric=frozenset(columns[1:4]))  # fmt: skip


def _balance(balance: pd.DataFrame) -> Grid:
    rows = tuple(
        (f"{field}: {value}" if value else f"{field}", f"{n}", f"{total}", f"{n / total:.0%}")
        for field, value, n, total in balance[["field", "value", "n", "total"]].to_numpy().tolist()
    )
    columns = ("what", "items", "of", "share")
    return Grid(columns, rows, "Balance of the set.", numeric=frozenset(columns[1:]))


def _tests(tests: pd.DataFrame) -> Grid:
    rows = tuple(
        (
            _named(row),
            str(int(row["items"])),
            "–" if np.isnan(row["right"]) else f"{row['right']:.0%} [{row['low']:.0%}, {row['high']:.0%}]",
            str(row["gives away"]),
        )
        for _, row in tests.iterrows()
    )
    return Grid(("test", "items", "right", "gives the answer away"), rows,
                "Artefact tests: items answered rightly without the constraint, 95 % interval over pairs of options.",
                numeric=frozenset({"items", "right"}))  # fmt: skip
