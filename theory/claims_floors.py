"""Floors of the distance between two distributions: by z3 over the real numbers, for a few answers."""

from __future__ import annotations

from typing import Any

import z3

from theory.claim import Claim, Verdict, always, exists

__all__ = ["CLAIMS"]


def _distributions(size: int) -> tuple[list[Any], list[Any], list[Any]]:
    p, q = ([z3.Real(f"{letter}{i}") for i in range(size)] for letter in "pq")
    hypotheses = [x >= 0 for x in (*p, *q)] + [z3.Sum(p) == 1, z3.Sum(q) == 1]
    return p, q, hypotheses


def _abs(x: Any) -> Any:
    return z3.If(x >= 0, x, -x)


def _tv(p: list[Any], q: list[Any]) -> Any:
    return z3.Sum([_abs(a - b) for a, b in zip(p, q, strict=True)]) / 2


def _margins(p: list[Any], q: list[Any]) -> tuple[Any, Any]:
    return p[0] - p[1], q[1] - q[0]


def _tv_floor() -> Verdict:
    p, q, hypotheses = _distributions(4)
    gamma, star = _margins(p, q)
    tv = _tv(p, q)
    return always(hypotheses, tv >= _abs(gamma + star) / 2, false=tv >= z3.Q(51, 100) * _abs(gamma + star))


def _tv_equality() -> Verdict:
    """Equality if and only if P = P* on every other answer."""
    p, q, hypotheses = _distributions(4)
    gamma, star = _margins(p, q)
    equal = _tv(p, q) == _abs(gamma + star) / 2
    same = z3.And(p[2] == q[2], p[3] == q[3])
    return always(hypotheses, equal == same, false=z3.Implies(p[2] == q[2], equal))


def _tv_two() -> Verdict:
    """For two answers the floor is the distance itself: an identity."""
    p, q, hypotheses = _distributions(2)
    gamma, star = _margins(p, q)
    return always(
        hypotheses, _tv(p, q) == _abs(gamma + star) / 2, false=_tv(p, q) == z3.Q(51, 100) * _abs(gamma + star)
    )


def _tv_four() -> Verdict:
    """The four-probability floor lies between the margin floor and TV, and is TV for three answers."""
    p, q, hypotheses = _distributions(4)
    gamma, star = _margins(p, q)
    d_s, d_0 = p[0] - q[0], p[1] - q[1]
    tv, both = _tv(p, q), d_s + d_0
    parts = [_abs(d_s), _abs(d_0), _abs(both)]
    half_sum = z3.Sum(parts) / 2
    greatest = z3.And([half_sum >= part for part in parts] + [z3.Or([half_sum == part for part in parts])])
    claim = z3.And(greatest, tv >= half_sum, half_sum >= _abs(gamma + star) / 2)
    return always(hypotheses, claim, false=tv >= half_sum + z3.Q(1, 100))


def _tv_four_ratio() -> Verdict:
    """The four-probability floor can be more than twice the margin floor, both margins being positive."""
    p, q, hypotheses = _distributions(3)
    gamma, star = _margins(p, q)
    hypotheses += [gamma > 0, star > 0]
    return exists(hypotheses, _tv(p, q) > gamma + star, false=p[2] == q[2])


def _chi2_floor() -> Verdict:
    """χ² ≥ (γ+γ*)²/(1−γ*²) for three answers; x_i stands for (p_i − q_i)²/q_i."""
    p, q, hypotheses = _distributions(3)
    x = z3.Reals("x0 x1 x2")
    gamma, star = _margins(p, q)
    hypotheses += [b > 0 for b in q] + [c * b == (a - b) * (a - b) for a, b, c in zip(p, q, x, strict=True)]
    square = (gamma + star) * (gamma + star)
    total, scale = z3.Sum(x), (1 - star) * (1 + star)
    return always(hypotheses, total * scale >= square, false=total * scale >= 2 * square)


def _end_to_end() -> Verdict:
    """A lower limit g of the margin may stand for it: TV ≥ (g + γ*)/2, and (γ+γ*)² ≥ (g+γ*)² where g ≥ −γ*."""
    p, q, hypotheses = _distributions(3)
    gamma, star = _margins(p, q)
    g = z3.Real("g")
    hypotheses += [gamma >= g, g + star >= 0]
    total, known = gamma + star, g + star
    claim = z3.And(_tv(p, q) >= known / 2, total >= known)
    return always(hypotheses, claim, false=_tv(p, q) >= z3.Q(51, 100) * known)


def _monotone_square() -> Verdict:
    """From x ≥ y ≥ 0 follows x² ≥ y², so the χ² floor grows with the margin."""
    x, y = z3.Reals("x y")
    return always([x >= y, y >= 0], x * x >= y * y, false=x * x >= 2 * y * y)


_ROWS = (
    ("tv-floor", "09-total-variation-floor", "TV ≥ |γ+γ*|/2 for any two distributions", _tv_floor),
    ("tv-equality", "09-total-variation-floor", "when equality holds", _tv_equality),
    ("tv-two-answers", "09-total-variation-floor", "for two answers it is an identity", _tv_two),
    ("tv-four", "09-total-variation-floor", "the floor from four probabilities", _tv_four),
    ("tv-four-unbounded", "09-total-variation-floor", "it can exceed twice the margin floor", _tv_four_ratio),
    ("chi2-floor", "10-divergence-floors", "floor of χ², three answers", _chi2_floor),
    ("end-to-end-tv", "11-end-to-end-floor", "a certificate may stand for the margin", _end_to_end),
    ("end-to-end-growth", "11-end-to-end-floor", "floors grow with the margin", _monotone_square),
)

CLAIMS = tuple(Claim(name, f"{document}.md", statement, check) for name, document, statement, check in _ROWS)
