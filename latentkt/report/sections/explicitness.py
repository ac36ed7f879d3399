"""What changes as the same question is asked more openly?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from latentkt import plots
from latentkt.report.blocks import Block, Finding, Grid, Note, Picture, Section
from latentkt.report.wording import caption_of_run, plural

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.results import Run

__all__ = ["TITLE", "section"]

TITLE = "Explicitness"
INTRO = (
    "Some items ask the same at several levels, from a goal that is left unsaid (0) to one that is stated (3). "
    "Answers, the constraint's effect and the verdicts are held against the level, inside the same group of items."
)
COLUMNS = ("measure", "level 0", "level 1", "level 2", "level 3", "change a level")
NAMES = {"log_odds": "log-odds of the item (nats)", "constraint_effect": "constraint effect (nats)"}


def section(run: Run) -> Section | None:
    """The section, or None where no group of items was asked at several levels."""
    if not run.has("explicitness"):
        return None
    table = run.tables["explicitness"]
    if not (table.loc[table["statistic"] == "change", "n_groups"] > 0).any():
        return None
    findings = [
        _finding(table, "log_odds", "Log-odds of the item"),
        _finding(table, "constraint_effect", "The effect of the constraint (item − control)"),
    ]
    blocks: list[Block] = [
        Picture.of(
            plots.dose_response_by_level(table, caption=caption_of_run(run)),
            alt=f"Shares and nats by level of explicitness. {' '.join(finding.text for finding in findings)}",
            caption="A dose without a response: the words are there, and change nothing.",
        ),
        _grid(table),
        Note(
            "Levels differ in length and in words, so part of any change may be due to wording. The change a level "
            "is the mean over groups of each group's own slope."
        ),
    ]
    return Section("explicitness", TITLE, INTRO, tuple(findings), tuple(blocks))


def _finding(table: pd.DataFrame, measure: str, subject: str) -> Finding:
    row = table[(table["measure"] == measure) & (table["statistic"] == "change")].iloc[0]
    groups = plural(int(row["n_groups"]), "group")
    if row["low"] != row["low"]:
        return Finding(
            f"{subject}: change a level {row['value']:+.2f} nats ({groups}); too few groups for an interval."
        )
    given = f"{subject}: change a level {row['value']:+.2f} [{row['low']:+.2f}, {row['high']:+.2f}] nats ({groups})"
    there = bool(row["low"] > 0 or row["high"] < 0)
    return Finding(f"{given}." if there else f"{given}: not distinguishable from none.", found=there)


def _grid(table: pd.DataFrame) -> Grid:
    rows = []
    for measure, part in table.groupby("measure", sort=False):
        nats = measure in NAMES
        by_level = part[part["level"].notna()].set_index("level")["value"]
        cells = [_shown(by_level.get(float(level), float("nan")), nats, signed=nats) for level in range(4)]
        change = part.loc[part["statistic"] == "change", "value"].iloc[0]
        rows.append((NAMES.get(str(measure), f"{measure} (share)"), *cells, _shown(change, nats, signed=True)))
    return Grid(
        COLUMNS,
        tuple(rows),
        "By level; read and decisive are shares of what could be measured.",
        numeric=frozenset(COLUMNS[1:]),
    )


def _shown(value: float, nats: bool, *, signed: bool) -> str:
    if value != value:
        return "—"
    if nats:
        return f"{value:+.2f}"
    return f"{100 * value:+.0f} points" if signed else f"{100 * value:.0f} %"
