"""Theorem 3.4 as printed, its counterexamples and its repairs, in terms of the priors: by z3 over the real numbers.

Probabilities are written as polynomials without division: odds a/b ≥ c/d as a d ≥ c b.
"""

from __future__ import annotations

from typing import Any

import z3

from theory.claim import Claim, Verdict, always, exists

__all__ = ["CLAIMS"]


def _priors() -> tuple[Any, ...]:
    """rho_k; a, b = π(t*|k*), π(t_s|k*); c, d = π(t*|k_s), π(t_s|k_s)."""
    rho, a, b, c, d = z3.Reals("rho a b c d")
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
    alpha, leak = z3.Reals("alpha leak")
    hypotheses += [*_assumed(rho, a, d), a + b == 1, c + d == 1, alpha > 0, alpha <= 1, leak >= 0, leak * 50 <= 1]
    hypotheses += [rho == 3, a == z3.Q(1, 2), d == z3.Q(1, 2)]
    witness = rho * d * alpha < a * alpha + rho * d * leak
    return exists(hypotheses, witness, false=100 * leak <= alpha)


def _printed_false_off_key() -> Verdict:
    """R = 1, nothing else leaks; other keys of mass at most 7/127 say y* and overturn a bound of 29."""
    alpha, w_s, w_0, off = z3.Reals("alpha w_s w_0 off")
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
    w_s, w_0, bound, alpha_s, alpha_0, says_s = z3.Reals("w_s w_0 Pi alpha_s alpha_0 P_s")
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


_ROWS = (
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
)

CLAIMS = tuple(Claim(name, f"{document}.md", statement, check) for name, document, statement, check in _ROWS)
