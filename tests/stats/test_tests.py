"""Exact tests, strata and adjusted p values against scipy, closed forms and identities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from latentkt.errors import InputError
from latentkt.stats import benjamini_hochberg, binomial_test, fisher_test, holm, mantel_haenszel, mcnemar_test

p_values = st.lists(st.floats(0, 1), min_size=1, max_size=12)


@given(p_values)
def test_holm_rejects_what_stepping_down_rejects(p):
    adjusted = holm(p)
    for level in (0.01, 0.05, 0.3):
        rejected, remaining = set(), sorted(range(len(p)), key=lambda index: p[index])
        while remaining and p[remaining[0]] * len(remaining) <= level:
            rejected.add(remaining.pop(0))
        close = any(abs(a - level) < 1e-12 for a in adjusted)
        assert close or set(np.flatnonzero(adjusted <= level)) >= rejected
        assert close or all(
            p[i] <= max((p[j] for j in rejected), default=-1) for i in np.flatnonzero(adjusted <= level)
        )


@given(p_values)
def test_benjamini_hochberg_rejects_what_stepping_up_rejects(p):
    adjusted, ordered = benjamini_hochberg(p), np.sort(p)
    for level in (0.05, 0.3):
        passing = np.flatnonzero(ordered <= level * np.arange(1, len(p) + 1) / len(p))
        bar = ordered[passing.max()] if len(passing) else -1.0
        if not np.isclose(adjusted, level).any():
            assert (adjusted <= level).tolist() == (np.array(p) <= bar).tolist()


@given(p_values)
def test_adjusting_is_a_matter_of_values_not_of_order(p):
    for adjust in (holm, benjamini_hochberg):
        np.testing.assert_allclose(adjust(p)[::-1], adjust(p[::-1]))
        assert (adjust(p) >= np.array(p) - 1e-15).all() and (adjust(p) <= 1).all()
    assert (holm(p) >= benjamini_hochberg(p) - 1e-12).all()


def test_what_was_not_tested_is_not_counted():
    for adjust in (holm, benjamini_hochberg):
        np.testing.assert_allclose(adjust([[0.01, math.nan], [0.02, math.nan]])[:, 0], adjust([0.01, 0.02]))
        assert np.isnan(adjust([[0.01, math.nan]])[0, 1])
        assert np.isnan(adjust([math.nan])).all()
        with pytest.raises(InputError):
            adjust([1.5])


@given(st.integers(0, 30), st.integers(0, 30))
def test_mcnemar_is_a_fair_coin_on_the_pairs_that_differ(b, c):
    test = mcnemar_test(b, c)
    tail = scipy_stats.binom.cdf(min(b, c), b + c, 0.5)
    assert test.p == pytest.approx(min(1.0, 2 * tail) if b + c else 1.0)
    assert test.n == b + c


def test_binomial_and_fisher_are_scipys():
    assert binomial_test(7, 9, chance=0.3, alternative="greater").p == pytest.approx(scipy_stats.binom.sf(6, 9, 0.3))
    assert math.isnan(binomial_test(0, 0).p)
    a, b, c, d = 8, 2, 1, 5
    greater = scipy_stats.hypergeom.sf(a - 1, a + b + c + d, a + b, a + c)
    assert fisher_test([[a, b], [c, d]], alternative="greater").p == pytest.approx(greater)


def test_one_stratum_is_the_plain_odds_ratio_with_woolfs_error():
    (a, b), (c, d) = table = [[10, 5], [4, 9]]
    ratio = mantel_haenszel([table]).odds_ratio
    error = math.sqrt(1 / a + 1 / b + 1 / c + 1 / d)
    assert ratio.value == pytest.approx(a * d / (b * c))
    assert math.log(ratio.high / ratio.value) == pytest.approx(1.959964 * error, rel=1e-5)


def test_a_stratum_k_times_divides_the_variance_by_k():
    one, four = mantel_haenszel([[[10, 5], [4, 9]]]), mantel_haenszel([[[10, 5], [4, 9]]] * 4)
    assert four.odds_ratio.value == pytest.approx(one.odds_ratio.value)
    width = [math.log(result.odds_ratio.high / result.odds_ratio.value) for result in (one, four)]
    assert width[0] == pytest.approx(2 * width[1])
    assert four.statistic == pytest.approx(4 * one.statistic)


def test_pairs_as_strata_give_mcnemars_statistic():
    """Strata of one pair each: the Cochran–Mantel–Haenszel χ² is (b − c)² / (b + c), the odds ratio b / c."""
    strata = [[[1, 0], [0, 1]]] * 9 + [[[0, 1], [1, 0]]] * 4 + [[[1, 0], [1, 0]]] * 6
    result = mantel_haenszel(strata)
    assert result.statistic == pytest.approx((9 - 4) ** 2 / 13)
    assert result.odds_ratio.value == pytest.approx(9 / 4)
    assert (result.strata, result.strata_empty) == (13, 6)


def test_an_odds_ratio_that_is_infinite_has_no_interval():
    result = mantel_haenszel([[[5, 0], [2, 3]]])
    assert result.odds_ratio.value == math.inf and not result.odds_ratio.defined
    assert math.isnan(mantel_haenszel([[[5, 0], [2, 0]]]).odds_ratio.value)


@pytest.mark.parametrize("bad", [[[1, 2], [3, 4]], [[[1, 2], [3, -4]]], [[[1.5, 2], [3, 4]]]])
def test_what_is_no_table_of_counts_is_refused(bad):
    with pytest.raises(InputError):
        mantel_haenszel(bad)
