"""What gives the answer of a set away without its constraint: tests that a benchmark has to pass.

Every test plays the items themselves, where the correct answer is right. A classifier that never sees the constraint is
fitted on some items and tried on others; simple habits (the longer option, the one that the question names, the one
that is shown first) are tried on all. Chance is one half. A set in which any of them does better, or reliably worse, is
refused as a benchmark, with what it was that told.

One thing no set of traps can hide: whoever knows the associations and takes the option that they do *not* suggest is
right in every item, and wrong in every flip control. That is what controls are for; read items and controls together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from latentkt.errors import InputError
from latentkt.stats import Interval, clustered_share
from latentkt.trapqa.build import artefact_classifier as classifier
from latentkt.trapqa.build.artefact_classifier import Folding
from latentkt.trapqa.clauses import fold
from latentkt.trapqa.items import ItemSet, TrapItem
from latentkt.trapqa.running.questions import seeded_order

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["ArtefactReport", "ArtefactTest", "artefact_tests"]

Tried = tuple[Sequence[TrapItem], Sequence[float]]


@dataclass(frozen=True, slots=True)
class ArtefactTest:
    """One way to find the answer without the constraint, and how often it did.

    Attributes:
        test: What was tried.
        folds: What the fitted and the tried items of a classifier do not share; empty for simple habits.
        share: How often it was right, with its interval by unit (items with the same two options are one unit);
            NaN where it could not be tried.
        gives_away: Whether that differs from chance. Less tells as much as more: who is reliably wrong need only turn
            round, as where everybody is right as often as wrong and so must be wrong where they were seen right.
        telling: What told: the heaviest words of a classifier.
    """

    test: str
    folds: str
    share: Interval
    gives_away: bool
    telling: tuple[str, ...] = ()

    def row(self) -> dict[str, Any]:
        """The test as a row of a table."""
        return {
            "test": self.test,
            "folds": self.folds,
            "items": self.share.n,
            "right": self.share.value,
            "low": self.share.low,
            "high": self.share.high,
            "gives away": "yes" if self.gives_away else "no",
        }


@dataclass(frozen=True, slots=True)
class ArtefactReport:
    """All tests of one set.

    Attributes:
        tests: The tests that decide.
        notes: Balances that are worth knowing and give no answer away by themselves, and tests that could not be run.
        level: Level at which a single test decides: all of them together err once in twenty clean sets.
    """

    tests: tuple[ArtefactTest, ...]
    notes: tuple[str, ...]
    level: float

    @property
    def passed(self) -> bool:
        """Whether the set may be called a benchmark: no test found the answer."""
        return not any(test.gives_away for test in self.tests)

    @property
    def table(self) -> list[dict[str, Any]]:
        """One row a test; the interval is the 95 % one."""
        return [test.row() for test in self.tests]

    @property
    def reasons(self) -> tuple[str, ...]:
        """What gives the answer away, one sentence each; empty where nothing does."""
        return tuple(_reason(test) for test in self.tests if test.gives_away)


def artefact_tests(items: ItemSet | Sequence[TrapItem], *, seed: int = 0) -> ArtefactReport:
    """Try to find the right answers of a set without its constraints.

    Args:
        items: The items; only their text outside the constraint spans, their options and polarities are used.
        seed: For folds and the seeded order of options.

    Returns:
        The tests with intervals. Classifiers are tried twice: on families that they were not fitted on, and on pairs
        of options that they were not fitted on, where single options (the same person in another pair, the same tool)
        may be known; and, where items fall into parts that share no option, on other parts.

    Raises:
        InputError: There are no items.

    Example:
        >>> from latentkt.trapqa import mark_item
        >>> def scene(n, good, bad):
        ...     return mark_item(id=f"i{n}", kind="action", family=f"f{n % 4}", correct=f"{good} {n}",
        ...         shortcut=f"{bad} {n}", control={"constraint": "nails"},
        ...         text="With [[shortcut: a hammer]] and [[constraint: screws]], is it {option_a} or {option_b}?")
        >>> told = artefact_tests([scene(n, "carefully turning", "just hitting") for n in range(40)])
        >>> told.passed, told.tests[0].telling[0]
        (False, 'carefully (right)')
    """
    played = tuple(items)
    if not played:
        raise InputError("no items to test for artefacts", expected="at least one item", found="none")
    rng = np.random.default_rng(seed)
    foldings = classifier.foldings(played, rng)
    runs: list[Callable[[float], ArtefactTest]] = []
    for name, features in (
        ("options alone", classifier.option_features),
        ("bag of words without the constraint", classifier.text_features),
    ):
        fitted = classifier.Fitted.of(played, features)
        runs += [_classified(name, fitted, folding, played) for folding in foldings]
    habits = _habits(played, seed)
    level = 1 - 0.05 / (len(runs) + len(habits))
    tests = [run(level) for run in runs]
    tests += [_habit(name, tried, level) for name, tried in habits.items()]
    return ArtefactReport(tuple(tests), tuple(_notes(played, tests)), level)


def _classified(
    name: str, fitted: classifier.Fitted, folding: Folding, items: Sequence[TrapItem]
) -> Callable[[float], ArtefactTest]:
    def run(level: float) -> ArtefactTest:
        right = fitted.cross_fitted(folding)
        if right is None:
            return ArtefactTest(name, folding.name, _nothing(), False)
        share, strict = _shares(items, right, level)
        told = strict.low > 0.5 or strict.high < 0.5
        return ArtefactTest(name, folding.name, share, told, fitted.heaviest() if told else ())

    return run


def _habit(name: str, tried: Tried, level: float) -> ArtefactTest:
    items, right = tried
    if not items:
        return ArtefactTest(name, "", _nothing(), False)
    share, strict = _shares(items, right, level)
    return ArtefactTest(name, "", share, strict.low > 0.5 or strict.high < 0.5)


def _shares(items: Sequence[TrapItem], right: ArrayLike, level: float) -> tuple[Interval, Interval]:
    """The share right at 95 % and at the deciding level; what cannot be told counts half, as two halves of an item."""
    halves = np.stack([np.ceil(right), np.floor(right)], axis=1).ravel()
    units = [classifier.unit(item) for item in items for _ in range(2)]
    both = clustered_share(halves, units), clustered_share(halves, units, level=level)
    return replace(both[0], n=len(items)), replace(both[1], n=len(items))


def _nothing() -> Interval:
    return Interval(float("nan"), float("nan"), float("nan"), 0.95, "not tried", 0)


def _habits(items: Sequence[TrapItem], seed: int) -> Mapping[str, Tried]:
    """Ways to answer that need no fitting: name -> items on which they say something, and 1 where that is right."""

    def by(score: Callable[[TrapItem, str], float]) -> Tried:
        differ = [(i, score(i, i.correct.text) - score(i, i.shortcut.text)) for i in items]
        told = [(item, float(difference > 0)) for item, difference in differ if difference != 0]
        return [item for item, _ in told], [right for _, right in told]

    polar = [item for item in items if item.polarity != "none"]
    return {
        "the longer option": by(lambda _, option: len(option)),
        "the option with more words": by(lambda _, option: len(option.split())),
        "the option first in the alphabet": by(lambda i, o: float(fold(o) == min(map(fold, _options(i))))),
        "the option that shares more words with the question": by(classifier.overlap),
        "the option with more words that begin as one of the question does": by(classifier.relatives),
        "the option with more capitals": by(lambda _, option: sum(map(str.isupper, option))),
        "the option shown first (order from the seed)": (
            items,
            [float(seeded_order(seed, item.id) == "correct_first") for item in items],
        ),
        "affirmed rather than negated": (polar, [float(item.polarity == "affirmed") for item in polar]),
    }


def _options(item: TrapItem) -> tuple[str, str]:
    return item.correct.text, item.shortcut.text


def _notes(items: Sequence[TrapItem], tests: Sequence[ArtefactTest]) -> list[str]:
    after = sum(item.spans["constraint"][0][0] > item.spans["shortcut"][0][0] for item in items)
    notes = [f"the constraint stands behind the cue in {after} of {len(items)} items"]
    notes += [f"{t.test}, {t.folds or 'all items'}: could not be tried" for t in tests if not t.share.n]
    return notes


def _reason(test: ArtefactTest) -> str:
    words = f"; heaviest: {', '.join(test.telling)}" if test.telling else ""
    folds = f" ({test.folds})" if test.folds else ""
    return f"{test.test}{folds} is right in {test.share:.0%} of {test.share.n} items, chance is 50 %{words}"
