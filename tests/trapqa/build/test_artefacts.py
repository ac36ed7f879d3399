from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from latentkt.errors import InputError
from latentkt.trapqa import ItemSet, TrapItem, builtin_items, mark_item
from latentkt.trapqa.build.artefact_classifier import Fitted, foldings, option_features, unit
from latentkt.trapqa.build.artefacts import ArtefactReport, artefact_tests

WORDS = ["walk", "drive", "phone", "write", "sweep", "mop", "sail", "swim", "cook", "eat", "wait", "run"]


def scene(
    n: int,
    correct: str,
    shortcut: str,
    *,
    cue: str = "It is late",
    polarity: str = "none",
    family: str = "",
) -> TrapItem:
    return mark_item(
        id=f"i{n}",
        kind="action",
        family=family or f"f{n // 4 % 5}",
        polarity=polarity,
        text=f"[[shortcut: {cue}]] and there is [[constraint: no rain]] today. Do I {{option_a}} or {{option_b}}?",
        control={"constraint": "much rain"},
        correct=correct,
        shortcut=shortcut,
    )


def mirrored(
    change: Callable[[str, str, int], tuple[str, str]] = lambda right, wrong, n: (right, wrong),
) -> list[TrapItem]:
    """Sixty pairs of mirror images: what is right in one is the shortcut in the other; `change` may spoil them."""
    rng = np.random.default_rng(0)
    items = []
    for n in range(60):
        one, other = (" ".join(map(str, rng.choice(WORDS, size=2, replace=False))) for _ in range(2))
        for k, (right, wrong) in enumerate(((one, other), (other, one))):
            changed = change(right, wrong, n)
            if changed[0] != changed[1]:
                items.append(scene(2 * n + k, *changed))
    return items


def told(report: ArtefactReport) -> set[str]:
    return {test.test for test in report.tests if test.gives_away}


def test_mirror_images_tell_nothing() -> None:
    report = artefact_tests(mirrored())
    assert report.passed and not report.reasons
    fitted = [test for test in report.tests if test.folds == "other pairs of options"]
    assert len(fitted) == 2
    assert all(test.share.value == 0.5 for test in fitted), "one of two mirror images is right, whatever is learned"


@pytest.mark.parametrize(
    ("change", "test", "word"),
    [
        (lambda r, w, n: (f"carefully {r}", w), "options alone", "carefully"),
        (lambda r, w, n: (r, f"just {w}"), "options alone", "just"),
        (lambda r, w, n: (f"{r} in the end of it all", w), "the longer option", ""),
        (lambda r, w, n: (f"aa{r}", f"zz{w}"), "the option first in the alphabet", ""),
        (lambda r, w, n: (r.capitalize(), w), "the option with more capitals", ""),
        (
            lambda r, w, n: (f"lately {r}", f"gladly {w}"),
            "the option with more words that begin as one of the question does",
            "",
        ),
    ],
)
def test_a_planted_artefact_is_caught_and_named(
    change: Callable[[str, str, int], tuple[str, str]], test: str, word: str
) -> None:
    report = artefact_tests(mirrored(change))
    assert not report.passed
    assert test in told(report)
    assert any(reason.startswith(test) and word in reason for reason in report.reasons)


def test_a_word_of_the_question_that_goes_with_the_right_option_is_caught() -> None:
    items = []
    for n in range(80):
        pair = ("walk on", "ride on") if n % 2 else ("ride on", "walk on")
        items.append(scene(n, *pair, cue="Luckily it is late" if n % 2 else "Sadly it is late"))
    mixed = [replace(item, correct=replace(item.correct, text=f"{item.correct.text} {n // 2}"),
                     shortcut=replace(item.shortcut, text=f"{item.shortcut.text} {n // 2}"))
             for n, item in enumerate(items)]  # fmt: skip
    report = artefact_tests(mixed)
    assert "options alone" not in told(report)
    assert "bag of words without the constraint" in told(report)


def test_what_only_the_constraint_tells_is_no_artefact() -> None:
    """The constraint decides between two options that return: seen with it they are told, and it is not seen."""
    items = []
    for n in range(80):
        right, wrong, why = ("walk", "ride", "a drought") if n % 2 else ("ride", "walk", "a cloudburst")
        item = mark_item(
            id=f"i{n}", kind="action", family=f"f{n % 5}", correct=f"{right} {n // 2}", shortcut=f"{wrong} {n // 2}",
            text=f"[[shortcut: It is late]] and there is [[constraint: {why}]]. Do I {{option_a}} or {{option_b}}?",
            control={"constraint": "no weather"},
        )  # fmt: skip
        items.append(item)
    assert artefact_tests(items).passed


def test_naming_the_shortcut_in_the_question_is_caught() -> None:
    items = [scene(n, f"{right} {n}", f"{wrong} {n}", cue=f"I could {wrong}")
             for n, (right, wrong) in enumerate(zip(WORDS * 5, WORDS[1:] * 5 + WORDS[:5], strict=False))]  # fmt: skip
    assert "the option that shares more words with the question" in told(artefact_tests(items))


