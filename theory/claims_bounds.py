"""Bounds of ratio and margin, and the threshold: inequalities, by z3 over the real numbers.

Encodings: one variable for each joint mass of path and answer, caps times weights as variables of their own, no
division, and no constraint that masses sum to 1 (the claims are homogeneous).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import z3

from theory.claim import Claim, Verdict, always, exists

__all__ = ["CLAIMS"]


def _reals(names: str) -> list[Any]:
    return list(z3.Reals(names))


@dataclass(frozen=True, slots=True)
class _Joint:
    """Masses of (path, answer): n for y_s and d for y*, on the paths s, 0, the mixed ones 1 and 2, and all the rest."""

    n: dict[str, Any]
    d: dict[str, Any]
    w: dict[str, Any]
    cap: dict[str, Any]  # weight times cap

    @property
    def shortcut(self) -> Any:
        return z3.Sum(list(self.n.values()))

    @property
    def correct(self) -> Any:
        return z3.Sum(list(self.d.values()))


def _joint() -> tuple[_Joint, list[Any]]:
    paths = ("s", "0", "1", "2", "off")
    n, d, w = ({p: z3.Real(f"{letter}_{p}") for p in paths} for letter in "ndw")
    cap = {name: z3.Real(f"cap_{name}") for name in ("B_0", "B_s", "C_1", "C_2", "U_1", "U_2")}
    hypotheses = [x >= 0 for x in (*n.values(), *d.values())] + [n[p] + d[p] <= w[p] for p in paths]
    limits = ((d["s"], "B_0"), (n["0"], "B_s"), (d["1"], "C_1"), (d["2"], "C_2"), (n["1"], "U_1"), (n["2"], "U_2"))
    hypotheses += [mass <= cap[name] for mass, name in limits]
    return _Joint(n, d, w, cap), hypotheses


def _ratio_lower() -> Verdict:
    j, hypotheses = _joint()
    most = j.d["0"] + j.cap["B_0"] + j.cap["C_1"] + j.cap["C_2"] + j.w["off"]
    hypotheses += [j.correct > 0, j.n["s"] > 0]
    # n_s/most ≤ N/D, multiplied out
    return always(
        hypotheses, j.n["s"] * j.correct <= j.shortcut * most, false=2 * j.n["s"] * j.correct <= j.shortcut * most
    )


def _ratio_upper() -> Verdict:
    j, hypotheses = _joint()
    most = j.n["s"] + j.cap["B_s"] + j.cap["U_1"] + j.cap["U_2"] + j.w["off"]
    hypotheses += [j.d["0"] > 0]
    return always(
        hypotheses, j.shortcut * j.d["0"] <= most * j.correct, false=2 * j.shortcut * j.d["0"] <= most * j.correct
    )


def _margin_terms(j: _Joint) -> tuple[Any, Any]:
    lower = j.n["s"] - j.cap["B_0"] - j.cap["C_1"] - j.d["0"] - j.cap["C_2"] - j.w["off"]
    upper = j.n["s"] + j.cap["U_1"] + j.cap["B_s"] - j.d["0"] + j.cap["U_2"] + j.w["off"]
    return lower, upper


def _margin_lower() -> Verdict:
    j, hypotheses = _joint()
    lower, _ = _margin_terms(j)
    return always(hypotheses, j.shortcut - j.correct >= lower, false=j.shortcut - j.correct >= lower + j.w["off"] / 2)


def _margin_upper() -> Verdict:
    j, hypotheses = _joint()
    _, upper = _margin_terms(j)
    return always(hypotheses, j.shortcut - j.correct <= upper, false=j.shortcut - j.correct <= upper - j.w["off"] / 2)


def _margin_tight() -> Verdict:
    """Equality is met with every mass above 0, and never undercut."""
    j, hypotheses = _joint()
    lower, _ = _margin_terms(j)
    hypotheses += [x > 0 for x in (*j.w.values(), j.n["s"], j.d["0"], j.cap["B_0"], j.cap["C_1"], j.cap["C_2"])]
    equal = j.shortcut - j.correct == lower
    return exists(hypotheses, equal, false=j.shortcut - j.correct < lower)


def _eps_monotone() -> Verdict:
    """A falls in ε_s, B rises in ε_0, γ_cert falls in ε_k: x is what stands in the bracket."""
    small, large, x = _reals("small large x")
    hypotheses = [small >= 0, small <= large, large <= 1, x >= -1, x <= 1]
    falls = (1 - large) * x - large <= (1 - small) * x - small
    rises = (1 - large) * x + large >= (1 - small) * x + small
    return always(hypotheses, z3.And(falls, rises), false=(1 - large) * x - large < (1 - small) * x - small)


def _caps_monotone() -> Verdict:
    """(α_s − B_0) τ − C_1 (1−τ) rises in α_s and falls in B_0 and C_1; α_0 τ_0 + C_2 (1−τ_0) rises in α_0 and C_2."""
    tau, alpha, b, c, more = _reals("tau alpha b c more")
    hypotheses = [tau >= 0, tau <= 1, more >= 0]

    def a_of(alpha: Any, b: Any, c: Any) -> Any:
        return (alpha - b) * tau - c * (1 - tau)

    here = a_of(alpha, b, c)
    claim = z3.And(a_of(alpha + more, b, c) >= here, a_of(alpha, b + more, c) <= here, a_of(alpha, b, c + more) <= here)
    return always(hypotheses, claim, false=a_of(alpha, b, c + more) < here)


def _bracket_range() -> Verdict:
    """−1 ≤ (α_s−B_0) τ − C_1 (1−τ) ≤ 1 and 0 ≤ α_0 τ + C_2 (1−τ) ≤ 1, as the monotonicity in ε needs."""
    tau, alpha, b, c = _reals("tau alpha b c")
    hypotheses = [z3.And(x >= 0, x <= 1) for x in (tau, alpha, b, c)]
    a_bracket, b_bracket = (alpha - b) * tau - c * (1 - tau), alpha * tau + c * (1 - tau)
    claim = z3.And(a_bracket >= -1, a_bracket <= 1, b_bracket >= 0, b_bracket <= 1)
    return always(hypotheses, claim, false=a_bracket >= z3.Q(-99, 100))


def _box() -> Verdict:
    """κA − (1−κ)B is least at an end of κ, at the least A and the greatest B."""
    k, low, high, a, a_low, b, b_high = _reals("kappa low high A A_low B B_high")
    hypotheses = [low >= 0, low <= k, k <= high, high <= 1, a >= a_low, b <= b_high]

    def value(kappa: Any) -> Any:
        return kappa * a_low - (1 - kappa) * b_high

    inside = k * a - (1 - k) * b
    at_ends = z3.Or(inside >= value(low), inside >= value(high))
    return always(hypotheses, at_ends, false=inside >= value(low))


def _affine() -> Verdict:
    """A function affine in τ is least at an end of the interval of τ."""
    tau, low, high, p, q = _reals("tau low high p q")
    hypotheses = [low <= tau, tau <= high]
    claim = z3.Or(p + q * tau >= p + q * low, p + q * tau >= p + q * high)
    return always(hypotheses, claim, false=p + q * tau >= p + q * low)


def _threshold_sign() -> Verdict:
    """γ_cert ≥ 0 if and only if O_k (A − e) ≥ B + e, with e = ε_k/(1−ε_k): multiplied by 1 − ε_k and 1 + O_k."""
    odds, a, b, eps = _reals("O A B eps")
    hypotheses = [odds > 0, eps >= 0, eps < 1, a >= -1, a <= 1, b >= 0, b <= 1]
    certificate = (1 - eps) * (odds * a - b) - eps * (1 + odds)
    claim = (certificate >= 0) == (odds * (a * (1 - eps) - eps) >= b * (1 - eps) + eps)
    return always(hypotheses, claim, false=(certificate >= 0) == (odds * a >= b))


def _saturation() -> Verdict:
    """With A ≤ e and B + e > 0 no odds certify: γ_cert < 0 for all of them."""
    odds, a, b, eps = _reals("O A B eps")
    hypotheses = [odds > 0, eps >= 0, eps < 1, b >= 0, b <= 1, a * (1 - eps) <= eps, b * (1 - eps) + eps > 0]
    certificate = (1 - eps) * (odds * a - b) - eps * (1 + odds)
    return always(hypotheses, certificate < 0, false=certificate < -z3.Q(1, 1000))


def _ratio_saturates() -> Verdict:
    """The lower ratio bound x κ/((1−κ) y + κ z + e) never passes its limit x/(z + e) at κ = 1."""
    k, x, y, z, e = _reals("kappa x y z e")
    hypotheses = [k > 0, k <= 1, x > 0, y >= 0, z >= 0, e >= 0, z + e > 0]
    claim = k * (z + e) <= (1 - k) * y + k * z + e
    return always(hypotheses, claim, false=2 * k * (z + e) <= (1 - k) * y + k * z + e)


_ROWS = (
    ("ratio-lower", "04-ratio-bounds", "lower bound of the ratio (Theorem A)", _ratio_lower),
    ("ratio-upper", "04-ratio-bounds", "upper bound of the ratio (Theorem A)", _ratio_upper),
    ("ratio-saturates", "04-ratio-bounds", "the lower bound has a finite limit in the prior ratio", _ratio_saturates),
    ("margin-lower", "05-margin-certificate", "lower bound of the margin (Theorem B)", _margin_lower),
    ("margin-upper", "05-margin-certificate", "upper bound of the margin (Theorem B)", _margin_upper),
    ("margin-tight", "05-margin-certificate", "Theorem B is attained and never undercut", _margin_tight),
    ("margin-falls-in-eps", "05-margin-certificate", "the certificate falls in every ε", _eps_monotone),
    ("margin-falls-in-caps", "05-margin-certificate", "the certificate falls in every cap", _caps_monotone),
    ("brackets-in-range", "05-margin-certificate", "ranges of A and B", _bracket_range),
    ("box-key", "05-margin-certificate", "minimum over a box: the key", _box),
    ("box-task", "05-margin-certificate", "minimum over a box: the tasks", _affine),
    ("threshold", "06-dominance-threshold", "Theorem C: sign of the certificate", _threshold_sign),
    ("threshold-saturates", "06-dominance-threshold", "A ≤ e: no frequency certifies", _saturation),
)

CLAIMS = tuple(Claim(name, f"{document}.md", statement, check) for name, document, statement, check in _ROWS)
