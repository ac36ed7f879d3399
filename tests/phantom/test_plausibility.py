"""The classifiers that measure plausibility: right where the answer is known, grouped so that nothing leaks."""

from __future__ import annotations

import random

import numpy as np
import pytest

from latentkt.errors import InputError
from latentkt.phantom import Concept, measure_plausibility
from latentkt.phantom.plausibility import grouped_auroc, trigram_scores
from latentkt.stats import auroc


def words(rng, n, syllables):
    return ["".join(rng.choice(syllables) for _ in range(rng.randrange(2, 4))) for _ in range(n)]


def test_the_area_is_that_of_the_stats_floor():
    rng = np.random.default_rng(0)
    scores, positive = rng.integers(0, 9, 300), rng.random(300) < 0.3
    found = grouped_auroc(scores, positive, np.arange(300), resamples=400)
    exact = auroc(scores, positive)
    assert found.value == pytest.approx(exact.value, abs=1e-12)
    assert found.low == pytest.approx(exact.low, abs=0.015) and found.high == pytest.approx(exact.high, abs=0.015)


def test_groups_widen_the_interval():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(30), 20)
    scores, positive = rng.normal(size=30)[groups] + 0.1 * rng.normal(size=600), np.arange(600) % 2 == 0
    positive = rng.random(30)[groups] < 0.5
    grouped, alone = (grouped_auroc(scores, positive, g) for g in (groups, np.arange(600)))
    assert grouped.value == alone.value and grouped.high - grouped.low > 2 * (alone.high - alone.low)


def made_and_real(rng, n, one, other):
    real = [Concept.make(text, kind="term", category="c") for text in dict.fromkeys(words(rng, n, other))]
    made = [
        Concept.make(f"{text}x", kind="term", category="c", parents=[parent.concept], method="blended")
        for text, parent in zip(words(rng, len(real), one), real, strict=True)
    ]
    return made, [Concept.make(f"{c.concept}x", kind="term", category="c") for c in real]


def test_texts_of_one_law_cannot_be_told_apart_and_of_two_can():
    rng = random.Random(0)
    syllables = [a + b for a in "bcdfg" for b in "aeiou"]
    same = measure_plausibility(*made_and_real(rng, 400, syllables, syllables), count=len)
    # Out of fold the area lies a little under one half where there is nothing to learn.
    assert abs(same.trigrams.value - 0.5) < 0.08 and same.counts.low < 0.5 < same.counts.high
    apart = measure_plausibility(*made_and_real(rng, 400, ["zo", "zu"], ["ka", "ki", "ke", "ko"] * 3), count=len)
    assert apart.trigrams.value > 0.99


def test_no_group_is_on_both_sides():
    """Each text is unique to its label only through its twin in the group: without groups that would be learnt."""
    rng = random.Random(1)
    cores = words(rng, 300, [a + b for a in "bcdfghk" for b in "aeiou"])
    labels = np.array([rng.random() < 0.5 for _ in cores]).repeat(4)
    texts = [f"{core}{end}" for core in cores for end in ("", "s", "t", "n")]
    grouped = auroc(trigram_scores(texts, labels, np.arange(300).repeat(4)), labels)
    leaking = auroc(trigram_scores(texts, labels, np.arange(1200)), labels)
    assert abs(grouped.value - 0.5) < 0.1 and leaking.value > 0.8


def test_real_entities_share_the_group_of_their_pattern():
    from latentkt.phantom.plausibility import _groups

    made = [
        Concept.make("Battle of Oslo", kind="entity", category="c", parents=["Battle of", "Oslo"], method="pattern")
    ]
    real = [Concept.make(text, kind="entity", category="c") for text in ("battle of Ypres", "Thirty Years War")]
    assert _groups(made, real) == ["battle of", "battle of", "thirty years war"]


def test_too_few_are_refused():
    made, real = made_and_real(random.Random(0), 3, ["ba"], ["co", "cu", "ci"])
    for one, other in ((made, []), ([], real), (made, real)):
        with pytest.raises(InputError, match="too few"):
            measure_plausibility(one, other, folds=10)
