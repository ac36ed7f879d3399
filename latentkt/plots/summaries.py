"""The numbers behind figures and sentences, each computed once, so that the picture and the words cannot disagree.

Rows of one item (option orders, polarities of the prompt) are averaged first: the unit is the item. Intervals are by
family (`latentkt.stats.cluster_interval`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from latentkt.plots.columns import require
from latentkt.stats import ClusterInterval, cluster_interval, wilson_ends

if TYPE_CHECKING:
    from collections.abc import Sequence

    from latentkt.stats import Interval

__all__ = ["first_option", "interval_of", "intervals", "item_minus_control", "items_of", "right_answers", "share_of"]


def interval_of(table: pd.DataFrame, value: str, *, rng: int = 0) -> ClusterInterval:
    """Mean of a column over items, with its interval by family.

    Args:
        table: Long table with `item`, `family` and the column.
        value: The column.
        rng: Seed, used from 20 families on.
    """
    units = table.groupby(["family", "item"], sort=True, observed=True)[value].mean().reset_index()
    return cluster_interval(units[value].to_numpy(dtype=float), units["family"].tolist(), rng=rng)


def share_of(table: pd.DataFrame, value: str, *, rng: int = 0) -> Interval:
    """Mean over items of a column of zeros and ones, with its interval by family, kept inside 0 to 1.

    Families that all have the same mean show no spread and would give an interval of no width. It is then Wilson's,
    each family counting as one trial.

    Example:
        >>> rows = pd.DataFrame({"item": list("abc"), "family": list("xyz"), "is_right": [1.0, 1.0, 1.0]})
        >>> f"{share_of(rows, 'is_right'):.0%}"
        '100 % [44, 100]'
    """
    found = interval_of(table, value, rng=rng).interval
    if not found.defined:
        return found
    if found.low == found.high and found.clusters is not None:
        same = wilson_ends(found.value, found.clusters, level=found.level)
        return replace(found, low=same[0], high=same[1], method="wilson, one trial a family")
    return replace(found, low=max(0.0, found.low), high=min(1.0, found.high))


def intervals(table: pd.DataFrame, value: str, by: Sequence[str], *, rng: int = 0) -> pd.DataFrame:
    """Mean of a column over items with its interval by family, for every combination of `by`.

    Args:
        table: Long table with `item`, `family`, the column and those of `by`.
        value: The column.
        by: What to keep apart, such as `["direction", "role", "layer"]`.
        rng: Seed, used from 20 families on.

    Returns:
        One row a combination, in sorted order: `by`, then the fields of `Interval`. Ends are NaN where only one family
        has the cell.
    """
    units = table.groupby([*by, "family", "item"], sort=True, observed=True)[value].mean().reset_index()
    rows = []
    for key, cell in units.groupby(list(by), sort=True, observed=True):
        both = cluster_interval(cell[value].to_numpy(dtype=float), cell["family"].tolist(), rng=rng)
        rows.append({**dict(zip(by, key, strict=True)), **both.interval.to_row()})
    return pd.DataFrame(rows)


def right_answers(answers: pd.DataFrame) -> pd.DataFrame:
    """The rows of `answers` that have a right answer, with the column `is_right`: whether the model prefers it.

    The model prefers the answer with the larger log-probability of the whole string. Rows without a right answer
    (neutral prompts, neutral controls) and rows whose log-odds are NaN are left out.

    Example:
        >>> table = pd.DataFrame({"item": ["a", "a"], "kind": ["action"] * 2, "family": ["f"] * 2,
        ...     "which": ["item", "control"], "order": ["correct_first"] * 2, "log_odds": [0.3, 0.2]})
        >>> right_answers(table)["is_right"].tolist()  # y* is preferred in both, and right in the item only
        [1.0, 0.0]
    """
    require(answers, "answers")
    by_prompt = answers["which"].map({"item": "correct", "control": "shortcut"})
    side = answers["right"] if "right" in answers.columns else by_prompt
    kept = answers[side.isin(["correct", "shortcut"]) & answers["log_odds"].notna()].copy()
    signed = np.where(side[kept.index] == "correct", 1.0, -1.0) * kept["log_odds"]
    kept["is_right"] = (signed > 0).astype(float)
    return kept


def item_minus_control(answers: pd.DataFrame) -> pd.DataFrame:
    """Log-odds of item and control side by side, one row an item; both are means over the option orders both have.

    Returns:
        `kind`, `family`, `item`, `log_odds_item`, `log_odds_control`, `difference` (nats).
    """
    require(answers, "answers")
    keys = ["kind", "family", "item", "order"]
    wide = answers[answers["which"].isin(["item", "control"])].pivot_table(
        index=keys, columns="which", values="log_odds", aggfunc="mean", observed=True
    )
    wide = wide.reindex(columns=["item", "control"]).dropna()
    wide.columns = ["log_odds_item", "log_odds_control"]
    means = wide.groupby(level=["kind", "family", "item"], observed=True).mean().reset_index()
    return means.assign(difference=means["log_odds_item"] - means["log_odds_control"])


def first_option(answers: pd.DataFrame) -> pd.DataFrame:
    """What being listed first is worth, one row an item and prompt.

    Returns:
        `kind`, `family`, `item`, `which`, `bias`: half the difference of `log_odds` between the two option orders, in
        nats, positive where the first option gains. Items that lack an order are left out.
    """
    require(answers, "answers")
    wide = answers.pivot_table(
        index=["kind", "family", "item", "which"], columns="order", values="log_odds", aggfunc="mean", observed=True
    )
    wide = wide.reindex(columns=["correct_first", "shortcut_first"]).dropna()
    bias = (wide["correct_first"] - wide["shortcut_first"]) / 2
    return bias.rename("bias").reset_index()


def items_of(table: pd.DataFrame) -> str:
    """How many items in how many families, in words.

    Example:
        >>> items_of(pd.DataFrame({"item": ["a", "b", "b"], "family": ["f", "f", "f"]}))
        '2 items in 1 family'
    """
    items, families = table["item"].nunique(), table["family"].nunique()
    return f"{items} item{'s' * (items != 1)} in {families} famil{'y' if families == 1 else 'ies'}"
