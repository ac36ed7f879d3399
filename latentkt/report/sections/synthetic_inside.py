"""Inside networks whose prior is known: where the constraint acts, and where it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from latentkt.plots.synthetic_inside import answers_by_layer, outputs_by_role
from latentkt.report.blocks import Finding, Grid, Note, Picture, Section
from latentkt.stats import mean_interval

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.results import Run
    from latentkt.stats import Interval

__all__ = ["TITLE", "section"]

TITLE = "Inside networks with a known prior"
INTRO = (
    "Traps on pairs never shown together, measured inside each trained network. Outputs of attention and MLP are "
    "replaced, one layer and one role at a time, by those of the prompt with the other polarity word, or of the prompt "
    "with the rarest entity in the shortcut's place. Effects are the change of the log-odds of y* over y_s in nats, as "
    "they are; the mean over networks stands with Student's interval over networks."
)


def section(run: Run) -> Section | None:
    """The section, or None for a run of another kind."""
    if run.identity.get("kind") != "synthetic-inside":
        return None
    word, entity = run.tables["patch"], run.tables["patch_shortcut"]
    findings = tuple(_findings(run.tables["lens"], word))
    said = " ".join(finding.text for finding in findings)
    pictures = [
        Picture.of(answers_by_layer(run.tables["lens"]), alt=said, caption="Layer −1 is the embedding."),
        Picture.of(
            outputs_by_role(word, title="The other polarity word"),
            alt=said,
            caption="Below 0: the part carried the constraint. The last token only passes on what it has read.",
        ),
        Picture.of(
            outputs_by_role(entity, title="A rare entity in the shortcut's place"),
            alt=said,
            caption="Above 0: the part carried the shortcut's frequency.",
        ),
    ]
    grids = [
        _grid(word, "Replaced by outputs of the prompt with the other polarity word."),
        _grid(entity, "Replaced by outputs of the prompt with the rarest entity in the shortcut's place."),
        _attribution(run.tables["attribution"]),
    ]
    return Section("synthetic_inside", TITLE, INTRO, findings, (*pictures, *grids, NOTE))


NOTE = Note(
    "Networks are few: an interval over three of them is wide and rests on normal scatter. It says how far networks "
    "trained from other seeds differ, not how far another design of the world would."
)


def _networks(table: pd.DataFrame, column: str) -> Interval:
    return mean_interval(table.groupby("family", observed=True)[column].mean().to_numpy())


def _findings(lens: pd.DataFrame, word: pd.DataFrame) -> list[Finding]:
    found = []
    for kind in sorted(word["kind"].unique(), reverse=True):
        ends = lens[(lens["kind"] == kind) & (lens["layer"] == lens["layer"].max())]
        wide = ends.pivot_table(index=["family", "item", "order"], columns="which", values="log_odds", observed=True)
        moved = (wide["item"] - wide["control"]).rename("moved").reset_index()
        whole = _networks(moved, "moved")
        start = f"In cluster {kind} the item's polarity word, against the other one, moves the log-odds of traps by"
        found.append(Finding(f"{start} {_text(whole)} nats ({whole.n} networks).", found=whole.excludes(0.0)))
        part = word[(word["kind"] == kind) & (word["role"] != "last")]
        means = part.groupby(["role", "site", "layer"], observed=True)["effect"].mean()
        role, site, layer = means.abs().idxmax()
        cell = part[(part["role"] == role) & (part["site"] == site) & (part["layer"] == layer)]
        largest = _text(_networks(cell, "effect"))
        found.append(
            Finding(
                f"In cluster {kind} its largest effect before the last token is at {site} of layer {layer}, {role} "
                f"token: {largest} nats (picked for its size)."
            )
        )
    return found


def _text(interval: Interval) -> str:
    return f"{interval:+.2f}"


def _grid(patch: pd.DataFrame, caption: str) -> Grid:
    kinds = sorted(patch["kind"].unique(), reverse=True)
    rows = []
    for (role, site, layer), cells in patch.groupby(["role", "site", "layer"], observed=True):
        values = (_text(_networks(cells[cells["kind"] == kind], "effect")) for kind in kinds)
        rows.append((str(role), str(site), str(layer), *values))
    return Grid(("role", "site", "layer", *kinds), tuple(rows), caption, frozenset(("layer", *kinds)))


def _attribution(table: pd.DataFrame) -> Grid:
    """What each part adds directly to the log-odds at the last token."""
    kinds = sorted(table["kind"].unique(), reverse=True)
    summed = table.groupby(["family", "kind", "item", "order", "component", "layer"], observed=True, as_index=False)[
        "contribution"
    ].sum()
    rows = []
    for (component, layer), cells in summed.groupby(["component", "layer"], observed=True):
        values = (_text(_networks(cells[cells["kind"] == kind], "contribution")) for kind in kinds)
        rows.append((str(component), "" if str(layer) == "-1" else str(layer), *values))
    caption = "Direct attribution of the log-odds on traps, heads of a layer together; norm frozen."
    return Grid(("part", "layer", *kinds), tuple(rows), caption, frozenset(("layer", *kinds)))
