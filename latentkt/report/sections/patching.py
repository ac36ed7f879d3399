"""Which tokens move the answer?"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from latentkt import plots
from latentkt.plots.columns import require
from latentkt.plots.patching import DIRECTIONS
from latentkt.plots.summaries import intervals
from latentkt.report.blocks import Block, Finding, Grid, Note, Picture, Section
from latentkt.report.wording import caption_of_run, p_text, plural
from latentkt.stats import Interval, MaxT, benjamini_hochberg, sign_flip_max_t

if TYPE_CHECKING:
    from latentkt.results import Run

__all__ = ["TITLE", "section"]

TITLE = "Patching by role"
INTRO = (
    "The residual stream of one run is put into the other at the tokens of one role and one layer, and the answer is "
    "asked again. The effect is the change of the log-odds of y* over y_s. Control into item should lower them where "
    "that cell carries what the answer turns on, item into control should raise them."
)
NOTES = (
    "Cells are tested together, layers × roles of one direction, by flipping the signs of whole families against the "
    "largest |t| over all cells. Effects are not held against placebo patches in this table: a cell that moves the "
    "answer may do so because anything put there would."
)


def section(run: Run) -> Section | None:
    """The section, or None without a table `patch`."""
    # Of synthetic networks a section of its own shows this, by cluster.
    if not run.has("patch") or run.identity.get("kind") == "synthetic-inside":
        return None
    patch = run.tables["patch"]
    require(patch, "patch")
    findings: list[Finding] = []
    blocks: list[Block] = []
    for site, table in patch.groupby("site", sort=True, observed=True):
        here, rows = _directions(table, str(site))
        findings += here
        figure = plots.patch_by_role(patch, site=str(site), caption=caption_of_run(run))
        words = " ".join(finding.text for finding in here)
        blocks += [
            Picture.of(
                figure,
                alt=f"Effect of patching {site} by layer and role. {words}",
                caption="Where the effect passes from the constraint's tokens to the last one, it is handed over.",
            ),
            Grid(
                COLUMNS,
                tuple(rows),
                f"Largest effect of each role at {site}; picked for its size, so read its p value, not its interval.",
                numeric=frozenset(COLUMNS[2:]),
            ),
        ]
    absent = int(patch["effect"].isna().sum())
    blocks.append(Note(f"{NOTES} Of {len(patch):,} cells {absent:,} do not exist for their pair and are left out."))
    return Section("patching", TITLE, INTRO, tuple(findings), tuple(blocks))


COLUMNS = ("direction", "role", "layer", "effect (nats)", "p, all cells", "p, false discovery")


def _directions(table: pd.DataFrame, site: str) -> tuple[list[Finding], list[tuple[str, ...]]]:
    findings: list[Finding] = []
    rows: list[tuple[str, ...]] = []
    for direction in (name for name in DIRECTIONS if name in set(table["direction"])):
        inside = table[table["direction"] == direction]
        wide = inside.pivot_table(
            index=["family", "item"],
            columns=["role", "layer"],
            values="effect",
            aggfunc="mean",
            observed=True,
        )
        test = sign_flip_max_t(wide.to_numpy(), wide.index.get_level_values("family").tolist())
        cells = _cells(inside, wide, test)
        findings.append(_finding(direction, site, cells, test))
        for role, group in cells.groupby("role", sort=True, observed=True):
            best = _largest(group)
            texts = (f"{_interval(best):+.2f}", p_text(best["p_max_t"]), p_text(best["q"]))
            rows.append((DIRECTIONS[direction], str(role), str(best["layer"]), *texts))
    return findings, rows


def _cells(inside: pd.DataFrame, wide: pd.DataFrame, test: MaxT) -> pd.DataFrame:
    """One row a role and layer that exists: effect with its interval, adjusted p values."""
    tested = pd.DataFrame({"p_max_t": test.p_max_t, "q": benjamini_hochberg(test.p)}, index=wide.columns)
    cells = intervals(inside, "effect", ["role", "layer"]).merge(tested.reset_index(), on=["role", "layer"])
    return pd.DataFrame(cells.dropna(subset=["value"]))


def _largest(cells: pd.DataFrame) -> pd.Series[Any]:
    return cells.iloc[int(cells["value"].abs().to_numpy().argmax())]


def _interval(cell: pd.Series[Any]) -> Interval:
    return Interval(**{field.name: cell[field.name] for field in fields(Interval)})


def _finding(direction: str, site: str, cells: pd.DataFrame, test: MaxT) -> Finding:
    subject = f"{DIRECTIONS[direction].capitalize()} ({site})"
    best = _largest(cells)
    where = f"{best['role']}, layer {best['layer']}: {_interval(best):+.2f} nats"
    smallest_p = 2.0 ** (1 - test.clusters)
    families = plural(test.clusters, "family", "families")
    if test.exact and smallest_p > 0.05:
        return Finding(
            f"{subject}: with {families} no cell can reach p ≤ 0.05, so effects are described, not tested; the largest "
            f"is {where}."
        )
    named = int(np.sum(cells["p_max_t"] <= 0.05))
    if not named:
        none = f"none of {test.cells_tested} cells is distinguishable from no effect"
        return Finding(f"{subject}: {none} ({families}); the largest is {where}.", found=False)
    return Finding(
        f"{subject}: {named} of {test.cells_tested} cells move the answer ({families}); the largest is {where}.",
        found=True,
    )
