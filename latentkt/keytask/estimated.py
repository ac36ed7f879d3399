"""Priors that are estimated: what a certificate is worth when its priors come from counts.

Two readings, never mixed:

- *certified given the patterns*: simultaneous intervals (Bonferroni) go into `certify`; if the intervals cover, the
  certificate is true.
- *estimated*: a low quantile of γ_cert over draws of the priors (posterior of the counts, or replicates of a cluster
  bootstrap). Sharper, and no proof.

See `theory/12-estimated-priors.md`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.typing import ArrayLike
from scipy.special import expit
from scipy.stats import binom, norm

from latentkt.errors import InputError
from latentkt.keytask.certificate import Limits, certify, margin_certificate

__all__ = [
    "PriorDraws",
    "bonferroni_level",
    "certificate_quantile",
    "draw_priors",
    "sample_size",
    "sample_size_approximate",
]


def bonferroni_level(level: float = 0.95, *, intervals: int = 3) -> float:
    """The level that each of several intervals needs so that all hold together with probability `level`.

    A certificate from priors uses three: of log_rho_k, log_odds_s and log_odds_0.

    Example:
        >>> round(bonferroni_level(0.95), 12)
        0.983333333333
    """
    if not 0 < level < 1 or intervals < 1:
        raise InputError("no such level", expected="0 < level < 1, intervals ≥ 1", found=(level, intervals))
    return 1 - (1 - level) / intervals


@dataclass(frozen=True, slots=True, eq=False)
class PriorDraws:
    """Draws of the three log odds that a certificate from priors needs, nats; the first axis is the draw."""

    log_rho_k: Float[ndarray, "draw *batch"]
    log_odds_s: Float[ndarray, "draw *batch"]
    log_odds_0: Float[ndarray, "draw *batch"]


def draw_priors(
    *, key: ArrayLike, tasks_s: ArrayLike, tasks_0: ArrayLike, draws: int = 4000, seed: int = 0, prior: float = 0.5
) -> PriorDraws:
    """Draw priors from the Dirichlet posterior of counts (counts + `prior`), item by item.

    Counts must be of units that are independent; where they come in clusters, pass replicates of a cluster bootstrap to
    `certificate_quantile` instead.

    Args:
        key: c(k_s), c(k*), shape (…, 2).
        tasks_s: c(t_s|k_s), c(t*|k_s), shape (…, 2).
        tasks_0: c(t*|k*), c(t_s|k*), shape (…, 2).
        draws: How many.
        seed: Of the generator.
        prior: Added to each count; 1/2 is Jeffreys'.

    Raises:
        InputError: Negative or NaN counts, or pairs that are no pairs.
    """
    generator = np.random.default_rng(seed)
    logs = []
    for name, pair in (("key", key), ("tasks_s", tasks_s), ("tasks_0", tasks_0)):
        counts = np.asarray(pair, dtype=float)
        if counts.shape[-1:] != (2,) or not np.all(counts >= 0):
            raise InputError(f"{name} is no pair of counts", expected="shape (…, 2), 0 or more", found=counts.tolist())
        gammas = generator.gamma(counts + prior, size=(draws, *counts.shape))
        tiny = np.finfo(float).tiny
        logs.append(np.log(np.maximum(gammas[..., 0], tiny)) - np.log(np.maximum(gammas[..., 1], tiny)))
    return PriorDraws(*logs)


def certificate_quantile(draws: PriorDraws, limits: Limits, *, level: float = 0.95) -> Float[ndarray, "*batch"]:
    """The (1 − level) quantile of γ_cert over draws of the priors: "estimated", not certified.

    The departures delta_k and delta_t of `limits` are taken at their worst for each draw.

    Example:
        >>> limits = Limits(alpha_s=0.9, alpha_0=0.9, B_0=0.0, C_1=0.0, C_2=0.0)
        >>> few = draw_priors(key=[20, 5], tasks_s=[9, 1], tasks_0=[5, 5])
        >>> many = draw_priors(key=[20000, 5000], tasks_s=[9000, 1000], tasks_0=[5000, 5000])
        >>> bool(certificate_quantile(few, limits) < certificate_quantile(many, limits))
        True
    """
    if not 0 < level < 1:
        raise InputError("no such level", expected="0 < level < 1", found=level)
    if np.any(np.asarray(limits.delta_k) > 0) or np.any(np.asarray(limits.delta_t) > 0):
        lower = certify(
            log_rho_k=draws.log_rho_k, log_odds_s=draws.log_odds_s, log_odds_0=draws.log_odds_0, limits=limits
        ).gamma_lower
    else:
        lower = margin_certificate(expit(draws.log_rho_k), expit(draws.log_odds_s), expit(draws.log_odds_0), limits)
    return np.quantile(lower, 1 - level, axis=0)


def sample_size_approximate(ratio: float, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """(z_{α/2} + z_power)² (1+r)²/(r log² r): within 6 % of the exact number for r ≤ 2, far too large for r ≥ 5."""
    _check_ratio(ratio, alpha, power)
    z = norm.isf(alpha / 2) + norm.ppf(power)
    return float((z * (1 + ratio)) ** 2 / (ratio * np.log(ratio) ** 2))


def sample_size(
    ratio: float, *, alpha: float = 0.05, power: float = 0.8, dispersion: float = 1.0, stay: int = 30
) -> int:
    """How many occurrences of the two together are needed to tell their prior ratio from 1.

    Exact two-sided binomial test of n_s against n_0 with n = n_s + n_0 fixed. Power rises in saw-teeth, so the answer
    is the first n from which it stays at the target for `stay` steps.

    Args:
        ratio: The true ratio, above 0 and not 1; r and 1/r need the same.
        alpha: Level of the test, two-sided.
        power: The wanted probability to reject.
        dispersion: Variance inflation of the counts (documents repeat themselves); multiplies the result.
        stay: For how many n in a row the target must be met.

    Example:
        >>> sample_size(2.0), sample_size(5.0)
        (77, 17)
    """
    _check_ratio(ratio, alpha, power)
    if not dispersion >= 1:
        raise InputError("dispersion is too small", expected="1 or more", found=dispersion)
    approximate = sample_size_approximate(ratio, alpha=alpha, power=power)
    start = 1 if approximate < 2000 else int(0.8 * approximate)
    n = np.arange(start, start + max(300, int(0.1 * approximate)))
    while True:
        reached = _power(n, ratio, alpha) >= power
        run = np.lib.stride_tricks.sliding_window_view(reached, stay).all(axis=-1)
        if run.any():
            return int(np.ceil(dispersion * n[int(np.argmax(run))]))
        n = n + len(n) - stay


def _check_ratio(ratio: float, alpha: float, power: float) -> None:
    if not (ratio > 0 and np.isfinite(ratio) and ratio != 1):
        raise InputError("no such ratio", expected="above 0, finite, not 1", found=ratio)
    if not (0 < alpha < 1 and alpha < power < 1):
        raise InputError("no such test", expected="0 < alpha < power < 1", found=(alpha, power))


def _power(n: ndarray, ratio: float, alpha: float) -> Float[ndarray, "n"]:
    """Power of the exact two-sided test of p = 1/2: each tail holds at most alpha/2."""
    low = binom.ppf(alpha / 2, n, 0.5)
    low = np.where(binom.cdf(low, n, 0.5) > alpha / 2, low - 1, low)  # the largest count that rejects, -1 if none
    share = ratio / (1 + ratio)
    return np.asarray(binom.cdf(low, n, share) + binom.sf(n - low - 1, n, share))
