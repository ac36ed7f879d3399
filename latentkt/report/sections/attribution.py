"""Which parts write the answer, and from which tokens do heads take it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from latentkt import plots
from latentkt.plots.summaries import interval_of
from latentkt.report.blocks import Block, Finding, Grid, Note, Picture, Section
from latentkt.report.wording import caption_of_run, effect

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.results import Run

__all__ = ["TITLE", "section"]

TITLE = "Direct logit attribution"
INTRO = (
    "The residual stream that is read for the answer is a sum of what embedding, heads and MLPs wrote. Each part's "
    "number is what it adds directly to logit(y*) − logit(y_s) at the first token in which the answers differ; what a "
    "part does through later parts stands in their numbers."
)
COLUMNS = ("layer", "head", "attends to", "attention (%)", "effect of full attention (nats)", "contribution (nats)")


def section(run: Run) -> Section | None:
    """The section, or None without a table `attribution`."""
    if "attribution" not in run.tables:
        return None
    attribution = run.tables["attribution"]
    findings = _findings(attribution)
    words = " ".join(finding.text for finding in findings)
    blocks: list[Block] = [
        Picture.of(
            plots.attribution_bars(attribution, caption=caption_of_run(run)),
            alt=f"Contributions of embedding, attention and MLPs that sum to the logit difference. {words}",
            caption="Each panel's bars add up to its last one.",
        )
    ]
    if "heads" in run.tables and len(run.tables["heads"]):
        heads = run.tables["heads"]
        blocks.append(
            Picture.of(
                plots.head_grid(heads, title="Direct effect by head", caption=caption_of_run(run)),
                alt="Mean direct effect of every head on the logit difference, layer by head.",
                caption="Mean over items and controls.",
            )
        )
        blocks.append(_heads(heads))
    worst = float(attribution["completeness_error"].abs().max())
    norms = ", ".join(sorted(attribution["norm"].unique()))
    blocks.append(
        Note(f"Norm scale: {norms}. Rows of a run add up to the model's own difference within {worst:.1e} nat.")
    )
    return Section("attribution", TITLE, INTRO, findings, tuple(blocks))


def _findings(attribution: pd.DataFrame) -> tuple[Finding, ...]:
    keys = ["item", "family", "order"]
    parts = attribution[attribution["which"].isin(["item", "control"])]
    findings = []
    for component, name in (("head", "attention heads"), ("mlp", "MLPs")):
        rows = parts[parts["component"] == component]
        sums = rows.groupby([*keys, "which"], observed=True)["contribution"].sum().unstack("which")
        if {"item", "control"} <= set(sums.columns):
            gap = (sums["item"] - sums["control"]).rename("gap").reset_index().dropna()
            interval = interval_of(gap, "gap").interval
            findings.append(
                effect(f"Between control and item the {name} together change their direct effect by", interval)
            )
    return tuple(findings)


def _heads(heads: pd.DataFrame) -> Grid:
    rows = [
        (
            str(int(row["layer"])),
            str(int(row["head"])),
            str(row["role"]).replace("_", " "),
            f"{100 * row['attention']:.0f}",
            f"{row['ov_effect']:+.2f}",
            f"{row['value']:+.2f} [{row['low']:+.2f}, {row['high']:+.2f}]",
        )
        for _, row in plots.largest_heads(heads).iterrows()
    ]
    return Grid(
        COLUMNS,
        tuple(rows),
        "The largest contributions of a head from one role, mean over items and controls; picked for their size.",
        numeric=frozenset({COLUMNS[0], COLUMNS[1], *COLUMNS[3:]}),
    )
