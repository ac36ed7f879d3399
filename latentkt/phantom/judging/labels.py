"""How far a judge agrees with labels that were given by hand."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from latentkt.errors import DataError, InputError
from latentkt.phantom.answers import Answer
from latentkt.stats import Interval, wilson

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LABELS", "Agreement", "agreement", "read_labels", "sheet_rows"]

LABELS = ("abstained", "answered")


@dataclass(frozen=True, slots=True)
class Agreement:
    """A judge against labels.

    Attributes:
        judge: The judge.
        n: Answers with a label and a verdict.
        unparsable: Labelled answers on which the judge gave no verdict; they are not among `n`.
        unlabelled: Answers of the judge without a label.
        agree: Share on which both say the same.
        kappa: Cohen's kappa; NaN where either side has one class only.
        found: Of the answers labelled `abstained`, the share that the judge calls so.
        right: Of the answers that the judge calls `abstained`, the share labelled so.
        counts: (label, verdict) -> answers.
        disagreements: Ids of the questions on which they differ.
    """

    judge: str
    n: int
    unparsable: int
    unlabelled: int
    agree: Interval
    kappa: float
    found: Interval
    right: Interval
    counts: dict[tuple[str, str], int]
    disagreements: tuple[str, ...]

    def to_frame(self) -> pd.DataFrame:
        """One row, for a result table."""
        import pandas as pd

        row: dict[str, object] = {"judge": self.judge, "n": self.n, "unparsable": self.unparsable}
        for name in ("agree", "found", "right"):
            interval = getattr(self, name)
            row |= {f"{name}_pct": 100 * interval.value}
            row |= {f"{name}_pct_low": 100 * interval.low, f"{name}_pct_high": 100 * interval.high}
        row["kappa"] = self.kappa
        row |= {f"{label}_as_{verdict}": count for (label, verdict), count in self.counts.items()}
        return pd.DataFrame([row])


def agreement(answers: Sequence[Answer], labels: Mapping[tuple[str, str], str]) -> Agreement:
    """Hold the verdicts of one judge against labels.

    Args:
        answers: Answers of one judge.
        labels: (prompt id, setting) -> `abstained` or `answered`.

    Raises:
        InputError: The answers are of no or several judges, or none of them has a label.

    Example:
        >>> base = dict(concept_id="c", concept="x", concept_kind="term", property="meaning", question="?", setting="m",
        ...             judge="j")
        >>> said = [Answer(**base, prompt_id=str(n), judgement=verdict)
        ...         for n, verdict in enumerate(["abstained", "answered", "unparsable"])]
        >>> result = agreement(said, {(str(n), "m"): "abstained" for n in range(3)})
        >>> result.n, result.unparsable, f"{result.agree:.2f}"
        (2, 1, '0.50 [0.09, 0.91]')
    """
    judges = {answer.judge for answer in answers}
    if len(judges) != 1 or None in judges:
        raise InputError("agreement is of one judge", expected="answers judged by one", found=sorted(map(str, judges)))
    labelled = [(answer, labels[answer.asked]) for answer in answers if answer.asked in labels]
    pairs = [(answer, label) for answer, label in labelled if answer.judgement in LABELS]
    if not labelled:
        raise InputError("no answer has a label", expected="labels by prompt_id and setting", found=f"{len(labels)}")
    counts = {(label, verdict): 0 for label in LABELS for verdict in LABELS}
    for answer, label in pairs:
        counts[label, str(answer.judgement)] += 1
    both = counts["abstained", "abstained"]
    said, meant = both + counts["answered", "abstained"], both + counts["abstained", "answered"]
    return Agreement(
        judge=str(judges.pop()),
        n=len(pairs),
        unparsable=len(labelled) - len(pairs),
        unlabelled=len(answers) - len(labelled),
        agree=wilson(both + counts["answered", "answered"], len(pairs)),
        kappa=_kappa(counts, len(pairs)),
        found=wilson(both, meant),
        right=wilson(both, said),
        counts=counts,
        disagreements=tuple(answer.prompt_id for answer, label in pairs if answer.judgement != label),
    )


def _kappa(counts: Mapping[tuple[str, str], int], n: int) -> float:
    if not n:
        return math.nan
    same = sum(counts[label, label] for label in LABELS) / n
    chance = 0.0
    for label in LABELS:
        by_label = sum(counts[label, other] for other in LABELS) / n
        chance += by_label * sum(counts[other, label] for other in LABELS) / n
    return (same - chance) / (1 - chance) if chance < 1 else math.nan


def sheet_rows(path: str | Path, needed: Sequence[str]) -> list[dict[str, str]]:
    """Rows of a CSV with a header; blanks at the ends of cells are cut off.

    Raises:
        InputError: There is no such file.
        DataError: It lacks a column, or has no rows.
    """
    path = Path(path)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            rows = [{str(k): (v or "").strip() for k, v in row.items() if isinstance(v, str | None)} for row in reader]
            names = reader.fieldnames or []
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", expected="a CSV file") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} is no CSV", expected="UTF-8 with a header line", found=str(error)[:100]) from error
    missing = [name for name in needed if name not in names]
    if missing or not rows:
        found = ", ".join(names) if missing else "a header and no rows"
        raise DataError(f"{path} lacks {', '.join(missing) or 'rows'}", expected=", ".join(needed), found=found)
    return rows


def read_labels(path: str | Path) -> dict[tuple[str, str], str]:
    """Read labels given by hand: a CSV with `prompt_id`, `setting` and `label` (`abstained` or `answered`).

    Raises:
        InputError: There is no such file.
        DataError: A column is missing, a label is another word, or an answer has two.
    """
    labels: dict[tuple[str, str], str] = {}
    for number, row in enumerate(sheet_rows(path, ("prompt_id", "setting", "label")), start=2):
        key = row["prompt_id"], row["setting"]
        if row["label"] not in LABELS or key in labels:
            raise DataError(
                f"{path}, line {number}: a wrong label",
                expected=f"one of {', '.join(LABELS)}, once an answer",
                found=f"{row['label']!r} for {key[0]!r}" + (", the second" if key in labels else ""),
            )
        labels[key] = row["label"]
    return labels
