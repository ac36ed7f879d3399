"""Does a model abstain because the concept does not exist, or on everything? And does it treat rare concepts alike?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from latentkt.phantom.analysis.frame import CONVENTIONS, counted, percent
from latentkt.phantom.analysis.rates import EVERY

__all__ = ["abstention_by_cell", "correlations", "difference_of_shares", "selectivity", "williams_test"]

REAL = ("common", "rare", "unattested")
BOOTSTRAP_SETTINGS = 5
"""Fewest settings of which a bootstrap over settings says anything."""


def selectivity(frame: pd.DataFrame) -> pd.DataFrame:
    """Abstention on concepts that do not exist, held against real ones (Section 6.1).

    Args:
        frame: See `judged_frame`.

    Returns:
        One row a setting, kind (and `all`) and convention: `phantom_pct`, `common_pct`, `rare_pct`, `unattested_pct`
        (share that abstains, with intervals and `n_…`), and the differences `selectivity` (non-existent − common) and
        `against_rare` (non-existent − rare) in percentage points, with intervals (see `difference_of_shares`). NaN
        where a setting was not asked about such concepts.
    """
    rows = []
    for convention in CONVENTIONS:
        replies = counted(frame, convention)
        replies = replies[replies["abstains"].notna()]
        for setting, mine in replies.groupby("setting", sort=False):
            for kind in (EVERY, *sorted(mine["concept_kind"].unique())):
                part = mine if kind == EVERY else mine[mine["concept_kind"] == kind]
                rows.append({"setting": setting, "concept_kind": kind, "convention": convention, **_selective(part)})
    return pd.DataFrame(rows)


def _selective(part: pd.DataFrame) -> dict[str, float]:
    row: dict[str, float] = {}
    for existence in ("phantom", *REAL):
        mine = part[part["existence"] == existence]
        row |= {
            f"n_{existence}": len(mine),
            **percent(mine["abstains"].to_numpy(float), mine["group"].tolist(), existence),
        }
    for name, other in (("selectivity", "common"), ("against_rare", "rare")):
        ends = [tuple(row[f"{who}_pct{end}"] for end in ("", "_low", "_high")) for who in ("phantom", other)]
        value, low, high = difference_of_shares(*ends)
        row |= {name: value, f"{name}_low": low, f"{name}_high": high}
    return row


def difference_of_shares(
    first: tuple[float, ...], second: tuple[float, ...]
) -> tuple[float, float, float]:  # fmt: skip
    """Difference of two independent shares, each with its interval, by Newcombe's (1998) method of squared distances.

    Example:
        >>> [round(x, 3) for x in difference_of_shares((0.7, 0.57, 0.804), (0.425, 0.311, 0.548))]
        [0.275, 0.096, 0.429]
    """
    (p, p_low, p_high), (q, q_low, q_high) = first, second
    low = p - q - math.sqrt((p - p_low) ** 2 + (q_high - q) ** 2)
    high = p - q + math.sqrt((p_high - p) ** 2 + (q - q_low) ** 2)
    return p - q, low, high


def abstention_by_cell(frame: pd.DataFrame, convention: str = "all") -> pd.DataFrame:
    """Share that abstains by setting, kind and property (Section 6.2's settings), one column an existence.

    Returns:
        `setting`, `concept_kind`, `property`, and `phantom`, `common`, `rare`, `unattested` (percent, NaN where there
        is none).
    """
    replies = counted(frame, convention)
    replies = replies[replies["abstains"].notna()]
    cells = replies.groupby(["setting", "concept_kind", "property", "existence"], sort=False)["abstains"].mean()
    table = (100 * cells).unstack("existence")
    for name in ("phantom", *REAL):
        if name not in table:
            table[name] = np.nan
    return table[["phantom", *REAL]].reset_index().rename_axis(columns=None)


def correlations(cells: pd.DataFrame, *, seed: int = 0, n_resamples: int = 1999) -> pd.DataFrame:
    """Pearson correlation over settings of abstention on non-existent concepts with that on rare and on common ones.

    The paper's 64 cells are 8 models: they are not independent, and its p values take them to be. Beside these stands
    the percentile bootstrap that draws whole models, from five models on.

    Args:
        cells: See `abstention_by_cell`; cells in which a column is NaN are left out of that correlation.
        seed: Of the bootstrap.
        n_resamples: Bootstrap resamples.

    Returns:
        One row a pair: `with` (rare, common, unattested), `r`, `p` (cells as independent), `cells`, `settings`,
        `r_low`, `r_high` (over settings), `reason` where there is no r; and in a row `rare − common` the difference of
        the two with Williams's test for correlations that share a variable.
    """
    rng = np.random.default_rng(seed)
    rows = [_correlation(cells, other, rng, n_resamples) for other in ("rare", "common", "unattested")]
    rows.append(_difference(cells, rng, n_resamples))
    return pd.DataFrame(rows)


def _correlation(cells: pd.DataFrame, other: str, rng: np.random.Generator, n_resamples: int) -> dict[str, Any]:
    from scipy.stats import pearsonr

    mine = cells[["setting", "phantom", other]].dropna()
    about = {"with": other, "cells": len(mine), "settings": int(mine["setting"].nunique())}
    x, y = mine["phantom"].to_numpy(), mine[other].to_numpy()
    reason = _no_correlation(x, y)
    if reason:
        return {**about, "r": math.nan, "p": math.nan, "r_low": math.nan, "r_high": math.nan, "reason": reason}
    found = pearsonr(x, y)
    low, high = _by_setting(mine, rng, n_resamples, lambda rows: _r(rows, "phantom", other))
    return {**about, "r": float(found.statistic), "p": float(found.pvalue), "r_low": low, "r_high": high, "reason": ""}


def _no_correlation(x: np.ndarray, y: np.ndarray) -> str:
    """Why there is no correlation to speak of; empty where there is one."""
    if len(x) < 3:
        return "fewer than three cells"
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return "one of the two does not vary"
    without = [np.delete(side, at) for side in (x, y) for at in range(len(x))]
    return "a single cell makes all the difference" if any(np.ptp(rest) == 0 for rest in without) else ""


def _difference(cells: pd.DataFrame, rng: np.random.Generator, n_resamples: int) -> dict[str, Any]:
    mine = cells[["setting", "phantom", "rare", "common"]].dropna()
    about = {"with": "rare − common", "cells": len(mine), "settings": int(mine["setting"].nunique())}
    first, *others = (mine[name].to_numpy() for name in ("phantom", "rare", "common"))
    reasons = [_no_correlation(first, other) for other in others] if len(mine) > 3 else ["fewer than four cells"]
    if any(reasons):
        reason = next(filter(None, reasons))
        return {**about, "r": math.nan, "p": math.nan, "r_low": math.nan, "r_high": math.nan, "reason": reason}
    r_rare, r_common, between = (
        _r(mine, *pair) for pair in (("phantom", "rare"), ("phantom", "common"), ("rare", "common"))
    )
    _, p = williams_test(r_rare, r_common, between, len(mine))
    low, high = _by_setting(
        mine, rng, n_resamples, lambda rows: _r(rows, "phantom", "rare") - _r(rows, "phantom", "common")
    )
    return {**about, "r": r_rare - r_common, "p": p, "r_low": low, "r_high": high, "reason": ""}


def _r(rows: pd.DataFrame, x: str, y: str) -> float:
    first, second = rows[x].to_numpy(), rows[y].to_numpy()
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return math.nan
    return float(np.corrcoef(first, second)[0, 1])


def _by_setting(rows: pd.DataFrame, rng: np.random.Generator, n_resamples: int, statistic: Any) -> tuple[float, float]:
    """Percentile interval over settings drawn with replacement; NaN under five settings."""
    parts = [mine for _, mine in rows.groupby("setting", sort=False)]
    if len(parts) < BOOTSTRAP_SETTINGS:
        return math.nan, math.nan
    drawn = [
        statistic(pd.concat([parts[at] for at in rng.integers(len(parts), size=len(parts))]))
        for _ in range(n_resamples)
    ]
    return tuple(float(end) for end in np.nanquantile(drawn, [0.025, 0.975]))  # type: ignore[return-value]


def williams_test(r12: float, r13: float, r23: float, n: int) -> tuple[float, float]:
    """Williams's (1959) t for two correlations that share a variable, as Steiger (1980) recommends it.

    Args:
        r12: Correlation of the shared variable with the first other.
        r13: The same with the second.
        r23: Correlation of the two others.
        n: Cases.

    Returns:
        t with n − 3 degrees of freedom, and its two-sided p value, for H0: r12 = r13; NaN where they are perfect.

    Example:
        >>> [round(x, 2) for x in williams_test(0.4, 0.5, 0.1, 103)]
        [-0.89, 0.37]
    """
    from scipy.stats import t as student_t

    determinant = 1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23
    mean = (r12 + r13) / 2
    below = 2 * determinant * (n - 1) / (n - 3) + mean**2 * (1 - r23) ** 3
    if below < 1e-12:  # a perfect correlation among the three: no spread to test with
        return math.nan, math.nan
    t = (r12 - r13) * math.sqrt((n - 1) * (1 + r23) / below)
    return t, float(2 * student_t.sf(abs(t), n - 3))
