"""Tables 8 and 9, and the very famous: is the shortcut a liking for the more famous name?

The wrong candidate is y_s. `more famous` is strictly larger fame; ties are neither.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from latentkt.stats import binomial_test
from latentkt.trapqa.analysis.probe_tables import known
from latentkt.trapqa.analysis.rates import Cells, fisher_cells, one_a_question, rate

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["fame", "shortcut_more_famous", "table8", "table9", "top_fame"]

TOP_SHARE = 0.01


def shortcut_more_famous(rows: pd.DataFrame) -> np.ndarray:
    """Whether the wrong candidate is the more famous one."""
    return rows["shortcut_fame"].to_numpy() > rows["correct_fame"].to_numpy()


def table8(rows: pd.DataFrame) -> Cells:
    """Whether the more famous candidate is chosen where exactly one probe was answered rightly.

    Ties in fame and answers off the options choose neither and are counted beside.
    """
    one = rows[known(rows) == 1]
    tie = one["shortcut_fame"].to_numpy() == one["correct_fame"].to_numpy()
    off = (one["answer"] == "off").to_numpy()
    kept = one[~tie & ~off]
    chose = shortcut_more_famous(kept) == (kept["answer"] == "shortcut").to_numpy()
    single = one_a_question(kept.assign(chose=chose))
    test = binomial_test(int(single["chose"].sum()), len(single))
    return {
        "n_non_tie": len(kept),
        **rate("chooses_more_famous_pct", chose, kept["question"]),
        "p_printed": math.nan if math.isnan(test.p) else round(test.p, 3),
        "derived_successes": int(chose.sum()),
        "p_exact_two_sided": test.p,
        "n_tie": int(tie.sum()),
        "n_off_option": int((off & ~tie).sum()),
    }


def table9(rows: pd.DataFrame) -> Cells:
    """Errors by whether the wrong candidate is more famous, and how often it is among errors."""
    wrong, questions, famous = rows["wrong"].to_numpy(), rows["question"].to_numpy(), shortcut_more_famous(rows)
    errors = wrong == 1.0
    cells = {
        "n": len(rows),
        **rate("hall_wrong_not_more_famous_pct", wrong[~famous], questions[~famous]),
        **rate("hall_wrong_more_famous_pct", wrong[famous], questions[famous]),
        **rate("wrong_more_famous_among_hall_pct", famous[errors], questions[errors]),
        **rate("base_rate_pct", famous, questions),
        "derived.wrong_more_famous_halluc": int((famous & errors).sum()),
        "n_tie": int((rows["shortcut_fame"].to_numpy() == rows["correct_fame"].to_numpy()).sum()),
    }
    names = {"rate_not": "hall_wrong_not_more_famous_pct", "rate_more": "hall_wrong_more_famous_pct"}
    names["frac"] = "wrong_more_famous_among_hall_pct"
    derived = {f"derived.{short}": cells[name] for short, name in names.items()}
    return {**cells, **derived, **fisher_cells(rows, famous, "derived.", "fisher_p")}


def top_fame(frame: pd.DataFrame) -> float:
    """The fame that the top 1 % of the candidates of these records have at least; NaN where there are too few.

    Records do not name candidates: equal fame is taken as one candidate. With fame from a file, `join_fame` sets the
    bar over all names of the file instead.
    """
    once = frame.drop_duplicates("question_id")
    values = np.unique(once[["correct_fame", "shortcut_fame"]].to_numpy())
    values = values[~np.isnan(values)]
    count = int(TOP_SHARE * len(values))
    return float(values[-count]) if count else math.nan


def fame(rows: pd.DataFrame) -> Cells:
    """How often the wrong candidate is more famous, and errors where a candidate is in the top 1 % by fame."""
    wrong, questions = rows["wrong"].to_numpy(), rows["question"].to_numpy()
    once = rows.drop_duplicates("question_id")
    bar = float(rows["top_fame"].iloc[0])
    top = rows[["correct_fame", "shortcut_fame"]].max(axis=1).to_numpy() >= bar
    there = not math.isnan(bar)
    top_once = once[["correct_fame", "shortcut_fame"]].max(axis=1).to_numpy() >= bar
    cells: Cells = {
        "n_wrong_more_famous": int(shortcut_more_famous(once).sum()),
        "pct": 100 * float(shortcut_more_famous(once).mean()),
        "n_top1pct": int(top_once.sum()) if there else math.nan,
        "bar": bar,
    }
    for name, inside in (("in_top1", top), ("rest", ~top)):
        cells[f"top1.{name}_wrong"] = int(wrong[inside].sum()) if there else math.nan
        kept = inside if there else np.zeros(len(rows), dtype=bool)
        cells |= rate(f"top1.{name}_pct", wrong[kept], questions[kept])
    return {**cells, **(fisher_cells(rows, top, "top1.", "fisher_p") if there else {})}
