"""What networks trained on a world with a known prior do with frequency, constraint and knowledge."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from latentkt.plots.synthetic import figures_of
from latentkt.report.blocks import Finding, Grid, Note, Picture, Section
from latentkt.synthetic.checks import Check, check_run
from latentkt.synthetic.rtest import verdict

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.results import Run

__all__ = ["TITLE", "section"]

TITLE = "Worlds with a known prior"
INTRO = (
    "Small transformers trained from nothing on documents whose counts are known exactly. Dominance, log P(shortcut) - "
    "log P(correct), is held against the log prior ratio of the two keys; the law is dominance = s log r - λ "
    "with s = 1, and "
    "λ the evidence that the network reads from the constraint. Figures are pooled over relations and "
    "networks and stand "
    "for pairs of keys that were never shown together."
)
CAPTIONS = {
    "dominance_law": "Where the constraint is used, the cloud lies below the dashed line by λ.",
    "trap_errors": "The lower panel keeps pairs whose two facts the network gives rightly when asked alone.",
    "training_curve": "The distance to the dashed line is what was not learned; below it the network would be "
    "memorising.",
    "r_coefficients": "The last coefficient is the test: 1 on the pair-neutral corpus, 0 on the path-neutral one.",
    "sweep_lines": "Each level is a world of its own with the same seeds.",
}


def section(run: Run) -> Section | None:
    """The section, or None for a run of another kind."""
    if not {"fits", "r_fits", "sweep"} & set(run.tables) or not run.identity.get("kind"):
        return None
    findings = tuple(_findings(run))
    said = " ".join(finding.text for finding in findings)
    pictures = [
        Picture.of(figure, alt=f"{CAPTIONS[name]} {said}", caption=CAPTIONS[name])
        for name, figure in figures_of(run, caption=f"Preset {run.identity.get('preset')}.").items()
    ]
    return Section("synthetic", TITLE, INTRO, findings, (*pictures, *_grids(run)))


def _findings(run: Run) -> list[Finding]:
    if "r_fits" in run.tables:
        return [
            Finding(f"{str(item)[0].upper()}{str(item)[1:]}.", found=item.verdict == "confirmed")
            for item in verdict(run.tables["r_fits"])
        ]
    return [Finding(_sentence(check), found=check.passed) for check in check_run(run)]


def _sentence(check: Check) -> str:
    low, high = check.interval
    ends = "" if math.isnan(low) else f" [{low:.2f}, {high:.2f}]"
    ending = "as expected" if check.passed else "not as expected"
    return f"{check.name[0].upper()}{check.name[1:]}: {check.value:.2f}{ends}, {ending} ({check.expected})."


def _grids(run: Run) -> list[Grid | Note]:
    if "fits" in run.tables:
        return [_fit_grid(run.tables["fits"]), _seed_grid(run.tables["fits"]), NOTE]
    if "r_fits" in run.tables:
        return [_r_grid(run.tables["r_fits"])]
    return []


NOTE = Note(
    "On opposed pairs of a cluster whose opposed keys never co-occur, the corpus defines no answer (0/0): s, λ and the "
    "coefficients are then outcomes of generalisation, without an exact reference. Intervals resample the "
    "keys of each network; "
    "they do not say how far another world or another initialisation would differ, for which the seeds are listed."
)


def _cell(row: Any) -> str:
    ends = "" if math.isnan(row.low) else f" [{row.low:.2f}, {row.high:.2f}]"
    return "–" if math.isnan(row.value) else f"{row.value:.2f}{ends}"


SHOWN = ("slope", "slope_probability", "lambda", "residual_sd", "r2", "own_relation", "other_relation", "trap_error",
         "trap_error_given_both_probes", "consistent_error", "constraint_patch_nats", "order_bias", "off_options",
         "tv_ideal_above_1", "tv_bayes_ideal_above_1", "tv_bayes_above_1", "tv_floor_above_1")  # fmt: skip


def _fit_grid(fits: pd.DataFrame) -> Grid:
    """Every figure, pooled, one column a kind of pairs."""
    pooled = fits[(fits["seed"] == "pooled") & (fits["relation"] == "both") & (fits["statistic"].isin(SHOWN))]
    pooled = pooled[(pooled["cluster"] != "all") | (pooled["pairing"] == "same")]
    kinds = sorted({tuple(map(str, key)) for key in pooled[["pairing", "cluster", "pairs"]].to_numpy()})
    cells: dict[tuple[Any, ...], str] = {
        (row.statistic, row.pairing, row.cluster, row.pairs): _cell(row) for row in pooled.itertuples()
    }
    rows = tuple((name, *(cells.get((name, *kind), "–") for kind in kinds)) for name in SHOWN)
    headings = ("figure", *(", ".join(kind) for kind in kinds))
    return Grid(headings, rows, "Every figure, pooled over networks and relations.", frozenset(headings[1:]))


def _seed_grid(fits: pd.DataFrame) -> Grid:
    """The headline by network and relation: no claim rests on one of them."""
    chosen = fits[
        (fits["statistic"] == "trap_error_given_both_probes") & (fits["pairs"] == "unseen") & (fits["cluster"] != "all")
    ]
    clusters = sorted(chosen["cluster"].unique(), reverse=True)
    cells = {(row.seed, row.relation, row.cluster): _cell(row) for row in chosen.itertuples()}
    rows = tuple(
        (str(seed), str(relation), *(cells.get((seed, relation, name), "–") for name in clusters))
        for seed in chosen["seed"].unique()
        for relation in chosen["relation"].unique()
    )
    return Grid(
        ("network", "relation", *map(str, clusters)),
        rows,
        "Trap error at r > 6, both facts known.",
        frozenset(clusters),
    )


def _r_grid(fits: pd.DataFrame) -> Grid:
    """Coefficients of every network."""
    names = ("log_rho_key", "log_rho_task", "log_r", "r2")
    cells: dict[tuple[Any, ...], str] = {
        (row.corpus, row.binding, row.pairs, row.seed, row.statistic): _cell(row) for row in fits.itertuples()
    }
    places = sorted({tuple(map(str, key)) for key in fits[["corpus", "binding", "pairs", "seed"]].to_numpy()})
    rows = tuple((*place, *(cells.get((*place, name), "–") for name in names)) for place in places)
    return Grid(("corpus", "binding", "pairs", "network", *names), rows, "Coefficients.", frozenset(names))
