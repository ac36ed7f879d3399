"""Is the direction that a probe finds used?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from latentkt import plots
from latentkt.report.blocks import Block, Finding, Grid, Note, Picture, Section
from latentkt.report.wording import caption_of_run, plural
from latentkt.stats import cluster_interval

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.results import Run

__all__ = ["TITLE", "section"]

TITLE = "Steering"
INTRO = (
    "The run is changed along the direction that a probe gives on the other families: a step along it is added, it is "
    "removed, or its coordinates are taken from the control's run. Random directions and a direction of arbitrary "
    "labels make changes of the same length. What counts is what the direction does beyond them."
)
TEXT = ("item", "changed", "text")
MOST = 12


def section(run: Run) -> Section | None:
    """The section, or None without a table `steer`."""
    if not run.has("steer") or not len(run.tables["steer"]) or "control" not in run.tables["steer"]:
        return None
    steer = run.tables["steer"]
    trained = steer[steer["model"] == "trained"]
    findings = [_finding(way, rows) for way, rows in _ways(trained)]
    blocks: list[Block] = []
    for model in dict.fromkeys(steer["model"]):
        blocks.append(
            Picture.of(
                plots.steering_effects(steer, model=str(model), caption=f"{caption_of_run(run)}, {model}"),
                alt=f"Effects of steering, {model}. {' '.join(finding.text for finding in findings)}",
                caption="Positive: toward y*. The control's coordinates should take the item's answer down.",
            )
        )
    if run.has("steer_text") and len(run.tables["steer_text"]):
        blocks.append(_texts(run.tables["steer_text"]))
    place = f"{trained['site'].iloc[0]} of layer {int(trained['layer'].iloc[0])}, at {trained['role'].iloc[0]}"
    blocks.append(Note(_note(place)))
    return Section("steering", TITLE, INTRO, tuple(findings), tuple(blocks))


def _ways(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    groups = rows.groupby(["how", "strength"], sort=True, observed=True)
    return [(f"{how} {strength:+g}" if how == "add" else str(how), part) for (how, strength), part in groups]


def _finding(way: str, rows: pd.DataFrame) -> Finding:
    """The direction's effect beyond that of random directions of the same length, in the direction of its own sign."""
    own = rows[rows["control"] == ""].set_index(["item", "order"])["effect"]
    random = rows[rows["control"].str.startswith("random")]
    if random.empty:
        asked = plural(own.size, "prompt")
        return Finding(f"{way}: {own.mean():+.2f} nats ({asked}); no random direction was run to hold it against.")
    largest = random.assign(size=random["effect"].abs()).groupby(["item", "order"])["size"].max()
    beyond = (own.abs() - largest.reindex(own.index)).dropna()
    families = rows.drop_duplicates(["item", "order"]).set_index(["item", "order"])["family"].reindex(beyond.index)
    interval = cluster_interval(beyond.to_numpy(dtype=float), families.tolist()).interval
    rest = f"{plural(own.size, 'prompt')}, {plural(families.nunique(), 'family', 'families')}"
    others = plural(random["control"].nunique(), "random direction")
    numbers = f"{own.mean():+.2f} nats, the largest of {others} {largest.mean():.2f} nats either way ({rest})"
    if not interval.defined:
        return Finding(f"{way}: {numbers}; too few families for an interval.")
    if not interval.excludes(0.0) or interval.value < 0:
        return Finding(f"{way}: no more than a random direction of the same length: {numbers}.", found=False)
    return Finding(f"{way}: more than any random direction of the same length: {numbers}.", found=True)


def _texts(table: pd.DataFrame) -> Grid:
    shown = table[table["control"] == ""].head(MOST)
    rows = tuple(
        (str(row.prompt), "as it is" if row.how == "none" else f"{row.how} {row.strength:+g}", str(row.text).strip())
        for row in shown.itertuples()
    )
    return Grid(TEXT, rows, "What is written after the prompt, plain and steered at every token.")


def _note(place: str) -> str:
    return (
        f"Changed: {place}. The read part is what the next weights read most of the change through, the unread part "
        "the "
        "rest; an effect of the unread part points to a path that the network does not use by itself, or to the norm's "
        "divisor. The network with random weights is steered along the direction of its own activations, in its own "
        "middle."
    )
