"""How much evidence beats how much frequency, and how dominance grows with frequency.

Critical evidence is the amount, in nats, at which P(y_s|z) = P(y*|z); beyond it the correct answer wins. As a function
of the log prior ratio it is a straight line of slope 1. Derivations: `theory/07-critical-evidence.md`,
`theory/08-slope.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from scipy.special import expit

from latentkt.keytask.logspace import log
from latentkt.keytask.model import KeyTaskModel
from latentkt.keytask.paths import PathPair
from latentkt.keytask.rational import Number

__all__ = [
    "CriticalEvidence",
    "critical_key_evidence",
    "critical_odds",
    "critical_path_evidence",
    "critical_task_evidence",
    "dominance_curve",
    "dominance_slope",
    "greatest_slope",
    "key_margins",
]


@dataclass(frozen=True, slots=True, eq=False)
class CriticalEvidence:
    """The evidence at which the two answers are even.

    Attributes:
        nats: The correct answer wins above it; −inf: the shortcut never wins; +inf: no such evidence rescues.
            NaN where more of it helps the *shortcut* (`reversed`) or changes nothing (`tied`).
        outcome: `threshold`, `never_dominates`, `no_rescue`, `reversed` or `tied`.
    """

    nats: Float[ndarray, "*batch"]
    outcome: ndarray


def _critical(log_factor: Number, gain: Number, loss: Number) -> CriticalEvidence:
    """Solve factor·gain·e^(−E) = loss; gain is the shortcut's margin, which evidence shrinks against the loss."""
    log_factor, gain, loss = np.broadcast_arrays(*(np.asarray(x, dtype=float) for x in (log_factor, gain, loss)))
    conditions = {
        "threshold": (gain > 0) & (loss > 0),
        "no_rescue": (gain > 0) & (loss <= 0),
        "never_dominates": (gain <= 0) & (loss >= 0) & ((gain < 0) | (loss > 0)),
        "tied": (gain == 0) & (loss == 0),
    }
    outcome = np.select(list(conditions.values()), list(conditions), default="reversed")
    ok = conditions["threshold"]
    nats = log_factor + log(np.where(ok, gain, 1.0)) - log(np.where(ok, loss, 1.0))
    limits = [nats, np.inf, -np.inf]
    choices = [conditions["threshold"], conditions["no_rescue"], conditions["never_dominates"]]
    return CriticalEvidence(np.select(choices, limits, default=np.nan), outcome)


def critical_odds(rho_k: Fraction, margin_s: Fraction, margin_0: Fraction) -> Number:
    """E to the critical key evidence, exactly: rho_k · margin_s / (−margin_0).

    Args:
        rho_k: π(k_s)/π(k*).
        margin_s: What the shortcut key says: Σ_t P(t|k_s, z) [P(y_s|z; k_s, t) − P(y*|z; k_s, t)].
        margin_0: The same of the correct key (negative where it says y*).

    Returns:
        The factor; 0 where the shortcut never dominates, inf where no key evidence rescues, None where neither is so.

    Example:
        >>> str(critical_odds(Fraction(3), Fraction(4, 5), Fraction(-2, 5)))
        '6'
    """
    if margin_s > 0:
        return rho_k * margin_s / -margin_0 if margin_0 < 0 else np.inf
    return Fraction(0) if margin_0 <= 0 and (margin_s < 0 or margin_0 < 0) else None


def critical_key_evidence(
    log_rho_k: Number, margin_s: Number, margin_0: Number, *, margin_rest: Number = 0.0
) -> CriticalEvidence:
    """Critical evidence E_k = log P(z|k*)/P(z|k_s) for the key: log rho_k + log((margin_s + margin_rest) / −margin_0).

    This is the critical line: slope exactly 1 in log_rho_k. Evidence comes as a higher P(z|k*), all else being equal.

    Args:
        log_rho_k: log π(k_s)/π(k*), nats.
        margin_s: What the shortcut key says, as in `critical_odds`.
        margin_0: What the correct key says.
        margin_rest: Σ over other keys of P(k|z)/P(k_s|z) times what they say; 0 where the pair has all the mass.

    Example:
        >>> found = critical_key_evidence(np.log(3.0), 0.8, -0.4)
        >>> round(float(np.exp(found.nats)), 9), str(found.outcome)
        (6.0, 'threshold')
    """
    return _critical(log_rho_k, np.asarray(margin_s, dtype=float) + margin_rest, -np.asarray(margin_0, dtype=float))


