"""Table 6 and what it must be held against: which questions several settings miss, and how many would be by chance.

Questions that lack an answer in some setting are left out: with a missing answer nobody knows whether all miss it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latentkt.stats import binomial_test, fit_difficulty, poisson_binomial
from latentkt.trapqa.analysis.rates import one_a_question

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Consensus", "consensus"]


@dataclass(frozen=True)
class Consensus:
    """Errors of all settings on the same questions.

    Attributes:
        wrong: 1.0 or 0.0, index question id, one column a setting; complete questions only.
        incomplete: Ids of questions that lack an answer in some setting.
        tables: `consensus` (how many settings miss a question: observed and expected), `table6` (the questions that all
            miss), `consensus_families`, `question_difficulty`, `error_overlap` (pairs of settings).
    """

    wrong: pd.DataFrame
    incomplete: list[str]
    tables: dict[str, pd.DataFrame]

    @property
    def without_family(self) -> list[str]:
        """Ids of complete questions that have no family."""
        table = self.tables["question_difficulty"]
        return [str(question) for question in table.loc[table["family"].isna(), "question_id"]]

    def summary(self) -> dict[str, object]:
        """The figures of the paper's text, named as in its file of tables."""
        errors = self.wrong.sum(axis=1)
        missed_by_all = errors == self.wrong.shape[1]
        return {
            "questions": len(self.wrong),
            "settings": self.wrong.shape[1],
            "missed_by_at_least_one": int((errors > 0).sum()),
            "missed_by_all": int(missed_by_all.sum()),
            "total_error_instances": int(errors.sum()),
            "question_ids": [str(question) for question in self.wrong.index[missed_by_all]],
        }


def consensus(rows: pd.DataFrame, settings: list[str]) -> Consensus | None:
    """Errors in common of two or more settings.

    Args:
        rows: Rows with an answer, of one condition.
        settings: The settings, in order.

    Returns:
        The tables; None with fewer than two settings, or no question that all were asked.
    """
    import pandas as pd

    columns = {}
    for setting in settings:
        own = one_a_question(rows[rows["setting"] == setting])
        if len(own):
            columns[setting] = own.set_index(own["question_id"].astype(str))["wrong"]
    whole = pd.DataFrame(columns)
    whole = whole.loc[sorted(whole.index)]
    wrong = whole.dropna()
    if wrong.shape[1] < 2 or wrong.empty:
        return None
    incomplete = [str(question) for question in whole.index.difference(wrong.index)]
    labels = _labels(rows)
    by_question = wrong.sum(axis=1).astype(int).rename("settings_wrong").to_frame()
    by_question = by_question.assign(settings=wrong.shape[1]).join(labels).reset_index(names="question_id")
    by_question = by_question[["question_id", *labels.columns, "settings", "settings_wrong"]]
    fit = fit_difficulty(wrong.to_numpy())
    tables = {
        "consensus": _distribution(wrong.to_numpy(), fit.errors_together()),
        "table6": by_question[by_question["settings_wrong"] == wrong.shape[1]].reset_index(drop=True),
        "consensus_families": _families(by_question),
        "question_difficulty": by_question,
        "error_overlap": _overlap(wrong, fit.both()),
    }
    return Consensus(wrong, incomplete, {name: table for name, table in tables.items() if len(table)})


def _labels(rows: pd.DataFrame) -> pd.DataFrame:
    """Names of the candidates, where they were joined, and the family of each question."""
    columns = [name for name in ("correct_name", "shortcut_name", "family") if name in rows.columns]
    labels = rows.drop_duplicates("question_id").set_index("question_id")[columns].astype(object)
    labels.index = labels.index.astype(str)
    return labels


def _distribution(wrong: np.ndarray, difficulty: np.ndarray) -> pd.DataFrame:
    """How many questions are missed by 0, 1, … all settings, and how many would be under either reference."""
    import pandas as pd

    n, settings = wrong.shape
    independent = poisson_binomial(wrong.mean(axis=0))
    observed = np.bincount(wrong.sum(axis=1).astype(int), minlength=settings + 1)
    tail = [int(observed[number:].sum()) for number in range(settings + 1)]
    at_least = {name: np.minimum(1.0, p[::-1].cumsum()[::-1]) for name, p in (("i", independent), ("d", difficulty))}
    return pd.DataFrame(
        {
            "settings_wrong": range(settings + 1),
            "observed": observed,
            "expected_independent": n * independent,
            "expected_one_difficulty": n * difficulty,
            "p_at_least_independent": _tail_p(tail, n, at_least["i"]),
            "p_at_least_one_difficulty": _tail_p(tail, n, at_least["d"]),
        }
    )


def _tail_p(tail: list[int], n: int, chances: np.ndarray) -> list[float]:
    """Chance of as many questions, or more, missed by that many settings or more."""
    return [
        binomial_test(seen, n, chance=float(chance), alternative="greater").p
        for seen, chance in zip(tail, chances, strict=True)
    ]


def _families(by_question: pd.DataFrame) -> pd.DataFrame:
    """Questions of each relation family, and how many of them are missed; families that are not known are left out."""
    known = by_question[by_question["family"].notna()]
    groups = known.assign(all=known["settings_wrong"] == known["settings"], any=known["settings_wrong"] > 0).groupby(
        "family"
    )
    table = groups.agg(
        questions=("question_id", "size"),
        missed_by_all=("all", "sum"),
        missed_by_at_least_one=("any", "sum"),
        mean_settings_wrong=("settings_wrong", "mean"),
    )
    return table.sort_values(["missed_by_all", "mean_settings_wrong"], ascending=False).reset_index()


def _overlap(wrong: pd.DataFrame, difficulty: np.ndarray) -> pd.DataFrame:
    """Questions that both settings of a pair miss, and how many would be under either reference."""
    import pandas as pd

    array, n = wrong.to_numpy(), len(wrong)
    both, rates = array.T @ array, array.mean(axis=0)
    spread = np.sqrt(rates * (1 - rates))
    rows = []
    for i, first in enumerate(wrong.columns):
        for j in range(i + 1, wrong.shape[1]):
            expected = n * rates[i] * rates[j]
            scale = spread[i] * spread[j]
            rows.append(
                {
                    "first": str(first),
                    "second": str(wrong.columns[j]),
                    "both_wrong": int(both[i, j]),
                    "expected_independent": expected,
                    "expected_one_difficulty": n * difficulty[i, j],
                    "ratio_to_independent": both[i, j] / expected if expected else np.nan,
                    "phi": (both[i, j] - expected) / n / scale if scale else np.nan,
                }
            )
    return pd.DataFrame(rows)
