"""Where along the layers does the answer form?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from latentkt import plots
from latentkt.plots.columns import require
from latentkt.plots.lens import READING
from latentkt.plots.summaries import interval_of
from latentkt.report.blocks import Finding, Note, Picture, Section
from latentkt.report.wording import caption_of_run, effect, plural
from latentkt.stats import MaxT, sign_flip_max_t

if TYPE_CHECKING:
    from latentkt.results import Run

__all__ = ["TITLE", "section"]

TITLE = "Logit lens"
INTRO = (
    "The residual stream at the last prompt token is read after every layer as if it were the last: final norm, then "
    "unembedding. What is shown are the log-odds of the first token in which the two answers differ; the table holds "
    "whole answers too. It shows when the two answers part, not what causes it."
)


def section(run: Run) -> Section | None:
    """The section, or None without a table `lens` that holds items and controls."""
    # Of synthetic networks a section of its own shows this, by cluster.
    if not run.has("lens") or run.identity.get("kind") == "synthetic-inside":
        return None
    lens = run.tables["lens"]
    require(lens, "lens")
    if not {"item", "control"} <= set(lens["which"]):
        return None
    differences = _differences(lens[lens["position"] == "last"])
    findings = _findings(differences)
    picture = Picture.of(
        plots.lens_trajectory(lens, caption=caption_of_run(run)),
        alt=f"Log-odds by layer for items and controls. {' '.join(finding.text for finding in findings)}",
        caption="Where the two lines part, what tells item from control can be read at the last token.",
    )
    note = Note(
        "Layers are tested together by flipping the signs of whole families, against the largest |t| over all layers: "
        "the chance of naming any layer in error is at most 5 %."
    )
    return Section("lens", TITLE, INTRO, findings, (picture, note))


def _differences(lens: pd.DataFrame) -> pd.DataFrame:
    """Item − control by item (rows) and layer (columns), means over orders; indexed by family and item."""
    wide = lens.pivot_table(
        index=["family", "item", "order"], columns=["which", "layer"], values=READING, aggfunc="mean", observed=True
    )
    difference = pd.DataFrame(wide["item"]) - pd.DataFrame(wide["control"])
    return difference.groupby(level=["family", "item"], observed=True).mean()


def _findings(differences: pd.DataFrame) -> tuple[Finding, ...]:
    last = differences.columns.max()
    long = differences[last].rename("difference").reset_index()
    at_end = effect("After the last layer the lens parts item and control by", interval_of(long, "difference").interval)
    families = differences.index.get_level_values("family").tolist()
    return at_end, _layers(differences, sign_flip_max_t(differences.to_numpy(), families))


def _layers(differences: pd.DataFrame, test: MaxT) -> Finding:
    named = [int(layer) for layer, p in zip(differences.columns, test.p_max_t, strict=True) if p <= 0.05]
    total = f"{test.cells_tested} layers read, {plural(test.clusters, 'family', 'families')}"
    if named:
        text = f"Item and control differ in {plural(len(named), 'layer')}, first after layer {named[0]} ({total})."
        return Finding(text, found=True)
    if test.exact and 2.0 ** (1 - test.clusters) > 0.05:
        few = plural(test.clusters, "family", "families")
        return Finding(f"With {few} no layer can reach p ≤ 0.05, so the layers are described, not tested.")
    smallest = float(np.nanmin(test.p_max_t)) if test.cells_tested else float("nan")
    return Finding(f"Item and control differ in no layer ({total}; smallest adjusted p = {smallest:.2f}).", found=False)
