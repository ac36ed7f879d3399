"""Theorem 3.6 and beyond: how far P must be from P*, from margins, from four probabilities, from priors.

The margin floor is true of any two distributions: it needs none of the paper's assumptions, and for two answers it is
an identity. That it holds is therefore a test of code, never evidence for the theory; what carries evidence is the
*certificate* that goes in (`end_to_end_floors`). Proofs: `theory/09-total-variation-floor.md`,
`theory/10-divergence-floors.md`, `theory/11-end-to-end-floor.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.typing import ArrayLike
from scipy.special import rel_entr

from latentkt.errors import InputError
from latentkt.keytask.checks import at, check_rows, first
from latentkt.keytask.rational import Number, quotient

__all__ = [
    "Floors",
    "binary_pair",
    "chi2",
    "chi2_floor",
    "end_to_end_floors",
    "f_divergence",
    "f_divergence_floor",
    "four_cells",
    "four_probability_floor",
    "hellinger2",
    "hellinger2_floor",
    "kl",
    "kl_floor",
    "margin_floor",
    "merge_to_pair",
    "reverse_kl_floor",
    "total_variation",
]

Margin = Number


def _check_margin(name: str, value: Number) -> None:
    array = np.asarray(value)
    bad = ~((array >= -1) & (array <= 1))
    if bad.any():
        index = first(bad)
        raise InputError(f"{at(name, index)} is no margin", expected="a number from −1 to 1", found=array[index])


def margin_floor(gamma: Margin, gamma_star: Margin) -> Number:
    """Theorem 3.6, repaired: TV(P, P*) ≥ |γ + γ*|/2, for any signs; exact where the inputs are.

    Args:
        gamma: P(y_s) − P(y*).
        gamma_star: P*(y*) − P*(y_s).

    Raises:
        InputError: A margin outside [−1, 1].

    Example:
        >>> round(margin_floor(0.25, 0.6), 12)
        0.425
    """
    _check_margin("gamma", gamma)
    _check_margin("gamma_star", gamma_star)
    return abs(gamma + gamma_star) / 2


def four_probability_floor(ps: Number, p0: Number, qs: Number, q0: Number) -> Number:
    """The sharper floor: TV ≥ max(|ps−qs|, |p0−q0|, |ps+p0−qs−q0|), the best that four probabilities give.

    Args:
        ps: P(y_s).
        p0: P(y*).
        qs: P*(y_s).
        q0: P*(y*).

    Raises:
        InputError: A probability outside [0, 1], or two of one distribution that sum to more than 1.

    Example:
        >>> float(four_probability_floor(0.5, 0.25, 0.1, 0.7).round(12))
        0.45
    """
    four_cells(ps, p0), four_cells(qs, q0)
    d_s, d_0 = ps - qs, p0 - q0
    return np.maximum(np.maximum(abs(d_s), abs(d_0)), abs(d_s + d_0))


def four_cells(p_s: Number, p_0: Number) -> ndarray:
    """(p_s, p_0, rest) as rows: what is known of a distribution by two of its probabilities.

    The f-divergence of two such rows is the best floor that the four probabilities give.
    """
    exact = not isinstance(np.asarray(p_s + p_0).flat[0], float | np.floating)
    rest = 1 - p_s - p_0
    if not exact:
        rest = np.where(np.abs(rest) < 1e-12, 0.0, rest)  # rounding of probabilities that sum to 1
    cells = np.stack([np.asarray(x) for x in np.broadcast_arrays(p_s, p_0, rest)], axis=-1)
    check_rows("(p_s, p_0, rest)", cells)
    return cells


def binary_pair(gamma: Margin, gamma_star: Margin) -> tuple[ndarray, ndarray]:
    """The two-answer distributions with these margins, columns y_s and y*: every floor below is attained by them."""
    _check_margin("gamma", gamma)
    _check_margin("gamma_star", gamma_star)
    gamma, gamma_star = np.broadcast_arrays(gamma, gamma_star)
    p = np.stack([(1 + gamma) / 2, (1 - gamma) / 2], axis=-1)
    q = np.stack([(1 - gamma_star) / 2, (1 + gamma_star) / 2], axis=-1)
    return p, q


def merge_to_pair(p: ArrayLike, *, y_s: int, y_0: int) -> ndarray:
    """Send every other answer to y_s or y* with probability ½: rows (P(y_s) + rest/2, P(y*) + rest/2).

    The channel of Theorem 3.6′: it keeps the margin, and no divergence grows. From whole rows the floors come out right
    where margins lie so near ±1 that a float no longer tells them from it: `kl(merge_to_pair(p), merge_to_pair(q))`.

    Args:
        p: Rows of probabilities, shape (…, Y).
        y_s: Index of the shortcut answer.
        y_0: Index of the correct answer.

    Example:
        >>> merge_to_pair([0.5, 0.25, 0.25], y_s=0, y_0=1).tolist()
        [0.625, 0.375]
    """
    p = np.asarray(p)
    half = np.delete(p / 2, [y_s, y_0], axis=-1).sum(axis=-1)
    return np.stack([p[..., y_s] + half, p[..., y_0] + half], axis=-1)


def f_divergence(
    p: ArrayLike, q: ArrayLike, f: Callable[[Any], Any], *, slope_at_infinity: float
) -> Float[ndarray, "*batch"]:
    """D_f(P ‖ Q) = Σ q f(p/q), with q f(p/q) = p · slope_at_infinity where q = 0.

    Args:
        p: P, rows of probabilities.
        q: Q, likewise.
        f: A convex function on [0, inf) with f(1) = 0, that takes arrays and gives its limit at 0.
        slope_at_infinity: lim f(x)/x.

    Example:
        >>> tv = f_divergence([0.6, 0.4], [0.2, 0.8], lambda x: abs(x - 1) / 2, slope_at_infinity=0.5)
        >>> round(float(tv), 12)
        0.4
    """
    p, q = np.asarray(p, dtype=float), np.asarray(q, dtype=float)
    inside = q > 0
    ratio = np.where(inside, p / np.where(inside, q, 1.0), 1.0)
    outside = (
        np.where(p > 0, p, 0.0) * slope_at_infinity if np.isfinite(slope_at_infinity) else np.where(p > 0, np.inf, 0)
    )
    with np.errstate(invalid="ignore"):
        return np.where(inside, q * f(ratio), outside).sum(axis=-1)


def f_divergence_floor(
    gamma: Margin, gamma_star: Margin, f: Callable[[Any], Any], *, slope_at_infinity: float
) -> Float[ndarray, "*batch"]:
    """Theorem 3.6′: any f-divergence of P from P* is at least that of the two-answer pair with the same margins."""
    return f_divergence(*binary_pair(gamma, gamma_star), f, slope_at_infinity=slope_at_infinity)


def total_variation(p: ArrayLike, q: ArrayLike) -> Number:
    """½ Σ |p − q| over the last axis; exact on arrays of `Fraction`."""
    p, q = np.asarray(p), np.asarray(q)
    return abs(p - q).sum(axis=-1) / 2


def kl(p: ArrayLike, q: ArrayLike) -> Float[ndarray, "*batch"]:
    """KL(P ‖ Q) in nats; inf where P says what Q excludes."""
    return rel_entr(np.asarray(p, dtype=float), np.asarray(q, dtype=float)).sum(axis=-1)


def chi2(p: ArrayLike, q: ArrayLike) -> Number:
    """χ²(P ‖ Q) = Σ (p − q)²/q; exact on arrays of `Fraction`; inf where P says what Q excludes."""
    p, q = np.broadcast_arrays(np.asarray(p), np.asarray(q))
    if p.dtype == object:
        return sum((quotient((a - b) ** 2, b, undefined=b) for a, b in zip(p, q, strict=True)), start=p[0] * 0)
    return quotient((p - q) ** 2, q, undefined=0.0).sum(axis=-1)


def hellinger2(p: ArrayLike, q: ArrayLike) -> Float[ndarray, "*batch"]:
    """Squared Hellinger distance 1 − Σ √(p q), from 0 to 1; summed as ½ Σ (√p − √q)² so that nothing cancels."""
    root_p, root_q = np.sqrt(np.asarray(p, dtype=float)), np.sqrt(np.asarray(q, dtype=float))
    return ((root_p - root_q) ** 2).sum(axis=-1) / 2


def kl_floor(gamma: Margin, gamma_star: Margin) -> Float[ndarray, "*batch"]:
    """KL(P ‖ P*) ≥ (1+γ)/2 log((1+γ)/(1−γ*)) + (1−γ)/2 log((1−γ)/(1+γ*)), nats.

    Where |γ| or |γ*| is within 1e-6 of 1 the rounding of the margin itself is felt; see `merge_to_pair`.

    Example:
        >>> float(kl_floor(0.2, 0.6)) > (0.2 + 0.6) ** 2 / 2  # sharper than Pinsker's inequality on the margin floor
        True
    """
    return kl(*binary_pair(gamma, gamma_star))


def reverse_kl_floor(gamma: Margin, gamma_star: Margin) -> Float[ndarray, "*batch"]:
    """KL(P* ‖ P) from below, nats."""
    p, q = binary_pair(gamma, gamma_star)
    return kl(q, p)


def chi2_floor(gamma: Margin, gamma_star: Margin) -> Number:
    """χ²(P ‖ P*) ≥ (γ+γ*)²/((1−γ*)(1+γ*)); exact where the inputs are.

    The product is not written 1 − γ*², which cancels near 1.
    """
    _check_margin("gamma", gamma)
    _check_margin("gamma_star", gamma_star)
    square = (gamma + gamma_star) ** 2
    return quotient(square, (1 - gamma_star) * (1 + gamma_star), undefined=square * 0)


def hellinger2_floor(gamma: Margin, gamma_star: Margin) -> Float[ndarray, "*batch"]:
    """1 − BC ≥ 1 − [√((1+γ)(1−γ*)) + √((1−γ)(1+γ*))]/2."""
    return hellinger2(*binary_pair(gamma, gamma_star))


@dataclass(frozen=True, slots=True, eq=False)
class Floors:
    """Lower limits of the distance of P from P*.

    Attributes:
        total_variation: The paper's inference loss ℓ.
        kl: KL(P ‖ P*), nats.
        reverse_kl: KL(P* ‖ P), nats.
        chi2: χ²(P ‖ P*).
        hellinger2: Squared Hellinger distance.
    """

    total_variation: Float[ndarray, "*batch"]
    kl: Float[ndarray, "*batch"]
    reverse_kl: Float[ndarray, "*batch"]
    chi2: Float[ndarray, "*batch"]
    hellinger2: Float[ndarray, "*batch"]


def end_to_end_floors(gamma_lower: ArrayLike, gamma_star: ArrayLike) -> Floors:
    """Floors from a certificate alone: P is known only by γ ≥ gamma_lower.

    Every floor grows with γ while γ + γ* > 0, so the certificate may stand for γ; otherwise P = P* is not excluded and
    the floors are 0. They hold even where the certificate is negative, as long as it is above −γ*.

    Args:
        gamma_lower: A proven lower limit of γ, such as `Certificate.gamma_lower`.
        gamma_star: The target margin γ*.

    Example:
        >>> float(end_to_end_floors(-0.2, 0.6).total_variation.round(12)), float(end_to_end_floors(-0.7, 0.6).kl)
        (0.2, 0.0)
    """
    gamma_lower, gamma_star = np.asarray(gamma_lower, dtype=float), np.asarray(gamma_star, dtype=float)
    at_least = np.maximum(gamma_lower, -gamma_star)  # below that, P* itself is possible
    return Floors(
        total_variation=np.asarray(margin_floor(at_least, gamma_star)),
        kl=np.asarray(kl_floor(at_least, gamma_star)),
        reverse_kl=np.asarray(reverse_kl_floor(at_least, gamma_star)),
        chi2=np.asarray(chi2_floor(at_least, gamma_star)),
        hellinger2=np.asarray(hellinger2_floor(at_least, gamma_star)),
    )
