"""What is it worth to be listed first?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from latentkt import plots
from latentkt.plots.summaries import first_option, interval_of, item_minus_control
from latentkt.report.blocks import Finding, Grid, Picture, Section
from latentkt.report.wording import caption_of_run, effect

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.results import Run

__all__ = ["TITLE", "section"]

TITLE = "Option position"
INTRO = (
    "Half the difference between the two orders of the options is what being listed first is worth. It says nothing of "
    "the question, so it is kept apart, and every conclusion here rests on both orders."
)


def section(run: Run) -> Section | None:
    """The section, or None without a table `answers` that holds both orders."""
    if not run.has("answers"):
        return None
    answers = run.tables["answers"]
    bias = first_option(answers)
    if bias.empty:
        return None
    in_items = bias[bias["which"].isin(["item", "control"])]
    finding = effect("Being listed first is worth", interval_of(in_items, "bias").interval)
    picture = Picture.of(
        plots.position_bias(answers, caption=caption_of_run(run)),
        alt=f"Gain of the first option by kind and prompt. {finding.text}",
        caption="Zero is a model that does not care about position.",
    )
    return Section("position", TITLE, INTRO, (finding, *_beside(answers, in_items)), (picture, _grid(bias)))


def _beside(answers: pd.DataFrame, bias: pd.DataFrame) -> list[Finding]:
    pairs = item_minus_control(answers)
    if pairs.empty:
        return []
    # Like with like: exchanging the options against exchanging item and control. An order is worth twice the bias.
    swap = (2 * bias.groupby("item")["bias"].mean()).reindex(pairs["item"]).to_numpy()
    table = pairs.assign(swap=swap).dropna(subset=["swap"])
    if table.empty:
        return []
    position, constraint = (interval_of(table, name).interval.value for name in ("swap", "difference"))
    table["gap"] = math.copysign(1, position) * table["swap"] - math.copysign(1, constraint) * table["difference"]
    gap = interval_of(table, "gap").interval
    numbers = f"{abs(position):.2f} against {abs(constraint):.2f} nats, a difference of {gap:+.2f}"
    subject = "Exchanging the two options moves the log-odds"
    if not gap.excludes(0.0):
        return [Finding(f"{subject} about as much as exchanging item and control: {numbers}.")]
    larger = "more" if gap.value > 0 else "less"
    return [Finding(f"{subject} {larger} than exchanging item and control does: {numbers}.")]


def _grid(bias: pd.DataFrame) -> Grid:
    rows = []
    for (kind, which), group in bias.groupby(["kind", "which"], sort=True, observed=True):
        both = interval_of(group, "bias")
        cells = (f"{both.interval:+.2f}", f"{both.conditional:+.2f}", str(both.interval.n), str(both.interval.clusters))
        rows.append((str(kind), str(which), *cells))
    columns = ("kind", "prompt", "by family (nats)", "over these items (nats)", "items", "families")
    return Grid(
        columns, tuple(rows), "Gain of the first option; the interval over items is conditional on these families.",
        numeric=frozenset(columns[2:]),
    )  # fmt: skip
