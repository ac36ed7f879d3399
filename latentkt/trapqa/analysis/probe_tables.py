"""Tables 2, 4, 5, 7 and H.6: errors by what the probe answers show to be known."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from latentkt.trapqa.analysis.rates import Cells, fisher_cells, rate

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["h6", "known", "table2", "table4", "table5", "table7"]


def known(rows: pd.DataFrame) -> np.ndarray:
    """How many of the two probes were answered rightly: 0, 1 or 2."""
    both = rows["probe_eliminative_correct"].to_numpy() + rows["probe_compatibility_correct"].to_numpy()
    return both


def table2(rows: pd.DataFrame) -> Cells:
    """Errors given the probe state, and the probe state given an error."""
    wrong, questions, both = rows["wrong"].to_numpy(), rows["question"].to_numpy(), known(rows) == 2
    errors = wrong == 1.0
    return {
        "n": len(rows),
        **rate("pairwise_hall_pct", wrong, questions),
        **rate("both_probes_correct_pct", both, questions),
        **rate("hall_given_both_pct", wrong[both], questions[both]),
        **rate("hall_given_not_both_pct", wrong[~both], questions[~both]),
        **fisher_cells(rows, ~both, "not_both_over_both_", "fisher_p"),
        **rate("known_fact_hall_pct", both[errors], questions[errors]),
        **rate("probe_absent_hall_pct", (known(rows) == 0)[errors], questions[errors]),
    }


def table4(rows: pd.DataFrame) -> Cells:
    """Right and wrong answers in each probe state."""
    wrong, questions, number = rows["wrong"].to_numpy(), rows["question"].to_numpy(), known(rows)
    cells: Cells = {}
    for name, state in (("both", 2), ("one", 1), ("neither", 0)):
        inside = number == state
        cells[f"{name}_correct"] = int((wrong[inside] == 0.0).sum())
        cells[f"{name}_wrong"] = int((wrong[inside] == 1.0).sum())
        cells |= rate(f"{name}_wrong_rate_pct", wrong[inside], questions[inside])
    return cells


def table5(rows: pd.DataFrame) -> Cells:
    """Errors where exactly one probe was answered rightly, by which one was missed."""
    one = rows[known(rows) == 1]
    missed = one["probe_eliminative_correct"].to_numpy() == 0.0
    wrong, questions = one["wrong"].to_numpy(), one["question"].to_numpy()
    elim = rate("hall_elim_missed_pct", wrong[missed], questions[missed])
    compat = rate("hall_compat_missed_pct", wrong[~missed], questions[~missed])
    gap = elim["hall_elim_missed_pct"] - compat["hall_compat_missed_pct"]
    counts = {
        f"derived_counts.miss_{name}_{side}": int((wrong[inside] == value).sum())
        for name, inside in (("elim", missed), ("compat", ~missed))
        for side, value in (("wrong", 1.0), ("right", 0.0))
    }
    return {
        "n_missing_elim": int(missed.sum()),
        **elim,
        "n_missing_compat": int((~missed).sum()),
        **compat,
        "gap_pp": gap,
        **_difference_ends(elim, compat, gap),
        **counts,
        "derived_counts.gap_pp": gap,
        **fisher_cells(one, missed, "derived_counts.", "fisher_p_two_sided"),
    }


def _difference_ends(first: Cells, second: Cells, gap: float) -> Cells:
    """Newcombe's (1998, method 10) interval of a difference, from the two intervals, which share no row."""
    (a, a_low, a_high), (b, b_low, b_high) = first.values(), second.values()
    return {
        "gap_pp_low": gap - math.hypot(a - a_low, b_high - b),
        "gap_pp_high": gap + math.hypot(a_high - a, b - b_low),
    }


def table7(rows: pd.DataFrame) -> Cells:
    """The probe-underdetermined cases: exactly one probe answered rightly."""
    one = rows[known(rows) == 1]
    wrong, questions = one["wrong"].to_numpy(), one["question"].to_numpy()
    predicted = one[["probe_eliminative_predicted", "probe_compatibility_predicted"]].to_numpy()
    there = ~np.isnan(predicted).any(axis=1)
    total = predicted[there].sum(axis=1)
    return {
        "n_underdetermined": len(one),
        **rate("pct_of_questions", known(rows) == 1, rows["question"]),
        **rate("accuracy_pct", 1.0 - wrong, questions),
        **rate("hall_pct", wrong, questions),
        "n_predicted": int(there.sum()),
        **rate("both_predicted_false_pct", total == 0, questions[there]),
        **rate("both_predicted_true_pct", total == 2, questions[there]),
        **rate("predictions_differ_pct", total == 1, questions[there]),
    }


def h6(rows: pd.DataFrame) -> Cells:
    """Of the right answers, those whose two facts the model has, and those given for a reason it does not have."""
    right = rows["wrong"].to_numpy() == 0.0
    both, questions = known(rows)[right] == 2, rows["question"].to_numpy()[right]
    return {
        "n_correct": int(right.sum()),
        "correct_with_both": int(both.sum()),
        **rate("correct_in_both_pct", both, questions),
        **rate("correct_without_both_pct", ~both, questions),
    }
