"""Inequalities and counterexamples, by z3 over the real numbers.

Encodings: one variable for each joint mass of path and answer, caps times weights as variables of their own, no
division, and no constraint that masses sum to 1 (the claims are homogeneous). Naive encodings, with posterior weights
times conditional probabilities, leave z3 undecided after a minute.
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


def _priors() -> tuple[Any, ...]:
    """rho_k; a, b = π(t*|k*), π(t_s|k*); c, d = π(t*|k_s), π(t_s|k_s)."""
    rho, a, b, c, d = _reals("rho a b c d")
    return (rho, a, b, c, d), [rho > 0, a > 0, d > 0, b >= 0, c >= 0, a + b <= 1, c + d <= 1]


def _assumed(rho: Any, a: Any, d: Any) -> list[Any]:
    return [rho >= 1, d >= a]  # both prior ratios are 1 or more; confidences are 1


def _printed_false_r() -> Verdict:
    """Every assumption exact, nothing leaks, mixed paths silent, Π ≥ 500,000, and yet P(y_s) ≤ P(y*)/2."""
    (rho, a, b, c, d), hypotheses = _priors()
    hypotheses += [*_assumed(rho, a, d), rho * d >= 500_000 * a]
    witness = 2 * rho * d * (a + b) <= a * (c + d)  # ratio = rho · d/(c+d) · (a+b)/a
    return exists(hypotheses, witness, false=a + b >= c + d)


def _printed_false_mixed() -> Verdict:
    """R = 1, and the mixed path (k*, t_s) says y*: printed bound ≥ 30, ratio ≤ 3/10."""
    (rho, a, b, c, d), hypotheses = _priors()
    says = z3.Real("c2")
    hypotheses += [*_assumed(rho, a, d), a + b == 1, c + d == 1, says >= 0, says <= 1, rho * d >= 30 * a]
    witness = 10 * rho * d <= 3 * (a + says * b)
    return exists(hypotheses, witness, false=says == 0)


def _printed_false_leak() -> Verdict:
    """R = 1, mixed paths silent; a leak of at most 1/50 overturns a bound of 3 where confidences are small."""
    (rho, a, b, c, d), hypotheses = _priors()
    alpha, leak = _reals("alpha leak")
    hypotheses += [*_assumed(rho, a, d), a + b == 1, c + d == 1, alpha > 0, alpha <= 1, leak >= 0, leak * 50 <= 1]
    hypotheses += [rho == 3, a == z3.Q(1, 2), d == z3.Q(1, 2)]
    witness = rho * d * alpha < a * alpha + rho * d * leak
    return exists(hypotheses, witness, false=100 * leak <= alpha)


def _printed_false_off_key() -> Verdict:
    """R = 1, nothing else leaks; other keys of mass at most 7/127 say y* and overturn a bound of 29."""
    alpha, w_s, w_0, off = _reals("alpha w_s w_0 off")
    hypotheses = [alpha > 0, alpha <= 1, w_0 > 0, w_s == 29 * w_0, 2 * (w_s + w_0) + off == 1, off >= 0, 127 * off <= 7]
    witness = w_s * alpha < w_0 * alpha + off
    return exists(hypotheses, witness, false=off == 0)


def _converse_false() -> Verdict:
    """Π ≤ 1/5, every assumption exact, and yet the shortcut answer is twice as probable: R does it alone."""
    (rho, a, b, c, d), hypotheses = _priors()
    hypotheses += [5 * rho * d <= a]
    witness = rho * d * (a + b) >= 2 * a * (c + d)
    return exists(hypotheses, witness, false=a + b <= c + d)


def _repair_r() -> Verdict:
    """No evidence against the shortcut path, and only the correct path says y*: the printed bound is true."""
    w_s, w_0, bound, alpha_s, alpha_0, says_s = _reals("w_s w_0 Pi alpha_s alpha_0 P_s")
    hypotheses = [w_s >= bound * w_0, w_0 > 0, bound > 0, alpha_s > 0, alpha_s <= 1, alpha_0 > 0, alpha_0 <= 1]
    hypotheses += [says_s >= alpha_s * w_s]
    # P_s/(α_0 w_0) ≥ Π α_s/α_0
    return always(hypotheses, says_s >= bound * alpha_s * w_0, false=says_s >= 2 * bound * alpha_s * w_0)


def _repair_r_priors() -> Verdict:
    """In priors: R ≥ 1 gives W_s ≥ Π W_0 where ε = 0."""
    (rho, a, b, c, d), hypotheses = _priors()
    hypotheses += [a + b >= c + d]
    # rho d/(c+d) ≥ (rho d/a) · a/(a+b)
    return always(hypotheses, rho * d * (a + b) >= rho * d * (c + d), false=rho * d * (a + b) >= 2 * rho * d * (c + d))


def _repair_pair() -> Verdict:
    """rho_k · π~(t_s|k_s) ≥ 1 suffices whatever R is (equal confidences, nothing leaks)."""
    (rho, a, b, c, d), hypotheses = _priors()
    hypotheses += [rho * d >= c + d]
    claim = rho * d * (a + b) >= a * (c + d)
    return always(hypotheses, claim, false=rho * d * (a + b) >= 2 * a * (c + d))


def _pair_bound() -> Verdict:
    """Ratio ≥ rho_k π~(t_s|k_s) α_s/α_0 for every R, with equality if and only if π(t_s|k*) = 0."""
    (rho, a, b, _, d), hypotheses = _priors()
    ratio, bound = rho * d * (a + b), rho * d * a  # both over a (c+d)
    return always(hypotheses, z3.And(ratio >= bound, (ratio == bound) == (b == 0)), false=ratio > bound)


def _r_range() -> Verdict:
    """π(t*|k*) ≤ R ≤ 1/π(t_s|k_s)."""
    (_, a, b, c, d), hypotheses = _priors()
    claim = z3.And(a + b >= a * (c + d), (a + b) * d <= c + d)
    return always(hypotheses, claim, false=a + b >= (c + d) / 1000)


def _r_attained() -> Verdict:
    """Both ends of the range are attained, for any value of the two priors: here 1/1000 and 1000."""
    (_, a, b, c, d), hypotheses = _priors()
    low = z3.And(a == z3.Q(1, 1000), a + b == a * (c + d))
    return exists(hypotheses, low, false=a + b < a * (c + d))


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
    x = _reals("x0 x1 x2")
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
    x, y = _reals("x y")
    return always([x >= y, y >= 0], x * x >= y * y, false=x * x >= 2 * y * y)


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
    ("printed-false-R", "03-theorem-3.4-as-printed", "Theorem 3.4 fails by R, without limit", _printed_false_r),
    ("printed-false-mixed", "03-theorem-3.4-as-printed", "Theorem 3.4 fails by mixed paths", _printed_false_mixed),
    ("printed-false-leak", "03-theorem-3.4-as-printed", "Theorem 3.4 fails by small leaks", _printed_false_leak),
    ("printed-false-off-key", "03-theorem-3.4-as-printed", "Theorem 3.4 fails by other keys", _printed_false_off_key),
    ("converse-false", "03-theorem-3.4-as-printed", "dominance without a dominant shortcut pair", _converse_false),
    ("printed-repaired", "03-theorem-3.4-as-printed", "repair (a): what makes it true", _repair_r),
    ("printed-repaired-R", "03-theorem-3.4-as-printed", "repair (a) in priors: R ≥ 1", _repair_r_priors),
    ("printed-repaired-pair", "03-theorem-3.4-as-printed", "repair (b): true whatever R is", _repair_pair),
    ("pair-bound", "03-theorem-3.4-as-printed", "the bound without R, and its equality case", _pair_bound),
    ("R-range", "02-odds-identity", "range of R", _r_range),
    ("R-attained", "02-odds-identity", "the range of R is attained", _r_attained),
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
