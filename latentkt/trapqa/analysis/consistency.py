"""What one question must agree on in all its records: labels, probe answers, fame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latentkt.trapqa.analysis.fields import PROBES, YES_NO

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.trapqa.analysis.ledger import Ledger

__all__ = ["gold", "one_label", "settle_fame", "settle_probes"]

ONE_SIDED = "fame is known for one candidate only"
FAME_DIFFERS = "records of the question give different fame"
PROBES_DIFFER = "records of the question give different probe answers"
GOLD_DIFFERS = "predicted and correct imply different right answers to the probe in different settings"


def one_label(frame: pd.DataFrame, label: str) -> list[str]:
    """Fill a label in every record of its question; the texts name questions that have two."""
    known = frame.loc[frame[label].notna(), ["question_id", label]].drop_duplicates()
    twice = known["question_id"][known["question_id"].duplicated()].unique()
    if len(twice):
        return [f"question {question!r}: more than one {label}" for question in twice]
    by_question = dict(zip(known["question_id"].astype(str), known[label].astype(str), strict=True))
    frame[label] = frame["question_id"].astype(str).map(by_question).astype("category")
    return []


def gold(frame: pd.DataFrame, role: str) -> np.ndarray:
    """The right answer to a probe question, 1.0 yes, 0.0 no: what was predicted if that is correct, else the other."""
    correct, predicted = (frame[f"probe_{role}_{what}"].to_numpy() for what in ("correct", "predicted"))
    known = ~(np.isnan(correct) | np.isnan(predicted))
    return np.where(known, (correct == predicted).astype(float), np.nan)


def settle_probes(frame: pd.DataFrame, ledger: Ledger) -> None:
    """Give every record of a question and setting the probe answers of that setting; contradictions become missing."""
    cell = frame.groupby(["question_id", "setting"], observed=True, sort=False).ngroup().to_numpy()
    columns = list(YES_NO)
    lowest, highest = _ends(frame, columns, cell)
    differ = (lowest != highest) & ~np.isnan(lowest)
    bad = differ.any(axis=1)
    filled = np.where(differ, np.nan, lowest)
    filled[bad] = np.nan
    frame[columns] = filled
    for setting, rows in frame[bad].groupby("setting", observed=True, sort=False):
        ledger.leave_out("records", str(setting), PROBES_DIFFER, rows["question_id"])
    _one_gold(frame, ledger)


def _one_gold(frame: pd.DataFrame, ledger: Ledger) -> None:
    """A probe question has one right answer: where settings imply two, it cannot be known which of them errs."""
    question = frame["question_id"].cat.codes.to_numpy()
    bad = np.zeros(len(frame), dtype=bool)
    for role in PROBES:
        lowest, highest = _ends(frame.assign(gold=gold(frame, role)), ["gold"], question)
        bad |= ((lowest != highest) & ~np.isnan(lowest))[:, 0]
    frame.loc[bad, list(YES_NO)] = np.nan
    ledger.leave_out("records", "", GOLD_DIFFERS, frame.loc[bad, "question_id"])


def settle_fame(frame: pd.DataFrame, ledger: Ledger) -> None:
    """Give every record of a question its fame; fame that differs, or of one side only, becomes missing."""
    columns = ["correct_fame", "shortcut_fame"]
    lowest, highest = _ends(frame, columns, frame["question_id"].cat.codes.to_numpy())
    missing = np.isnan(lowest)
    differ = ((lowest != highest) & ~missing).any(axis=1)
    one_sided = (missing.sum(axis=1) == 1) & ~differ
    lowest[differ | one_sided] = np.nan
    frame[columns] = lowest
    ledger.leave_out("records", "", FAME_DIFFERS, frame.loc[differ, "question_id"])
    ledger.leave_out("records", "", ONE_SIDED, frame.loc[one_sided, "question_id"])


def _ends(frame: pd.DataFrame, columns: list[str], cell: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest value of each column in the cell of each row; NaN where the cell has none."""
    values = frame[columns].to_numpy(dtype=float)
    count = int(cell.max()) + 1
    low, high = np.full((count, len(columns)), np.inf), np.full((count, len(columns)), -np.inf)
    np.fmin.at(low, cell, values)
    np.fmax.at(high, cell, values)
    low[np.isinf(low)], high[np.isinf(high)] = np.nan, np.nan
    return low[cell], high[cell]
