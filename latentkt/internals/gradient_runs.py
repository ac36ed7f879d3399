"""Gradient attribution, knockout and faithfulness of trap items, written to a run directory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentkt.internals.attention_cuts import EDGES, KNOCKOUT_COLUMNS, knockout
from latentkt.internals.attribution_patching import ATP_COLUMNS, atp
from latentkt.internals.edges import EDGE_COLUMNS, edge_attribution
from latentkt.internals.faithful import CURVES, FAITHFULNESS_COLUMNS, SHARES, check_options, faithfulness
from latentkt.internals.linear import MIN_STEPS, check_method
from latentkt.internals.pairs import PAIR_COLUMNS, RUN_COLUMNS
from latentkt.internals.patching import ROLES
from latentkt.internals.verifying import Choice, verification
from latentkt.internals.working import Bench, Job, Tables, layers_of, work_items

if TYPE_CHECKING:
    from latentkt.models import ModelHandle
    from latentkt.results import RunWriter
    from latentkt.trapqa import TrapItem

__all__ = ["GRADIENT_COLUMNS", "atp_items", "faithfulness_items", "knockout_items"]

GRADIENT_COLUMNS: dict[str, tuple[str, ...]] = {
    "atp": ("pair", *PAIR_COLUMNS, *ATP_COLUMNS),
    "edges": ("pair", *PAIR_COLUMNS, *EDGE_COLUMNS),
    "knockout": (*RUN_COLUMNS, *KNOCKOUT_COLUMNS),
    "faithfulness": ("pair", *PAIR_COLUMNS, *FAITHFULNESS_COLUMNS),
}


def atp_items(
    model: str | ModelHandle,
    out: str | os.PathLike[str],
    *,
    sites: Sequence[str] = ("z", "mlp_out"),
    roles: Sequence[str] = ROLES,
    positions: bool = False,
    layers: Sequence[int] | None = None,
    method: str = "atp",
    steps: int = MIN_STEPS,
    qk_fix: bool = False,
    edges: bool = False,
    keep: int = 200,
    top: int = 10,
    sample: int = 20,
    metric: str = "log_odds",
    **options: Any,
) -> Path:
    """Attribution patching of items with their controls, both ways, and exact patches of some of the cells.

    Args:
        model: As in `lens_items`.
        out: As in `lens_items`.
        sites: Sites; z, q, k and v head by head.
        roles: Roles whose tokens are taken together.
        positions: Every prompt token on its own instead.
        layers: Layers; default all.
        method: `atp` or `ig`; edges get `eap` or `eap_ig`.
        steps: Steps of `ig`.
        qk_fix: As in `atp`.
        edges: Also attribute edges.
        keep: Rows of edges that are kept a pair.
        top: So many of the largest predictions of a pair are run.
        sample: So many drawn over the tenths of predicted size are run.
        metric: `log_odds` or `first_token`.
        **options: As in `lens_items`.

    Returns:
        The run directory with the tables `atp` (see `atp`), `edges` (see `edge_attribution`) where asked for,
        `atp_check` (see `verification`; method names tell nodes and edges apart) and `atp_skipped`.

    Raises:
        LatentKTError: As in `lens_items`; unknown sites, methods or steps.

    Example:
        >>> from latentkt.internals import atp_items  # doctest: +SKIP
        >>> atp_items("smollm2", "runs/atp", limit=2, edges=True)  # doctest: +SKIP
    """
    import pandas as pd

    check_method(method, steps)
    choice = Choice(top=top, sample=sample)
    shared: dict[str, Any] = {"steps": steps, "metric": metric, "choice": choice}

    def measure(bench: Bench, item: TrapItem, order: str) -> Tables:
        pairs = bench.pairs(item, order)
        where = "positions" if positions else tuple(roles)
        nodes: dict[str, Any] = {"sites": sites, "where": where, "layers": layers, "heads": True, "qk_fix": qk_fix}
        tables = {"atp": atp(bench.engine, pairs, method=method, **nodes, **shared)}
        if edges:
            edge_method = {"atp": "eap", "ig": "eap_ig"}[method]
            tables["edges"] = edge_attribution(bench.engine, pairs, method=edge_method, keep=keep, **shared)
        return tables

    names = ("atp", "edges") if edges else ("atp",)
    columns = {name: GRADIENT_COLUMNS[name] for name in names}

    def check(run: RunWriter, bench: Bench) -> None:
        found = [verification(table) for table in map(run.read, names) if len(table)]
        if found:
            run.save("atp_check", pd.concat(found, ignore_index=True))

    said: dict[str, Any] = {
        "sites": list(sites),
        "positions": positions,
        "roles": () if positions else tuple(roles),
        "layers": layers_of(layers),
        "method": method,
        "steps": steps,
        "qk_fix": qk_fix,
        "edges": edges,
        "keep": keep,
        "verified": f"top {top}, sample {sample}",
        "metric": metric,
    }
    return work_items(Job(model, out, **options), columns, measure, closing=check, **said)


def knockout_items(
    model: str | ModelHandle,
    out: str | os.PathLike[str],
    *,
    edges: Sequence[tuple[str, str]] = EDGES,
    layers: Sequence[int] | None = None,
    window: int = 1,
    heads: bool = False,
    sinks: bool = False,
    metric: str = "log_odds",
    **options: Any,
) -> Path:
    """Attention knockout of items and controls.

    Args:
        model: As in `lens_items`.
        out: As in `lens_items`.
        edges: (read role, reading role).
        layers: First layer of each window; default all.
        window: Consecutive layers that are cut at once.
        heads: Head by head.
        sinks: Also cut sinks.
        metric: `log_odds` or `first_token`.
        **options: As in `lens_items`.

    Returns:
        The run directory with the tables `knockout` (see `knockout`) and `knockout_skipped`.

    Raises:
        LatentKTError: As in `lens_items`.

    Example:
        >>> from latentkt.internals import knockout_items  # doctest: +SKIP
        >>> knockout_items("smollm2", "runs/knockout", edges=[("constraint", "last")])  # doctest: +SKIP
    """
    fixed: dict[str, Any] = {"edges": tuple(edges), "layers": layers, "window": window, "heads": heads}

    def measure(bench: Bench, item: TrapItem, order: str) -> Tables:
        return {"knockout": knockout(bench.engine, bench.runs(item, order), sinks=sinks, metric=metric, **fixed)}

    said: dict[str, Any] = {**fixed, "layers": layers_of(layers), "sinks": sinks, "metric": metric}
    said["roles"] = tuple(dict.fromkeys(role for edge in edges for role in edge))
    columns = {"knockout": GRADIENT_COLUMNS["knockout"]}
    return work_items(Job(model, out, **options), columns, measure, **said)


def faithfulness_items(
    model: str | ModelHandle,
    out: str | os.PathLike[str],
    *,
    of: str = "nodes",
    rankings: Sequence[str] | None = None,
    shares: Sequence[float] = SHARES,
    curves: Sequence[str] = CURVES,
    steps: int = MIN_STEPS,
    metric: str = "log_odds",
    **options: Any,
) -> Path:
    """Faithfulness curves of items with their controls, both ways.

    Args:
        model: As in `lens_items`.
        out: As in `lens_items`.
        of: `nodes` or `edges`.
        rankings: As in `faithfulness`.
        shares: As in `faithfulness`.
        curves: `keep` and/or `remove`.
        steps: Steps of `ig` and `eap_ig`.
        metric: `log_odds` or `first_token`.
        **options: As in `lens_items`.

    Returns:
        The run directory with the tables `faithfulness` (see `faithfulness`) and `faithfulness_skipped`.

    Raises:
        LatentKTError: As in `lens_items`.

    Example:
        >>> from latentkt.internals import faithfulness_items  # doctest: +SKIP
        >>> faithfulness_items("smollm2", "runs/faithfulness", limit=2)  # doctest: +SKIP
    """
    check_options(of, rankings or (), shares, curves)
    fixed: dict[str, Any] = {"of": of, "rankings": rankings, "shares": shares, "curves": curves, "steps": steps}

    def measure(bench: Bench, item: TrapItem, order: str) -> Tables:
        return {"faithfulness": faithfulness(bench.engine, bench.pairs(item, order), metric=metric, **fixed)}

    columns = {"faithfulness": GRADIENT_COLUMNS["faithfulness"]}
    return work_items(Job(model, out, **options), columns, measure, **fixed, metric=metric)
