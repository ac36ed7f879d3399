"""Predictions held against exact patching: the largest of them, and a sample stratified by predicted decile.

The largest say whether what was found is there; the sample says how well the predictions rank all cells and whether
large effects were missed. A prediction is good for ranking; its size is not to be trusted, and the slope says by how
much.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latentkt.errors import DataError, InputError
from latentkt.stats import clopper_pearson

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

__all__ = ["CHECK_COLUMNS", "Choice", "choose", "verification"]

DECILES = 10
_ROUNDING = 1e-4  # nats: what engines may differ by
_NEEDED = ("pair", "method", "predicted", "exact", "is_top", "is_sampled")
CHECK_COLUMNS = (
    "n_cells", "n_top", "n_sampled", "rank_correlation", "top_rank_correlation", "slope", "miss_threshold", "misses",
    "missed_share", "missed_share_high", "top_exact_share",
)  # fmt: skip
"""Columns of `verification` behind `pair`, its meta and `method`."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which predictions are run.

    Attributes:
        top: So many of the largest, by size.
        sample: So many drawn from all, the same number from each tenth of the predicted sizes.
        seed: Seed of the draw; the pair's name goes into it.
    """

    top: int = 10
    sample: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        if self.top < 0 or self.sample < 0 or self.sample % DECILES:
            raise InputError(
                "cells to be verified",
                expected=f"top 0 or more, and a sample that is a multiple of {DECILES}",
                found=f"{self.top} and {self.sample}",
            )


def choose(
    predicted: Sequence[float] | NDArray[np.float64], choice: Choice, name: str
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which predictions are among the largest, and which are in the sample; NaN is neither.

    Args:
        predicted: Predictions in nats.
        choice: How many.
        name: The pair, so that other pairs draw otherwise.
    """
    size = np.abs(np.asarray(predicted, dtype=float))
    known = np.flatnonzero(~np.isnan(size))
    order = known[np.argsort(-size[known], kind="stable")]
    top, sampled = np.zeros(len(size), dtype=bool), np.zeros(len(size), dtype=bool)
    top[order[: choice.top]] = True
    digest = hashlib.sha256(f"{choice.seed}:{name}".encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:8], "big"))
    for stratum in np.array_split(order, DECILES):
        drawn = min(choice.sample // DECILES, len(stratum))
        sampled[rng.choice(stratum, size=drawn, replace=False)] = True
    return top, sampled


def verification(table: pd.DataFrame) -> pd.DataFrame:
    """How far predictions agree with exact patching, pair by pair.

    Args:
        table: From `atp` or `edge_attribution`: one row a cell.

    Returns:
        One row a pair and method: `pair` and its meta, `method`, `n_cells` (with a prediction other than an exact 0),
        `n_top`, `n_sampled`, `rank_correlation` (Spearman's, in the sample), `top_rank_correlation` (among the
        largest), `slope` (of exact on predicted through 0, in the sample: 1 where sizes are right), `miss_threshold`
        (half the median exact size of the largest, nats), `misses` (cells of the sample outside the largest whose
        exact size reaches the threshold), `missed_share` (of the sample outside the largest) with the upper end of
        its exact 95 % interval `missed_share_high`, and `top_exact_share` (of the largest, those whose exact size
        reaches the threshold). NaN where fewer than three cells were run.

    Raises:
        DataError: A column is missing.

    Example:
        >>> import pandas as pd
        >>> rows = {"pair": "a", "method": "atp", "predicted": [3.0, 1.0, 0.5, -2.0], "exact": [2.0, 1.5, 0.4, -2.5],
        ...     "is_top": [True, False, False, True], "is_sampled": [True] * 4}
        >>> found = verification(pd.DataFrame(rows)).iloc[0]
        >>> int(found["misses"]), round(float(found["slope"]), 2)
        (1, 0.89)
    """
    import pandas as pd

    missing = [column for column in _NEEDED if column not in table.columns]
    if missing:
        raise DataError("table of predictions", expected=", ".join(_NEEDED), found=", ".join(map(str, table.columns)))
    meta = [name for name in ("item", "kind", "family", "order", "direction") if name in table.columns]
    keys = ["pair", *(name for name in ("order", "direction") if name in table.columns), "method"]
    rows = []
    for _, cells in table.groupby(keys, sort=False, observed=True, dropna=False):
        fixed = {name: cells[name].iloc[0] for name in ("pair", *meta, "method")}
        rows.append({**fixed, **_agreement(cells)})
    return pd.DataFrame(rows)


def _agreement(cells: pd.DataFrame) -> dict[str, object]:
    live = cells[cells["predicted"].notna() & ~cells.get("unchanged", cells["is_top"] & False).astype(bool)]
    top, sample = live[live["is_top"]], live[live["is_sampled"]]
    predicted, exact = (sample[name].to_numpy(dtype=float) for name in ("predicted", "exact"))
    threshold = max(0.5 * float(top["exact"].abs().median()), _ROUNDING) if len(top) else np.nan
    outside = sample[~sample["is_top"]]
    misses = int((outside["exact"].abs() >= threshold).sum())
    share = clopper_pearson(misses, len(outside)) if len(outside) else None
    squares = float((predicted**2).sum())
    return {
        "n_cells": len(live),
        "n_top": len(top),
        "n_sampled": len(sample),
        "rank_correlation": _spearman(predicted, exact),
        "top_rank_correlation": _spearman(top["predicted"].to_numpy(dtype=float), top["exact"].to_numpy(dtype=float)),
        "slope": float((predicted * exact).sum()) / squares if squares and len(sample) > 2 else np.nan,
        "miss_threshold": threshold,
        "misses": misses,
        "missed_share": share.value if share else np.nan,
        "missed_share_high": share.high if share else np.nan,
        "top_exact_share": float((top["exact"].abs() >= threshold).mean()) if len(top) else np.nan,
    }


def _spearman(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    from scipy.stats import spearmanr

    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    return float(spearmanr(x, y).statistic)
