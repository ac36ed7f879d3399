"""Identities, by sympy: both sides as rational functions, their difference reduced to 0."""

from __future__ import annotations

from typing import Any

import sympy as sp

from theory.claim import Claim, Verdict, identity

__all__ = ["CLAIMS"]


def _symbols(names: str) -> tuple[Any, ...]:
    return sp.symbols(names, positive=True)


def _point(*symbols: Any) -> dict[Any, Any]:
    """A rational point of small different primes over 100: generic enough to tell two formulas apart."""
    primes = [sp.prime(i + 2) for i in range(len(symbols))]
    return {symbol: sp.Rational(prime, 101) for symbol, prime in zip(symbols, primes, strict=True)}


def _odds_identity() -> Verdict:
    """W_s/W_0 = Π R LR_k (ν_s/ν_0) (1−ε_s)/(1−ε_0), with priors, likelihoods and tasks outside the pair left free."""
    rho, a, b, c, d, l00, l0s, ls0, lss, x_0, x_s = _symbols("rho a b c d l00 l0s ls0 lss x_0 x_s")
    pair_s, pair_0 = c * ls0 + d * lss, a * l00 + b * l0s
    evidence_s, evidence_0 = pair_s + x_s, pair_0 + x_0
    big_r, lr_k = (a + b) / (c + d), evidence_s / evidence_0
    nu_s, nu_0 = lss * (c + d) / pair_s, l00 * (a + b) / pair_0
    inside_s, inside_0 = pair_s / evidence_s, pair_0 / evidence_0
    left = rho * d * lss / (a * l00)
    right = rho * (d / a) * big_r * lr_k * nu_s / nu_0 * inside_s / inside_0
    symbols = (rho, a, b, c, d, l00, l0s, ls0, lss, x_0, x_s)
    return identity(left, right, false=right / big_r, point=_point(*symbols))


def _path_evidence() -> Verdict:
    """Under 3.1 (ii) and 3.2 (ii), P(z|k_s,t_s)/P(z|k*,t*) = R (1−ε_s)/(1−ε_0): evidence about the path."""
    a, b, c, d, evidence, eps_s, eps_0 = _symbols("a b c d L eps_s eps_0")
    # 3.2 (ii): one likelihood l_k on both tasks of the pair; l_k (pair prior) = (1−ε_k) P(z|k); 3.1 (ii): P(z|k) = L
    l_s, l_0 = (1 - eps_s) * evidence / (c + d), (1 - eps_0) * evidence / (a + b)
    right = (a + b) / (c + d) * (1 - eps_s) / (1 - eps_0)
    false = (1 - eps_s) / (1 - eps_0)
    return identity(l_s / l_0, right, false=false, point=_point(a, b, c, d, evidence, eps_s, eps_0))


def _within_pair() -> Verdict:
    """rho_t R = π~(t_s|k_s)/π~(t*|k*): the right regressor is the ratio within the pair."""
    a, b, c, d = _symbols("a b c d")
    left = (d / a) * (a + b) / (c + d)
    right = (d / (c + d)) / (a / (a + b))
    return identity(left, right, false=d / a, point=_point(a, b, c, d))


def _regimes() -> Verdict:
    """Task-bound odds from the four cells; with 1 − τ dropped (the path-bound formula) it is another number."""
    kappa, tau_s, tau_0 = _symbols("kappa tau_s tau_0")
    cells = {
        "s": kappa * tau_s,
        "1": kappa * (1 - tau_s),
        "0": (1 - kappa) * tau_0,
        "2": (1 - kappa) * (1 - tau_0),
    }
    left = (cells["s"] + cells["2"]) / (cells["0"] + cells["1"])
    right = (kappa * tau_s + (1 - kappa) * (1 - tau_0)) / ((1 - kappa) * tau_0 + kappa * (1 - tau_s))
    return identity(left, right, false=cells["s"] / cells["0"], point=_point(kappa, tau_s, tau_0))


def _path_neutral() -> Verdict:
    """Repair (c): P(z|k_s,t_s) = P(z|k*,t*) gives W_s/W_0 = Π, whatever the rest."""
    p_s, p_0, common, total = _symbols("p_s p_0 L Z")
    left = (p_s * common / total) / (p_0 * common / total)
    return identity(left, p_s / p_0, false=common * p_s / p_0, point=_point(p_s, p_0, common, total))


