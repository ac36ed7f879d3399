"""Which parts would matter if they were exchanged, and how far can that be told from gradients?"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

from latentkt import plots
from latentkt.plots.columns import require
from latentkt.plots.predictions import METHODS
from latentkt.report.blocks import Block, Finding, Grid, Note, Picture, Section
from latentkt.report.wording import caption_of_run, plural

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.results import Run

__all__ = ["TITLE", "section"]

TITLE = "Attribution patching"
INTRO = (
    "From one backward pass every patch is predicted: the difference of the two runs' activations times the gradient. "
    "The largest predictions and a sample of all sizes were also run. Predictions are for ranking; the slope says how "
    "far their sizes can be trusted."
)
NODES = ("part", "at", "patched", "predicted (nats)", "exact (nats)", "pairs")
EDGES = ("from", "into", "patched", "predicted (nats)", "exact (nats)", "pairs")
_ROWS = 8


def section(run: Run) -> Section | None:
    """The section, or None without a table `atp` or `edges` that has rows."""
    import pandas as pd

    tables = {name: run.tables[name] for name in ("atp", "edges") if run.has(name)}
    if not tables:
        return None
    for table in tables.values():
        require(table, "predictions")
    every = pd.concat(tables.values(), ignore_index=True)
    findings = tuple(_findings(tables))
    blocks: list[Block] = []
    if every["exact"].notna().any():
        blocks.append(
            Picture.of(
                plots.predicted_against_exact(every, caption=caption_of_run(run)),
                alt=f"Exact effects of patches against their predictions. {' '.join(f.text for f in findings)}",
                caption="Off the line the size is wrong; far from the horizontal axis at a small prediction is a miss.",
            )
        )
    if "atp" in tables:
        blocks.append(_nodes(tables["atp"]))
    if "edges" in tables:
        blocks.append(_edges(tables["edges"]))
    blocks.append(Note(_note(tables)))
    return Section("gradients", TITLE, INTRO, findings, tuple(blocks))


def _findings(tables: dict[str, pd.DataFrame]) -> list[Finding]:
    from latentkt.internals import verification

    findings = []
    for table in tables.values():
        for method, rows in verification(table).groupby("method", sort=True):
            name = METHODS.get(str(method), str(method)).capitalize()
            if not rows["rank_correlation"].notna().any():
                continue
            rank, slope = rows["rank_correlation"].dropna(), rows["slope"].dropna()
            misses = int(rows["misses"].sum())
            mine = table[(table["method"] == method) & table["predicted"].notna()]
            unchanged = mine["unchanged"].astype(bool) if "unchanged" in mine else mine["is_top"] & False
            outside = int((mine["is_sampled"] & ~mine["is_top"] & ~unchanged).sum())
            text = (
                f"{name}: in samples of all sizes the rank correlation with exact patches is {_spread(rank)} and the "
                f"slope {_spread(slope)}; {plural(misses, 'large effect')} missed among {outside} sampled outside the "
                f"largest ({plural(len(rows), 'pair')})."
            )
            findings.append(Finding(text))
    return findings


def _spread(values: pd.Series) -> str:
    """The median, and the range where there are several."""
    middle = f"{values.median():.2f}"
    return middle if len(values) == 1 else f"{middle} [{values.min():.2f} to {values.max():.2f}]"


def _nodes(table: pd.DataFrame) -> Grid:
    live = table[table["predicted"].notna() & ~table["unchanged"]]
    keys = ["direction", "site", "layer", "head", "role"]
    means = live.groupby(keys, observed=True).agg(
        predicted=("predicted", "mean"), exact=("exact", "mean"), run=("exact", "count"), rows=("exact", "size")
    )
    best = means.reindex(means["predicted"].abs().sort_values(ascending=False).index)[:_ROWS].reset_index()
    rows = [
        (
            f"{row['site']} of layer {row['layer']}" + ("" if row["head"] < 0 else f", head {row['head']}"),
            str(row["role"]).replace("_", " "),
            _way(row),
            *_numbers(row),
        )
        for row in best.to_dict("records")
    ]
    return Grid(
        NODES,
        tuple(rows),
        "The largest mean predictions, picked for their size; exact: mean over the pairs in which the patch was run.",
        numeric=frozenset(NODES[3:]),
    )


def _edges(table: pd.DataFrame) -> Grid:
    means = table.groupby(["direction", "sender", "receiver"], observed=True).agg(
        predicted=("predicted", "mean"), exact=("exact", "mean"), run=("exact", "count"), rows=("exact", "size")
    )
    best = means.reindex(means["predicted"].abs().sort_values(ascending=False).index)[:_ROWS].reset_index()
    rows = [
        (
            str(row["sender"]),
            str(row["receiver"]),
            _way(row),
            *_numbers(row),
        )
        for row in best.to_dict("records")
    ]
    return Grid(
        EDGES,
        tuple(rows),
        "The largest edges (site.layer.head; resid_pre.0 is the embedding), mean over the pairs that list them.",
        numeric=frozenset(EDGES[3:]),
    )


def _way(row: Mapping[Hashable, Any]) -> str:
    """Which run is patched from which: the two ways of a cell have effects of opposite sign."""
    return str(row["direction"]).replace("_", " ")


def _numbers(row: Mapping[Hashable, Any]) -> tuple[str, str, str]:
    """Prediction, exact effect with the pairs that it is of where these are not all, and pairs."""
    part = "" if row["run"] == row["rows"] else f" ({row['run']} of {row['rows']})"
    exact = "" if math.isnan(row["exact"]) else f"{row['exact']:+.2f}{part}"
    return f"{row['predicted']:+.2f}", exact, str(row["rows"])


def _note(tables: dict[str, pd.DataFrame]) -> str:
    parts = []
    for name, table in tables.items():
        error = table["completeness_error"].abs()
        if error.notna().any():
            parts.append(
                f"{'Nodes' if name == 'atp' else 'Edges'}: summed over the embeddings the predictions miss the whole "
                f"difference of the runs by up to {error.max():.2f} nats."
            )
    if "edges" in tables:
        share = float(tables["edges"]["kept_share"].min())
        parts.append(f"The rows of edges hold at least {100 * share:.0f} % of the summed size of all edges of a pair.")
    return " ".join(parts)
