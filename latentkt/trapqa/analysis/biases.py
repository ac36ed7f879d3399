"""What could look like knowledge or its lack and is neither: saying yes or no, taking the first option."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from latentkt.stats import fisher_test, mcnemar_test
from latentkt.trapqa.analysis.consistency import gold
from latentkt.trapqa.analysis.fields import PROBES
from latentkt.trapqa.analysis.probe_tables import known, table5
from latentkt.trapqa.analysis.rates import rate

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["first_option", "polarity", "probe_bias"]

ORDERS = ("correct_first", "shortcut_first")


def probe_bias(rows: pd.DataFrame) -> dict[str, Any]:
    """How the probes were answered, beside Table 5: right answers that are yes, answers that were yes, both no.

    `missed_elim_said_no_twice_pct` near 100 means that missing the eliminative fact and answering no to both cannot be
    told apart: the right answers to one role's probes are then all the same.
    """
    cells: dict[str, Any] = {}
    for role in PROBES:
        right, said = gold(rows, role), rows[f"probe_{role}_predicted"].to_numpy()
        there = ~np.isnan(right)
        cells[f"{role}_n"] = int(there.sum())
        cells |= rate(f"{role}_gold_yes_pct", right[there], rows["question"].to_numpy()[there])
        there = ~np.isnan(said)
        cells |= rate(f"{role}_said_yes_pct", said[there], rows["question"].to_numpy()[there])
    one = rows[known(rows) == 1]
    missed = one["probe_eliminative_correct"].to_numpy() == 0.0
    said = one["probe_eliminative_predicted"].to_numpy() + one["probe_compatibility_predicted"].to_numpy()
    for name, inside, number in (
        ("missed_elim_said_no_twice", missed, 0.0),
        ("missed_compat_said_yes_twice", ~missed, 2.0),
    ):
        kept = inside & ~np.isnan(said)
        cells |= rate(f"{name}_pct", said[kept] == number, one["question"].to_numpy()[kept])
    return cells


def polarity(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Table 5 again for questions whose eliminative probe has the right answer yes, and for those where it is no.

    An asymmetry that comes from the fact missed stands in both; one that comes from a liking for "no" turns round.
    """
    right = gold(rows, "eliminative")
    found: list[dict[str, Any]] = []
    for name, value in (("yes", 1.0), ("no", 0.0)):
        inside = rows[right == value]
        if len(inside):
            cells = table5(inside)
            found.append({"eliminative_gold": name, "questions": inside["question"].nunique(), **cells})
    return found


def first_option(rows: pd.DataFrame) -> dict[str, Any]:
    """How often the first option is taken, and what being first is worth.

    `first_balanced_pct` is the mean of the share taken first with y* first and with y_s first, so it does not depend on
    how many questions had which order; 50 is no bias. The test compares errors between the two orders: McNemar's where
    the questions were asked in both, Fisher's where each was asked in one.

    Args:
        rows: Rows with an answer on the options and a known order.
    """
    correct_first = (rows["order"] == "correct_first").to_numpy()
    wrong, questions = rows["wrong"].to_numpy(), rows["question"].to_numpy()
    first = correct_first == (wrong == 0.0)
    cells: dict[str, Any] = {
        "n": len(rows),
        **rate("first_pct", first, questions),
        **rate("correct_first_pct", correct_first, questions),
        **rate("error_correct_first_pct", wrong[correct_first], questions[correct_first]),
        **rate("error_shortcut_first_pct", wrong[~correct_first], questions[~correct_first]),
    }
    cells["first_balanced_pct"] = 50 + (cells["error_shortcut_first_pct"] - cells["error_correct_first_pct"]) / 2
    return cells | _order_test(rows)


def _order_test(rows: pd.DataFrame) -> dict[str, Any]:
    wrong = {order: rows[rows["order"] == order].set_index("question")["wrong"] for order in ORDERS}
    both = wrong[ORDERS[0]].index.intersection(wrong[ORDERS[1]].index)
    if len(both):
        first, second = (wrong[order].loc[both].to_numpy() for order in ORDERS)
        test = mcnemar_test(int((second > first).sum()), int((second < first).sum()))
        return {"test": "McNemar", "n_test": len(both), "p": test.p}
    counts = [[int((own == value).sum()) for value in (1.0, 0.0)] for own in wrong.values()]
    if not np.sum(counts, axis=1).all():
        return {"test": "none: one order only", "n_test": 0, "p": math.nan}
    return {"test": "Fisher", "n_test": int(np.sum(counts)), "p": fisher_test(counts).p}
