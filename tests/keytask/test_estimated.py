"""Estimated priors: the two readings, coverage of each, and sample sizes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import betaincinv
from scipy.stats import binom

from latentkt.errors import InputError
from latentkt.keytask import (
    Limits,
    bonferroni_level,
    certificate_quantile,
    certify,
    draw_priors,
    sample_size,
    sample_size_approximate,
)

LIMITS = Limits(alpha_s=0.9, alpha_0=0.9, B_0=0.02, C_1=0.05, C_2=0.05, eps_k=0.01)


def clopper_pearson_log_odds(n_s, n_0, level):
    tail = (1 - level) / 2
    low = np.where(n_s > 0, betaincinv(np.maximum(n_s, 1), n_0 + 1, tail), 0.0)
    high = np.where(n_0 > 0, betaincinv(n_s + 1, np.maximum(n_0, 1), 1 - tail), 1.0)
    with np.errstate(divide="ignore"):
        return np.log(low) - np.log1p(-low), np.log(high) - np.log1p(-high)


def simulate(rng, n, size):
    """Counts of two keys and of their tasks; truth: rho_k = 3, π~_s = .8, π~_0 = .4."""
    key = rng.binomial(n, 0.75, size)
    s, zero = rng.binomial(key, 0.8), rng.binomial(n - key, 0.4)
    return np.stack([key, n - key], -1), np.stack([s, key - s], -1), np.stack([zero, n - key - zero], -1)


TRUTH = {"log_rho_k": np.log(3.0), "log_odds_s": np.log(4.0), "log_odds_0": np.log(2 / 3)}


@pytest.mark.parametrize("n", [30, 300])
def test_bonferroni_certificate_covers(n):
    """With simultaneous exact intervals the certificate is above the true γ_cert in at most 5 % of the samples."""
    rng = np.random.default_rng(1)
    counts = simulate(rng, n, 4000)
    level = bonferroni_level(0.95)
    names = ("log_rho_k", "log_odds_s", "log_odds_0")
    boxes = {name: clopper_pearson_log_odds(*pair.T, level) for name, pair in zip(names, counts, strict=True)}
    truth = float(certify(**TRUTH, limits=LIMITS).gamma_lower)
    found = certify(**boxes, limits=LIMITS).gamma_lower
    assert (found <= truth).mean() >= 0.95
    assert np.median(found) < truth and not np.isnan(found).any()


def test_estimated_certificate_is_sharper_and_covers_about_its_level():
    rng = np.random.default_rng(2)
    counts = simulate(rng, 1000, 300)
    draws = draw_priors(**dict(zip(("key", "tasks_s", "tasks_0"), counts, strict=True)), draws=800, seed=3)
    found = certificate_quantile(draws, LIMITS)
    truth = float(certify(**TRUTH, limits=LIMITS).gamma_lower)
    assert found.shape == (300,) and 0.90 <= (found <= truth).mean() <= 0.99
    level = bonferroni_level(0.95)
    names = ("log_rho_k", "log_odds_s", "log_odds_0")
    boxes = {name: clopper_pearson_log_odds(*pair.T, level) for name, pair in zip(names, counts, strict=True)}
    assert np.median(found) > np.median(certify(**boxes, limits=LIMITS).gamma_lower)


def test_quantile_takes_departures_at_their_worst():
    draws = draw_priors(key=[200, 100], tasks_s=[90, 10], tasks_0=[50, 50], draws=500)
    plain = certificate_quantile(draws, LIMITS)
    fields = {f: getattr(LIMITS, f) for f in LIMITS.__slots__}
    zero = certificate_quantile(draws, Limits(**fields | {"delta_k": 1e-12}))
    wide = certificate_quantile(draws, Limits(**fields | {"delta_k": 0.5}))
    assert float(zero) == pytest.approx(float(plain), abs=1e-9) and float(wide) < float(plain) - 0.05
    assert float(certificate_quantile(draws, LIMITS, level=0.99)) < float(plain)


def test_draws_have_the_posterior_mean_and_are_reproducible():
    draws = draw_priors(key=[40, 10], tasks_s=[5, 5], tasks_0=[0, 3], draws=20_000, seed=1)
    again = draw_priors(key=[40, 10], tasks_s=[5, 5], tasks_0=[0, 3], draws=20_000, seed=1)
    assert np.array_equal(draws.log_odds_0, again.log_odds_0)
    from scipy.special import digamma, polygamma

    assert draws.log_rho_k.mean() == pytest.approx(digamma(40.5) - digamma(10.5), abs=0.01)
    assert draws.log_rho_k.var() == pytest.approx(polygamma(1, 40.5) + polygamma(1, 10.5), rel=0.05)
    assert np.isfinite(draws.log_odds_0).all()


# Two-sided 5 % and power .8; 5 % and .9; 1 % and .9: recomputed from the binomial distribution, not copied.
KNOWN = {1.1: (3526, 4698, 6619), 1.25: (662, 880, 1230), 1.5: (210, 274, 384), 2: (77, 99, 138), 3: (35, 42, 59)}
KNOWN |= {5: (17, 23, 32), 10: (12, 15, 21)}


@pytest.mark.parametrize("ratio", KNOWN)
def test_sample_sizes(ratio):
    settings = ((0.05, 0.8), (0.05, 0.9), (0.01, 0.9))
    assert tuple(sample_size(ratio, alpha=a, power=b) for a, b in settings) == KNOWN[ratio]
    assert sample_size(1 / ratio) == KNOWN[ratio][0]


def test_sample_size_has_the_power_it_promises():
    """Against the definition: the test's level and power, summed count by count."""
    for ratio, alpha, power in ((2.0, 0.05, 0.8), (5.0, 0.05, 0.9)):
        n = sample_size(ratio, alpha=alpha, power=power)

        def reached(n, ratio=ratio, alpha=alpha):
            k = np.arange(n + 1)
            null, true = binom.pmf(k, n, 0.5), binom.pmf(k, n, ratio / (1 + ratio))
            rejects = np.minimum(binom.cdf(k, n, 0.5), binom.sf(k - 1, n, 0.5)) <= alpha / 2
            assert null[rejects].sum() <= alpha
            return true[rejects].sum()

        assert all(reached(m) >= power for m in range(n, n + 30)) and reached(n - 1) < power


def test_sample_size_approximation_and_dispersion():
    for ratio in (1.1, 1.25, 1.5, 2):
        assert 0.90 < sample_size_approximate(ratio) / sample_size(ratio) < 1.01
    assert sample_size_approximate(10) > sample_size(10)
    assert sample_size(2.0, dispersion=3.0) == 231


def test_bad_settings_are_refused():
    for call in (
        lambda: sample_size(1.0),
        lambda: sample_size(-2.0),
        lambda: sample_size(2.0, alpha=0),
        lambda: sample_size(2.0, dispersion=0.5),
        lambda: bonferroni_level(1.0),
        lambda: draw_priors(key=[1, -1], tasks_s=[1, 1], tasks_0=[1, 1]),
        lambda: draw_priors(key=[1, 2, 3], tasks_s=[1, 1], tasks_0=[1, 1]),
        lambda: certificate_quantile(draw_priors(key=[1, 1], tasks_s=[1, 1], tasks_0=[1, 1], draws=5), LIMITS, level=1),
    ):
        with pytest.raises(InputError):
            call()
