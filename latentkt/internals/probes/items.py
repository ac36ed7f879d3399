"""Probes of trap items, written to a run directory: what `latentkt probe` calls."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentkt.errors import InputError
from latentkt.internals.probes.folds import SPLITS
from latentkt.internals.probes.rows import ROW_COLUMNS, facts_known, probe_rows
from latentkt.internals.probes.sweep import sweep_probes
from latentkt.internals.probes.targets import TARGETS
from latentkt.internals.working import Bench, Job, Tables, work_items

if TYPE_CHECKING:
    from latentkt.models import ModelHandle
    from latentkt.results import RunWriter
    from latentkt.trapqa import TrapItem

__all__ = ["probe_items"]

ROLES = ("shortcut", "constraint", "last")


def probe_items(
    model: str | ModelHandle,
    out: str | os.PathLike[str],
    *,
    targets: Sequence[str] = tuple(TARGETS),
    roles: Sequence[str] = ROLES,
    kinds: Sequence[str] = ("logistic",),
    splits: Sequence[str] = SPLITS,
    layer_step: int = 1,
    max_folds: int = 5,
    random_layers: int | None = None,
    seed: int = 0,
    **options: Any,
) -> Path:
    """Probe the residual stream of items and controls for named targets.

    Args:
        model: As in `lens_items`.
        out: As in `lens_items`.
        targets: Names of `TARGETS`.
        roles: Where the stream is read: `last` (the headline), or the mean over the tokens of a role, special tokens
            left out.
        kinds: `logistic`, `ridge`, `lda`, `mean_difference`.
        splits: `generalisation`, `selectivity`.
        layer_step: Probe every so many layers.
        max_folds: Number of folds; fewer where there are fewer families.
        random_layers: Layers of the random model that is the baseline; 0 for none.
        seed: Seed of folds, control labels and random weights.
        **options: As in `lens_items`.

    Returns:
        The run directory with the tables `activations` (see `probe_rows`), `probe` (by fold) and `probe_layers` (by
        layer; see `probe_table`), `facts_known`, `activations_skipped` (prompts) and `probe_skipped` (targets). Scores
        are shares of held-out rows.

    Raises:
        LatentKTError: As in `lens_items`; an unknown target, kind or split.

    Example:
        >>> from latentkt.internals import probe_items  # doctest: +SKIP
        >>> probe_items("smollm2", "runs/probe", targets=["answer_side"])  # doctest: +SKIP
    """
    asked = _checked(targets, kinds, splits)
    for name, value, least in (("layer_step", layer_step, 1), ("max_folds", max_folds, 2)):
        if value < least:
            raise InputError(f"{name} of a probe", expected=f"{least} or more", found=value)

    def measure(bench: Bench, item: TrapItem, order: str) -> Tables:
        runs = list(bench.runs(item, order))
        rows = probe_rows(bench.engine, runs, roles=roles, random_layers=random_layers, seed=seed)
        for run in runs:
            here = rows[rows["which"] == run.meta["which"]]["role"]
            for role in set(roles) - set(here):
                bench.skip(item, str(run.meta["which"]), order, f"no token of role {role!r} that is not special")
        return {"activations": rows}

    def closing(run: RunWriter, bench: Bench) -> None:
        import pandas as pd

        known = facts_known(bench.engine.handle, bench.items, **bench.options) if "fact_known" in targets else {}
        rows = run.read("activations")
        found = sweep_probes(rows, known=known, layer_step=layer_step, max_folds=max_folds, seed=seed, **asked)
        run.save("facts_known", pd.DataFrame({"item": list(known), "known": list(known.values())}))
        run.save("probe", found.folds)
        run.save("probe_layers", found.layers)
        asks = bench.items if "fact_known" in targets else []
        unknown = [item.id for item in asks if item.id not in known]
        why = "without both probe questions, or the model refuses them"
        left_out = [{"item": name, "which": "fact_known", "order": "", "reason": why} for name in unknown]
        reasons = pd.DataFrame([*found.skipped, *left_out], columns=["item", "which", "order", "reason"])
        run.save("probe_skipped", reasons.astype("str"))

    job = Job(model, out, **options)
    folds = {"layer_step": layer_step, "max_folds": max_folds, "random_layers": random_layers}
    said: dict[str, Any] = {"roles": list(roles), "seed": seed, **folds, **asked}
    return work_items(job, {"activations": ROW_COLUMNS}, measure, closing=closing, **said)


def _checked(targets: Sequence[str], kinds: Sequence[str], splits: Sequence[str]) -> dict[str, list[str]]:
    """The choices as lists, after a refusal of names that do not exist."""
    from latentkt.internals.probes.kinds import kind_named

    for kind in kinds:
        kind_named(kind)
    for name, given, allowed in (("targets", targets, TARGETS), ("splits", splits, SPLITS)):
        if not given or not set(given) <= set(allowed):
            raise InputError(f"{name} of a probe", expected=", ".join(allowed), found=list(given))
    return {"targets": list(targets), "kinds": list(kinds), "splits": list(splits)}
