"""Intervals agree with closed forms and scipy, and cover what they say they cover."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from latentkt.errors import InputError
from latentkt.stats import Interval, clopper_pearson, cluster_interval, mean_interval, paired_interval, wilson
from latentkt.stats.clusters import BOOTSTRAP_FROM, cluster_means


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_solves_its_equation(counts):
    """Wilson's ends are where |p̂ − p| = z √(p(1 − p)/n)."""
    successes, n = counts
    interval = wilson(successes, n, level=0.9)
    z = scipy_stats.norm.ppf(0.95)
    for end in (interval.low, interval.high):
        if 0.0 < end < 1.0:
            assert abs(successes / n - end) == pytest.approx(z * math.sqrt(end * (1 - end) / n), abs=1e-9)


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_clopper_pearson_inverts_the_binomial(counts):
    successes, n = counts
    interval = clopper_pearson(successes, n)
    if successes > 0:
        assert scipy_stats.binom.sf(successes - 1, n, interval.low) == pytest.approx(0.025, abs=1e-7)
    if successes < n:
        assert scipy_stats.binom.cdf(successes, n, interval.high) == pytest.approx(0.025, abs=1e-7)


def test_clopper_pearson_covers_at_every_share_and_wilson_on_average():
    n, shares = 30, np.linspace(0.02, 0.98, 97)
    covered = {}
    for make in (wilson, clopper_pearson):
        ends = [make(k, n) for k in range(n + 1)]
        inside = np.array([[e.low <= p <= e.high for e in ends] for p in shares])
        weight = scipy_stats.binom.pmf(np.arange(n + 1)[None], n, shares[:, None])
        covered[make.__name__] = (inside * weight).sum(axis=1)
    assert covered["clopper_pearson"].min() >= 0.95
    assert covered["wilson"].mean() == pytest.approx(0.95, abs=0.01)


def test_no_trials_give_no_interval():
    assert math.isnan(wilson(0, 0).value) and not wilson(0, 0).defined


@pytest.mark.parametrize("bad", [lambda: wilson(3, 2), lambda: wilson(-1, 2), lambda: wilson(1, 2, level=95)])
def test_impossible_counts_and_levels_are_refused(bad):
    with pytest.raises(InputError):
        bad()


def test_the_mean_is_scipys():
    values = np.random.default_rng(0).normal(size=17)
    ours = mean_interval(np.append(values, np.nan))
    theirs = scipy_stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high))
    assert (ours.n, ours.missing) == (17, 1)


def test_too_few_values_give_no_ends():
    assert mean_interval([2.0]).value == 2.0 and not mean_interval([2.0]).defined
    assert math.isnan(mean_interval([]).value)
    one = cluster_interval([1.0, 2.0], ["a", "a"])
    assert not one.interval.defined and one.conditional.defined
    with pytest.raises(InputError):
        mean_interval([np.inf])
    with pytest.raises(InputError):
        cluster_interval([1.0, 2.0], ["a"])


def test_few_clusters_are_students_t_on_their_means():
    rng = np.random.default_rng(1)
    labels = np.repeat(list("abcdefgh"), [1, 2, 3, 4, 5, 6, 7, 8])
    values = rng.normal(size=len(labels))
    values[10] = np.nan
    means = [np.nanmean(values[labels == name]) for name in "abcdefgh"]
    theirs = scipy_stats.ttest_1samp(means, 0.0).confidence_interval(0.95)
    both = cluster_interval(values, labels)
    assert (both.interval.low, both.interval.high) == pytest.approx((theirs.low, theirs.high))
    assert both.interval.value == pytest.approx(np.mean(means))
    assert (both.interval.n, both.interval.clusters, both.interval.missing) == (35, 8, 1)
    assert both.conditional.value == pytest.approx(np.nanmean(values))
    assert "conditional" in both.conditional.method
    assert "bootstrap" not in both.interval.method


def test_the_means_of_clusters_need_not_stand_together():
    values = np.array([[1.0, np.nan], [2.0, 4.0], [3.0, np.nan]])
    means, order = cluster_means(values, ["b", "a", "b"])
    assert order == ["b", "a"]
    np.testing.assert_array_equal(means, [[2.0, np.nan], [2.0, 4.0]])


def test_many_clusters_are_bootstrapped_with_the_seed_given():
    rng = np.random.default_rng(2)
    labels = np.repeat(np.arange(BOOTSTRAP_FROM), 3)
    values = rng.exponential(size=len(labels))
    one, again, other = (cluster_interval(values, labels, rng=seed).interval for seed in (5, 5, 6))
    assert one == again and one != other
    assert one.method == "cluster bootstrap-t"
    # Skewed to the right: the bootstrap-t reaches further up than down, which Student's t cannot.
    assert one.high - one.value > one.value - one.low


def test_constant_values_give_an_interval_of_no_width():
    both = cluster_interval(np.full(40, 0.3), np.arange(40))
    assert both.interval.low == pytest.approx(0.3) and both.interval.high == pytest.approx(0.3)


def test_pairs_are_differences():
    first, second = np.array([3.0, np.nan, 1.0, 5.0]), np.array([1.0, 2.0, 2.0, 1.0])
    labels = ["a", "a", "b", "c"]
    assert paired_interval(first, second, labels) == cluster_interval(first - second, labels)
    with pytest.raises(InputError):
        paired_interval([1.0], [1.0, 2.0], ["a"])


def test_formats():
    share = Interval(0.514, 0.452, 0.576, 0.95, "wilson", 250)
    assert f"{share:.0%}" == "51 % [45, 58]" and f"{share:+.2f}" == "+0.51 [+0.45, +0.58]"
    assert str(share) == "0.514 [0.452, 0.576]"
    assert (
        share.excludes(0.6) and not share.excludes(0.5) and not Interval(1, math.nan, math.nan, 0.95, "", 1).excludes(0)
    )
    assert share.to_row()["method"] == "wilson"


def _draw(rng, clusters: int, items: int, skewed: bool):
    """Items whose families differ: between-family variance as large as that within."""
    noise = rng.exponential(size=clusters) - 1.0 if skewed else rng.normal(size=clusters)
    labels = np.repeat(np.arange(clusters), items)
    return noise[labels] + rng.normal(size=len(labels)), labels


def _coverage(clusters: int, *, items: int, draws: int, skewed: bool = False) -> tuple[float, float]:
    rng = np.random.default_rng(clusters)
    inside = np.zeros(2)
    for _ in range(draws):
        values, labels = _draw(rng, clusters, items, skewed)
        both = cluster_interval(values, labels, rng=rng, n_resamples=399)
        inside += [not both.interval.excludes(0.0), not both.conditional.excludes(0.0)]
    return tuple(inside / draws)


def test_intervals_by_cluster_cover_and_those_by_item_do_not():
    """Eight families, as the built-in everyday items have. ±3 standard errors of 600 draws are ±0.027."""
    covered, by_item = _coverage(8, items=8, draws=600)
    assert covered == pytest.approx(0.95, abs=0.027)
    assert by_item < 0.65


def test_the_bootstrap_covers():
    covered, _ = _coverage(24, items=3, draws=300, skewed=True)
    assert covered >= 0.95 - 0.038


@pytest.mark.slow
@pytest.mark.parametrize("clusters, skewed", [(2, False), (5, False), (8, False), (13, False), (20, True), (40, True)])
def test_coverage_at_length(clusters, skewed):
    covered, _ = _coverage(clusters, items=4, draws=4000, skewed=skewed)
    # Skewed families are no assumption of either method: two points are allowed for that.
    assert abs(covered - 0.95) < 0.0104 + (0.02 if skewed else 0.0)
