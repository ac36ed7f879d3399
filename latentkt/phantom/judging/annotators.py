"""May a judge stand in for human annotators? The alternative annotator test (Calderon, Reichart and Dror, ACL 2025).

Each annotator is left out in turn. On every item the left-out annotator and the judge are compared with the remaining
annotators: who agrees with more of them? The judge passes against one annotator where it is as good at least, allowing
for the advantage ε that a person is granted for costing more. Its winning rate is the share of annotators that it
passes against, after control of the false discovery rate; at 0.5 or more it may stand in for an annotator.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from latentkt.errors import DataError, InputError
from latentkt.phantom.judging.labels import LABELS, sheet_rows

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.phantom.answers import Answer

__all__ = ["AltTest", "Comparison", "alternative_annotator_test", "judge_labels", "read_annotations"]

Labels = Mapping[Hashable, str]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The judge against one annotator who is left out.

    Attributes:
        annotator: Who is left out.
        n: Items that the annotator, the judge and at least one other labelled.
        judge_wins: Share of items on which the judge agrees with the others at least as often as the annotator: ρ of
            the judge.
        annotator_wins: The same the other way round; both win a tie.
        statistic: t of the paired test of H0: annotator_wins − judge_wins ≥ ε.
        p: Its one-sided p value.
        p_adjusted: p after Benjamini and Yekutieli's control over all annotators.
        passes: Whether H0 is rejected at the level.
    """

    annotator: str
    n: int
    judge_wins: float
    annotator_wins: float
    statistic: float
    p: float
    p_adjusted: float
    passes: bool


@dataclass(frozen=True, slots=True)
class AltTest:
    """Result of the alternative annotator test.

    Attributes:
        winning_rate: Share of annotators that the judge passes against: ω.
        advantage: Mean over annotators of `judge_wins`: how likely the judge is as good as an annotator, or better.
        epsilon: Advantage that was granted to a person.
        level: False discovery rate.
        comparisons: One an annotator.
        dropped: Items that were left out because too few people labelled them.
        test: Name of the test.
    """

    winning_rate: float
    advantage: float
    epsilon: float
    level: float
    comparisons: tuple[Comparison, ...]
    dropped: int
    test: str = "paired t, one-sided; Benjamini–Yekutieli over annotators"

    @property
    def passes(self) -> bool:
        """Whether the judge may stand in for an annotator: a winning rate of at least one half."""
        return self.winning_rate >= 0.5

    def to_frame(self) -> pd.DataFrame:
        """One row an annotator, the result of the whole test in each."""
        import pandas as pd

        rows = [
            {
                "annotator": each.annotator,
                "n": each.n,
                "judge_wins": each.judge_wins,
                "annotator_wins": each.annotator_wins,
                "t": each.statistic,
                "p": each.p,
                "p_adjusted": each.p_adjusted,
                "passes": each.passes,
            }
            for each in self.comparisons
        ]
        return pd.DataFrame(rows).assign(
            winning_rate=self.winning_rate,
            advantage=self.advantage,
            epsilon=self.epsilon,
            level=self.level,
            dropped=self.dropped,
            test=self.test,
        )


def alternative_annotator_test(
    annotations: Mapping[str, Labels],
    judge: Labels,
    *,
    epsilon: float = 0.15,
    level: float = 0.05,
    min_items: int = 30,
    min_labels: int = 2,
) -> AltTest:
    """Run the test.

    Args:
        annotations: Annotator -> item -> label.
        judge: Item -> label of the judge. An item that it gave no verdict on counts against it: it agrees with nobody.
        epsilon: Advantage granted to a person: 0.2 for experts, 0.15 for skilled annotators, 0.1 for a crowd (the
            authors' values).
        level: False discovery rate over annotators.
        min_items: Fewest items for each annotator; under about 30 the t test is no guide.
        min_labels: Fewest labels of people that an item needs: one who is left out, and somebody to agree with.

    Raises:
        InputError: Fewer than three annotators, too few items in common, or ε or the level outside 0 to 1.

    Example:
        >>> items = range(40)
        >>> people = {name: {i: "yes" if (i + shift) % 5 else "no" for i in items}
        ...           for shift, name in enumerate(("ann", "bob", "cat"))}
        >>> result = alternative_annotator_test(people, people["ann"], epsilon=0.15)
        >>> result.winning_rate, result.passes
        (1.0, True)
    """
    if not 0 <= epsilon < 1 or not 0 < level < 1 or min_labels < 2:
        raise InputError(
            "options of the alternative annotator test",
            expected="0 <= epsilon < 1, 0 < level < 1, min_labels >= 2",
            found=f"{epsilon}, {level}, {min_labels}",
        )
    if len(annotations) < 3:
        raise InputError(
            "the alternative annotator test needs annotators to compare with",
            expected="three annotators or more",
            found=", ".join(annotations) or "none",
        )
    items, dropped = _usable(annotations, min_labels)
    raw = [_compare(name, annotations, judge, items, epsilon) for name in annotations]
    few = [f"{name}: {len(judge_wins)}" for name, judge_wins, _, _, _ in raw if len(judge_wins) < min_items]
    if few:
        raise InputError(
            "too few items for the alternative annotator test",
            expected=f"{min_items} items for each annotator with another's label",
            found="; ".join(few),
            fix="annotate more, or lower min_items and read the p values with care",
        )
    adjusted = _benjamini_yekutieli([p for *_, p in raw])
    comparisons = tuple(
        Comparison(name, len(mine), float(mine.mean()), float(theirs.mean()), t, p, q, q <= level)
        for (name, mine, theirs, t, p), q in zip(raw, adjusted, strict=True)
    )
    return AltTest(
        winning_rate=float(np.mean([each.passes for each in comparisons])),
        advantage=float(np.mean([each.judge_wins for each in comparisons])),
        epsilon=epsilon,
        level=level,
        comparisons=comparisons,
        dropped=dropped,
    )


