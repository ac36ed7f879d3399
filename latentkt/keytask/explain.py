"""A theory case in plain words: which path wins, why, which assumption carries it, what the certificate says."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

from latentkt.keytask.answers import ModelAnswers, answer_model
from latentkt.keytask.binding import find_binding
from latentkt.keytask.case import TheoryCase, check_case
from latentkt.keytask.decomposition import TERMS, exact_factors
from latentkt.keytask.evidence import critical_odds
from latentkt.keytask.printed import printed_theorem
from latentkt.keytask.rational import log_exact

__all__ = ["explain_case", "explain_model"]

_SMALL = 5e-4  # nats; smaller terms print as zero


def explain_case(case: TheoryCase) -> str:
    """Explain a case of any type.

    Example:
        >>> from latentkt.keytask.case import parse_case
        >>> print(explain_case(parse_case({"rho_k": 3, "S_s": ["4/5", 0], "S_0": [0, "2/5"]})))
        The shortcut answer wins until the prompt favours the correct key by more than 1.792 nats (a factor of 6).
        Each nat of frequency costs one nat of evidence.
    """
    if case.type == "model":
        return explain_model(answer_model(case), name=case.name)
    out = check_case(case)
    return {"tv": _tv, "critical": _critical, "slope": _slope, "incoherent": _incoherent}[case.type](out)


def explain_model(found: ModelAnswers, *, name: str = "case") -> str:
    """Explain a case of type `model`."""
    parts = [
        _winner(found, name),
        _why(found),
        _carried(found),
        _binding(found),
        _printed(found),
        _certificate(found),
        _rescue(found),
    ]
    return "\n\n".join(part for part in parts if part)


def _number(value: Any) -> str:
    """An exact number as a person reads it: the rational if short, and a decimal."""
    if value is None:
        return "does not exist"
    if value == math.inf:
        return "infinite"
    exact, short = str(value), f"{float(value):.4g}"
    return exact if exact == short or value.denominator == 1 else f"{exact} = {short}" if len(exact) < 16 else short


def _nats(value: Any) -> str:
    found = value if isinstance(value, Decimal) else log_exact(value)
    if found is None:
        return "undefined (0/0)"
    if not found.is_finite():
        return "+inf" if found > 0 else "−inf"
    return "0" if abs(found) < _SMALL else f"{found:+.3f}".replace("-", "−")


def _winner(found: ModelAnswers, name: str) -> str:
    q = found.quantities
    if q.gamma == 0:
        verdict = "Neither answer wins"
    else:
        verdict = "The shortcut path wins" if q.gamma > 0 else "The correct path wins"
    return (
        f"{name}: {verdict}.\n"
        f"P(y_s|z) = {_number(q.Ps)}, P(y*|z) = {_number(q.P0)}; margin γ = {_number(q.gamma)}, "
        f"dominance {_nats(q.ratio)} nats (positive: the shortcut answer is more probable)."
    )


def _why(found: ModelAnswers) -> str:
    factors = exact_factors(found.quantities)
    lines = ["Why: the dominance is the sum of these terms (nats)."]
    zero = []
    for term, factor in factors.items():
        text = _nats(factor)
        if text == "0":
            zero.append(term)
        else:
            lines.append(f"  {text:>8}  {term:<16} {TERMS[term]}")
    if zero:
        lines.append(f"  {'0':>8}  {', '.join(zero)}")
    return "\n".join(lines)


_ASSUMPTIONS = {
    "key_evidence": "Assumption 3.1 (ii) (the prompt does not tell the keys apart)",
    "task_evidence": "Assumption 3.2 (ii) (the prompt does not tell the tasks apart)",
    "off_task_mass": "Assumption 3.2 (i) (other tasks have no mass)",
    "confidence": "equal confidence of the two paths",
    "leakage": "Assumption 3.3 (no path says the other's answer)",
    "mixed_paths": "the unstated assumption that mixed paths say neither answer",
    "off_task_paths": "Assumption 3.2 (i) (other tasks have no mass)",
    "off_key_paths": "Assumption 3.1 (i) (other keys have no mass)",
    "pair_normaliser": "the unstated assumption R = 1",
}


def _carried(found: ModelAnswers) -> str:
    """Which single term, set to what the paper assumes (0 nats), would turn the outcome round."""
    dominance = log_exact(found.quantities.ratio)
    if dominance is None or not dominance.is_finite() or dominance == 0:
        return ""
    decisive = []
    for term, factor in exact_factors(found.quantities).items():
        value = log_exact(factor)
        if value is not None and value.is_finite() and (dominance - value) * dominance <= 0:
            decisive.append((term, value))
    if not decisive:
        return "No single term decides: without any one of them the same answer would still win."
    decisive.sort(key=lambda pair: -abs(pair[1]))
    lines = ["What carries it: without any one of these terms the same answer would no longer win."]
    for term, value in decisive:
        because = _ASSUMPTIONS.get(term)
        fails = f": {because} does not hold" if because else ""
        lines.append(f"  {term} ({_nats(value)}){fails}")
    return "\n".join(lines)


def _binding(found: ModelAnswers) -> str:
    regime = find_binding(found.quantities.emissions).regime
    return {
        "path": "Answers are path-bound: mixed paths say neither answer, so keys and tasks both count.",
        "key": "Answers are key-bound: a path says what its key says, so the task priors play almost no part.",
        "task": "Answers are task-bound: a path says what its task says, so the keys count only through their tasks.",
        "mixed": "Answers are bound neither to path, key nor task alone; no simple law of the priors applies.",
        "none": f"The paths share their {found.paths.mode.removeprefix('same_')}: there are no mixed paths.",
    }[regime]


def _printed(found: ModelAnswers) -> str:
    printed = printed_theorem(found.quantities)
    if printed.bound is None:
        return "Theorem 3.4 as printed says nothing here: Π·α_s/α_0 does not exist."
    head = f"Theorem 3.4 as printed claims a ratio of at least Π·α_s/α_0 = {_number(printed.bound)}"
    truth = "and that is so" if printed.bound_holds else f"but the ratio is {_number(printed.ratio)}: it fails here"
    lines = [f"{head}, {truth}."]
    failing = [need for need in printed.needs if not need.holds]
    lines.append("It needs what does not hold:" if failing else "Everything that it needs holds.")
    for need in failing:
        stated = "stated" if need.stated else "unstated"
        lines.append(f"  {need.name} ({stated}): {need.meaning}; here {_number(need.value)}")
    return "\n".join(lines)


def _certificate(found: ModelAnswers) -> str:
    low, blind = found.margin_bounds.lower, found.blind.lower

    def says(value: Fraction) -> str:
        return "the shortcut's win is certified" if value > 0 else "nothing is certified"

    lines = [
        f"Certificate: with the true emissions as limits γ ≥ {_number(low)}: {says(low)}; "
        f"knowing the two confidences only, γ ≥ {_number(blind)}: {says(blind)}.",
        f"The ratio is proved to lie from {_number(found.ratio_bounds.lower)} to {_number(found.ratio_bounds.upper)}.",
    ]
    q = found.quantities
    if found.threshold == math.inf:
        lines.append("Saturated: under these limits no prior ratio, however large, would certify a win.")
    elif found.threshold is not None:
        have, what = (_task_odds(found), "task") if found.paths.mode == "same_key" else (_key_odds(found), "key")
        lines.append(
            f"A win is certified from {what} odds of {_number(found.threshold)} on ({_nats(found.threshold)} nats); "
            f"here they are {_number(have)} ({_nats(have)} nats)."
        )
    outside = ", ".join(
        f"{name} = {_number(value)}"
        for name, value in (("ε_k", q.eps_k), ("ε_t|k_s", q.eps_t_s), ("ε_t|k*", q.eps_t_0))
    )
    lines.append(f"Mass outside the pair: {outside}. Certificates are of use only where these are a few percent.")
    return "\n".join(lines)


def _key_odds(found: ModelAnswers) -> Any:
    kappa = found.quantities.kappa
    return None if kappa is None else kappa / (1 - kappa) if kappa != 1 else math.inf


def _task_odds(found: ModelAnswers) -> Any:
    tau = found.quantities.tau_s
    return None if tau is None else tau / (1 - tau) if tau != 1 else math.inf


def _rescue(found: ModelAnswers) -> str:
    """How much more key evidence would make the answers even."""
    if found.paths.mode == "same_key":
        return ""
    w, says = found.model.posterior(), found.model.emission
    diff = says[..., found.paths.y_s] - says[..., found.paths.y_0]
    margins = (w * diff).sum(axis=1)
    others = sum((margins[k] for k in range(len(margins)) if k not in (found.paths.k_s, found.paths.k_0)), Fraction(0))
    odds = critical_odds(Fraction(1), margins[found.paths.k_s] + others, margins[found.paths.k_0])
    if odds is None:
        return "Evidence for the correct key would not help the correct answer: its paths do not say it."
    if odds == math.inf:
        return "No amount of evidence for the correct key rescues the correct answer."
    if odds == 0:
        return "The shortcut key does not favour the shortcut answer: it loses whatever the evidence."
    if odds > 1:
        return f"Evidence for the correct key of {_nats(odds)} nats more would make the answers even."
    return f"The correct answer can lose {_nats(1 / odds)} nats of evidence for its key before the shortcut wins."


def _decimal(text: str | None, digits: int = 3) -> str:
    return "undefined" if text is None else f"{float(text):.{digits}f}"


def _tv(out: dict[str, Any]) -> str:
    return (
        f"The model's margin for the shortcut is γ = {out['gamma']}, the target's for the correct answer γ* = "
        f"{out['gamma_star']}.\n"
        f"So their total variation is at least |γ + γ*|/2 = {out['margin_floor']}, with all four probabilities at "
        f"least {out['four_prob_floor']}; it is {out['tv']}.\n"
        f"KL(P‖P*) is at least {_decimal(out['kl_floor_nats'])} nats; it is {_decimal(out['kl_P_Q_nats'])}. χ² is at "
        f"least {out['chi2_floor']}; it is {out['chi2_P_Q']}.\n"
        "These floors hold for any two distributions: they measure the damage, they are no evidence for a cause."
    )


def _critical(out: dict[str, Any]) -> str:
    odds = out["exp_E_c"]
    if odds is None:
        return "No threshold: the shortcut key does not favour the shortcut answer, or evidence helps the wrong one."
    if odds == "inf":
        return "No evidence for the correct key rescues the correct answer: that key does not favour it."
    if odds == "0":
        return "The shortcut never dominates: its key does not favour the shortcut answer."
    return (
        "The shortcut answer wins until the prompt favours the correct key by more than "
        f"{_decimal(out['E_c_nats'])} nats (a factor of {odds}).\nEach nat of frequency costs one nat of evidence."
    )


def _slope(out: dict[str, Any]) -> str:
    return (
        f"Dominance rises by at most {_decimal(out['slope_max_decimal'])} nats a nat of log prior ratio: leakage and "
        "emissions of the other key keep the slope below 1."
    )


def _incoherent(out: dict[str, Any]) -> str:
    if out["hierarchical_P_ks"] is None:
        return "P(z|k) is above 0 for a key whose paths all exclude the prompt: no posterior agrees with both."
    return (
        f"P(z|k) and P(z|k, t) contradict each other by {_decimal(out['spread_nats'])} nats. Multiplying them gives "
        f"P(k_s|z) = {out['hierarchical_P_ks']}, the joint posterior {out['joint_P_ks']}.\n"
        f"The two posteriors differ by a total variation of {out['tv_hier_joint']}; with this spread it cannot be "
        f"above {_decimal(out['tv_bound_decimal'])}."
    )