def _certificate_parts() -> tuple[Any, ...]:
    kappa, tau_s, tau_0, eps_k, eps_s, eps_0 = _symbols("kappa tau_s tau_0 eps_k eps_s eps_0")
    alpha_s, alpha_0, b_0, c_1, c_2 = _symbols("alpha_s alpha_0 B_0 C_1 C_2")
    big_a = (1 - eps_s) * ((alpha_s - b_0) * tau_s - c_1 * (1 - tau_s)) - eps_s
    big_b = (1 - eps_0) * (alpha_0 * tau_0 + c_2 * (1 - tau_0)) + eps_0
    symbols = (kappa, tau_s, tau_0, eps_k, eps_s, eps_0, alpha_s, alpha_0, b_0, c_1, c_2)
    return symbols, big_a, big_b


def _certificate_forms() -> Verdict:
    """The mass form of Theorem B is (1−ε_k)[κA − (1−κ)B] − ε_k."""
    symbols, big_a, big_b = _certificate_parts()
    kappa, tau_s, tau_0, eps_k, eps_s, eps_0, alpha_s, alpha_0, b_0, c_1, c_2 = symbols
    inside = 1 - eps_k
    w_s, w_1 = inside * kappa * (1 - eps_s) * tau_s, inside * kappa * (1 - eps_s) * (1 - tau_s)
    w_0, w_2 = inside * (1 - kappa) * (1 - eps_0) * tau_0, inside * (1 - kappa) * (1 - eps_0) * (1 - tau_0)
    off = eps_k + inside * (kappa * eps_s + (1 - kappa) * eps_0)
    left = w_s * (alpha_s - b_0) - w_1 * c_1 - w_0 * alpha_0 - w_2 * c_2 - off
    right = inside * (kappa * big_a - (1 - kappa) * big_b) - eps_k
    return identity(left, right, false=right + eps_k, point=_point(*symbols))


def _masses_sum() -> Verdict:
    """The five masses in terms of κ, τ and ε sum to 1."""
    kappa, tau_s, tau_0, eps_k, eps_s, eps_0 = symbols = _symbols("kappa tau_s tau_0 eps_k eps_s eps_0")
    inside = 1 - eps_k
    shortcut_key = inside * kappa * (1 - eps_s) * (tau_s + (1 - tau_s))
    correct_key = inside * (1 - kappa) * (1 - eps_0) * (tau_0 + (1 - tau_0))
    off = eps_k + inside * (kappa * eps_s + (1 - kappa) * eps_0)
    return identity(shortcut_key + correct_key + off, sp.Integer(1), false=1 + eps_k, point=_point(*symbols))


def _same_key_form() -> Verdict:
    """Same key: the mass form is (1−ε_k){(1−ε_t)[τ_s(α_s−B_0) − (1−τ_s)α_0] − ε_t} − ε_k."""
    tau, eps_k, eps_t, alpha_s, alpha_0, b_0 = symbols = _symbols("tau eps_k eps_t alpha_s alpha_0 B_0")
    inside = (1 - eps_k) * (1 - eps_t)
    left = inside * tau * (alpha_s - b_0) - inside * (1 - tau) * alpha_0 - (1 - inside)
    right = (1 - eps_k) * ((1 - eps_t) * (tau * (alpha_s - b_0) - (1 - tau) * alpha_0) - eps_t) - eps_k
    return identity(left, right, false=right + eps_t, point=_point(*symbols))


def _threshold_identity() -> Verdict:
    """γ_cert = (1−ε_k)(1−κ)[(A−e) O_k − (B+e)] with O_k = κ/(1−κ) and e = ε_k/(1−ε_k)."""
    kappa, eps_k, big_a, big_b = symbols = _symbols("kappa eps_k A B")
    e, odds = eps_k / (1 - eps_k), kappa / (1 - kappa)
    left = (1 - eps_k) * (kappa * big_a - (1 - kappa) * big_b) - eps_k
    right = (1 - eps_k) * (1 - kappa) * ((big_a - e) * odds - (big_b + e))
    false = (1 - eps_k) * (1 - kappa) * (big_a * odds - big_b)
    return identity(left, right, false=false, point=_point(*symbols))


def _ratio_limit() -> Verdict:
    """At κ = 1 the lower ratio bound is (1−ε_s)τ_sα_s / [(1−ε_s)(τ_sB_0+(1−τ_s)C_1) + ε_s + ε_k/(1−ε_k)]."""
    tau, eps_k, eps_s, alpha, b_0, c_1 = symbols = _symbols("tau_s eps_k eps_s alpha_s B_0 C_1")
    inside = 1 - eps_k
    w_s, w_1 = inside * (1 - eps_s) * tau, inside * (1 - eps_s) * (1 - tau)
    left = w_s * alpha / (w_s * b_0 + w_1 * c_1 + eps_k + inside * eps_s)
    below = (1 - eps_s) * (tau * b_0 + (1 - tau) * c_1) + eps_s
    right = (1 - eps_s) * tau * alpha / (below + eps_k / inside)
    return identity(left, right, false=(1 - eps_s) * tau * alpha / (below + eps_k), point=_point(*symbols))


