"""The outputs of each type of theory case, exactly."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latentkt.errors import InputError
from latentkt.keytask.answers import answer_model
from latentkt.keytask.binding import find_binding
from latentkt.keytask.case import MODEL_NAMES, TheoryCase
from latentkt.keytask.checks import check_nonnegative, check_rows
from latentkt.keytask.decomposition import exact_factors
from latentkt.keytask.evidence import critical_odds
from latentkt.keytask.exact import ExactModel
from latentkt.keytask.exact_coherence import exact_tv_bound, kappa_of, kappa_spread
from latentkt.keytask.floors import chi2, chi2_floor, four_probability_floor, margin_floor, total_variation
from latentkt.keytask.paths import PathPair
from latentkt.keytask.printed import printed_theorem
from latentkt.keytask.quantities import Quantities
from latentkt.keytask.rational import (
    decimal_string,
    exact_array,
    exact_string,
    log_exact,
    precise,
    sqrt_exact,
    to_fraction,
)

__all__ = ["OUTPUTS"]

_QUANTITIES = (
    "Pi", "rho_k", "rho_t", "R", "LR_k", "nu_s", "nu_0", "kappa", "tau_s", "tau_0", "eps_k", "eps_t_s", "eps_t_0",
    "alpha_s", "alpha_0", "beta_s", "beta_0", "c1", "c2", "u1", "u2", "lam_s", "lam_0", "W_s", "W_0", "W_1", "W_2",
    "W_off", "Ps", "P0", "ratio", "gamma",
)  # fmt: skip


def _nats(value: Any) -> str | None:
    found = log_exact(value)
    return None if found is None else decimal_string(found)


def _model_outputs(case: TheoryCase) -> dict[str, Any]:
    found = answer_model(case)
    q = found.quantities
    flat = q.flat()
    out: dict[str, Any] = {name: exact_string(flat[name]) for name in _QUANTITIES}
    out |= {
        "ratio_lower": exact_string(found.ratio_bounds.lower),
        "ratio_upper": exact_string(found.ratio_bounds.upper),
        "gamma_lower": exact_string(found.margin_bounds.lower),
        "gamma_upper": exact_string(found.margin_bounds.upper),
        "gamma_lower_blind": exact_string(found.blind.lower),
        "threshold_odds": exact_string(found.threshold),
        "threshold_nats": _nats(found.threshold),
        "mode": found.paths.mode,
        "binding": find_binding(q.emissions).regime,
        "dominance_nats": _nats(q.ratio),
    }
    out |= {f"{name}_nats": _nats(value) for name, value in exact_factors(q).items()}
    out |= _assumption_outputs(q) | _printed_outputs(q)
    if found.spread is not None:
        out |= {"rescaled": found.spread != 1, "spread_nats": _nats(found.spread)}
        out["tv_bound_decimal"] = decimal_string(exact_tv_bound(found.spread))
    if "P_star" in case.inputs:
        target = _distribution("P_star", case.inputs["P_star"], size=found.model.emission.shape[-1])
        out |= _distance_outputs(found.model.predictive(), target, found.paths.y_s, found.paths.y_0)
        end_to_end = max(found.margin_bounds.lower + target[found.paths.y_0] - target[found.paths.y_s], Fraction(0)) / 2
        out["end_to_end_floor"] = exact_string(end_to_end)
    return out


def _assumption_outputs(q: Quantities) -> dict[str, Any]:
    """Departures of Assumptions 3.1 (ii) and 3.2 (ii) in nats; the other assumptions are probabilities, given above."""

    def departure(*values: Any) -> str | None:
        logs = [log_exact(value) for value in values]
        return None if None in logs else decimal_string(max(abs(x) for x in logs if x is not None))

    return {"delta_k_nats": departure(q.LR_k), "delta_t_nats": departure(q.b_s, q.b_0)}


def _printed_outputs(q: Quantities) -> dict[str, Any]:
    printed = printed_theorem(q)
    return {
        "printed_bound": exact_string(printed.bound),
        "printed_predicts_dominance": bool(printed.predicts_dominance),
        "printed_bound_holds": bool(printed.bound_holds),
        "printed_needs_that_fail": [need.name for need in printed.needs if not need.holds],
    }


def _distribution(name: str, value: Any, *, size: int | None = None) -> NDArray[Any]:
    row = exact_array(name, value)
    if row.ndim != 1 or row.size < 2 or (size is not None and row.size != size):
        raise InputError(
            f"{name} has the wrong shape",
            expected="one row of at least two answers" if size is None else f"one row of {size} answers",
            found=row.shape,
        )
    check_rows(name, row)
    return row


def _tv_outputs(case: TheoryCase) -> dict[str, Any]:
    p = _distribution("P", case.inputs["P"])
    q = _distribution("Q", case.inputs["Q"], size=p.size)
    y_s, y_0 = case.inputs.get("ys", 0), case.inputs.get("y0", 1)
    PathPair(k_s=0, t_s=0, k_0=1, t_0=0, y_s=y_s, y_0=y_0).check_within(2, 1, p.size)
    return _distance_outputs(p, q, y_s, y_0)


def _distance_outputs(p: NDArray[Any], q: NDArray[Any], y_s: int, y_0: int) -> dict[str, Any]:
    gamma, target = p[y_s] - p[y_0], q[y_0] - q[y_s]
    binary = (np.array([(1 + g) / 2, (1 - g) / 2], dtype=object) for g in (gamma, -target))
    at_p, at_q = binary
    return {
        "gamma": exact_string(gamma),
        "gamma_star": exact_string(target),
        "margin_floor": exact_string(margin_floor(gamma, target)),
        "four_prob_floor": exact_string(four_probability_floor(p[y_s], p[y_0], q[y_s], q[y_0])),
        "tv": exact_string(total_variation(p, q)),
        "chi2_P_Q": exact_string(chi2(p, q)),
        "chi2_floor": exact_string(chi2_floor(gamma, target)),
        "kl_P_Q_nats": _kl(p, q),
        "kl_floor_nats": _kl(at_p, at_q),
        "kl_Q_P_nats": _kl(q, p),
        "reverse_kl_floor_nats": _kl(at_q, at_p),
        "hellinger2_decimal": _hellinger2(p, q),
        "hellinger2_floor_decimal": _hellinger2(at_p, at_q),
    }


def _kl(p: NDArray[Any], q: NDArray[Any]) -> str:
    total = Decimal(0)
    with localcontext() as context:
        context.prec = 60
        for a, b in zip(p, q, strict=True):
            if a and not b:
                return "inf"
            if a:
                total += precise(a) * precise(a / b).ln()
    return decimal_string(total)


def _hellinger2(p: NDArray[Any], q: NDArray[Any]) -> str:
    with localcontext() as context:
        context.prec = 60
        overlap = sum((precise(sqrt_exact(a * b)) for a, b in zip(p, q, strict=True)), Decimal(0))
        return decimal_string(1 - overlap)


def _pair(name: str, value: Any) -> NDArray[Any]:
    pair = exact_array(name, value)
    if pair.shape != (2,):
        raise InputError(f"{name} has the wrong shape", expected="two numbers: of y_s and of y*", found=pair.shape)
    check_nonnegative(name, pair)
    if pair.sum() > 1:
        raise InputError(f"{name} sums to more than 1", expected="two probabilities of one key", found=pair.sum())
    return pair


def _positive(name: str, value: Any) -> Fraction:
    number = to_fraction(name, value)
    if number < 0:
        raise InputError(f"{name} is negative", expected="0 or more", found=number)
    return number


def _critical_outputs(case: TheoryCase) -> dict[str, Any]:
    rho_k = _positive("rho_k", case.inputs["rho_k"])
    if rho_k == 0:
        raise InputError("rho_k is 0", expected="a ratio above 0", found=0)
    at_s, at_0 = (_pair(name, case.inputs[name]) for name in ("S_s", "S_0"))
    odds = critical_odds(rho_k, at_s[0] - at_s[1], at_0[0] - at_0[1])
    return {"exp_E_c": exact_string(odds), "E_c_nats": _nats(odds)}


def _slope_outputs(case: TheoryCase) -> dict[str, Any]:
    a, b = (_positive(name, case.inputs[name]) for name in ("a", "b"))
    if a == 0 or b == 0:
        slope: Fraction | Decimal = Fraction(0) if a == b else Fraction(1 if a == 0 else -1)
    else:
        root: Any = sqrt_exact(b / a)
        with localcontext() as context:
            context.prec = 60
            slope = (root - 1) / (root + 1)
    exact = {"slope_max": exact_string(slope)} if isinstance(slope, Fraction) else {}
    best = _nats(a * b)
    at = {} if best is None or not (a and b) else {"log_odds_at_max_nats": _half(a * b)}
    return exact | {"slope_max_decimal": decimal_string(slope)} | at


def _half(product: Fraction) -> str:
    with localcontext() as context:
        context.prec = 60
        return decimal_string((log_exact(product) or Decimal(0)) / 2)


def _incoherent_outputs(case: TheoryCase) -> dict[str, Any]:
    i = case.inputs
    prior_key = exact_array("pi_k", i["pi_k"])
    n_keys = prior_key.size
    prior_task = exact_array("pi_t_given_k", i["pi_t_given_k"])
    silent = [[[1, 0]] * prior_task.shape[-1]] * n_keys  # emissions play no part; the checks want some
    model = ExactModel.from_rationals(i["pi_k"], i["pi_t_given_k"], i["lik_z_given_kt"], silent, names=MODEL_NAMES)
    key = i.get("ks", 1)
    if isinstance(key, bool) or not isinstance(key, int) or not 0 <= key < n_keys:
        raise InputError("ks is not an index of the keys", expected=f"0 to {n_keys - 1}", found=repr(key))
    kappa = kappa_of(model.prior_key, model.prior_task, model.likelihood, i["lik_key"])
    spread = kappa_spread(kappa)
    joint = model.posterior()
    out: dict[str, Any] = {"joint_P_ks": exact_string(joint[key].sum())}
    out["kappa"] = [exact_string(k) for k in kappa]
    out |= {"spread_nats": _nats(spread), "tv_bound_decimal": decimal_string(exact_tv_bound(spread))}
    if math.inf in kappa or not any(kappa):  # no posterior agrees with P(z|k)
        return {"hierarchical_P_ks": None, **out, "tv_hier_joint": None}
    weighted = joint * np.array([k or Fraction(0) for k in kappa], dtype=object)[:, None]
    hierarchical = weighted / weighted.sum()
    distance = total_variation(hierarchical.reshape(-1), joint.reshape(-1))
    return {
        "hierarchical_P_ks": exact_string(hierarchical[key].sum()),
        **out,
        "tv_hier_joint": exact_string(distance),
    }


OUTPUTS: dict[str, Callable[[TheoryCase], dict[str, Any]]] = {
    "model": _model_outputs,
    "tv": _tv_outputs,
    "critical": _critical_outputs,
    "slope": _slope_outputs,
    "incoherent": _incoherent_outputs,
}
"""Type of the case -> what works out its outputs."""