def key_margins(model: KeyTaskModel, paths: PathPair) -> tuple[ndarray, ndarray]:
    """P(k|z) and D_k = Σ_t P(t|k, z) [P(y_s|z; k, t) − P(y*|z; k, t)], both of shape (…, K); γ = Σ_k P(k|z) D_k.

    D_k is 0 for a key without posterior mass.
    """
    paths.check_within(model.n_keys, model.n_tasks, model.n_answers)
    w = model.posterior()
    says = np.exp(model.log_emission[..., paths.y_s]) - np.exp(model.log_emission[..., paths.y_0])
    weight, margin = w.sum(axis=-1), (w * says).sum(axis=-1)
    return weight, np.where(weight > 0, margin / np.where(weight > 0, weight, 1.0), 0.0)


def critical_path_evidence(model: KeyTaskModel, paths: PathPair) -> CriticalEvidence:
    """How many more nats the likelihood of the correct path needs until the answers are even; negative if y* wins now.

    Multiplies L(k*, t*) alone by e^E, which keeps the model coherent: the evidence of the key k* grows with it.
    """
    paths.check_within(model.n_keys, model.n_tasks, model.n_answers)
    w = model.posterior()
    says = np.exp(model.log_emission[..., paths.y_s]) - np.exp(model.log_emission[..., paths.y_0])
    parts = w * says
    own = parts[..., paths.k_0, paths.t_0]
    others = np.ones(w.shape[-2:], dtype=bool)
    others[paths.k_0, paths.t_0] = False
    return _critical(0.0, parts[..., others].sum(axis=-1), -own)


def critical_task_evidence(model: KeyTaskModel, paths: PathPair) -> CriticalEvidence:
    """The same for evidence about the task alone, with P(k|z) held fixed (the paper's Assumption 3.1 ii).

    tau_0 cannot pass 1, so such evidence saturates: +inf where P(k_s|z) D_s and the other keys outweigh
    P(k*|z) (α_0 − β_s). A coherent model cannot raise L(k*, t*) and hold P(z|k*) fixed unless other tasks lose.
    """
    weight, margin = key_margins(model, paths)
    w = model.posterior()[..., paths.k_0, :]
    says = np.exp(model.log_emission[..., paths.k_0, :, paths.y_s]) - np.exp(
        model.log_emission[..., paths.k_0, :, paths.y_0]
    )
    at_0 = weight[..., paths.k_0]
    fixed = (weight * margin).sum(axis=-1) - at_0 * margin[..., paths.k_0]
    with np.errstate(invalid="ignore", divide="ignore"):
        tasks = np.where(at_0[..., None] > 0, w / at_0[..., None], 0.0)
        constant = np.where(at_0 > 0, fixed / at_0, 0.0)
    p = tasks[..., paths.t_0]
    rest = (tasks * says).sum(axis=-1) - p * says[..., paths.t_0]
    # margin > 0  <=>  constant·(1 − p + x p) + rest + x p says_0 > 0 with x = e^E
    return _critical(0.0, constant * (1 - p) + rest, -p * (constant + says[..., paths.t_0]))


def dominance_curve(log_odds: Number, *, a: Number, b: Number, level: Number = 0.0) -> Float[ndarray, "*batch"]:
    """Dominance as the log odds x of the two keys grow: level + log(e^x + a) − log(e^x + b).

    Args:
        log_odds: log of P(k_s|z)/P(k*|z), nats.
        a: S_0(y_s)/S_s(y_s): how much the correct key says y_s, against the shortcut key.
        b: S_0(y*)/S_s(y*): how much more the correct key says y*; large where little leaks.
        level: log S_s(y_s)/S_s(y*): where the curve saturates.
    """
    log_odds = np.asarray(log_odds, dtype=float)
    return level + np.logaddexp(log_odds, log(np.asarray(a, float))) - np.logaddexp(log_odds, log(np.asarray(b, float)))


def dominance_slope(log_odds: Number, *, a: Number, b: Number) -> Float[ndarray, "*batch"]:
    """Derivative of `dominance_curve`: O/(O+a) − O/(O+b) with O = e^log_odds. It is 1 only if a = 0 and b = inf."""
    log_odds = np.asarray(log_odds, dtype=float)
    return expit(log_odds - log(np.asarray(a, float))) - expit(log_odds - log(np.asarray(b, float)))


def greatest_slope(a: Number, b: Number) -> Float[ndarray, "*batch"]:
    """The greatest slope, (√b − √a)/(√b + √a), reached at O = √(ab).

    Example:
        >>> round(float(greatest_slope(1 / 99, 99.0)), 12)
        0.98
    """
    root_a, root_b = np.sqrt(np.asarray(a, float)), np.sqrt(np.asarray(b, float))
    ratio = np.where(root_a == root_b, 1.0, root_a / np.where(root_b == 0, 1.0, root_b))
    return np.where((root_b == 0) & (root_a > 0), -1.0, (1 - ratio) / (1 + ratio))
