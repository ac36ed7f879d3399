"""Priors and log prior ratios: closed forms, edge cases, and the coverage of the intervals in simulation."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import special, stats

from latentkt.corpus import count_texts, estimate_priors, good_turing_missing_mass, log_prior_ratio
from latentkt.corpus.ratio import log_ratio
from latentkt.corpus.tally import Tally
from latentkt.errors import InputError

sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))

PATTERNS = {
    "keys": {"b": ["Bob"], "a": ["Ann"]},
    "tasks": {"x": ["sums"], "y": ["maps"], "z": ["odes"]},
    "pairs": [["a", "b"]],
}


@pytest.fixture(scope="module")
def counts():
    texts = ["Ann did sums"] * 6 + ["Ann did sums and maps"] * 2 + ["Bob did maps"] * 3 + ["Bob and Ann"] + ["Bob"] * 4
    return count_texts(texts, PATTERNS, windows=[5])


def test_priors_by_hand(counts):
    plain = estimate_priors(counts, smoothing="none")
    assert plain.scope == "window:5" and plain.keys == ("b", "a")
    np.testing.assert_allclose(plain.key, [8 / 17, 9 / 17])
    np.testing.assert_allclose(plain.task_given_key, [[0, 1, 0], [0.8, 0.2, 0]])
    np.testing.assert_allclose(plain.joint, np.array([[0, 3, 0], [8, 2, 0]]) / 13)
    given = estimate_priors(counts, smoothing="none", given="key")
    np.testing.assert_allclose(given.task_given_key, [[0, 3 / 8, 0], [8 / 9, 2 / 9, 0]])
    half = estimate_priors(counts)
    np.testing.assert_allclose(half.task_given_key[0], [0.5 / 4.5, 3.5 / 4.5, 0.5 / 4.5])
    np.testing.assert_allclose(half.key, [8.5 / 18, 9.5 / 18])
    np.testing.assert_allclose(half.joint.sum(), 1)
    base = np.array([8.5, 5.5, 0.5]) / 14.5
    tiered = estimate_priors(counts, smoothing="hierarchical", strength=2.0)
    np.testing.assert_allclose(tiered.task_given_key[0], (np.array([0, 3, 0]) + 2 * base) / 5)


def test_priors_of_nothing_are_nan_never_zero():
    empty = count_texts(["nothing"], PATTERNS)
    assert np.isnan(estimate_priors(empty, smoothing="none").task_given_key).all()
    assert np.isfinite(estimate_priors(empty).task_given_key).all()


def test_a_ratio_and_its_parts(counts):
    result = log_prior_ratio(counts, shortcut="a:x", correct="b:y")
    assert (result.ratio.numerator, result.ratio.denominator) == (8, 3)
    expected = special.digamma(8.5) - special.digamma(3.5)
    assert result.ratio.estimate == pytest.approx(expected)
    assert result.key_part.estimate + result.task_part == pytest.approx(expected)
    assert result.key_pair == 1
    assert result.shortcut.documents == 8 and result.correct.key_occurrences == 8
    assert result.ratio.clusters == 11 and not result.ratio.few_clusters
    assert any("16 clusters, under 30" in text for text in result.warnings)
    assert result.to_dict()["ratio"]["numerator"] == 8
    other = log_prior_ratio(counts, shortcut="b:y", correct="a:x")
    assert (other.ratio.low, other.ratio.high) == pytest.approx((-result.ratio.high, -result.ratio.low))


def test_multinomial_interval_is_that_of_the_odds(counts):
    result = log_prior_ratio(counts, shortcut="a:x", correct="b:y", method="multinomial", level=0.9).ratio
    draws = stats.beta(8.5, 3.5).rvs(200_000, random_state=0)
    np.testing.assert_allclose((result.low, result.high), np.percentile(special.logit(draws), [5, 95]), atol=0.03)


def test_zero_counts_are_bounded_on_one_side(counts):
    result = log_prior_ratio(counts, shortcut="b:x", correct="a:x").ratio
    assert result.censored and math.isfinite(result.estimate) and result.low == -math.inf
    limit = 1 - 0.05 ** (1 / 8)  # exact binomial: 0 of 8
    assert result.high == pytest.approx(math.log(limit / (1 - limit)))
    mirrored = log_prior_ratio(counts, shortcut="a:x", correct="b:x").ratio
    assert (mirrored.low, mirrored.high) == (-result.high, math.inf)
    both = log_prior_ratio(counts, shortcut="b:z", correct="a:z").ratio
    assert both.estimate == 0 and (both.low, both.high) == (-math.inf, math.inf)
    assert log_prior_ratio(counts, shortcut="b:z", correct="a:z").to_dict()["ratio"]["low"] is None


def test_a_bound_rests_on_clusters_where_units_come_in_bursts():
    """200 units in 10 equal clusters and none of the other: as sure as 10 units, not as 200."""
    burst = log_ratio(_bursty([(20, 0)] * 10), 0, 1)
    limit = 1 - 0.05 ** (1 / 10)
    assert burst.method == "cluster" and burst.high == math.inf
    assert burst.low == pytest.approx(-math.log(limit / (1 - limit)))
    plain = log_ratio(_bursty([(20, 0)] * 10), 0, 1, method="multinomial")
    limit = 1 - 0.05 ** (1 / 200)
    assert plain.low == pytest.approx(-math.log(limit / (1 - limit)))
    one_holds_most = log_ratio(_bursty([(191, 0), *[(1, 0)] * 9]), 0, 1)
    assert one_holds_most.low < burst.low


def _bursty(per_cluster):
    rows = [(cluster, cell, n) for cluster, pair in enumerate(per_cluster) for cell, n in enumerate(pair) if n]
    row, cell, value = np.array(rows).T
    return Tally.build(np.arange(len(per_cluster), dtype=np.uint64), row, cell, value)


def test_clusters_widen_and_do_not_collapse():
    bursts = _bursty([(50, 1), (1, 1), (2, 30), (1, 2), (1, 1), (40, 1), (1, 25), (2, 2), (1, 1), (3, 1), (1, 1)])
    auto, plain = log_ratio(bursts, 0, 1), log_ratio(bursts, 0, 1, method="multinomial")
    assert auto.method == "cluster" and auto.design_effect > 3
    assert auto.high - auto.low > 1.5 * (plain.high - plain.low)
    single = _bursty([(9, 0), (0, 1)])
    assert log_ratio(single, 0, 1).few_clusters
    even = _bursty([(3, 3)] * 40)  # clusters that hold both alike say nothing against independence
    assert log_ratio(even, 0, 1).method == "multinomial"
    with pytest.raises(InputError, match="no clusters"):
        log_ratio(even, 0, 1, method="cluster", clustered=False)


def test_cluster_error_equals_the_sandwich_for_many_clusters():
    rng = np.random.default_rng(2)
    pairs = rng.poisson(4, (400, 2)) * rng.integers(1, 4, (400, 1))
    result = log_ratio(_bursty(pairs), 0, 1, method="cluster")
    terms = ((pairs / pairs.sum(axis=0)) @ [1, -1]) ** 2
    assert result.se_cluster == pytest.approx(math.sqrt(terms.sum() * 400 / 399), rel=0.08)


def test_dissolved_clusters_give_the_same_error_within_their_noise():
    rng = np.random.default_rng(4)
    pairs = rng.poisson(3, (300, 2)) * rng.integers(1, 5, (300, 1))
    row, cell = np.nonzero(pairs)
    hashes = rng.integers(0, 1 << 62, 300).astype(np.uint64)
    kept = Tally.build(hashes, row, cell, pairs[row, cell])
    dissolved = Tally.build(hashes, row, cell, pairs[row, cell], max_clusters=10)
    one, other = log_ratio(kept, 0, 1), log_ratio(dissolved, 0, 1)
    assert other.se_cluster == pytest.approx(one.se_cluster, rel=0.2)
    assert not other.few_clusters


def test_good_turing_on_a_known_law():
    rng = np.random.default_rng(0)
    law = 1 / np.arange(1, 5001)
    law /= law.sum()
    counts = rng.multinomial(3000, law)
    missing, error = good_turing_missing_mass(counts)
    assert abs(missing - law[counts == 0].sum()) < 4 * error
    assert np.isnan(good_turing_missing_mass(np.zeros(3, int))[0])


@pytest.mark.parametrize("bad", [{"scope": "window:7"}, {"method": "wald"}, {"shortcut": "a:nothing"}, {"level": 2}])
def test_bad_requests(counts, bad):
    with pytest.raises(InputError):
        log_prior_ratio(counts, **{"shortcut": "a:x", "correct": "b:y", **bad})


@pytest.mark.slow
def test_auto_intervals_cover():
    """Coverage and width on negative-binomial laws of the burstiness of real books (see the experiment)."""
    import corpus_intervals

    laws = [(8.0, 0.02), (4.0, 0.06), (2.0, 0.1), (1.0, 0.05), (3.0, 0.03), (0.5, 0.08)]
    rows = corpus_intervals.simulate(corpus_intervals.from_laws(laws), samples=900, seed=5, every=6)
    many = rows[rows[:, 0] >= 10]
    assert len(many) > 300
    assert 0.92 <= many[:, 2].mean() <= 0.99
    assert np.nanmedian(many[:, 5]) <= 1.3
    assert many[:, 3].mean() < 0.7  # taking mentions for independent does not cover


def test_a_path_of_one_cluster_widens_the_ratio_whatever_the_other_has():
    """Sixty clusters of one path do not make up for the single one of the other."""
    common = [(1 + i % 5, 0) for i in range(60)]
    lonely, spread = _bursty([*common, (0, 12)]), _bursty([*common, *[(0, 1)] * 12])
    one, other = log_ratio(lonely, 0, 1), log_ratio(spread, 0, 1)
    assert one.clusters == 61 and one.degrees == pytest.approx(2, abs=0.1) and other.degrees > 20
    assert one.high - one.low > 3 * (other.high - other.low)


def test_degrees_of_freedom_are_those_of_the_variance_of_the_variance():
    """2·V²/Var(V), with V and Var(V) from the cumulants of the linearised ratio over many Poisson resamples."""
    pairs = np.array([(30, 1), (1, 6), (8, 2), (2, 9), (12, 3), (4, 4), (1, 20), (5, 0), (0, 2), (6, 1), (3, 3)])
    weights = np.random.default_rng(0).poisson(1.0, (400_000, len(pairs)))
    line = weights @ (pairs / pairs.sum(axis=0)) @ [1, -1]
    expected = 2 * stats.kstat(line, 2) ** 2 / stats.kstat(line, 4)
    assert log_ratio(_bursty(pairs), 0, 1).degrees == pytest.approx(expected, rel=0.05)
    even = _bursty([(2, 0), (0, 2)] * 6)  # all clusters alike: never more than one fewer than there are
    assert log_ratio(even, 0, 1).degrees == 11


def test_few_clusters_take_students_critical_value():
    pairs = [(9, 1), (1, 6), (8, 2), (2, 9), (12, 3)]
    result = log_ratio(_bursty(pairs), 0, 1, method="cluster")
    half = (result.high - result.low) / 2
    assert 2 < result.degrees <= 4
    assert half == pytest.approx(stats.t.ppf(0.975, result.degrees) * result.se_cluster)


def test_replicates_without_a_path_do_not_make_the_error():
    """Two clusters hold the rarer path: 14 % of the replicates lose both, and their ratio is that of the ½."""
    pairs = [*[(3, 0)] * 40, (0, 50), (0, 50)]
    result = log_ratio(_bursty(pairs), 0, 1, method="cluster")
    assert 0.5 < result.se_cluster < 0.85  # the sandwich says sqrt(1/2 + 1/40) = 0.72; their standard deviation is 2.3
