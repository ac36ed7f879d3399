"""Errors beside what corpora say of a question: co-occurrence of its two candidates, and the prior ratio of its paths.

Fame is a property of a name; the theory's prior is one of a name with a relation. Where both are joined they are always
read side by side, each within the strata of the other.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from latentkt.errors import DataError
from latentkt.stats import auroc, mantel_haenszel
from latentkt.trapqa.analysis.fame_tables import shortcut_more_famous
from latentkt.trapqa.analysis.rates import interval_cells, one_a_question, rate, two_by_two

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.trapqa.analysis.records import Records

__all__ = ["errors_by_cooccurrence", "fame_beside_priors", "join_priors", "ranking_of_errors", "read_priors"]

COLUMNS = ("cooccurrence", "log_prior_ratio")
NO_ROW = "priors: the question is not in the file"
PARTS = 3


def read_priors(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a CSV of priors: `question_id`, and `cooccurrence`, `log_prior_ratio` or both.

    `cooccurrence` counts the corpus units that name both candidates; `log_prior_ratio` is that of the shortcut path
    over the correct one, in nats. An empty cell is a missing value.

    Raises:
        DataError: The file is absent, lacks columns, holds a question twice or what is no number.
    """
    import pandas as pd

    file = Path(path)
    try:
        table = pd.read_csv(file, dtype={"question_id": str}, keep_default_na=False, na_values=[""])
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {file}", expected="a CSV file with a header", found=error) from error
    there = [name for name in COLUMNS if name in table.columns]
    if "question_id" not in table.columns or not there:
        raise DataError(
            f"{file} lacks columns",
            expected="question_id, and cooccurrence or log_prior_ratio",
            found=", ".join(map(str, table.columns)),
        )
    twice = table["question_id"][table["question_id"].duplicated()].unique()
    if len(twice):
        raise DataError(f"{file}: questions stand more than once", found=", ".join(map(str, twice[:8])))
    for name in there:
        if not pd.api.types.is_numeric_dtype(table[name]):
            raise DataError(f"{file}: column {name}", expected="numbers, or nothing", found=table[name].dtype)
    if "cooccurrence" in there and (table["cooccurrence"] < 0).any():
        raise DataError(f"{file}: column cooccurrence", expected="counts of 0 or more", found="negative numbers")
    return table[["question_id", *there]]


def join_priors(records: Records, priors: pd.DataFrame) -> Records:
    """Records with the priors of their questions; questions without any are noted in the ledger.

    Args:
        records: Checked records.
        priors: What `read_priors` returns.
    """
    frame, ids = records.frame.copy(), records.frame["question_id"].astype(str)
    known = priors.set_index(priors["question_id"].astype(str))
    for name in COLUMNS:
        if name in known.columns:
            frame[name] = ids.map(known[name]).to_numpy(dtype=float)
    ledger = dataclasses.replace(records.ledger, lines=list(records.ledger.lines))
    ledger.leave_out("records", "", NO_ROW, ids[~ids.isin(known.index)])
    return dataclasses.replace(records, frame=frame, ledger=ledger)


def errors_by_cooccurrence(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Error rate by how often the candidates are named together: never, then thirds of the questions where they are."""
    counts = rows["cooccurrence"].to_numpy()
    positive = counts[counts > 0]
    cuts = np.unique(np.quantile(positive, [1 / PARTS, 2 / PARTS])) if len(positive) else np.array([])
    part = np.where(counts == 0, 0, 1 + np.searchsorted(cuts, counts, side="left"))
    found: list[dict[str, Any]] = []
    for number in np.unique(part):
        inside = part == number
        wrong, questions = rows["wrong"].to_numpy()[inside], rows["question"].to_numpy()[inside]
        ends = {"from": float(counts[inside].min()), "to": float(counts[inside].max())}
        found.append({**ends, "n": int(inside.sum()), "errors": int(wrong.sum()), **rate("hall_pct", wrong, questions)})
    return found


def ranking_of_errors(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """How well fame, co-occurrence and the prior ratio tell missed questions from others.

    `auroc` is the chance that a missed question has the larger value; 0.5 is none. The theory expects more than 0.5 of
    the prior ratio.
    """
    one = one_a_question(rows)
    values = {
        "fame of wrong - fame of right": one["shortcut_fame"] - one["correct_fame"],
        "cooccurrence": one["cooccurrence"],
        "log_prior_ratio": one["log_prior_ratio"],
    }
    found: list[dict[str, Any]] = []
    for name, column in values.items():
        there = column.notna().to_numpy()
        if there.any():
            area = auroc(column.to_numpy()[there], one["wrong"].to_numpy()[there] == 1.0)
            found.append({"predictor": name, "n": int(there.sum()), **interval_cells("auroc", area)})
    return found


def fame_beside_priors(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Odds ratio of an error by fame and by prior ratio, each alone and within the strata of the other."""
    one = one_a_question(rows)
    flags = {
        "wrong more famous": shortcut_more_famous(one),
        "shortcut path has the larger prior": one["log_prior_ratio"] > 0,
    }
    (fame, prior) = (np.asarray(flag, dtype=bool) for flag in flags.values())
    found: list[dict[str, Any]] = []
    for name, exposed, other in zip(flags, (fame, prior), (prior, fame), strict=True):
        strata = np.stack([two_by_two(one[other == side], exposed[other == side]) for side in (False, True)])
        alone, within = mantel_haenszel(strata.sum(axis=0)[None]), mantel_haenszel(strata)
        row: dict[str, Any] = {"predictor": name, "n": len(one)}
        row |= {**interval_cells("odds_ratio", alone.odds_ratio), "p": alone.p}
        found.append(row | {**interval_cells("odds_ratio_within", within.odds_ratio), "p_within": within.p})
    return found
