"""How easily made concepts are told from real ones: by their characters alone, and by a count alone.

What a classifier of character trigrams can tell, a model may use too; so these areas under the ROC curve are the
baseline of everything that is read from a model about existence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from latentkt.errors import InputError
from latentkt.phantom.concepts import Concept
from latentkt.stats import Interval

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["Plausibility", "grouped_auroc", "measure_plausibility", "trigram_scores"]


@dataclass(frozen=True, slots=True)
class Plausibility:
    """How well made concepts are told from real ones; 0.5 is not at all.

    Attributes:
        trigrams: Area of the trigram classifier, out of fold.
        counts: Area of a rule on a count: above 0.5 where made concepts have more.
        n_made: Made concepts.
        n_real: Real ones.
        n_groups: Groups that folds and intervals keep together.
    """

    trigrams: Interval
    counts: Interval
    n_made: int
    n_real: int
    n_groups: int


def measure_plausibility(
    made: Sequence[Concept],
    real: Sequence[Concept],
    *,
    count: Callable[[str], int] = lambda text: len(text.split()),
    folds: int = 5,
    resamples: int = 200,
    seed: int = 0,
) -> Plausibility:
    """Areas under the ROC curve for made against real.

    A made concept is in the group of its first parent, and so is a real one: it is its own parent. For entities, whose
    first parent is a pattern, a real one is in the group of the longest pattern that it holds.

    Args:
        made: Made concepts.
        real: Real ones.
        count: The count; words by default, tokens with a tokenizer's.
        folds: Of the cross-validation.
        resamples: Of the groups, for the intervals.
        seed: Of folds and resamples.

    Raises:
        InputError: There are fewer groups than folds, or only one kind.
    """
    concepts = [*made, *real]
    labels = np.array([True] * len(made) + [False] * len(real))
    groups = _groups(made, real)
    if not made or not real or len(set(groups)) < folds:
        raise InputError(
            "too few concepts", expected=f"made and real ones, at least {folds} groups", found=(len(made), len(real))
        )
    texts = [concept.concept for concept in concepts]
    codes = np.unique(groups, return_inverse=True)[1]
    scores = trigram_scores(texts, labels, codes, folds=folds, seed=seed)
    counts = np.array([count(text) for text in texts], float)
    areas = [grouped_auroc(each, labels, codes, resamples=resamples, seed=seed) for each in (scores, counts)]
    return Plausibility(areas[0], areas[1], len(made), len(real), len(set(groups)))


def _groups(made: Sequence[Concept], real: Sequence[Concept]) -> list[str]:
    patterns = sorted({c.group.lower() for c in made if c.method == "pattern"}, key=lambda name: (-len(name), name))
    return [concept.group.lower() for concept in made] + [_real_group(concept, patterns) for concept in real]


def _real_group(concept: Concept, patterns: Sequence[str]) -> str:
    from latentkt.phantom.patterns import shape

    text = f" {' '.join(map(shape, concept.concept.split()))} "
    return next((pattern for pattern in patterns if f" {pattern} " in text), concept.concept.lower())


def trigram_scores(
    texts: Sequence[str], labels: ArrayLike, groups: ArrayLike, *, folds: int = 5, seed: int = 0
) -> NDArray[np.float64]:
    """Log-odds of being made, each from a fold that did not hold the text's group.

    Logistic regression on the tf-idf of character trigrams, case kept, white space at the edges.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedGroupKFold
    from sklearn.pipeline import make_pipeline

    labels, scores = np.asarray(labels, bool), np.zeros(len(texts))
    split: Any = StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
    rows = np.array([f" {text} " for text in texts], dtype=object)
    for train, test in split.split(rows, labels, groups):
        model = make_pipeline(
            TfidfVectorizer(analyzer="char", ngram_range=(3, 3), lowercase=False, sublinear_tf=True),
            LogisticRegression(class_weight="balanced", max_iter=1000),
        )
        scores[test] = model.fit(rows[train], labels[train]).decision_function(rows[test])
    return scores


def grouped_auroc(
    scores: ArrayLike,
    positive: ArrayLike,
    groups: ArrayLike,
    *,
    level: float = 0.95,
    resamples: int = 200,
    seed: int = 0,
) -> Interval:
    """Area under the ROC curve with a percentile interval over resampled groups.

    Example:
        >>> grouped_auroc([1, 2, 3, 4], [False, False, True, True], [0, 1, 2, 3]).value
        1.0
    """
    scores, positive = np.asarray(scores, float), np.asarray(positive, bool)
    _, codes = np.unique(np.asarray(groups), return_inverse=True)
    rng = np.random.default_rng(seed)
    order = np.argsort(scores, kind="stable")
    ties = np.unique(scores[order], return_inverse=True)[1]
    yes, own = positive[order], codes[order]
    n_groups = int(codes.max()) + 1
    areas = []
    for _ in range(resamples):
        times = np.bincount(rng.integers(0, n_groups, n_groups), minlength=n_groups)
        areas.append(_area(ties, yes, times[own].astype(float)))
    low, high = np.nanquantile(areas, [(1 - level) / 2, (1 + level) / 2])
    estimate = _area(ties, yes, np.ones(len(own)))
    return Interval(estimate, float(low), float(high), level, "percentile over groups", len(own), n_groups)


def _area(ties: NDArray[np.int64], yes: NDArray[np.bool_], weights: NDArray[np.float64]) -> float:
    above = np.bincount(ties, weights=weights * yes)
    below = np.bincount(ties, weights=weights * ~yes, minlength=len(above))
    total = above.sum() * below.sum()
    if total == 0:
        return float("nan")
    return float((above * (np.cumsum(below) - below / 2)).sum() / total)
