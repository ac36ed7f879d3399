"""Which tokens must be read by which for the answer?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from latentkt import plots
from latentkt.plots.columns import require
from latentkt.plots.cuts import WHICH, edge_name
from latentkt.report.blocks import Block, Finding, Note, Picture, Section
from latentkt.report.wording import caption_of_run, plural

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.results import Run

__all__ = ["TITLE", "section"]

TITLE = "Attention knockout"
INTRO = (
    "In one layer at a time the tokens of one role are hidden from those of another: their scores are masked before "
    "the softmax, so the rest is read the more. What the answer loses is what this layer carried along that edge."
)


def section(run: Run) -> Section | None:
    """The section, or None without a table `knockout` that has rows."""
    if not run.has("knockout"):
        return None
    table = run.tables["knockout"]
    require(table, "knockout")
    whole = table[(table["head"] == -1) & table["effect"].notna()]
    if whole.empty:
        return Section("knockout", TITLE, INTRO, (Finding("No edge of the run could be cut."),), ())
    findings = tuple(_findings(plots.strongest_cuts(table)))
    words = " ".join(finding.text for finding in findings)
    blocks: list[Block] = [
        Picture.of(
            plots.knockout_edges(table, caption=caption_of_run(run)),
            alt=f"Roles of the prompt and the edges that were cut between them. {words}",
            caption="Arrows go from the role that is read to the one that reads.",
        ),
        Picture.of(
            plots.knockout_by_layer(table, caption=caption_of_run(run)),
            alt=f"Effect of cutting the strongest edges, by layer. {words}",
            caption="Negative: without the edge the item's right answer loses.",
        ),
        Note(_note(table)),
    ]
    return Section("knockout", TITLE, INTRO, findings, tuple(blocks))


def _findings(best: pd.DataFrame) -> list[Finding]:
    findings = []
    for which in (name for name in WHICH if name in set(best["which"])):
        rows = best[best["which"] == which]
        row = rows.iloc[0]
        bounds = "" if row["low"] != row["low"] else f" [{row['low']:+.2f}, {row['high']:+.2f}]"
        findings.append(
            Finding(
                f"In {WHICH[which]} the strongest cut is "
                f"{edge_name(row['from_role'], row['to_role'])} in layer {int(row['layer'])}: "
                f"{row['value']:+.2f}{bounds} nats, the largest of {len(rows)} edges and all layers "
                f"({plural(int(row['n']), 'item')})."
            )
        )
    return findings


def _note(table: pd.DataFrame) -> str:
    widths = ", ".join(str(int(width)) for width in sorted(table["window"].unique()))
    left = table.drop_duplicates(["item", "which", "order", "from_role", "to_role"])["n_sinks_left_out"]
    absent = int(table[table["effect"].isna()].groupby(["item", "which", "from_role", "to_role"]).ngroups)
    worst = float(table["no_cut_error"].max())
    sinks = "Sinks were cut too." if table["sinks"].any() else (
        f"Position 0, special tokens and other sinks stay readable ({plural(int((left > 0).sum()), 'edge')} touched)."
    )  # fmt: skip
    return (
        f"Window: {widths} layer{'' if widths == '1' else 's'}. Metric: {', '.join(sorted(table['metric'].unique()))}. "
        f"{sinks} {plural(absent, 'edge')} did not exist: no such tokens, or none in front of the others. Rewriting "
        f"attention's output without a cut moves the answer by {worst:.0e} nat at most. Largest effects are picked for "
        "their size; an edge that is cut in one layer can be taken over by the next."
    )
