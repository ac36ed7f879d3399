"""Sign flips: exact against enumeration and scipy, level under the null, power for what is planted."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats as scipy_stats

from latentkt.errors import InputError
from latentkt.stats import sign_flip, sign_flip_max_t


def by_enumeration(values: np.ndarray) -> np.ndarray:
    """Max-T p values the slow way: every sign vector, scipy's t statistic."""
    signs = np.array(list(itertools.product([1.0, -1.0], repeat=len(values))))
    observed = np.abs(scipy_stats.ttest_1samp(values, 0.0).statistic)
    flipped = np.abs(scipy_stats.ttest_1samp(signs[:, :, None] * values[None], 0.0, axis=1).statistic)
    return (flipped.max(axis=1)[:, None] >= observed - 1e-9).mean(axis=0)


def test_max_t_is_the_enumerations():
    values = np.random.default_rng(0).normal(0.5, 1.0, size=(8, 5))
    found = sign_flip_max_t(values)
    np.testing.assert_allclose(found.p_max_t, by_enumeration(values))
    np.testing.assert_allclose(found.t, scipy_stats.ttest_1samp(values, 0.0).statistic)
    assert found.exact and found.flips == 256
    assert (found.p_max_t >= found.p).all()


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_one_quantity_is_scipys_permutation_test(alternative):
    values = np.random.default_rng(3).normal(0.6, 1.0, size=9)
    theirs = scipy_stats.permutation_test(
        (values,), np.mean, permutation_type="samples", n_resamples=np.inf, alternative=alternative
    )
    assert sign_flip(values, alternative=alternative).p == pytest.approx(theirs.pvalue)


def test_whole_clusters_are_flipped():
    rng = np.random.default_rng(4)
    labels = np.repeat(np.arange(6), [1, 2, 3, 4, 5, 6])
    values = rng.normal(0.3, 1.0, size=len(labels))
    means = np.array([values[labels == name].mean() for name in range(6)])
    found, direct = sign_flip(values, labels), sign_flip(means)
    assert (found.p, found.mean, found.clusters) == (direct.p, direct.mean, 6)
    assert found.n == 21
    assert sign_flip(np.full(64, 1.0), np.repeat(np.arange(8), 8)).p == 2 / 256


def test_sampled_flips_approach_the_exact_p_and_are_never_zero():
    values = np.random.default_rng(5).normal(0.4, 1.0, size=14)
    exact = sign_flip(values)
    assert exact.exact
    # A fifteenth cluster of zero changes no sum, but makes the test a sampled one.
    sampled = sign_flip(np.append(values, 0.0), rng=1, n_flips=20_000)
    assert not sampled.exact and sampled.flips == 20_000
    assert sampled.p == pytest.approx(exact.p, abs=0.012)
    assert sampled == sign_flip(np.append(values, 0.0), rng=1, n_flips=20_000)
    assert sign_flip(np.ones(40), n_flips=99).p == pytest.approx(0.01)


def test_absent_cells_are_nan_and_count_for_nothing():
    rng = np.random.default_rng(6)
    values = rng.normal(size=(8, 4))
    values[:, 3] = np.nan
    values[1:, 2] = np.nan
    values[0, 0] = np.nan
    found = sign_flip_max_t(values)
    assert np.isnan(found.p_max_t).tolist() == [False, False, True, True]
    assert found.cells_tested == 2
    np.testing.assert_allclose(found.t[0], scipy_stats.ttest_1samp(values[1:, 0], 0.0).statistic)
    assert found.mean[2] == values[0, 2]
    nothing = sign_flip_max_t(np.full((3, 2), np.nan))
    assert np.isnan(nothing.p).all() and nothing.clusters == 0
    assert np.isnan(sign_flip([1.0]).p)
    assert sign_flip([0.0, 0.0, 0.0]).p == 1.0


def test_bad_values_are_refused():
    for bad in (np.ones((2, 2, 2)), np.array([[np.inf]]), np.ones(3)):
        with pytest.raises(InputError):
            sign_flip_max_t(bad)
    with pytest.raises(InputError):
        sign_flip([1.0, 2.0], alternative="both")
    with pytest.raises(InputError):
        sign_flip([1.0, 2.0], ["a"])


def _false_positives(draws: int, *, clusters: int, cells: int) -> float:
    """Share of null draws in which any cell is called; items of a family share noise, cells are correlated."""
    rng = np.random.default_rng(7)
    labels = np.repeat(np.arange(clusters), 4)
    called = 0
    for _ in range(draws):
        family = rng.standard_t(4, size=(clusters, cells)).cumsum(axis=1)
        values = family[labels] + rng.normal(size=(len(labels), cells))
        called += bool((sign_flip_max_t(values, labels, rng=rng, n_flips=199).p_max_t <= 0.05).any())
    return called / draws


def test_false_positives_stay_at_their_level_with_eight_families():
    """An exact test of 256 flips at 0.05 has size 12/256; ±3 standard errors of 500 draws are ±0.028."""
    assert _false_positives(500, clusters=8, cells=12) == pytest.approx(0.047, abs=0.028)


def test_flipping_items_instead_of_families_would_not():
    """The test above can fail: with families taken for nothing, most null draws are called."""
    rng = np.random.default_rng(8)
    labels = np.repeat(np.arange(8), 12)
    draws = [rng.normal(size=8)[labels] + 0.3 * rng.normal(size=len(labels)) for _ in range(60)]
    assert np.mean([sign_flip(values, rng=0, n_flips=199).p <= 0.05 for values in draws]) > 0.3


def test_a_planted_cell_is_found_and_its_neighbours_are_not():
    rng = np.random.default_rng(9)
    labels = np.repeat(np.arange(8), 8)
    values = rng.normal(size=(64, 30)) + 0.3 * rng.normal(size=(8, 30))[labels]
    values[:, 11] += 2.0
    found = sign_flip_max_t(values, labels)
    assert np.flatnonzero(found.p_max_t <= 0.05).tolist() == [11]


@pytest.mark.slow
@pytest.mark.parametrize("clusters, cells", [(6, 4), (8, 90), (18, 30)])
def test_false_positives_at_length(clusters, cells):
    assert _false_positives(4000, clusters=clusters, cells=cells) <= 0.05 + 0.0104
