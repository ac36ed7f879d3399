from __future__ import annotations

import numpy as np
import pytest

from latentkt.errors import InputError
from latentkt.synthetic.fits import KeyBootstrap, least_squares, logistic_slope, share, weighted_mean


def _pairs(keys: int) -> tuple[np.ndarray, np.ndarray]:
    first, second = np.nonzero(np.triu(np.ones((keys, keys)), 1))
    return first, second


def test_least_squares_is_least_squares():
    rng = np.random.default_rng(0)
    first, second = _pairs(12)
    x, z = rng.normal(size=(2, len(first)))
    y = 1.5 * x - 0.5 * z + 2 + rng.normal(size=len(first))
    fit = least_squares(y, {"x": x, "z": z}, KeyBootstrap(first, second, replicates=50))
    design = np.column_stack([np.ones(len(x)), x, z])
    expected, residual, *_ = np.linalg.lstsq(design, y, rcond=None)
    assert [fit[name].value for name in ("intercept", "x", "z")] == pytest.approx(expected)
    assert fit["residual_sd"].value == pytest.approx(np.sqrt(residual[0] / len(y)))
    assert fit["r2"].value == pytest.approx(1 - residual[0] / len(y) / y.var())


def test_replicates_are_weighted_fits():
    rng = np.random.default_rng(1)
    first, second = _pairs(8)
    x = rng.normal(size=len(first))
    y = x + rng.normal(size=len(first))
    boot = KeyBootstrap(first, second, replicates=3, seed=5)
    repeated = [np.repeat(np.arange(len(x)), weights.astype(int)) for weights in boot.weights]
    slopes = [np.polyfit(x[rows], y[rows], 1)[0] for rows in repeated]
    from latentkt.synthetic.fits import least_squares_draws

    _, draws = least_squares_draws(y, {"x": x}, boot)
    assert draws[:, 1] == pytest.approx(slopes)


def test_intervals_cover_when_pairs_share_keys():
    """y = score(first) - score(second) with noise of keys: naive intervals would be far too narrow."""
    rng = np.random.default_rng(2)
    first, second = _pairs(16)
    covered = 0
    for trial in range(100):
        level, noise = rng.normal(size=(2, 16))
        x = level[first] - level[second]
        y = x + noise[first] - noise[second]
        found = least_squares(y, {"slope": x}, KeyBootstrap(first, second, replicates=200, seed=trial))["slope"]
        covered += found.low <= 1 <= found.high
    assert 85 <= covered <= 100


def test_keys_of_different_networks_are_different_keys():
    first, second = np.array([0, 0, 0, 0]), np.array([1, 1, 1, 1])
    one = KeyBootstrap(first, second, replicates=400).weights
    two = KeyBootstrap(first, second, group=np.array([0, 0, 1, 1]), replicates=400).weights
    assert np.array_equal(one[:, 0], one[:, 3])
    assert not np.array_equal(two[:, 0], two[:, 3])


def test_logistic_slope_recovers_a_curve_and_its_noise():
    """With noise in the scores the line in log-odds is unmoved, the slope in probability space attenuates."""
    rng = np.random.default_rng(3)
    first, second = _pairs(40)
    x = rng.uniform(-4, 4, size=len(first))
    boot = KeyBootstrap(first, second, replicates=20)
    clean = logistic_slope(1.2 * x - 0.7, x, boot)
    assert clean["slope_probability"].value == pytest.approx(1.2)
    assert clean["lambda_probability"].value == pytest.approx(0.7)
    noisy = logistic_slope(1.2 * x - 0.7 + 2 * rng.normal(size=len(x)), x, boot)
    assert noisy["slope_probability"].value == pytest.approx(1.2 / np.sqrt(1 + np.pi * 4 / 8), abs=0.06)


def test_means_and_shares():
    first, second = _pairs(20)
    boot = KeyBootstrap(first, second, replicates=100)
    none = share(np.zeros(len(first)), boot)
    assert none.value == 0 and none.low == 0 and none.high > 0.01
    assert np.isnan(weighted_mean(np.array([]), KeyBootstrap(np.array([]), np.array([]))).value)


def test_a_fit_without_an_answer_is_refused():
    first, second = _pairs(6)
    x = np.ones(len(first))
    with pytest.raises(InputError, match="no unique answer"):
        least_squares(x, {"x": x}, KeyBootstrap(first, second, replicates=5))
