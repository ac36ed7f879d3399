"""Shares, odds ratios and rankings whose units repeat, against closed forms, brute force and simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from latentkt.errors import InputError
from latentkt.stats import (
    auroc,
    clustered_mantel_haenszel,
    clustered_ratio,
    clustered_share,
    fit_difficulty,
    mantel_haenszel,
    poisson_binomial,
    subset_test,
    wilson,
)
from latentkt.stats.difficulty import _loss

# [[eliminative missed: wrong, right], [compatibility missed: wrong, right]] of the eight settings of Table 5.
TABLE5 = np.array(
    [
        [[204, 285], [62, 116]],
        [[37, 91], [70, 188]],
        [[139, 159], [329, 506]],
        [[79, 193], [73, 217]],
        [[11, 24], [5, 44]],
        [[16, 24], [2, 24]],
        [[58, 95], [76, 165]],
        [[58, 68], [75, 161]],
    ]
)


@pytest.mark.parametrize("hits, n", [(0, 5), (5, 5), (3, 10), (312, 699), (1, 2)])
def test_a_share_without_repeats_is_wilsons(hits, n):
    values = np.arange(n) < hits
    found, known = clustered_share(values, np.arange(n)), wilson(hits, n)
    assert (found.value, found.low, found.high) == pytest.approx((known.value, known.low, known.high), abs=1e-12)
    assert found.clusters is None


def test_a_question_asked_twice_with_one_answer_counts_once():
    rng = np.random.default_rng(0)
    values = rng.random(400) < 0.3
    once, twice = (
        clustered_share(values, np.arange(400)),
        clustered_share(np.repeat(values, 2), np.repeat(np.arange(400), 2)),
    )
    assert (twice.low, twice.high) == pytest.approx((once.low, once.high), abs=1e-4)
    wrong = wilson(2 * int(values.sum()), 800)
    assert twice.high - twice.low > 1.3 * (wrong.high - wrong.low)


def test_answers_that_differ_within_a_question_never_narrow_below_all_of_them():
    found = clustered_share([1, 0] * 50, np.repeat(np.arange(50), 2))
    known = wilson(50, 100)
    assert (found.low, found.high) == pytest.approx((known.low, known.high))
    assert clustered_share([1] * 20, np.repeat(np.arange(10), 2)).low == pytest.approx(wilson(10, 10).low)


def test_clustered_share_covers():
    rng, hits = np.random.default_rng(1), 0
    for _ in range(400):
        p = rng.beta(1, 3, size=60)
        values = rng.random((60, 3)) < p[:, None]
        share = clustered_share(values.ravel(), np.repeat(np.arange(60), 3))
        hits += share.low <= 0.25 <= share.high
    assert 0.92 <= hits / 400 <= 0.985


def test_mantel_haenszel_of_table_5():
    found = mantel_haenszel(TABLE5).odds_ratio
    assert (found.value, found.low, found.high) == pytest.approx((1.396, 1.21, 1.62), abs=0.01)


def test_clustered_mantel_haenszel_has_the_point_of_the_closed_form_and_its_interval_where_strata_share_nothing():
    cells = []
    for stratum, table in enumerate(TABLE5):
        for row, column in itertools.product(range(2), range(2)):
            one = np.zeros((8, 2, 2))
            one[stratum, row, column] = 1
            cells += [one] * int(table[row, column])
    known, found = mantel_haenszel(TABLE5).odds_ratio, clustered_mantel_haenszel(np.array(cells))
    assert found.value == pytest.approx(known.value)
    assert math.log(found.high / found.low) == pytest.approx(math.log(known.high / known.low), rel=0.08)


def test_strata_that_are_copies_of_each_other_do_not_narrow_the_interval():
    rng = np.random.default_rng(2)
    exposed, wrong = rng.random(300) < 0.5, rng.random(300) < 0.4
    one = np.zeros((300, 1, 2, 2))
    one[np.arange(300), 0, (~exposed).astype(int), (~wrong).astype(int)] = 1
    single, copies = clustered_mantel_haenszel(one), clustered_mantel_haenszel(np.repeat(one, 4, axis=1))
    assert (copies.low, copies.high) == pytest.approx((single.low, single.high))
    closed = mantel_haenszel(np.repeat(one, 4, axis=1).sum(axis=0).astype(int)).odds_ratio
    assert math.log(closed.high / closed.low) < 0.6 * math.log(copies.high / copies.low)


def test_ratio_over_clusters_has_the_width_of_its_delta_method():
    rng = np.random.default_rng(3)
    below = rng.integers(1, 5, size=500)
    above = rng.binomial(below, 0.4)
    found = clustered_ratio(above, below)
    error = math.sqrt(((above - found.value * below) ** 2).sum()) / below.sum()
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * error, rel=0.12)


def test_auroc_counts_pairs():
    rng = np.random.default_rng(4)
    scores, positive = rng.integers(0, 8, 60).astype(float), rng.random(60) < 0.4
    high, low = scores[positive], scores[~positive]
    pairs = (high[:, None] > low) + 0.5 * (high[:, None] == low)
    found = auroc(scores, positive)
    assert found.value == pytest.approx(pairs.mean())
    variance = pairs.mean(axis=1).var(ddof=1) / len(high) + pairs.mean(axis=0).var(ddof=1) / len(low)
    logit = [math.log(end / (1 - end)) for end in (found.low, found.high)]
    slope = found.value * (1 - found.value)
    assert (logit[1] - logit[0]) / 2 == pytest.approx(1.959964 * math.sqrt(variance) / slope, rel=1e-6)


def test_auroc_without_both_kinds_or_without_overlap():
    assert math.isnan(auroc([1, 2], [1, 1]).value)
    assert auroc([1, 2, 3, 4], [0, 0, 1, 1]).value == 1.0 and not auroc([1, 2, 3, 4], [0, 0, 1, 1]).defined
    with pytest.raises(InputError):
        auroc([1.0, math.nan], [0, 1])


def test_subset_test_is_the_share_of_subsets():
    counts, marked = np.array([4, 3, 1, 0, 0, 2, 0, 1]), np.array([1, 1, 0, 0, 0, 1, 0, 0], dtype=bool)
    sums = [counts[list(part)].sum() for part in itertools.combinations(range(8), 3)]
    exact = 2 * np.mean([total >= 9 for total in sums])
    found = subset_test(counts, marked, draws=40_000)
    assert found.total == 9 and found.expected == pytest.approx(3 * counts.mean())
    assert found.p == pytest.approx(exact, abs=0.004)


def test_subset_test_of_no_part_or_all_is_none():
    assert math.isnan(subset_test([1, 2], [0, 0]).p) and math.isnan(subset_test([1, 2], [1, 1]).p)
    with pytest.raises(InputError):
        subset_test([0.5], [1])


def test_poisson_binomial_enumerates():
    p = [0.1, 0.7, 0.4]
    known = np.zeros(4)
    for outcome in itertools.product((0, 1), repeat=3):
        known[sum(outcome)] += math.prod(q if hit else 1 - q for q, hit in zip(p, outcome, strict=True))
    assert poisson_binomial(p) == pytest.approx(known)


def test_the_gradient_of_the_difficulty_model():
    rng = np.random.default_rng(5)
    patterns, times = np.unique(rng.random((40, 4)) < 0.3, axis=0, return_counts=True)
    z, weights = np.polynomial.hermite_e.hermegauss(15)
    rest = (patterns.astype(float), times, z, np.log(weights / weights.sum()))
    theta = np.array([-1.0, 0.3, -0.5, -2.0, 0.4])
    value, gradient = _loss(theta, *rest)
    for k in range(5):
        step = np.zeros(5)
        step[k] = 1e-6
        assert gradient[k] == pytest.approx((_loss(theta + step, *rest)[0] - value) / 1e-6, abs=1e-5)


def test_difficulty_is_found_where_it_was_planted_and_only_there():
    rng = np.random.default_rng(6)
    intercepts = np.array([-1.5, -2.0, -0.5, -1.0, -2.5])
    spread = 1.8 * rng.standard_normal(4000)[:, None]
    planted = fit_difficulty(rng.random((4000, 5)) < 1 / (1 + np.exp(-(intercepts + spread))))
    assert planted.spread == pytest.approx(1.8, abs=0.15)
    assert planted.intercepts == pytest.approx(intercepts, abs=0.2)
    alone = rng.random((4000, 5)) < 1 / (1 + np.exp(-intercepts))
    independent = fit_difficulty(alone)
    assert independent.spread < 0.35
    assert independent.errors_together() == pytest.approx(poisson_binomial(alone.mean(axis=0)), abs=0.01)
    assert independent.both()[0, 2] == pytest.approx(alone[:, 0].mean() * alone[:, 2].mean(), abs=0.01)
