"""What can be read from the residual stream that the words do not give away?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from latentkt import plots
from latentkt.plots.columns import require
from latentkt.report.blocks import Block, Finding, Grid, Note, Picture, Section
from latentkt.report.wording import caption_of_run, plural
from latentkt.stats import mean_interval

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.results import Run

__all__ = ["TITLE", "section"]

TITLE = "Probes"
INTRO = (
    "A probe is trained on the residual stream of some families and tested on others, beside a bag of tokens and a "
    "network with random weights on the same folds: only what it reads beyond the bag, and beyond chance, is evidence "
    "of what the network worked out. A second split asks how much a probe of this size learns by heart: its control "
    "task gives each item a random label. What can be read need not be used."
)
COLUMNS = (
    *("target", "role", "probe", "layers", "families left out", "bag of tokens", "evidence at"),
    *("task, items seen", "control task"),
)


def section(run: Run) -> Section | None:
    """The section, or None without the tables `probe` and `probe_layers`."""
    if not run.has("probe_layers") or not run.has("probe"):
        return None
    layers, folds = run.tables["probe_layers"], run.tables["probe"]
    require(layers, "probe_layers")
    findings: list[Finding] = []
    blocks: list[Block] = []
    for target, table in layers[layers["role"] == "last"].groupby("target", sort=True, observed=True):
        kind = str(table["kind"].iloc[0])
        mine = folds[(folds["target"] == target) & (folds["kind"] == kind) & (folds["role"] == "last")]
        finding = _finding(str(target), table[table["kind"] == kind], mine[mine["split"] == "generalisation"])
        findings.append(finding)
        if table["score"].notna().any():
            blocks.append(
                Picture.of(
                    plots.probe_by_layer(layers, target=str(target), kind=kind, caption=caption_of_run(run)),
                    alt=f"Held-out accuracy of the probe for {target} by layer. {finding.text}",
                    caption="The probe counts where it lies above the bag of tokens and above chance.",
                )
            )
    blocks += [_grid(layers), Note(_note(layers))]
    return Section("probes", TITLE, INTRO, tuple(findings), tuple(blocks))


def _finding(target: str, layers: pd.DataFrame, folds: pd.DataFrame) -> Finding:
    known = folds.dropna(subset=["score"])
    if known.empty or known["bag_score"].isna().all():
        return Finding(f"{target}: no score beside a bag of tokens.")
    means = known.groupby("fold")[["score", "bag_score"]].mean()
    gain = mean_interval(100 * (means["score"] - means["bag_score"]).to_numpy())
    general = layers[(layers["split"] == "generalisation") & layers["score"].notna()]
    best = general.sort_values("score").iloc[-1]
    numbers = (
        f"{100 * means['score'].mean():.0f} % against {100 * means['bag_score'].mean():.0f} %, a difference of "
        f"{gain.value:+.0f} points [{gain.low:+.0f}, {gain.high:+.0f}] over {plural(len(means), 'fold')}; highest "
        "after "
        f"layer {best['layer']:.0f} with {100 * best['score']:.0f} %"
    )
    if not gain.defined:
        return Finding(f"{target}: probe and bag of tokens reach {numbers}; too few folds for an interval.")
    if not gain.excludes(0.0):
        return Finding(f"{target}: the probe reads no more than a bag of tokens ({numbers}).", found=False)
    if gain.value < 0:
        return Finding(f"{target}: the probe reads less than a bag of tokens ({numbers}).", found=False)
    score, chance = mean_interval(means["score"].to_numpy()), _chance(general)
    if not score.low > chance:
        below = f"no more than the commoner answer, which is right in {100 * chance:.0f} %"
        return Finding(f"{target}: the probe reads {below}; the bag of tokens lies below it ({numbers}).", found=False)
    return Finding(f"{target}: the probe reads more than a bag of tokens ({numbers}).", found=True)


def _chance(general: pd.DataFrame) -> float:
    """What the best single answer scores, at least one half."""
    names = [name for name in ("chance", "majority_score") if name in general]
    return max(0.5, float(general[names].max().max()))


def _grid(layers: pd.DataFrame) -> Grid:
    rows = []
    for (target, role, kind), table in layers.groupby(["target", "role", "kind"], sort=True, observed=True):
        general = table[table["split"] == "generalisation"]
        memory = table[table["split"] == "selectivity"]
        evident = sorted(general.loc[general["evidence"].astype(bool), "layer"].astype(int))
        rows.append(
            (
                *(str(target), str(role), str(kind).replace("_", " "), str(table["layer"].nunique())),
                *(_percent(general, "score"), _percent(general, "bag_score")),
                ", ".join(map(str, evident)) or "no layer",
                *(_percent(memory, "score"), _percent(memory, "control_score")),
            )
        )
    return Grid(
        COLUMNS,
        tuple(rows),
        "Accuracies, means over layers. Evidence: layers whose score lies above the bag of tokens' interval, whose "
        "gain over it excludes zero, and whose own interval lies above the share of the commoner answer; with many "
        "layers a few do by chance.",
        numeric=frozenset({"layers", "families left out", "bag of tokens", "task, items seen", "control task"}),
    )


def _percent(rows: pd.DataFrame, column: str) -> str:
    known = rows[column].dropna()
    return f"{100 * known.mean():.0f} %" if len(known) else "—"


def _note(layers: pd.DataFrame) -> str:
    reasons = [reason for reason in dict.fromkeys(layers["reason"]) if reason]
    said = f" Not measured somewhere: {'; '.join(reasons)}." if reasons else ""
    return (
        "The sentences average over all layers, so no layer is picked for its score. Folds share training rows, so "
        "their intervals are a guide and not exact. The strength of the penalty is chosen inside each training fold."
        + said
    )