def _critical_key() -> Verdict:
    """With E = log rho + log(D_s/(−D_0)) the margin rho e^(−E) D_s + D_0 is 0; x stands for e^(−E)."""
    rho, gain, loss = symbols = _symbols("rho D_s minus_D_0")
    x = 1 / (rho * gain / loss)
    return identity(rho * x * gain - loss, sp.Integer(0), false=rho * gain - loss, point=_point(*symbols))


def _critical_line() -> Verdict:
    """Along margin = 0 the critical evidence E has slope 1 in log rho (implicit function theorem)."""
    log_rho, evidence, gain, loss = symbols = _symbols("log_rho E D_s minus_D_0")
    margin = sp.exp(log_rho - evidence) * gain - loss
    slope = -sp.diff(margin, log_rho) / sp.diff(margin, evidence)
    return identity(slope, sp.Integer(1), false=gain / loss, point=_point(*symbols))


def _critical_task() -> Verdict:
    """Task evidence with the key odds frozen: at x = [c(1−p)+r]/[p(a−c)] the margin c + (r − x p a)/(1−p+x p) is 0."""
    c, p, r, a = symbols = _symbols("c p r a")
    x = (c * (1 - p) + r) / (p * (a - c))
    left = c + (r - x * p * a) / (1 - p + x * p)
    return identity(left, sp.Integer(0), false=c + r, point=_point(*symbols))


def _slope_derivative() -> Verdict:
    """d/d(log O) of log[(O S_s+S_0)/(O T_s+T_0)] is O/(O+a) − O/(O+b), a = S_0/S_s, b = T_0/T_s."""
    o, s_s, s_0, t_s, t_0 = symbols = _symbols("O S_s S_0 T_s T_0")
    left = o * sp.diff(sp.log(o * s_s + s_0) - sp.log(o * t_s + t_0), o)
    right = o / (o + s_0 / s_s) - o / (o + t_0 / t_s)
    return identity(left, right, false=sp.Integer(1), point=_point(*symbols))


def _slope_max() -> Verdict:
    """(q−p)/(q+p) − slope = (q−p)(O−pq)²/[(q+p)(O+p²)(O+q²)] with a = p², b = q²: a square, so the maximum is there."""
    o, p, q = symbols = _symbols("O p q")
    slope = o / (o + p**2) - o / (o + q**2)
    left = (q - p) / (q + p) - slope
    below = (q + p) * (o + p**2) * (o + q**2)
    right, false = (q - p) * (o - p * q) ** 2 / below, (q - p) * (o - 2 * p * q) ** 2 / below
    return identity(left, right, false=false, point=_point(*symbols))


def _incoherence() -> Verdict:
    """Odds o times q²: (q−1)/(q+1) − [oq²/(1+oq²) − o/(1+o)] = (q−1)(oq−1)²/[(q+1)(1+oq²)(1+o)], q = e^(spread/2)."""
    o, q = symbols = _symbols("o q")
    left = (q - 1) / (q + 1) - (o * q**2 / (1 + o * q**2) - o / (1 + o))
    below = (q + 1) * (1 + o * q**2) * (1 + o)
    right, false = (q - 1) * (o * q - 1) ** 2 / below, (q - 1) * (o * q - 2) ** 2 / below
    return identity(left, right, false=false, point=_point(*symbols))


def _hierarchical() -> Verdict:
    """P(k|z) P(t|k, z) of Appendix K.1 is the joint posterior of the likelihood κ(k) L(k, t), κ(k) = P(z|k)/S(k)."""
    pi, prior, likelihood, separate, implied, rest = symbols = _symbols("pi p L P_zk S rest")
    kappa = separate / implied
    hierarchical = (pi * separate / (pi * separate + rest)) * (prior * likelihood / implied)
    joint = pi * prior * kappa * likelihood / (pi * kappa * implied + rest)
    false = pi * prior * likelihood / (pi * implied + rest)
    return identity(hierarchical, joint, false=false, point=_point(*symbols))


def _channel() -> Verdict:
    """Sending the rest to y_s and y* by halves keeps the margin: the result is ((1+γ)/2, (1−γ)/2)."""
    p_s, p_0 = symbols = _symbols("p_s p_0")
    left = p_s + (1 - p_s - p_0) / 2
    return identity(left, (1 + (p_s - p_0)) / 2, false=p_s, point=_point(*symbols))


