"""Stages that read gradients and attention: attribution patching, edges, knockout, faithfulness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from latentkt.study.batches import Cells, Tables, nothing, pairs_of, runs_of, skipped_table

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.internals.engines.base import Engine
    from latentkt.models import Pair
    from latentkt.study.context import Context

__all__ = ["edges", "gradients"]

METRIC = {"metric": "first_token"}
"""One row a run instead of two; whole answers: `latentkt atp`, `latentkt knockout`, `latentkt faithfulness`."""
INTO_LAST = tuple((role, "last") for role in ("constraint", "shortcut", "option_correct", "option_shortcut"))
KEPT_EDGES = 100


@dataclass(frozen=True, slots=True)
class _Depth:
    """What a preset spends on each item.

    Attributes:
        directions: Pairs that are read.
        whiches: Prompts whose attention is cut.
        cuts: Edges that are cut; None for the default of `knockout`.
        shares: Points of the faithfulness curve.
        curves: Curves.
        verified: Largest and sampled cells that are run exactly; of edges, the largest.
    """

    directions: tuple[str, ...]
    whiches: tuple[str, ...]
    cuts: tuple[tuple[str, str], ...] | None
    shares: tuple[float, ...]
    curves: tuple[str, ...]
    verified: tuple[int, int, int]


_DEPTHS = {
    "quick": _Depth(("control_to_item",), ("item",), INTO_LAST, (0.05, 0.2), ("keep",), (5, 10, 2)),
    "full": _Depth(
        ("control_to_item", "item_to_control"),
        ("item", "control"),
        None,
        (0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
        ("keep", "remove"),
        (10, 20, 10),
    ),
}


def _pairs(context: Context, cells: Cells, stage: str, skipped: list[dict[str, Any]]) -> tuple[list[Pair], _Depth]:
    depth = _DEPTHS[context.options.preset]
    pairs = pairs_of(context, cells, stage, skipped)
    return [pair for pair in pairs if pair.meta["direction"] in depth.directions], depth


def gradients(context: Context, cells: Cells) -> Tables:
    """Attribution patching of heads and MLPs with its check, faithfulness of the nodes that it ranks, and knockout.

    They share an engine, so what one has recorded of a run the next need not run again.
    """
    import pandas as pd

    from latentkt.internals import Choice, atp, engine_of, faithfulness

    skipped: list[dict[str, Any]] = []
    pairs, depth = _pairs(context, cells, "gradients", skipped)
    engine = engine_of(context.handle)
    where = ("shortcut", "constraint", "last", "all")
    choice = Choice(depth.verified[0], depth.verified[1], seed=context.options.seed)
    nodes: list[pd.DataFrame] = []
    curves: list[pd.DataFrame] = []
    for pair in pairs:
        table = atp(engine, [pair], sites=("z", "mlp_out"), where=where, heads=True, choice=choice, **METRIC)
        nodes.append(table)
        whole = table[table["role"] == "all"]
        curves.append(faithfulness(engine, [pair], scores=whole, shares=depth.shares, curves=depth.curves, **METRIC))
    return {
        "atp": pd.concat(nodes or [nothing()], ignore_index=True),
        "faithfulness": pd.concat(curves or [nothing()], ignore_index=True),
        "knockout": _knockouts(context, cells, engine, depth, skipped),
        "gradients_skipped": skipped_table(skipped),
    }


def _knockouts(
    context: Context, cells: Cells, engine: Engine, depth: _Depth, skipped: list[dict[str, Any]]
) -> pd.DataFrame:
    """Attention cut from role to role, of prompts that need no partner."""
    from latentkt.internals import knockout
    from latentkt.internals.attention_cuts import EDGES

    runs = list(runs_of(context, cells, depth.whiches, "gradients", skipped))
    return knockout(engine, runs, edges=depth.cuts or EDGES, **METRIC) if runs else nothing()


def edges(context: Context, cells: Cells) -> Tables:
    """Edge attribution; the largest edges are kept, and some of them run exactly."""
    from latentkt.internals import Choice, edge_attribution

    skipped: list[dict[str, Any]] = []
    pairs, depth = _pairs(context, cells, "edges", skipped)
    choice = Choice(depth.verified[2], 0, seed=context.options.seed)
    table = edge_attribution(context.handle, pairs, choice=choice, keep=KEPT_EDGES, **METRIC) if pairs else nothing()
    return {"edges": table, "edges_skipped": skipped_table(skipped)}
