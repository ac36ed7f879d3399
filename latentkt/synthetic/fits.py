"""Fits over pairs of keys, with intervals from resampling the keys: pairs that share a key are not independent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latentkt.errors import InputError

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

__all__ = [
    "Estimate",
    "KeyBootstrap",
    "least_squares",
    "least_squares_draws",
    "logistic_slope",
    "share",
    "weighted_mean",
]

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value, its interval, and the number of items; NaN where the data define none."""

    value: float
    low: float
    high: float
    n: int


class KeyBootstrap:
    """Weights of items under resampling of the keys.

    A replicate draws as many keys as there are, with replacement, within each group (a trained network); an item counts
    as often as its first key was drawn times its second key was. This is wider than resampling items, as it must be:
    n pairs are made of about sqrt(2n) keys.

    Args:
        first: Key of each item (any integers).
        second: The other key of each item.
        group: Network of each item; keys of different networks are different keys.
        replicates: How many.
        seed: Of the draws.

    Example:
        >>> boot = KeyBootstrap(np.array([0, 0, 1]), np.array([1, 2, 2]), replicates=500, seed=0)
        >>> boot.weights.shape
        (500, 3)
    """

    def __init__(
        self,
        first: Int[np.ndarray, " item"],
        second: Int[np.ndarray, " item"],
        *,
        group: Int[np.ndarray, " item"] | None = None,
        replicates: int = 300,
        seed: int = 0,
    ) -> None:
        number = len(first)
        group = np.zeros(number, dtype=np.int64) if group is None else group
        rng = np.random.default_rng(seed)
        self.weights = np.zeros((replicates, number))
        for name in np.unique(group):
            here = group == name
            keys, places = np.unique(np.stack([first[here], second[here]]), return_inverse=True)
            places = places.reshape(2, -1)
            drawn = rng.multinomial(len(keys), np.full(len(keys), 1 / len(keys)), size=replicates)
            self.weights[:, here] = drawn[:, places[0]] * drawn[:, places[1]]

    def select(self, here: Bool[np.ndarray, " item"]) -> KeyBootstrap:
        """The same replicates for some of the items."""
        part = object.__new__(KeyBootstrap)
        part.weights = self.weights[:, here]
        return part

    def interval(self, value: float, replicates: np.ndarray, n: int) -> Estimate:
        """A value with the percentiles of its replicates (those that are not defined are left out)."""
        finite = replicates[np.isfinite(replicates)]
        if not np.isfinite(value) or len(finite) < len(replicates) / 2:
            return Estimate(float(value), np.nan, np.nan, n)
        low, high = np.quantile(finite, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        return Estimate(float(value), float(low), float(high), n)


def least_squares(
    y: Float[np.ndarray, " item"],
    regressors: dict[str, Float[np.ndarray, " item"]],
    boot: KeyBootstrap,
) -> dict[str, Estimate]:
    """Ordinary least squares with an intercept.

    Returns:
        An estimate for each regressor, `intercept`, `r2` and `residual_sd` (nats).

    Raises:
        InputError: If the regressors do not vary, or one is a combination of the others.

    Example:
        >>> x = np.arange(6.0)
        >>> boot = KeyBootstrap(np.arange(6), np.arange(6) + 1, replicates=50)
        >>> round(least_squares(2 * x + 1, {"slope": x}, boot)["slope"].value, 6)
        2.0
    """
    names = ["intercept", *regressors, "r2", "residual_sd"]
    value, draws = least_squares_draws(y, regressors, boot)
    return {name: boot.interval(value[i], draws[:, i], len(y)) for i, name in enumerate(names)}


def least_squares_draws(
    y: Float[np.ndarray, " item"], regressors: dict[str, Float[np.ndarray, " item"]], boot: KeyBootstrap
) -> tuple[Float[np.ndarray, " figure"], Float[np.ndarray, "replicate figure"]]:
    """The figures of `least_squares`, in its order, and their replicates.

    Raises:
        InputError: As `least_squares` does.
    """
    design = np.stack([np.ones(len(y)), *regressors.values()], axis=1)
    if len(y) <= design.shape[1] or np.linalg.matrix_rank(design) < design.shape[1]:
        raise InputError(
            "this fit has no unique answer",
            expected="more items than coefficients, and regressors that vary apart from each other",
            found=f"{len(y)} items, rank {np.linalg.matrix_rank(design)} of {design.shape[1]}",
        )
    return _solve(y, design, np.ones((1, len(y))))[0], _solve(y, design, boot.weights)


def _solve(y: np.ndarray, design: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Coefficients, R² and residual spread for each row of weights; NaN where a replicate has no unique answer."""
    weights = weights / np.maximum(weights.sum(1, keepdims=True), 1e-300)
    gram = _gram(weights, design)
    moment = weights @ (design * y[:, None])
    sound = np.linalg.cond(gram) < 1e12
    coefficients = np.full(moment.shape, np.nan)
    coefficients[sound] = np.linalg.solve(gram[sound], moment[sound][..., None])[..., 0]
    mean = weights @ y
    residual = np.sum(weights * (y - coefficients @ design.T) ** 2, axis=1)
    total = np.sum(weights * (y - mean[:, None]) ** 2, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        r2 = np.where(total > 0, 1 - residual / total, np.nan)
    return np.column_stack([coefficients, r2, np.sqrt(residual)])


def _gram(weights: np.ndarray, design: np.ndarray) -> np.ndarray:
    size = design.shape[1]
    return (weights @ (design[:, :, None] * design[:, None, :]).reshape(len(design), -1)).reshape(-1, size, size)


def logistic_slope(
    dominance: Float[np.ndarray, " item"], log_ratio: Float[np.ndarray, " item"], boot: KeyBootstrap
) -> dict[str, Estimate]:
    """The slope in probability space: σ(dominance) fitted by σ(slope · log r - λ), by likelihood.

    Training calibrates probabilities, so noise in the scores steepens the line in log-odds but not this one.

    Returns:
        Estimates of `slope_probability` and `lambda_probability`; NaN where log r does not vary.

    Example:
        >>> x = np.linspace(-3, 3, 9)
        >>> boot = KeyBootstrap(np.arange(9), np.arange(9) + 1, replicates=20)
        >>> round(logistic_slope(1.5 * x - 0.5, x, boot)["slope_probability"].value, 4)
        1.5
    """
    number = len(dominance)
    if np.ptp(log_ratio) == 0:
        return dict.fromkeys(("slope_probability", "lambda_probability"), Estimate(np.nan, np.nan, np.nan, number))
    target = 1 / (1 + np.exp(-dominance))
    value = _newton(target, log_ratio, np.ones((1, len(target))))[0]
    spread = _newton(target, log_ratio, boot.weights)
    return {
        "slope_probability": boot.interval(value[1], spread[:, 1], number),
        "lambda_probability": boot.interval(-value[0], -spread[:, 0], number),
    }


def _newton(target: np.ndarray, x: np.ndarray, weights: np.ndarray, steps: int = 30) -> np.ndarray:
    design = np.stack([np.ones(len(x)), x], axis=1)
    weights = weights / np.maximum(weights.sum(1, keepdims=True), 1e-300)
    coefficients = np.zeros((len(weights), 2))
    for _ in range(steps):
        chance = 1 / (1 + np.exp(-np.clip(coefficients @ design.T, -50, 50)))
        gradient = (weights * (target - chance)) @ design
        curvature = _gram(weights * chance * (1 - chance), design) + 1e-12 * np.eye(2)
        step = np.linalg.solve(curvature, gradient[..., None])[..., 0]
        coefficients += np.clip(step, -2, 2)
        if np.max(np.abs(step)) < 1e-10:
            break
    return coefficients


def weighted_mean(values: Float[np.ndarray, " item"], boot: KeyBootstrap) -> Estimate:
    """A mean over items with its interval; an empty selection gives NaN."""
    if len(values) == 0:
        return Estimate(np.nan, np.nan, np.nan, 0)
    totals = boot.weights.sum(1)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.where(totals > 0, boot.weights @ values / totals, np.nan)
    return boot.interval(float(values.mean()), spread, len(values))


def share(successes: Float[np.ndarray, " item"], boot: KeyBootstrap) -> Estimate:
    """A share with an interval that is never narrower than Wilson's (at 0 and 1 a bootstrap has no width)."""
    from latentkt.stats import wilson

    mean = weighted_mean(successes, boot)
    if mean.n == 0:
        return mean
    plain = wilson(round(float(successes.sum())), mean.n)
    return Estimate(
        mean.value, float(np.nanmin([mean.low, plain.low])), float(np.nanmax([mean.high, plain.high])), mean.n
    )