def test_polarity_out_of_balance_is_refused() -> None:
    items = [replace(item, polarity="negated") for item in mirrored()]
    assert told(artefact_tests(items)) == {"affirmed rather than negated"}
    half = [replace(item, polarity="negated" if n % 2 else "affirmed") for n, item in enumerate(mirrored())]
    assert artefact_tests(half).passed


def test_items_with_the_same_options_are_one_unit_and_stay_in_one_fold() -> None:
    items = mirrored()
    assert unit(items[0]) == unit(items[1]) != unit(items[2])
    for folding in foldings(items, np.random.default_rng(0)):
        assert folding.fold_of is not None
        if folding.name == "other families":
            by = [item.family for item in items]
        elif folding.name == "other pairs of options":
            by = [unit(item) for item in items]
        else:
            continue
        homes: dict[str, set[int]] = {}
        for name, fold in zip(by, folding.fold_of, strict=True):
            homes.setdefault(name, set()).add(int(fold))
        assert all(len(folds) == 1 for folds in homes.values())


def test_options_in_common_are_parted_where_that_is_possible() -> None:
    people = [("Ann", "Bea"), ("Bea", "Cis"), ("Dot", "Eve"), ("Fay", "Gil"), ("Gil", "Fay")]
    items = [scene(n, *pair, family=f"f{n}") for n, pair in enumerate(people)]
    folding = foldings(items, np.random.default_rng(0))[-1]
    assert folding.name == "no option in common" and folding.fold_of is not None
    folds = dict(zip(people, folding.fold_of, strict=True))
    assert folds["Ann", "Bea"] == folds["Bea", "Cis"]
    assert folds["Fay", "Gil"] == folds["Gil", "Fay"] != folds["Dot", "Eve"]


def test_one_part_of_options_cannot_be_parted_and_says_so() -> None:
    chain = [scene(n, f"p{n}", f"p{n + 1}", family=f"f{n}") for n in range(12)]
    report = artefact_tests(chain)
    rows = [test for test in report.tests if test.folds == "no option in common"]
    assert rows and all(np.isnan(test.share.value) and not test.gives_away for test in rows)
    assert any("no option in common: could not be tried" in note for note in report.notes)


def test_a_person_who_is_always_the_shortcut_tells_across_pairs_and_not_across_people() -> None:
    """Pairs that share people: who was the shortcut before is the shortcut again; other people are not told by it."""
    items = []
    for group in range(8):
        for n in range(10):
            items.append(scene(10 * group + n, f"Person{group}x{n}", f"Famous{group}", family=f"f{n % 5}"))
    options = {test.folds: test for test in artefact_tests(items).tests if test.test == "options alone"}
    assert options["other pairs of options"].share.value > 0.95
    assert options["other pairs of options"].gives_away
    fitted = Fitted.of(items, lambda item, option: {f"whole: {option}": 1.0})
    parts = next(f for f in foldings(items, np.random.default_rng(0)) if f.name == "no option in common")
    right = fitted.cross_fitted(parts)
    assert right is not None and set(right) == {0.5}


def test_being_reliably_wrong_is_caught_too() -> None:
    """Everybody is right once and the shortcut once, in other pairs: who was seen right has to be wrong next time."""
    items = [scene(n, f"Person{n}", f"Person{(n + 1) % 60}", family=f"f{n % 5}") for n in range(60)]
    fitted = {test.folds: test for test in artefact_tests(items).tests if test.test == "options alone"}
    assert fitted["other pairs of options"].share.high < 0.5
    assert fitted["other pairs of options"].gives_away


def test_the_classifier_treats_both_options_alike() -> None:
    items = mirrored()
    turned = [replace(item, correct=item.shortcut, shortcut=item.correct) for item in items]
    folding = foldings(items, np.random.default_rng(3))[1]
    one = Fitted.of(items, option_features).cross_fitted(folding)
    other = Fitted.of(turned, option_features).cross_fitted(folding)
    assert one is not None and other is not None
    np.testing.assert_array_equal(one, other)


def test_an_empty_set_is_refused_and_small_ones_are_not_judged_by_classifiers() -> None:
    with pytest.raises(InputError, match="no items"):
        artefact_tests([])
    report = artefact_tests([scene(0, "walk", "drive")])
    assert report.passed and any("could not be tried" in note for note in report.notes)


def test_the_same_seed_gives_the_same_report() -> None:
    items = mirrored()
    assert repr(artefact_tests(items, seed=4)) == repr(artefact_tests(items, seed=4))


def test_the_built_in_sets() -> None:
    """The scientists pass; of the everyday scenes it is known that the cue often names the shortcut's own words."""
    assert artefact_tests(builtin_items("scientist")).passed
    everyday = artefact_tests(ItemSet(builtin_items("action").items))
    assert "the option that shares more words with the question" in told(everyday)
    assert "options alone" not in told(everyday)
