"""Probe every target, role and layer of stored rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from latentkt.errors import InputError, LatentKTError
from latentkt.internals.probes.folds import SPLITS, joined_groups
from latentkt.internals.probes.table import ProbeTables, probe_table
from latentkt.internals.probes.targets import TARGETS, labels_of

if TYPE_CHECKING:
    import pandas as pd
    from jaxtyping import Float

__all__ = ["SweptProbes", "stacked", "sweep_probes"]


@dataclass(frozen=True, eq=False)
class SweptProbes:
    """What `sweep_probes` found.

    Attributes:
        folds: See `ProbeTables.folds`.
        layers: See `ProbeTables.layers`.
        skipped: What was not probed, and why: `item` (`all`), `which` (target), `order` (role), `reason`.
    """

    folds: pd.DataFrame
    layers: pd.DataFrame
    skipped: list[dict[str, str]] = field(default_factory=list)


def sweep_probes(
    rows: pd.DataFrame,
    *,
    targets: Sequence[str] = tuple(TARGETS),
    known: Mapping[str, bool] | None = None,
    kinds: Mapping[str, Sequence[str]] | Sequence[str] = ("logistic",),
    splits: Sequence[str] = SPLITS,
    layer_step: int = 1,
    max_folds: int = 5,
    seed: int = 0,
) -> SweptProbes:
    """Probe named targets from the rows of `probe_rows`, role by role and layer by layer.

    Families are left out of training under the split `generalisation`; for `fact_known` families that share a
    candidate are left out together. The entity of the control task is the item.

    Args:
        rows: See `probe_rows`.
        targets: Names of `TARGETS`.
        known: By item, whether its facts are known (`facts_known`); needed for `fact_known`.
        kinds: Kinds of probe; or kinds by target, `""` for the rest.
        splits: See `probe_table`.
        layer_step: Probe every so many layers, always the embedding and the last.
        max_folds: See `probe_table`.
        seed: Seed of folds and control labels.
    """
    import pandas as pd

    by_target = kinds if isinstance(kinds, Mapping) else {"": kinds}
    rows = rows.assign(fact_known=rows["item"].map(known or {}).astype("float64"))
    options: dict[str, Any] = {"splits": splits, "max_folds": max_folds, "seed": seed}
    found, skipped = [], []
    for role, of_role in rows.groupby("role", sort=True):
        for target in targets:
            chosen = by_target.get(target, by_target.get("", ("logistic",)))
            try:
                found.append(_probed(of_role, target, str(role), layer_step, {**options, "kinds": chosen}))
            except LatentKTError as error:
                reason = f"{error.what} (found: {error.found})" if error.found is not None else error.what
                skipped.append({"item": "all", "which": target, "order": str(role), "reason": reason})
    tables = [
        pd.concat([getattr(one, name) for one in found], ignore_index=True) if found else pd.DataFrame()
        for name in ("folds", "layers")
    ]
    return SweptProbes(tables[0], tables[1], skipped)


def _probed(rows: pd.DataFrame, target: str, role: str, step: int, options: dict[str, Any]) -> ProbeTables:
    labels = labels_of(rows, target)
    rows, labels = rows[~np.isnan(labels)], labels[~np.isnan(labels)].astype(int)
    if rows.empty:
        raise InputError(f"probe {target!r} has no rows", expected=TARGETS[target][0], found="no prompt with a label")
    groups = rows["family"].tolist()
    if target == "fact_known":
        people = [rows[side].tolist() for side in ("correct", "shortcut")]
        groups = joined_groups(groups * 2, people[0] + people[1])[: len(rows)]
    features = stacked(rows, "residual")
    entries = sorted({*range(0, features.shape[1], step), features.shape[1] - 1})
    random = stacked(rows, "random_init", entries=features.shape[1])
    return probe_table(
        features[:, entries],
        labels,
        groups,
        entities=rows["item"].tolist(),
        prompts=rows["prompt_ids"].tolist(),
        random_init=random[:, entries] if np.isfinite(random).any() else None,
        layers=[entry - 1 for entry in entries],
        target=target,
        role=role,
        **options,
    )


def stacked(rows: pd.DataFrame, column: str, *, entries: int = 1) -> Float[np.ndarray, "row entry d_model"]:
    """The flat lists of a column as one array, NaN where a list is shorter than `entries`."""
    lists = [np.asarray(flat, dtype=np.float32) for flat in rows[column]]
    widths = rows["d_model"].tolist()
    longest = max([entries, *(len(flat) // width for flat, width in zip(lists, widths, strict=True))])
    stacked = np.full((len(lists), longest, widths[0]), np.nan, dtype=np.float32)
    for row, flat in enumerate(lists):
        stacked[row, : len(flat) // widths[0]] = flat.reshape(-1, widths[0])
    return stacked
