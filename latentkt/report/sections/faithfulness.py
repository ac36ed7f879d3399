"""How much of the answer does a small part of the network keep?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from latentkt import plots
from latentkt.plots.columns import require
from latentkt.plots.patching import DIRECTIONS
from latentkt.plots.summaries import interval_of
from latentkt.report.blocks import Block, Finding, Note, Picture, Section
from latentkt.report.wording import caption_of_run, plural

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.results import Run

__all__ = ["TITLE", "section"]

TITLE = "Faithfulness"
INTRO = (
    "The top parts of a ranking are kept as they are and all others write what they wrote in the other run (or the "
    "other way round). Faithfulness 1 is the run itself, 0 the run in which every part is exchanged. A random ranking "
    "stands beside."
)


def section(run: Run) -> Section | None:
    """The section, or None without a table `faithfulness` that has rows."""
    if not run.has("faithfulness"):
        return None
    table = run.tables["faithfulness"]
    require(table, "faithfulness")
    findings: list[Finding] = []
    blocks: list[Block] = []
    for of, rows in table.groupby("of", sort=True, observed=True):
        known = rows[rows["faithfulness"].notna()]
        if known.empty:
            pairs = rows["pair"].nunique() if "pair" in rows else rows["item"].nunique()
            findings.append(
                Finding(
                    f"Faithfulness of {of} is not defined: in none of {plural(pairs, 'pair')} do the two runs differ "
                    "by half a nat."
                )
            )
            continue
        here = _findings(str(of), known)
        findings += here
        blocks.append(
            Picture.of(
                plots.faithfulness_curve(table, of=str(of), caption=caption_of_run(run)),
                alt=f"Faithfulness of the top {of} by their share. {' '.join(f.text for f in here)}",
                caption="A good ranking keeps much with little and lies far from the random one.",
            )
        )
    blocks.append(Note(_note(table)))
    return Section("faithfulness", TITLE, INTRO, tuple(findings), tuple(blocks))


def _findings(of: str, known: pd.DataFrame) -> list[Finding]:
    keep = known[known["curve"] == "keep"]
    inner = sorted(share for share in keep["share"].unique() if 0 < share < 1)
    if not inner:
        return []
    at = inner[min(1, len(inner) - 1)]
    findings = []
    for direction, rows in keep[keep["share"] == at].groupby("direction", sort=True, observed=True):
        parts = []
        for ranking in sorted(rows["ranking"].unique(), key=lambda name: (name == "random", name)):
            mine = interval_of(rows[rows["ranking"] == ranking], "faithfulness").interval
            parts.append(f"{mine:.2f} ({ranking})" if mine.defined else f"{mine.value:.2f} ({ranking})")
        items = rows["item"].nunique()
        findings.append(
            Finding(
                f"{DIRECTIONS.get(str(direction), str(direction)).capitalize()}: keeping the top {100 * at:.0f} % of "
                f"{of} gives a faithfulness of {', '.join(parts)} ({plural(items, 'item')})."
            )
        )
    return findings


def _note(table: pd.DataFrame) -> str:
    undefined = table.loc[table["faithfulness"].isna(), "pair"].nunique() if "pair" in table else 0
    ablation = ", ".join(sorted(table["ablation"].unique())).replace("_", " ")
    own = table["ranked_on"].eq("pair").any() if "ranked_on" in table else False
    parts = [f"What stands in for the rest: {ablation}; other stand-ins give other curves."]
    if undefined:
        parts.append(f"{plural(undefined, 'pair')} left out: the runs differ by less than half a nat.")
    if own:
        parts.append("Parts were ranked on the very pair that is traced, so the curve is that of a part chosen for it.")
    return " ".join(parts)
