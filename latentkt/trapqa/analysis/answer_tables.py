"""Tables 1, 10 and 11: errors by condition, confidence, everyday items."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from latentkt.stats import auroc, cluster_interval, mean_interval
from latentkt.trapqa.analysis.rates import Cells, interval_cells, one_a_question, rate

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["calibration", "errors_by_label", "table1", "table10", "table11"]

BIN = 10
LABELS = ("aspect", "family", "constraint_kind")


def table1(rows: pd.DataFrame) -> Cells:
    """Errors by condition; answers off the options are errors and are counted apart, too."""
    cells: Cells = {}
    for condition in ("names", "profiles"):
        inside = rows[rows["condition"] == condition]
        wrong = inside["wrong"].to_numpy()
        there = len(inside) > 0
        cells[f"{condition}_n"] = len(inside)
        cells[f"{condition}_questions"] = inside["question_id"].nunique()
        cells[f"{condition}_errors"] = int(wrong.sum()) if there else math.nan
        cells |= rate(f"{condition}_rate_pct", wrong, inside["question"])
        cells[f"{condition}_off_option"] = int((inside["answer"] == "off").sum()) if there else math.nan
        cells |= _by_family(f"{condition}_family_mean_pct", inside)
    return cells


def _by_family(key: str, rows: pd.DataFrame) -> Cells:
    """Mean error rate over families, with the interval that counts families; NaN unless every row has a family."""
    known = bool(rows["family"].notna().all())
    values = rows["wrong"].to_numpy() if known else rows["wrong"].to_numpy()[:0]
    interval = cluster_interval(100.0 * values, rows["family"].astype(str).tolist()[: len(values)]).interval
    return interval_cells(key, interval)


def table11(rows: pd.DataFrame) -> Cells:
    """Errors on everyday items."""
    wrong = rows["wrong"].to_numpy()
    return {
        "errors": int(wrong.sum()),
        **rate("rate_pct", wrong, rows["question"]),
        "n": len(rows),
        "off_option": int((rows["answer"] == "off").sum()),
        **_by_family("family_mean_pct", rows),
    }


def errors_by_label(rows: pd.DataFrame) -> list[dict[str, object]]:
    """Errors by aspect, family and kind of constraint: one row a label, `none` for items without one."""
    found: list[dict[str, object]] = []
    for label in LABELS:
        values = rows[label].astype(object).where(rows[label].notna(), "none")
        if (values == "none").all():
            continue
        for value in sorted(values.unique()):
            inside = rows[values == value]
            wrong = inside["wrong"].to_numpy()
            cells = rate("rate_pct", wrong, inside["question"])
            found.append({"by": label, "value": value, "errors": int(wrong.sum()), "n": len(inside), **cells})
    return found


def table10(rows: pd.DataFrame) -> Cells:
    """Confidence of right and of wrong answers, and how well it tells them apart.

    `gap` is wrong − right, as in the paper. `auroc` is the chance that a right answer has the higher confidence.
    """
    one = one_a_question(rows)
    confidence, right = one["confidence"].to_numpy(), one["wrong"].to_numpy() == 0.0
    means = {name: mean_interval(confidence[side]) for name, side in (("correct", right), ("hallucinated", ~right))}
    gap = means["hallucinated"].value - means["correct"].value
    return {
        "n": len(one),
        **interval_cells("conf_correct", means["correct"]),
        **interval_cells("conf_hallucinated", means["hallucinated"]),
        "gap": gap,
        **_welch(gap, confidence[right], confidence[~right]),
        **interval_cells("auroc", auroc(confidence, right)),
        "brier": float(((confidence / 100 - right) ** 2).mean()),
        "accuracy_pct": 100 * float(right.mean()),
        "mean_confidence": float(confidence.mean()),
    }


def _welch(gap: float, first: np.ndarray, second: np.ndarray) -> Cells:
    """Welch's interval of a difference of means; NaN where a side has fewer than two values."""
    from scipy.stats import t as student_t

    if min(len(first), len(second)) < 2:
        return {"gap_low": math.nan, "gap_high": math.nan}
    a, b = first.var(ddof=1) / len(first), second.var(ddof=1) / len(second)
    if a + b == 0:
        return {"gap_low": gap, "gap_high": gap}
    freedom = (a + b) ** 2 / (a**2 / (len(first) - 1) + b**2 / (len(second) - 1))
    half = float(student_t.ppf(0.975, freedom)) * math.sqrt(a + b)
    return {"gap_low": gap - half, "gap_high": gap + half}


def calibration(rows: pd.DataFrame) -> list[dict[str, object]]:
    """Share of right answers in each ten points of confidence: the calibration curve."""
    one = one_a_question(rows)
    confidence, right = one["confidence"].to_numpy(), 1.0 - one["wrong"].to_numpy()
    bins = np.minimum(confidence // BIN, 100 // BIN - 1)
    found: list[dict[str, object]] = []
    for number in np.unique(bins):
        inside = bins == number
        cells = rate("accuracy_pct", right[inside], one["question"].to_numpy()[inside])
        mean = float(confidence[inside].mean())
        found.append(
            {"from": number * BIN, "to": (number + 1) * BIN, "n": int(inside.sum()), "confidence": mean, **cells}
        )
    return found
