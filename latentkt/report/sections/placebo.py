"""Does a patch do more than any patch would?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from latentkt import plots
from latentkt.plots.patching import DIRECTIONS
from latentkt.report.blocks import Block, Finding, Grid, Note, Picture, Section
from latentkt.report.wording import caption_of_run, p_text, plural

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.results import Run

__all__ = ["TITLE", "section"]

TITLE = "Patching against placebo"
INTRO = (
    "Putting anything into a run moves its answer. So each patch is held against a placebo: the same cell, patched "
    "from another item of the same family, polarity, option order and span length in whose prompt the same side is "
    "right. What is tested is effect minus placebo effect."
)
COLUMNS = ("direction", "site", "role", "layer", "effect", "placebo", "difference (nats)", "p, all cells", "items")


def section(run: Run) -> Section | None:
    """The section, or None without a table `effects`."""
    if "effects" not in run.tables or not len(run.tables["effects"]):
        return None
    effects = run.tables["effects"]
    cells = effects[effects["role"] != "option position"]
    findings: list[Finding] = []
    blocks: list[Block] = []
    for site, table in cells.groupby("site", sort=True, observed=True):
        here = [_finding(str(d), str(site), rows) for d, rows in table.groupby("direction", sort=True, observed=True)]
        findings += here
        if table["difference"].notna().any() and (table["head"] == -1).all():
            blocks.append(
                Picture.of(
                    plots.effects_by_role(effects, site=str(site), caption=caption_of_run(run)),
                    alt=f"Effect minus placebo effect of patching {site}. {' '.join(f.text for f in here)}",
                    caption="Zero: the patch does what any patch from a matched donor does.",
                )
            )
    blocks.append(_grid(cells))
    blocks.append(Note(_note(cells)))
    return Section("placebo", TITLE, INTRO, tuple(findings), tuple(blocks))


def _finding(direction: str, site: str, rows: pd.DataFrame) -> Finding:
    subject = f"{DIRECTIONS.get(direction, direction).capitalize()} ({site})"
    tested = rows[rows["p_max_t"].notna()]
    if tested.empty:
        return Finding(f"{subject}: no cell has a placebo in two families or more, so nothing is tested.")
    families = int(tested["n_families"].max())
    resting = f"{plural(len(tested), 'cell')} tested, {plural(families, 'family', 'families')}"
    if (tested["verdict"] == "one order only").all():
        return Finding(f"{subject}: measured in one option order only, so no verdict is given ({resting}).")
    if 2.0 ** (1 - families) > 0.05:
        return Finding(
            f"{subject}: with {plural(families, 'family', 'families')} no cell can reach p ≤ 0.05 ({resting})."
        )
    named = int((tested["verdict"] == "differs").sum())
    if not named:
        return Finding(f"{subject}: no cell differs from its placebo ({resting}).", found=False)
    return Finding(f"{subject}: {named} cells differ from their placebo ({resting}).", found=True)


def _grid(cells: pd.DataFrame) -> Grid:
    rows = []
    keys = ["direction", "site", "role"]
    for (direction, site, role), group in cells.groupby(keys, sort=True, observed=True):
        known = group.dropna(subset=["difference"])
        if known.empty:
            continue
        best = known.iloc[int(known["difference"].abs().to_numpy().argmax())]
        difference = f"{best['difference']:+.2f} [{best['low']:+.2f}, {best['high']:+.2f}]"
        numbers = (f"{best['effect']:+.2f}", f"{best['placebo']:+.2f}", difference, p_text(best["p_max_t"]))
        place = (DIRECTIONS.get(str(direction), str(direction)), str(site), str(role), str(int(best["layer"])))
        rows.append((*place, *numbers, str(int(best["n_items"]))))
    return Grid(
        COLUMNS,
        tuple(rows),
        "The largest difference of each role; picked for its size, so read its p value, not its interval.",
        numeric=frozenset(COLUMNS[3:]),
    )


def _note(cells: pd.DataFrame) -> str:
    without = int(cells["without_placebo"].max()) if len(cells) else 0
    same = sorted(cells.loc[cells["unchanged"] > 0, "role"].unique())
    parts = [f"Up to {plural(without, 'item')} of a cell have no matched donor and are left out of the difference."]
    if same:
        parts.append(
            f"At {', '.join(same)} item and control are the same for some items (the tokens stand in front of their "
            "first difference): the effect is 0 whatever the model does, and is not tested."
        )
    return " ".join(parts)
