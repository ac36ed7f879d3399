"""Tests where the paper reads a difference: between settings, and of an error between two groups of questions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from latentkt.stats import (
    clustered_mantel_haenszel,
    clustered_ratio,
    clustered_share,
    fisher_test,
    holm,
    mantel_haenszel,
    mcnemar_test,
    mean_interval,
    subset_test,
)
from latentkt.trapqa.analysis.fame_tables import shortcut_more_famous
from latentkt.trapqa.analysis.probe_tables import known
from latentkt.trapqa.analysis.rates import interval_cells, one_a_question, two_by_two

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ALL", "ASSOCIATIONS", "association", "fame_base_rate", "settings_compared"]

ALL = "all settings"
Rows = Mapping[str, "pd.DataFrame"]


def _one_known(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[known(rows) == 1]


def _whole(rows: pd.DataFrame) -> pd.DataFrame:
    return rows


def _top(rows: pd.DataFrame) -> np.ndarray:
    return rows[["correct_fame", "shortcut_fame"]].max(axis=1).to_numpy() >= rows["top_fame"].to_numpy()


# Table -> (what is compared, which rows, which of them are exposed).
ASSOCIATIONS: dict[str, tuple[str, Callable[[Any], Any], Callable[[Any], np.ndarray]]] = {
    "table2": ("not both probes right / both right", _whole, lambda rows: known(rows) < 2),
    "table5": (
        "eliminative missed / compatibility missed",
        _one_known,
        lambda rows: rows["probe_eliminative_correct"].to_numpy() == 0.0,
    ),
    "table9": ("wrong candidate more famous / not", _whole, shortcut_more_famous),
    "fame": ("a candidate in the top 1 % by fame / none", _whole, _top),
}


def settings_compared(rows: Rows, condition: str) -> pd.DataFrame:
    """McNemar's exact test between every two settings on the questions both answered, Holm-adjusted over the pairs.

    Args:
        rows: Rows with an answer, by setting.
        condition: The condition that they are of.

    Returns:
        One row a pair; `difference_pp` is the error rate of `first` minus that of `second`, in percentage points.
    """
    import pandas as pd

    wrong = {setting: _by_question(one_a_question(own), rows) for setting, own in rows.items()}
    found = []
    names = list(wrong)
    for i, first in enumerate(names):
        for second in names[i + 1 :]:
            pair = np.column_stack([wrong[first], wrong[second]])
            pair = pair[~np.isnan(pair).any(axis=1)]
            if not len(pair):
                continue
            only = (int((pair[:, 0] > pair[:, 1]).sum()), int((pair[:, 0] < pair[:, 1]).sum()))
            difference = interval_cells("difference_pp", mean_interval(pair[:, 0] - pair[:, 1]), 100.0)
            row = {"condition": condition, "first": first, "second": second, "n": len(pair)}
            row |= {"only_first_wrong": only[0], "only_second_wrong": only[1], **difference}
            found.append(row | {"p": mcnemar_test(*only).p})
    table = pd.DataFrame(found)
    if len(table):
        table["p_holm"] = holm(table["p"].to_numpy())
    return table


def _by_question(single: pd.DataFrame, rows: Rows) -> np.ndarray:
    """Whether each question is missed, by its number; NaN where it was not asked."""
    found = np.full(1 + max(int(own["question"].max()) for own in rows.values()), math.nan)
    found[single["question"].to_numpy()] = single["wrong"].to_numpy()
    return found


def association(table: str, rows: Rows) -> pd.DataFrame:
    """Odds ratio of an error between two groups of questions: Fisher in each setting, Mantel–Haenszel over them.

    Args:
        table: A name of `ASSOCIATIONS`.
        rows: Complete rows by setting.

    Returns:
        One row a setting, `p` Fisher's exact and `p_holm` over the settings; and one over all, whose interval draws
        whole questions because settings share them. Its `p`, of Cochran, Mantel and Haenszel, does not.
    """
    import pandas as pd

    words, select, expose = ASSOCIATIONS[table]
    cells, found = {}, []
    for setting, whole in rows.items():
        own = select(one_a_question(whole))
        cells[setting] = (own["question"].to_numpy(), own["wrong"].to_numpy(), np.asarray(expose(own), dtype=bool))
        counts = two_by_two(own, cells[setting][2])
        empty = not (counts.sum(axis=0).all() and counts.sum(axis=1).all())
        row = {"table": table, "compared": words, "setting": setting, "n": int(counts.sum())}
        row |= {"exposed_wrong": int(counts[0, 0]), "exposed_right": int(counts[0, 1])}
        row |= {"other_wrong": int(counts[1, 0]), "other_right": int(counts[1, 1])}
        ratio = mantel_haenszel(counts[None]).odds_ratio if not empty else None
        ends = interval_cells("odds_ratio", ratio) if ratio else dict.fromkeys(_ENDS, math.nan)
        found.append(row | ends | {"p": math.nan if empty else fisher_test(counts).p})
    result = pd.DataFrame(found)
    result["p_holm"] = holm(result["p"].to_numpy()) if len(result) else math.nan
    if len(result) > 1:
        result = pd.concat([result, pd.DataFrame([_over_settings(table, words, cells)])], ignore_index=True)
    return result


_ENDS = ("odds_ratio", "odds_ratio_low", "odds_ratio_high")


def _over_settings(table: str, words: str, cells: Mapping[str, tuple[np.ndarray, ...]]) -> dict[str, object]:
    questions = np.unique(np.concatenate([own for own, _, _ in cells.values()]))
    array = np.zeros((len(questions), len(cells), 2, 2))
    for stratum, (own, wrong, exposed) in enumerate(cells.values()):
        place = np.searchsorted(questions, own)
        array[place, stratum, (~exposed).astype(int), (wrong == 0.0).astype(int)] = 1.0
    totals = array.sum(axis=0)
    pooled = mantel_haenszel(totals.astype(int))
    clustered = clustered_mantel_haenszel(array)
    sums = totals.sum(axis=0).astype(int)
    row = {"table": table, "compared": words, "setting": ALL, "n": int(sums.sum())}
    row |= {"exposed_wrong": int(sums[0, 0]), "exposed_right": int(sums[0, 1])}
    row |= {"other_wrong": int(sums[1, 0]), "other_right": int(sums[1, 1])}
    return row | interval_cells("odds_ratio", clustered) | {"p": pooled.p, "p_holm": math.nan}


def fame_base_rate(rows: Rows) -> pd.DataFrame:
    """How often the wrong candidate is the more famous one among errors, against all questions.

    Questions, not answers, are drawn at random for the p value and resampled for the interval: over all settings a
    question counts with every setting that misses it.
    """
    import pandas as pd

    single = {setting: one_a_question(own) for setting, own in rows.items()}
    groups = {**single, **({ALL: pd.concat(single.values())} if len(single) > 1 else {})}
    found = []
    for setting, own in groups.items():
        marked = own.assign(famous=shortcut_more_famous(own)).groupby("question", sort=True)
        errors, famous = marked["wrong"].sum().to_numpy(), marked["famous"].first().to_numpy()
        test = subset_test(errors, famous)
        missed = errors > 0
        # In one setting a question is missed once or not at all: its own interval needs no resampling.
        one = setting != ALL
        share = (
            clustered_share(famous[missed], missed.nonzero()[0]) if one else clustered_ratio(errors * famous, errors)
        )
        row = {"setting": setting, "questions": len(errors), "errors": int(errors.sum())}
        row |= {"base_rate_pct": 100 * float(famous.mean()), **interval_cells("among_errors_pct", share, 100.0)}
        found.append(row | {"p": test.p})
    table = pd.DataFrame(found)
    each = table["setting"] != ALL
    table.loc[each, "p_holm"] = holm(table.loc[each, "p"].to_numpy())
    return table
