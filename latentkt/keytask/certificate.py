"""Certificates from priors and stated limits: Theorem B in terms of the priors, and the threshold (Theorem C).

    γ ≥ γ_cert = (1−ε_k) [κ A − (1−κ) B] − ε_k
    A = (1−ε_s) [(α_s−B_0) τ_s − C_1 (1−τ_s)] − ε_s        B = (1−ε_0) [α_0 τ_0 + C_2 (1−τ_0)] + ε_0

A certificate is a proof, not an estimate: given the limits and the intervals, P(y_s|z) − P(y*|z) cannot be lower.
Intervals enter as plain numbers; where they come from is another part's matter. Proofs:
`theory/05-margin-certificate.md`, `theory/06-dominance-threshold.md`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray
from scipy.special import expit

from latentkt.errors import InputError
from latentkt.keytask.checks import at, check_unit, first
from latentkt.keytask.logspace import log
from latentkt.keytask.rational import Number, quotient

__all__ = [
    "Certificate",
    "Interval",
    "Limits",
    "brackets",
    "certify",
    "certify_same_key",
    "dominance_threshold",
    "margin_certificate",
    "threshold_odds",
]

Interval: TypeAlias = Any
"""A number or array (a point), or a pair (lower, upper) of numbers or arrays; ends may be infinite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What is stated of the prompt and of the paths' answers; a certificate is only as good as these.

    Attributes:
        alpha_s: Lower limit of P(y_s | z; k_s, t_s).
        alpha_0: Upper limit of P(y* | z; k*, t*).
        B_0: Upper limit of P(y* | z; k_s, t_s).
        C_1: Upper limit of P(y* | z; k_s, t*).
        C_2: Upper limit of P(y* | z; k*, t_s).
        eps_k: Upper limit of P(key not in pair | z), Assumption 3.1 (i).
        eps_t_s: Upper limit of P(task not in pair | z, k_s), Assumption 3.2 (i).
        eps_t_0: Upper limit of P(task not in pair | z, k*).
        delta_k: Upper limit of |log P(z|k_s)/P(z|k*)| in nats, Assumption 3.1 (ii).
        delta_t: Upper limit of |log L(k, t*)/L(k, t_s)| in nats for both keys, Assumption 3.2 (ii).

    Raises:
        InputError: A limit is no probability, or a delta is negative or NaN.
    """

    alpha_s: Number
    alpha_0: Number
    B_0: Number
    C_1: Number
    C_2: Number
    eps_k: Number = 0
    eps_t_s: Number = 0
    eps_t_0: Number = 0
    delta_k: Number = 0
    delta_t: Number = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not field.name.startswith("delta"):
                check_unit(field.name, value)
            elif not np.all(np.asarray(value) >= 0):
                bad = ~(np.asarray(value) >= 0)
                index = first(bad)
                found = np.asarray(value)[index]
                raise InputError(f"{at(field.name, index)} is no departure", expected="nats, 0 or more", found=found)

    @classmethod
    def blind(cls, *, alpha_s: Number, alpha_0: Number, **departures: Number) -> Limits:
        """Nothing known of the answers but the confidences: C_1 = C_2 = 1 and B_0 = 1 − alpha_s."""
        return cls(alpha_s=alpha_s, alpha_0=alpha_0, B_0=1 - alpha_s, C_1=1, C_2=1, **departures)


def brackets(tau_s: Number, tau_0: Number, limits: Limits) -> tuple[Number, Number]:
    """A and B: the margin that the shortcut key is sure to bring, and the one that the correct key may cost.

    A is from −1 to 1 and never falls in tau_s while alpha_s − B_0 + C_1 ≥ 0; B is from 0 to 1.
    """
    m = limits
    a = (1 - m.eps_t_s) * ((m.alpha_s - m.B_0) * tau_s - m.C_1 * (1 - tau_s)) - m.eps_t_s
    b = (1 - m.eps_t_0) * (m.alpha_0 * tau_0 + m.C_2 * (1 - tau_0)) + m.eps_t_0
    return a, b


def margin_certificate(kappa: Number, tau_s: Number, tau_0: Number, limits: Limits) -> Number:
    """Theorem B from point values; exact where the inputs are (the deltas are not used: kappa and tau are posteriors).

    Args:
        kappa: P(k_s | z, key in pair).
        tau_s: P(t_s | k_s, z, task in pair).
        tau_0: P(t* | k*, z, task in pair).
        limits: What is stated of the answers and the masses outside the pair.

    Raises:
        InputError: One of them is no probability.

    Example:
        >>> from fractions import Fraction
        >>> one, zero = Fraction(1), Fraction(0)
        >>> silent = Limits(alpha_s=one, alpha_0=one, B_0=zero, C_1=zero, C_2=zero)
        >>> str(margin_certificate(Fraction(3, 4), Fraction(4, 5), Fraction(3, 10), silent))
        '21/40'
    """
    for name, value in (("kappa", kappa), ("tau_s", tau_s), ("tau_0", tau_0)):
        check_unit(name, value)
    a, b = brackets(tau_s, tau_0, limits)
    return (1 - limits.eps_k) * (kappa * a - (1 - kappa) * b) - limits.eps_k


def threshold_odds(a: Number, b: Number, eps_k: Number) -> Number:
    """Theorem C: the odds of the two keys from which on γ_cert ≥ 0: (B+e)/(A−e) with e = ε_k/(1−ε_k).

    0 where any odds do, inf where none do ("saturated"). `a` and `b` are those of `brackets`.
    """
    inside = 1 - eps_k
    gain, cost = a * inside - eps_k, b * inside + eps_k
    if not isinstance(gain, Fraction):
        gain, cost = np.asarray(gain, dtype=float), np.asarray(cost, dtype=float)
        odds = quotient(cost, np.maximum(gain, 0.0), undefined=np.inf)
        return np.where((gain >= 0) & (cost == 0), 0.0, odds)[()]
    if gain >= 0 and cost == 0:
        return gain * 0
    return cost / gain if gain > 0 else np.inf


def dominance_threshold(tau_s: Interval, tau_0: Interval, limits: Limits) -> Float[ndarray, "*batch"]:
    """The log key prior ratio, in nats, from which on dominance is certified for the worst tau in the intervals.

    Includes delta_k, not delta_t (tau are posteriors). +inf: saturated, no frequency imbalance certifies; −inf: any
    does.

    Example:
        >>> silent = Limits(alpha_s=1.0, alpha_0=1.0, B_0=0.0, C_1=0.0, C_2=0.0)
        >>> round(float(np.exp(dominance_threshold(0.8, 0.4, silent))), 12)
        0.5
    """
    a, b = _worst_brackets(_ends("tau_s", tau_s), _ends("tau_0", tau_0), limits)
    return log(np.asarray(threshold_odds(a, b, np.asarray(limits.eps_k, dtype=float)))) + limits.delta_k


@dataclass(frozen=True, slots=True, eq=False)
class Certificate:
    """What is proved about γ = P(y_s|z) − P(y*|z), item by item.

    Attributes:
        gamma_lower: γ is at least this, whatever the truth inside the intervals and limits.
        threshold: Log key prior ratio in nats from which on dominance is certified (log task prior odds in the same-key
            mode); +inf where saturated.
        margin: Lower end of the log prior ratio minus threshold, in nats; −inf where saturated.
        certified: gamma_lower > 0: the shortcut answer is proved to be more probable.
        saturated: No prior ratio, however large, can certify under these limits.
    """

    gamma_lower: Float[ndarray, "*batch"]
    threshold: Float[ndarray, "*batch"]
    margin: Float[ndarray, "*batch"]
    certified: Bool[ndarray, "*batch"]
    saturated: Bool[ndarray, "*batch"]


def certify(*, log_rho_k: Interval, log_odds_s: Interval, log_odds_0: Interval, limits: Limits) -> Certificate:
    """The certificate from interval-valued priors: the minimum of γ_cert over the box, in closed form.

    γ_cert is affine in each of κ, τ_s and τ_0, and A depends on τ_s alone, B on τ_0 alone; so the minimum over the
    box is at a vertex and can be found end by end. It falls in every ε, cap, α_0 and delta and rises in α_s, so their
    limits are the worst case. If the three intervals hold together with probability 1 − a, so does the certificate.

    Args:
        log_rho_k: log π(k_s)/π(k*), nats: a point or (lower, upper).
        log_odds_s: log π(t_s|k_s)/π(t*|k_s), nats. For paths that share the task, inf.
        log_odds_0: log π(t*|k*)/π(t_s|k*), nats. For paths that share the task, inf.
        limits: What is stated of the prompt and the answers.

    Raises:
        InputError: NaN, or a lower end above the upper one; the message names the entry.

    Example:
        >>> limits = Limits(alpha_s=0.9, alpha_0=0.9, B_0=0.05, C_1=0.05, C_2=0.05, eps_k=0.01, delta_k=0.1)
        >>> found = certify(log_rho_k=(1.5, 2.5), log_odds_s=(2.0, 3.0), log_odds_0=(-1.0, 1.0), limits=limits)
        >>> bool(found.certified), round(float(found.gamma_lower), 3), round(float(found.margin), 3)
        (True, 0.448, 1.472)
    """
    low_k, high_k = _ends("log_rho_k", log_rho_k)
    tau_s = _tau(_ends("log_odds_s", log_odds_s), limits.delta_t)
    tau_0 = _tau(_ends("log_odds_0", log_odds_0), limits.delta_t)
    kappas = expit(_widen(low_k, -np.asarray(limits.delta_k))), expit(_widen(high_k, np.asarray(limits.delta_k)))
    a, b = _worst_brackets(tau_s, tau_0, limits)
    inside = 1 - np.asarray(limits.eps_k, dtype=float)
    lower = np.minimum(*(inside * (kappa * a - (1 - kappa) * b) - limits.eps_k for kappa in kappas))
    threshold = log(np.asarray(threshold_odds(a, b, np.asarray(limits.eps_k, dtype=float)))) + limits.delta_k
    return _certificate(lower, threshold, low_k)


def certify_same_key(*, log_odds: Interval, limits: Limits) -> Certificate:
    """The certificate where both paths share the key, so that only the task's prior decides.

    Args:
        log_odds: log π(t_s|k)/π(t*|k), nats: a point or (lower, upper).
        limits: As in `certify`; C_1, C_2, eps_t_0 and delta_k play no part.

    Returns:
        A certificate whose threshold and margin are about `log_odds`.
    """
    m = limits
    low, high = _ends("log_odds", log_odds)
    gain, cost = np.asarray(m.alpha_s - m.B_0, dtype=float), np.asarray(m.alpha_0, dtype=float)
    outside = 1 - (1 - np.asarray(m.eps_k, dtype=float)) * (1 - np.asarray(m.eps_t_s, dtype=float))
    taus = _tau((low, high), m.delta_t)
    lower = np.minimum(*((1 - outside) * (tau * gain - (1 - tau) * cost) - outside for tau in taus))
    threshold = log(np.asarray(threshold_odds(gain, cost, outside))) + m.delta_t
    return _certificate(lower, threshold, low)


def _certificate(lower: Any, threshold: Any, low: Any) -> Certificate:
    lower, threshold, low = np.broadcast_arrays(lower, threshold, low)
    saturated = np.isposinf(threshold)
    with np.errstate(invalid="ignore"):
        margin = np.where(saturated, -np.inf, low - threshold)
    margin = np.where(np.isneginf(threshold), np.inf, margin)
    return Certificate(lower, threshold, margin, lower > 0, saturated)


def _ends(name: str, interval: Interval) -> tuple[Any, Any]:
    """(lower, upper) as float arrays, checked."""
    if isinstance(interval, tuple) and len(interval) != 2:
        raise InputError(f"{name} is no interval", expected="a number, an array, or (lower, upper)", found=interval)
    low, high = interval if isinstance(interval, tuple) else (interval, interval)
    low, high = np.broadcast_arrays(np.asarray(low, dtype=float), np.asarray(high, dtype=float))
    bad = ~(low <= high)
    if bad.any():
        index = first(bad)
        raise InputError(
            f"{at(name, index)} is no interval",
            expected="lower ≤ upper, neither NaN",
            found=(float(low[index]), float(high[index])),
            fix="leave out items without counts",
        )
    return low, high


def _widen(end: Any, by: Any) -> Any:
    """End + by; an infinite end stays where it is."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(end), end, end + by)


def _tau(odds: tuple[Any, Any], delta_t: Number) -> tuple[Any, Any]:
    return expit(_widen(odds[0], -np.asarray(delta_t))), expit(_widen(odds[1], np.asarray(delta_t)))


def _worst_brackets(tau_s: tuple[Any, Any], tau_0: tuple[Any, Any], limits: Limits) -> tuple[Any, Any]:
    """The smallest A and the largest B over the ends."""
    ends = [brackets(s, zero, limits) for s, zero in zip(tau_s, tau_0, strict=True)]
    return np.minimum(*(a for a, _ in ends)), np.maximum(*(b for _, b in ends))
