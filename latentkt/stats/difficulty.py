"""How much several answerers should err together: by chance, and where questions differ in difficulty.

Two references for the number of answerers that miss one question. Independence: each errs at its own rate, on whatever
question. One difficulty a question: the log-odds that answerer s errs on question q are a_s + σ z_q with z_q standard
normal (a Rasch model fitted by marginal likelihood). What exceeds the second is shared error that a common difficulty
does not explain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latentkt.errors import InputError

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike

__all__ = ["Difficulty", "fit_difficulty", "poisson_binomial"]

NODES = 31
BOUND = 15.0


@dataclass(frozen=True)
class Difficulty:
    """The fitted model of one difficulty a question.

    Attributes:
        intercepts: a_s, shape `[answerers]`, in log-odds.
        spread: σ; 0 means that questions do not differ.
        log_likelihood: Marginal log-likelihood, nats.
        p: Error probabilities at the nodes of z, shape `[nodes, answerers]`.
        weights: Weights of the nodes, shape `[nodes]`, summing to 1.
    """

    intercepts: Float[np.ndarray, " answerers"]
    spread: float
    log_likelihood: float
    p: Float[np.ndarray, "nodes answerers"]
    weights: Float[np.ndarray, " nodes"]

    def errors_together(self) -> Float[np.ndarray, " counts"]:
        """Probability that 0, 1, … all answerers miss a question."""
        return self.weights @ np.stack([poisson_binomial(row) for row in self.p])

    def both(self) -> Float[np.ndarray, "answerers answerers"]:
        """Probability that two answerers miss the same question."""
        return np.einsum("k,ki,kj->ij", self.weights, self.p, self.p)


def poisson_binomial(p: ArrayLike) -> Float[np.ndarray, " counts"]:
    """Distribution of the number of successes of independent trials with their own probabilities.

    Example:
        >>> poisson_binomial([0.5, 0.5, 0.1]).round(3).tolist()
        [0.225, 0.475, 0.275, 0.025]
    """
    found = np.ones(1)
    for chance in np.asarray(p, dtype=float):
        found = np.convolve(found, [1 - chance, chance])
    return found


def fit_difficulty(wrong: ArrayLike) -> Difficulty:
    """Fit the model of one difficulty a question.

    Args:
        wrong: Whether each answerer misses each question, 0 or 1, shape `[questions, answerers]`, at least two
            answerers.

    Raises:
        InputError: Another shape or other values.

    Example:
        >>> wrong = np.array([[1, 1, 1]] * 20 + [[0, 0, 0]] * 60 + [[1, 0, 0], [0, 1, 0], [0, 0, 1]] * 5)
        >>> fit_difficulty(wrong).errors_together()[3] > poisson_binomial(wrong.mean(axis=0))[3]
        np.True_
    """
    from scipy.optimize import minimize

    array = np.asarray(wrong, dtype=float)
    if array.ndim != 2 or array.shape[1] < 2 or not len(array) or not np.isin(array, (0.0, 1.0)).all():
        raise InputError("errors", expected="0 or 1, [questions, two or more answerers]", found=f"shape {array.shape}")
    patterns, times = np.unique(array, axis=0, return_counts=True)
    z, weights = np.polynomial.hermite_e.hermegauss(NODES)
    weights = weights / weights.sum()
    rates = np.clip(array.mean(axis=0), 1e-4, 1 - 1e-4)
    start = np.append(np.log(rates / (1 - rates)), 0.0)
    bounds = [(-BOUND, BOUND)] * array.shape[1] + [(-5.0, 3.0)]
    found = minimize(
        _loss, start, args=(patterns, times, z, np.log(weights)), method="L-BFGS-B", jac=True, bounds=bounds
    )
    intercepts, spread = found.x[:-1], math.exp(found.x[-1])
    p = 1 / (1 + np.exp(-(intercepts + spread * z[:, None])))
    return Difficulty(intercepts, spread, -float(found.fun) * len(array), p, weights)


def _loss(
    theta: np.ndarray, patterns: np.ndarray, times: np.ndarray, z: np.ndarray, log_weights: np.ndarray
) -> tuple[float, np.ndarray]:
    """Mean negative marginal log-likelihood, and its gradient in (a, log σ)."""
    spread = math.exp(theta[-1])
    logits = theta[:-1] + spread * z[:, None]  # (nodes, answerers)
    joint = patterns @ logits.T - np.logaddexp(0.0, logits).sum(axis=1) + log_weights  # (patterns, nodes)
    top = joint.max(axis=1, keepdims=True)
    likelihood = top[:, 0] + np.log(np.exp(joint - top).sum(axis=1))
    posterior = np.exp(joint - likelihood[:, None]) * times[:, None]
    # d/dlogit of a Bernoulli log-likelihood is y − p, averaged over the posterior of z.
    residual = posterior.T @ patterns - posterior.sum(axis=0)[:, None] / (1 + np.exp(-logits))
    gradient = np.append(residual.sum(axis=0), spread * (residual.sum(axis=1) @ z))
    return -float(times @ likelihood) / times.sum(), -gradient / times.sum()
