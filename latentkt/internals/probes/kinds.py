"""The kinds of probe. Each gives, for one set of training rows, a path of linear probes of growing strength.

All labels of one set of rows (a task and its control) share the costly part: the Gram matrix of ridge and LDA, the
orthonormal basis of logistic regression. The penalty sees no rotation and the weights lie in the span of the training
rows, so a probe fitted there is the plain one, with as many columns as rows.

`C` is the inverse strength of the penalty, as in scikit-learn: ½|w|² + C · Σ loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from latentkt.errors import InputError

if TYPE_CHECKING:
    from jaxtyping import Float, Int

Solve = Callable[["np.ndarray"], "np.ndarray"]

__all__ = ["KINDS", "Kind", "Linear", "kind_named"]


class Linear(NamedTuple):
    """Linear probes, one a label column: scores are `x @ weights + intercept`, 1 where they are above 0.

    Attributes:
        weights: [d, label].
        intercept: [label].
        C: Inverse strength of the penalty; NaN where there is none.
    """

    weights: Float[np.ndarray, "d label"]
    intercept: Float[np.ndarray, " label"]
    C: float

    def scores(self, x: Float[np.ndarray, "row d"]) -> Float[np.ndarray, "row label"]:
        """Signed scores of rows."""
        found: np.ndarray = x @ self.weights + self.intercept
        return found


class Kind(Protocol):
    """A kind of probe.

    Attributes:
        standardised: Whether features are standardised by the training rows first.
        steps: Strengths that are chosen from.
    """

    standardised: bool
    steps: int

    def path(
        self, x: Float[np.ndarray, "row d"], labels: Int[np.ndarray, "row label"], steps: Sequence[int]
    ) -> list[Linear]:
        """One probe for each of the steps asked for (ascending: weak probes first); both classes are there."""


class _Logistic:
    """Logistic regression by scikit-learn, in the span of the training rows.

    Newton's method: residual streams have a few directions of far greater variance, on which quasi-Newton steps crawl.
    """

    standardised = True
    strengths = (1e-4, 1e-3, 1e-2, 1e-1)
    steps = len(strengths)

    def path(self, x: np.ndarray, labels: np.ndarray, steps: Sequence[int]) -> list[Linear]:
        from sklearn import config_context
        from sklearn.linear_model import LogisticRegression

        basis = np.linalg.qr(x.T)[0]
        inside = x @ basis
        weights = np.zeros((len(steps), x.shape[1], labels.shape[1]))
        intercepts = np.zeros((len(steps), labels.shape[1]))
        for column in range(labels.shape[1]):
            model = LogisticRegression(solver="newton-cholesky", tol=1e-4, max_iter=200)
            for number, step in enumerate(steps):
                with config_context(assume_finite=True, skip_parameter_validation=True):
                    model.set_params(C=self.strengths[step]).fit(inside, labels[:, column])
                weights[number, :, column] = basis @ model.coef_[0]
                intercepts[number, column] = model.intercept_[0]
        return [Linear(weights[n], intercepts[n], self.strengths[step]) for n, step in enumerate(steps)]


class _Ridge:
    """Least squares on labels −1 and 1 with a penalty, in closed form from the Gram matrix of the rows."""

    standardised = True
    shares = (100.0, 10.0, 1.0, 0.1, 0.01)  # of the mean squared length of a row
    steps = len(shares)

    def path(self, x: np.ndarray, labels: np.ndarray, steps: Sequence[int]) -> list[Linear]:
        centre = x.mean(0)
        x = x - centre
        signed = 2.0 * labels - 1.0
        mean = signed.mean(0)
        found = []
        for penalty, solve in _solvers(x, [self.shares[step] for step in steps]):
            weights = x.T @ solve(signed - mean)
            found.append(Linear(weights, mean - centre @ weights, 1.0 / penalty))
        return found


class _LDA:
    """Linear discriminant analysis, the covariance within classes plus a penalty; classes weigh as they occur."""

    standardised = True
    shares = _Ridge.shares
    steps = _Ridge.steps

    def path(self, x: np.ndarray, labels: np.ndarray, steps: Sequence[int]) -> list[Linear]:
        n, ones = len(x), labels.sum(0)
        means = (labels.T @ x).T / ones, ((1 - labels).T @ x).T / (n - ones)
        delta, middle = means[0] - means[1], (means[0] + means[1]) / 2
        between = ones * (n - ones) / n
        x = x - x.mean(0)
        contrast = labels / ones - (1 - labels) / (n - ones)  # x.T @ contrast = delta
        found = []
        for penalty, solve in _solvers(x, [self.shares[step] for step in steps]):
            # (x'x + penalty)^-1 delta; x'x is the scatter within classes plus between * delta delta', which is then
            # taken out again (Sherman and Morrison).
            total = x.T @ solve(contrast)
            weights = (n - 2) * total / (1 - between * (delta * total).sum(0))
            intercept = np.log(ones / (n - ones)) - (middle * weights).sum(0)
            found.append(Linear(weights, intercept, 1.0 / penalty))
        return found


class _MeanDifference:
    """The difference of the class means of the raw features, with the border half-way between them."""

    standardised = False
    steps = 1

    def path(self, x: np.ndarray, labels: np.ndarray, steps: Sequence[int]) -> list[Linear]:
        ones = (labels.T @ x).T / labels.sum(0)
        zeros = ((1 - labels).T @ x).T / (1 - labels).sum(0)
        weights = ones - zeros
        return [Linear(weights, -((ones + zeros) / 2 * weights).sum(0), float("nan"))] * len(steps)


def _solvers(x: Float[np.ndarray, "row d"], shares: Sequence[float]) -> Iterator[tuple[float, Solve]]:
    """For each share: the penalty, and y -> (x x' + penalty)^-1 y."""
    from scipy.linalg import cho_factor, cho_solve

    gram = x @ x.T
    scale = float(np.trace(gram)) / len(x) or 1.0
    for share in shares:
        penalised = gram.copy()
        penalised.flat[:: len(x) + 1] += share * scale
        factor = cho_factor(penalised, lower=True, overwrite_a=True, check_finite=False)
        yield share * scale, partial(cho_solve, factor, check_finite=False)


KINDS: dict[str, Kind] = {
    "logistic": _Logistic(),
    "ridge": _Ridge(),
    "lda": _LDA(),
    "mean_difference": _MeanDifference(),
}


def kind_named(name: str) -> Kind:
    """The kind of a name.

    Raises:
        InputError: There is none; the message lists them.
    """
    if name not in KINDS:
        raise InputError("unknown kind of probe", expected=", ".join(KINDS), found=name)
    return KINDS[name]