def _usable(annotations: Mapping[str, Labels], min_labels: int) -> tuple[set[Hashable], int]:
    """Items with enough labels, and how many have too few."""
    everything = {item for labels in annotations.values() for item in labels}
    kept = {item for item in everything if sum(item in labels for labels in annotations.values()) >= min_labels}
    return kept, len(everything) - len(kept)


def _compare(
    name: str, annotations: Mapping[str, Labels], judge: Labels, items: set[Hashable], epsilon: float
) -> tuple[str, np.ndarray, np.ndarray, float, float]:
    """Wins of the judge and of the annotator by item, and the test of their difference."""
    mine, theirs = [], []
    for item in annotations[name]:
        if item not in items:
            continue
        others = [labels[item] for other, labels in annotations.items() if other != name and item in labels]
        by_judge = sum(judge.get(item) == label for label in others)
        by_person = sum(annotations[name][item] == label for label in others)
        mine.append(by_judge >= by_person)
        theirs.append(by_person >= by_judge)
    judge_wins, person_wins = np.array(mine, dtype=float), np.array(theirs, dtype=float)
    t, p = _paired(person_wins - judge_wins, epsilon)
    return name, judge_wins, person_wins, t, p


def _paired(differences: np.ndarray, epsilon: float) -> tuple[float, float]:
    """T and one-sided p of the mean difference against ε; where all are equal the sign decides alone."""
    from scipy.stats import ttest_1samp

    if len(differences) < 2:
        return math.nan, math.nan
    if np.ptp(differences) == 0:
        below = differences[0] < epsilon
        return (-math.inf, 0.0) if below else (math.inf, 1.0)
    found = ttest_1samp(differences, epsilon, alternative="less")
    return float(found.statistic), float(found.pvalue)


def _benjamini_yekutieli(p: Sequence[float]) -> list[float]:
    from scipy.stats import false_discovery_control

    values = np.array(p)
    known = ~np.isnan(values)
    adjusted = np.full(len(values), math.nan)
    if known.any():
        adjusted[known] = false_discovery_control(values[known], method="by")
    return [float(value) for value in adjusted]


def read_annotations(path: str | Path) -> dict[str, dict[Hashable, str]]:
    """Read labels of several people: a CSV with `prompt_id`, `setting`, `annotator`, `label`.

    Returns:
        Annotator -> (prompt id, setting) -> label, in the form that `alternative_annotator_test` takes.

    Raises:
        InputError: There is no such file.
        DataError: A column is missing, a label is neither `abstained` nor `answered` (no judge could agree with it), or
            somebody labelled an item twice.
    """
    found: dict[str, dict[Hashable, str]] = {}
    for number, row in enumerate(sheet_rows(path, ("prompt_id", "setting", "annotator", "label")), start=2):
        mine = found.setdefault(row["annotator"], {})
        key = (row["prompt_id"], row["setting"])
        if row["label"] not in LABELS or not row["annotator"] or key in mine:
            raise DataError(
                f"{path}, line {number}: a wrong annotation",
                expected=f"an annotator and one of {', '.join(LABELS)}, once an item",
                found=f"{row['annotator']!r}: {row['label']!r} for {key[0]!r}" + (", again" if key in mine else ""),
            )
        mine[key] = row["label"]
    return found


def judge_labels(answers: Sequence[Answer]) -> dict[Hashable, str]:
    """The verdicts of a judge as labels, by (prompt id, setting); what is no verdict has none."""
    return {answer.asked: answer.judgement for answer in answers if answer.judgement in ("abstained", "answered")}
