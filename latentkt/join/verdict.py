"""Does the prior explain these items? The line, its rivals, keys that occur together, and the sentence."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latentkt.errors import InputError
from latentkt.join.slope import Line, errors_in_both, resamples
from latentkt.stats import Interval

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

__all__ = ["RIVALS", "Verdict", "join_dominance", "prior_verdict"]

RIVALS = ("log_prior_ratio", "log_key_ratio", "answer_length", "log_key_pair")
REPLICATES = 1000
OTHER_CORPUS = (
    "The corpus counted here is not the model's training data: nothing here tests that training. Only pairs such as "
    "OLMo with Dolma or Pythia with the Pile do."
)


def join_dominance(priors: pd.DataFrame, dominance: pd.DataFrame) -> pd.DataFrame:
    """Priors and measured dominance side by side, one row an item.

    Args:
        priors: From `item_priors`.
        dominance: Columns item, dominance (log P(y_s) − log P(y*), nats), dominance_se (NaN: one measurement; taken as
            exact), and optionally family (the cluster) and answer_length (tokens of y_s less those of y*).

    Returns:
        The priors with those columns, and ``log_key_ratio``, ``log_key_pair`` (log of 1 + units with both keys). Items
        without a measurement are kept, with NaN and a reason in ``why_not``.

    Raises:
        InputError: A column is missing, or an item stands twice.
    """
    missing = {"item", "dominance"} - set(dominance.columns)
    if missing or dominance["item"].duplicated().any():
        raise InputError(
            "dominance cannot be joined", expected="one row an item: item, dominance", found=list(dominance)
        )
    table = priors.merge(dominance, on="item", how="left")
    for column in ("dominance_se", "family", "answer_length"):
        if column not in table:
            table[column] = np.nan
    table["log_key_ratio"] = table["key_part"]
    table["log_key_pair"] = np.log1p(table["key_pair"])
    unmeasured = table["dominance"].isna() & table["plotted"].astype(bool)
    table.loc[unmeasured, "why_not"] = "not measured"
    table.loc[unmeasured, "plotted"] = False
    return table


@dataclass(frozen=True)
class Verdict:
    """What the join says.

    Attributes:
        line: Dominance on log prior ratio, errors in both; None with fewer than 4 items.
        rivals: Name -> Pearson correlation with dominance; NaN where it cannot be computed.
        partial: Name -> coefficient of the rival beside the log prior ratio, both standardised; NaN where impossible.
        n: Items plotted.
        listed: Items left out -> why.
        sentence: Whether the prior explains these items.
        caveat: What a prior of this corpus can say about the model; empty if the corpus is its training data.
    """

    line: Line | None
    rivals: Mapping[str, Interval]
    partial: Mapping[str, Interval]
    n: int
    listed: Mapping[str, str]
    sentence: str
    caveat: str


def prior_verdict(table: pd.DataFrame, *, training_corpus: bool = False, level: float = 0.95, seed: int = 0) -> Verdict:
    """Fit the line and say whether the prior explains the items.

    Args:
        table: From `join_dominance`.
        training_corpus: Whether the counts come from the very data that the model was trained on.
        level: Nominal coverage of the intervals; those of correlations and coefficients are percentiles of 1,000
            resamples of the families (of the items, where families are not named).
        seed: Seed of the bootstrap.
    """
    shown = table[table["plotted"].astype(bool)]
    listed = {str(row.item): str(row.why_not) for row in table[~table["plotted"].astype(bool)].itertuples()}
    line = None
    if len(shown) >= 4 and np.ptp(shown["log_prior_ratio"]) > 0:
        family = shown["family"].to_numpy() if shown["family"].notna().all() else None
        columns = [shown[name].to_numpy(float) for name in ("log_prior_ratio", "dominance", "se")]
        y_error = shown["dominance_se"].fillna(0.0).to_numpy(float)
        line = errors_in_both(
            columns[0], columns[1], columns[2], y_error, cluster=family, level=level, replicates=REPLICATES, seed=seed
        )
    rivals = {name: _resampled(shown, [name], _correlation, level, seed) for name in RIVALS}
    partial = {name: _resampled(shown, [RIVALS[0], name], _coefficient, level, seed) for name in RIVALS[1:]}
    caveat = "" if training_corpus else OTHER_CORPUS
    return Verdict(line, rivals, partial, len(shown), listed, _sentence(line, rivals, len(shown)), caveat)


def _resampled(
    table: pd.DataFrame,
    columns: list[str],
    statistic: Callable[[NDArray[np.float64]], float],
    level: float,
    seed: int,
) -> Interval:
    """A statistic of some columns and dominance, over resamples of the families; NaN ends where most give nothing."""
    rows = table[[*columns, "dominance"]].astype(float).dropna()
    values, family = rows.to_numpy(), table.loc[rows.index, "family"]
    named = len(rows) > 0 and bool(family.notna().all())
    labels = np.unique(family.astype(str), return_inverse=True)[1] if named else np.arange(len(rows))
    value, low, high = statistic(values), math.nan, math.nan
    if not math.isnan(value):
        draws = [statistic(values[chosen]) for chosen in resamples(labels, REPLICATES, np.random.default_rng(seed))]
        if np.isfinite(draws).mean() > 0.5:
            low, high = (float(end) for end in np.nanpercentile(draws, [50 * (1 - level), 50 * (1 + level)]))
    clusters = int(labels.max()) + 1 if named else None
    return Interval(value, low, high, level, "bootstrap of families", len(rows), clusters)


def _correlation(values: NDArray[np.float64]) -> float:
    """Pearson's, of two columns; NaN under 4 rows or where one does not vary."""
    if len(values) < 4 or (np.ptp(values, axis=0) == 0).any():
        return math.nan
    return float(np.corrcoef(values[:, 0], values[:, 1])[0, 1])


def _coefficient(values: NDArray[np.float64]) -> float:
    """Of the second column beside the first, for the third; all columns in units of their standard deviation."""
    if len(values) < 6 or (np.ptp(values, axis=0) == 0).any():
        return math.nan
    scaled = (values - values.mean(axis=0)) / values.std(axis=0)
    solution, _, rank, _ = np.linalg.lstsq(scaled[:, :2], scaled[:, 2], rcond=None)
    return float(solution[1]) if rank == 2 else math.nan


def _sentence(line: Line | None, rivals: Mapping[str, Interval], n: int) -> str:
    if line is None:
        return f"Too few items with a measured prior ({n}): nothing can be said."
    ends = f"slope {line.slope:+.2f} [{line.slope_low:+.2f}, {line.slope_high:+.2f}] on {n} items"
    if line.slope_low <= 0 <= line.slope_high:
        return f"The log prior ratio does not explain these items ({ends}; the theory predicts +1)."
    if line.slope_high < 0:
        return f"Dominance falls with the log prior ratio, against the theory ({ends})."
    own = abs(rivals["log_prior_ratio"].value)
    better = [name for name in RIVALS[1:] if abs(rivals[name].value) > own]
    beside = f"; but {', '.join(better)} correlates more strongly" if better else ""
    meets = (
        "the predicted +1 lies inside" if line.slope_low <= 1 <= line.slope_high else "the predicted +1 lies outside"
    )
    return f"Dominance rises with the log prior ratio ({ends}; {meets}){beside}."
