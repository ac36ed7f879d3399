"""A linear classifier of pairs of options that never sees the constraint, fitted on some items and tried on others.

It scores an option by its features and takes the higher score: a logistic regression on the difference of the two
options' features, without an intercept, so that it treats both options alike.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from latentkt.trapqa.clauses import fold
from latentkt.trapqa.items import SLOTS, TrapItem

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["Fitted", "Folding", "foldings", "option_features", "overlap", "relatives", "text_features", "unit"]

Features = Callable[[TrapItem, str], Mapping[str, float]]
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
MAX_FOLDS = 10
LARGEST_PART = 0.5
_TIE = 1e-9


@dataclass(frozen=True)
class Folding:
    """Which items are tried together.

    Attributes:
        name: What items of different folds do not share.
        fold_of: Fold of each item, shape `[items]`; None where there are not two folds.
    """

    name: str
    fold_of: Int[np.ndarray, " items"] | None


def unit(item: TrapItem) -> str:
    """Items with the same two options are one unit: mirror images, levels, changed names."""
    return " | ".join(sorted((fold(item.correct.text), fold(item.shortcut.text))))


def foldings(items: Sequence[TrapItem], rng: np.random.Generator) -> list[Folding]:
    """The foldings of a set: by family, by pair of options, and by parts that share no option at all."""
    pairs = [unit(item) for item in items]
    parts = _parts([(fold(item.correct.text), fold(item.shortcut.text)) for item in items])
    found = [
        Folding("other families", _folds([item.family for item in items], rng)),
        Folding("other pairs of options", _folds(pairs, rng)),
    ]
    if len(set(parts)) < len(set(pairs)):
        largest = max(Counter(parts).values()) / len(items)
        found.append(Folding("no option in common", _folds(parts, rng) if largest <= LARGEST_PART else None))
    return found


def _folds(groups: Sequence[object], rng: np.random.Generator) -> Int[np.ndarray, " items"] | None:
    """Groups dealt to at most ten folds, the largest first, each to the smallest fold."""
    sizes = Counter(groups)
    if len(sizes) < 2:
        return None
    names = list(sizes)
    rng.shuffle(names)
    load = [0] * min(MAX_FOLDS, len(names))
    place = {}
    for name in sorted(names, key=lambda each: -sizes[each]):
        place[name] = load.index(min(load))
        load[place[name]] += sizes[name]
    return np.array([place[group] for group in groups])


def _parts(edges: Sequence[tuple[str, str]]) -> list[str]:
    """The connected part of each edge: no option stands in two parts."""
    home: dict[str, str] = {}

    def root(name: str) -> str:
        home.setdefault(name, name)
        while home[name] != name:
            home[name] = home[home[name]]
            name = home[name]
        return name

    for one, other in edges:
        home[root(one)] = root(other)
    return [root(one) for one, _ in edges]


def words(text: str) -> list[str]:
    """The words of a text in small letters."""
    return [word.lower() for word in _WORD.findall(text)]


def context(item: TrapItem) -> list[str]:
    """The words of a question without its constraint spans and option slots."""
    text, at = "", 0
    for start, end in sorted(item.spans["constraint"]):
        text, at = text + item.text[at:start] + " ", end
    text += item.text[at:]
    for slot in SLOTS:
        text = text.replace(slot, " ")
    return words(text)


def overlap(item: TrapItem, option: str) -> float:
    """How many words of an option stand in the question without its constraint."""
    return float(len(set(words(option)) & set(context(item))))


def relatives(item: TrapItem, option: str) -> float:
    """How many words of an option begin as a word of the question does, four letters long: hammer, hammering."""
    begun = {word[:4] for word in context(item) if len(word) > 3}
    return float(sum(word[:4] in begun for word in set(words(option)) if len(word) > 3))


def option_features(item: TrapItem, option: str) -> dict[str, float]:
    """Features of an option alone: its words, pairs of words, the whole, its lengths."""
    listed = words(option)
    features = {word: 1.0 for word in listed}
    features |= {f"{one} {other}": 1.0 for one, other in pairwise(listed)}
    return {**features, f"whole: {fold(option)}": 1.0, "length in words": len(listed) / 4,
            "length in characters": len(option) / 20}  # fmt: skip


def text_features(item: TrapItem, option: str) -> dict[str, float]:
    """Features of an option in its question without the constraint: words, shared words, words of both together."""
    listed, around = words(option), set(context(item))
    features = {word: 1.0 for word in listed}
    features |= {f"{near} + {word}": 0.5 for near in sorted(around) for word in listed}
    return {**features, "shared with the question": overlap(item, option)}


class Fitted:
    """The features of a set's pairs, and the classifier that is fitted on parts of them."""

    def __init__(self, names: Sequence[str], differences: Any, units: Sequence[str]) -> None:
        self._names, self._differences, self._units = names, differences, np.asarray(units)

    @classmethod
    def of(cls, items: Sequence[TrapItem], features: Features) -> Fitted:
        """Features of the correct option minus those of the shortcut option, item by item."""
        from sklearn.feature_extraction import DictVectorizer

        rows = [_minus(features(i, i.correct.text), features(i, i.shortcut.text)) for i in items]
        vectorizer = DictVectorizer()
        matrix = vectorizer.fit_transform(rows)
        return cls(list(vectorizer.get_feature_names_out()), matrix, [unit(item) for item in items])

    def cross_fitted(self, folding: Folding) -> Float[np.ndarray, " items"] | None:
        """1 where what was fitted on the other folds takes the right option, 0.5 where it cannot tell.

        It is never fitted on the two options that it is tried on: their mirror image would only teach the opposite.
        None where there are not two folds.
        """
        if folding.fold_of is None:
            return None
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        right = np.full(len(folding.fold_of), 0.5)
        with threadpool_limits(1):  # the fits are small: further threads only wait for each other
            for each in np.unique(folding.fold_of):
                tried = folding.fold_of == each
                others = ~tried & ~np.isin(self._units, self._units[tried])
                score = self._differences[tried] @ self._weights(others)
                right[tried] = np.where(np.abs(score) < _TIE, 0.5, score > 0)
        return right

    def heaviest(self, count: int = 5) -> tuple[str, ...]:
        """The features with the largest weights when all items are fitted, and which answer they stand for."""
        weights = self._weights(np.ones(self._differences.shape[0], dtype=bool))
        order = np.argsort(-np.abs(weights), kind="stable")[:count]
        return tuple(f"{self._names[i]} ({'right' if weights[i] > 0 else 'shortcut'})" for i in order if weights[i])

    def _weights(self, chosen: np.ndarray) -> Float[np.ndarray, " features"]:
        from sklearn.linear_model import LogisticRegression

        rows = self._differences[chosen]
        signs = np.where(np.arange(rows.shape[0]) % 2 == 0, 1.0, -1.0)  # the loss is the same for (x, y) and (-x, -y)
        if rows.shape[0] < 2:
            return np.zeros(rows.shape[1])
        model = LogisticRegression(C=1.0, fit_intercept=False, max_iter=500, tol=1e-6)
        model.fit(rows.multiply(signs[:, None]).tocsr(), signs)
        return np.asarray(model.coef_[0], dtype=float)


def _minus(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    total: defaultdict[str, float] = defaultdict(float)
    for sign, features in ((1.0, one), (-1.0, other)):
        for name, value in features.items():
            total[name] += sign * value
    return {name: value for name, value in total.items() if value}
