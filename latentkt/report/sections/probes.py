"""What can be read from the residual stream that the words do not give away?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from latentkt import plots
from latentkt.plots.columns import require
from latentkt.plots.probes import over_folds
from latentkt.report.blocks import Block, Finding, Note, Picture, Section
from latentkt.report.wording import caption_of_run, plural
from latentkt.stats import mean_interval

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.results import Run

__all__ = ["TITLE", "section"]

TITLE = "Probes"
INTRO = (
    "A logistic probe is trained on the residual stream of some families and tested on others. Beside it a bag of "
    "tokens stands on the same folds: only what the probe reads beyond it is evidence of what the network worked out. "
    "What can be read need not be used."
)


def section(run: Run) -> Section | None:
    """The section, or None without a table `probe`."""
    if not run.has("probe"):
        return None
    probe = run.tables["probe"]
    probe = probe[probe["split"] == "generalisation"]
    require(probe, "probe")
    findings: list[Finding] = []
    blocks: list[Block] = []
    for target, table in probe.groupby("target", sort=True, observed=True):
        finding = _finding(str(target), table)
        findings.append(finding)
        blocks.append(
            Picture.of(
                plots.probe_by_layer(probe, target=str(target), caption=caption_of_run(run)),
                alt=f"Held-out accuracy of the probe for {target} by layer. {finding.text}",
                caption="The probe counts where it lies above the bag of tokens, not where it lies above chance.",
            )
        )
    blocks.append(
        Note(
            "The comparison averages over all layers, so no layer is picked for its score. Folds share training rows, "
            "so their intervals are a guide and not exact."
        )
    )
    return Section("probes", TITLE, INTRO, tuple(findings), tuple(blocks))


def _finding(target: str, table: pd.DataFrame) -> Finding:
    folds = table.groupby("fold")[["score", "bag_score"]].mean()
    gain = mean_interval(100 * (folds["score"] - folds["bag_score"]).to_numpy())
    best = over_folds(table, "score").sort_values("value").iloc[-1]
    numbers = (
        f"{100 * folds['score'].mean():.0f} % against {100 * folds['bag_score'].mean():.0f} %, a difference of "
        f"{gain:+.0f} points over {plural(len(folds), 'fold')}; highest after layer {best['layer']:.0f} with "
        f"{100 * best['value']:.0f} %"
    )
    if not gain.defined:
        return Finding(f"{target}: probe and bag of tokens reach {numbers}; too few folds for an interval.")
    if not gain.excludes(0.0):
        return Finding(f"{target}: the probe reads no more than a bag of tokens ({numbers}).", found=False)
    verb = "more" if gain.value > 0 else "less"
    return Finding(f"{target}: the probe reads {verb} than a bag of tokens ({numbers}).", found=gain.value > 0)