def _jensen() -> Verdict:
    """Merging is Jensen's inequality: λ p_1/q_1 + (1−λ) p_2/q_2 = (p_1+p_2)/(q_1+q_2), λ = q_1/(q_1+q_2)."""
    p_1, p_2, q_1, q_2 = symbols = _symbols("p_1 p_2 q_1 q_2")
    weight = q_1 / (q_1 + q_2)
    left = weight * p_1 / q_1 + (1 - weight) * p_2 / q_2
    return identity(left, (p_1 + p_2) / (q_1 + q_2), false=(p_1 / q_1 + p_2 / q_2) / 2, point=_point(*symbols))


def _chi2_merge() -> Verdict:
    """x²/q_1 + y²/q_2 − (x+y)²/(q_1+q_2) = (x q_2 − y q_1)²/[q_1 q_2 (q_1+q_2)]: merging never raises χ²."""
    x, y, q_1, q_2 = symbols = _symbols("x y q_1 q_2")
    left = x**2 / q_1 + y**2 / q_2 - (x + y) ** 2 / (q_1 + q_2)
    below = q_1 * q_2 * (q_1 + q_2)
    right, false = (x * q_2 - y * q_1) ** 2 / below, (x * q_2 + y * q_1) ** 2 / below
    return identity(left, right, false=false, point=_point(*symbols))


def _chi2_pair() -> Verdict:
    """χ² of the two-answer pair is (γ+γ*)²/((1−γ*)(1+γ*))."""
    gamma, star = symbols = _symbols("gamma gamma_star")
    p = ((1 + gamma) / 2, (1 - gamma) / 2)
    q = ((1 - star) / 2, (1 + star) / 2)
    left = sum((a - b) ** 2 / b for a, b in zip(p, q, strict=True))
    square = (gamma + star) ** 2
    return identity(left, square / ((1 - star) * (1 + star)), false=square / (1 - star), point=_point(*symbols))


def _hellinger_merge() -> Verdict:
    """(x_1²+x_2²)(y_1²+y_2²) − (x_1y_1+x_2y_2)² = (x_1y_2−x_2y_1)²; x² = p, y² = q: merging only adds overlap."""
    x_1, x_2, y_1, y_2 = symbols = _symbols("x_1 x_2 y_1 y_2")
    left = (x_1**2 + x_2**2) * (y_1**2 + y_2**2) - (x_1 * y_1 + x_2 * y_2) ** 2
    right, false = (x_1 * y_2 - x_2 * y_1) ** 2, (x_1 * y_2 + x_2 * y_1) ** 2
    return identity(left, right, false=false, point=_point(*symbols))


_ROWS = (
    ("hierarchical-posterior", "01-model", "Appendix K.1 is a joint posterior of another likelihood", _hierarchical),
    ("incoherence-bound", "01-model", "TV ≤ tanh(spread/4) for two keys", _incoherence),
    ("odds-identity", "02-odds-identity", "the odds of the two paths", _odds_identity),
    ("path-evidence", "02-odds-identity", "R is a likelihood ratio of the paths", _path_evidence),
    ("within-pair", "02-odds-identity", "rho_t R is the ratio within the pair", _within_pair),
    ("task-bound", "02-odds-identity", "odds in the task-bound regime", _regimes),
    ("path-neutral", "03-theorem-3.4-as-printed", "repair (c): a path-neutral prompt", _path_neutral),
    ("ratio-limit", "04-ratio-bounds", "where the lower bound saturates", _ratio_limit),
    ("masses", "05-margin-certificate", "masses from κ, τ and ε", _masses_sum),
    ("certificate-forms", "05-margin-certificate", "two forms of Theorem B agree", _certificate_forms),
    ("certificate-same-key", "05-margin-certificate", "Theorem B where the key is shared", _same_key_form),
    ("threshold-identity", "06-dominance-threshold", "the certificate factored by the odds", _threshold_identity),
    ("critical-key", "07-critical-evidence", "evidence about the key", _critical_key),
    ("critical-line", "07-critical-evidence", "slope 1", _critical_line),
    ("critical-task", "07-critical-evidence", "evidence about the task, key odds frozen", _critical_task),
    ("slope", "08-slope", "slope of dominance in the log odds", _slope_derivative),
    ("slope-maximum", "08-slope", "the greatest slope", _slope_max),
    ("channel", "10-divergence-floors", "the channel keeps the margins", _channel),
    ("merging", "10-divergence-floors", "merging answers is Jensen's inequality", _jensen),
    ("chi2-merging", "10-divergence-floors", "merging never raises χ²", _chi2_merge),
    ("chi2-pair", "10-divergence-floors", "χ² of the two-answer pair", _chi2_pair),
    ("hellinger-merging", "10-divergence-floors", "merging never lowers the overlap", _hellinger_merge),
)

CLAIMS = tuple(Claim(name, f"{document}.md", statement, check) for name, document, statement, check in _ROWS)
