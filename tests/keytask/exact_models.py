"""Random exact models, and every claim that must hold of each: the work-horse of the property tests."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from random import Random

import numpy as np

from latentkt.keytask import (
    Caps,
    ExactModel,
    KeyTaskModel,
    Limits,
    PathPair,
    certify,
    certify_same_key,
    critical_odds,
    decompose,
    decompose_exact,
    exact_factors,
    margin_bounds,
    margin_certificate,
    printed_theorem,
    ratio_bounds,
    threshold_odds,
)
from latentkt.keytask.certificate import brackets
from latentkt.keytask.floors import (
    chi2,
    chi2_floor,
    four_cells,
    four_probability_floor,
    hellinger2,
    hellinger2_floor,
    kl,
    kl_floor,
    margin_floor,
    merge_to_pair,
    reverse_kl_floor,
    total_variation,
)

ONE, ZERO = Fraction(1), Fraction(0)
# Heavy tails and zeros: a mass is often 0, sometimes a millionth or a million times its neighbour.
MASSES = (0, 0, 1, 1, 2, 3, 5, 7, 9, 100, 10**6)
DENSE = tuple(mass for mass in MASSES if mass)
PEAKED = (0, 0, 0, 1, 1000)  # emissions of the kind the paper has in mind


def distribution(rng: Random, size: int, masses: tuple[int, ...] = MASSES) -> list[Fraction]:
    weights = [rng.choice(masses) for _ in range(size)]
    if not any(weights):
        weights[rng.randrange(size)] = 1
    total = sum(weights)
    return [Fraction(weight, total) for weight in weights]


def random_paths(rng: Random, n_keys: int, n_tasks: int, n_answers: int) -> PathPair:
    cells = [(k, t) for k in range(n_keys) for t in range(n_tasks)]
    (k_s, t_s), (k_0, t_0) = rng.sample(cells, 2)
    if n_keys > 1 and n_tasks > 1 and rng.random() < 0.7:  # most of the time the interesting mode
        k_s, k_0 = rng.sample(range(n_keys), 2)
        t_s, t_0 = rng.sample(range(n_tasks), 2)
    y_s, y_0 = rng.sample(range(n_answers), 2)
    return PathPair(k_s=k_s, t_s=t_s, k_0=k_0, t_0=t_0, y_s=y_s, y_0=y_0)


def random_case(rng: Random) -> tuple[ExactModel, PathPair]:
    """A model with K, T, Y up to 4 and two of its paths; the prompt is possible."""
    while True:
        n_keys, n_tasks, n_answers = rng.randint(1, 4), rng.randint(1, 4), rng.randint(2, 4)
        if n_keys * n_tasks < 2:
            continue
        masses, says = rng.choice(((MASSES, MASSES), (DENSE, DENSE), (MASSES, PEAKED), (DENSE, PEAKED)))
        prior_key = distribution(rng, n_keys, masses)
        prior_task = [distribution(rng, n_tasks, masses) for _ in range(n_keys)]
        flat = rng.random() < 0.3  # the paper's assumptions 3.1 (ii) and 3.2 (ii) hold
        likelihood = [
            [ONE if flat else Fraction(rng.choice(masses), 10) for _ in range(n_tasks)] for _ in range(n_keys)
        ]
        possible = any(
            prior_key[k] * prior_task[k][t] * likelihood[k][t] for k in range(n_keys) for t in range(n_tasks)
        )
        if possible:
            emission = [[distribution(rng, n_answers, says) for _ in range(n_tasks)] for _ in range(n_keys)]
            model = ExactModel(*(np.array(x, dtype=object) for x in (prior_key, prior_task, likelihood, emission)))
            return model, random_paths(rng, n_keys, n_tasks, n_answers)


def check_case(model: ExactModel, paths: PathPair, rng: Random) -> Counter[str]:
    """Assert every claim; count which of them had something to say about this model."""
    q = decompose_exact(model, paths)
    seen: Counter[str] = Counter(models=1)
    w, predictive = model.posterior(), model.predictive()
    m = q.masses
    assert w.sum() == 1 and predictive.sum() == 1
    assert (q.Ps, q.P0) == (predictive[paths.y_s], predictive[paths.y_0])
    assert m.W_s + m.W_0 + m.W_1 + m.W_2 + m.W_off == 1
    for check in (_identity, _masses, _bounds, _certificate, _priors, _printed, _critical, _floors, _floats):
        seen.update(check(model, paths, q, rng))
    return seen


def _identity(model, paths, q, rng):
    factors = list(exact_factors(q).values())
    if any(f is None or f == math.inf for f in factors) or q.ratio is None or q.ratio == math.inf:
        return []
    assert math.prod(factors, start=ONE) == q.ratio
    assert q.Pi == q.rho_k * q.rho_t
    if q.masses.W_0 == 0:  # the pair's one key has no prior
        return ["identity"]
    nus = q.Pi * q.R * q.LR_k * q.nu_s / q.nu_0 * (1 - q.eps_t_s) / (1 - q.eps_t_0)
    assert nus == q.masses.W_s / q.masses.W_0  # eps_k cancels in the odds of the two paths
    e = q.emissions
    if q.lam_s is not None:  # the shortcut path says y_s, or nothing does
        assert q.ratio == nus * e.alpha_s / e.alpha_0 * (1 + q.lam_s) / (1 + q.lam_0)
    if paths.mode == "same_key":
        assert q.R == 1 and q.rho_k == 1
    return ["identity"]


def _masses(model, paths, q, rng):
    """Masses are what the assumptions' numbers make of them, and R lies in its range."""
    names = []
    prior = model.prior_task
    if isinstance(q.R, Fraction):
        assert prior[paths.k_0, paths.t_0] <= q.R
        assert q.R * prior[paths.k_s, paths.t_s] <= 1
        names.append("R_range")
    if None not in (q.kappa, q.tau_s, q.tau_0, q.eps_t_s, q.eps_t_0) and paths.mode != "same_key":
        at_s, at_0 = q.kappa * (1 - q.eps_t_s), (1 - q.kappa) * (1 - q.eps_t_0)
        inside = 1 - q.eps_k
        assert q.masses.W_s == inside * at_s * q.tau_s and inside * at_0 * q.tau_0 == q.masses.W_0
        assert inside * at_s * (1 - q.tau_s) == q.masses.W_1 and inside * at_0 * (1 - q.tau_0) == q.masses.W_2
        names.append("mass_forms")
    return names


def _loosen(rng: Random, value: Fraction) -> Fraction:
    return value + (1 - value) * Fraction(rng.randint(0, 4), 4)


def _bounds(model, paths, q, rng):
    e = q.emissions
    own = Caps.own(e)
    looser = Caps(**{name: _loosen(rng, getattr(own, name)) for name in ("B_0", "B_s", "C_1", "C_2", "U_1", "U_2")})
    confident = {"alpha_s": e.alpha_s, "alpha_0": e.alpha_0}
    for caps in (own, looser, Caps.blind(**confident)):
        ratio, margin = ratio_bounds(q.masses, **confident, caps=caps), margin_bounds(q.masses, **confident, caps=caps)
        assert margin.lower <= q.gamma <= margin.upper
        if q.ratio is not None:
            assert ratio.lower <= q.ratio <= ratio.upper
    return ["ratio_bounds" if q.ratio is not None else "no_ratio", "margin_bounds"]


def _limits(q, **departures):
    e, own = q.emissions, Caps.own(q.emissions)
    eps = {"eps_k": q.eps_k, "eps_t_s": q.eps_t_s, "eps_t_0": q.eps_t_0}
    numbers = {"alpha_s": e.alpha_s, "alpha_0": e.alpha_0, "B_0": own.B_0, "C_1": own.C_1, "C_2": own.C_2, **eps}
    return Limits(**(numbers if not departures else {k: float(v) for k, v in numbers.items()}), **departures)


def _certificate(model, paths, q, rng):
    """Theorem B in its two forms, and Theorem C as its sign."""
    if None in (q.kappa, q.tau_s, q.tau_0, q.eps_t_s, q.eps_t_0) or paths.mode == "same_key":
        return []
    limits = _limits(q)
    found = margin_certificate(q.kappa, q.tau_s, q.tau_0, limits)
    own = Caps.own(q.emissions)
    confident = {"alpha_s": q.emissions.alpha_s, "alpha_0": q.emissions.alpha_0}
    assert found == margin_bounds(q.masses, **confident, caps=own).lower <= q.gamma
    if q.kappa in (0, 1):  # at κ = 0 and B + e = 0 the certificate is 0 whatever A; at κ = 1 the odds are infinite
        return ["certificate"]
    threshold = threshold_odds(*brackets(q.tau_s, q.tau_0, limits), q.eps_k)
    assert (found >= 0) == (q.kappa / (1 - q.kappa) >= threshold)
    return ["certificate", "threshold", *(["certified"] if found > 0 else [])]


def _log(value) -> float:
    if value == 0:
        return -math.inf
    return math.inf if value == math.inf else math.log(value.numerator) - math.log(value.denominator)


def _priors(model, paths, q, rng):
    """The certificate from priors and departures never exceeds the margin."""
    needed = (q.rho_k, q.LR_k, q.b_s, q.b_0, q.eps_t_s, q.eps_t_0)
    if any(x is None or x in (0, math.inf) for x in needed):
        return []
    prior = model.prior_task
    odds = [_odds(prior[k, a], prior[k, b]) for k, a, b in _pairs(paths)]
    if None in odds:
        return []
    delta_k, delta_t = abs(_log(q.LR_k)), max(abs(_log(q.b_s)), abs(_log(q.b_0)))
    slack = [rng.choice((0.0, 0.0, 0.3)) for _ in range(6)]
    boxes = [(x - a, x + b) for x, a, b in zip((_log(q.rho_k), *odds), slack[::2], slack[1::2], strict=True)]
    limits = _limits(q, delta_k=delta_k, delta_t=delta_t)
    if paths.mode == "same_key":
        found = certify_same_key(log_odds=boxes[1], limits=limits)
    else:
        if paths.mode == "same_task":
            boxes[1:] = [math.inf, math.inf]
        found = certify(log_rho_k=boxes[0], log_odds_s=boxes[1], log_odds_0=boxes[2], limits=limits)
    assert float(found.gamma_lower) <= float(q.gamma) + 1e-12
    assert bool(found.certified) <= (q.gamma > -Fraction(1, 10**12))
    return ["from_priors"]


def _pairs(paths):
    return (paths.k_s, paths.t_s, paths.t_0), (paths.k_0, paths.t_0, paths.t_s)


def _odds(a: Fraction, b: Fraction) -> float | None:
    return None if a == 0 == b else _log(a) - _log(b) if b else math.inf


def _printed(model, paths, q, rng):
    """If everything holds that the printed theorem needs, it is true; where it fails, a need fails."""
    printed = printed_theorem(q)
    if printed.bound is None or q.ratio is None:
        return ["printed_undefined"]
    names = []
    if printed.all_needs_hold:
        assert printed.bound_holds and printed.dominates
        names.append("printed_needs_hold")
    if not printed.bound_holds:
        names.append("printed_fails")
        assert not printed.all_needs_hold
    return names


def _critical(model, paths, q, rng):
    """With the critical evidence put in, the two answers are exactly even."""
    if paths.mode == "same_key":
        return []
    w, e = model.posterior(), model.emission
    margins = (w * (e[..., paths.y_s] - e[..., paths.y_0])).sum(axis=1)
    rest = sum((margins[k] for k in range(len(margins)) if k not in (paths.k_s, paths.k_0)), ZERO)
    odds = critical_odds(ONE, margins[paths.k_s] + rest, margins[paths.k_0])
    if odds in (None, 0, math.inf):
        return []
    likelihood = model.likelihood.copy()
    likelihood[paths.k_0] = likelihood[paths.k_0] * odds
    even = decompose_exact(ExactModel(model.prior_key, model.prior_task, likelihood, model.emission), paths)
    assert even.gamma == 0
    return ["critical"]


def _floors(model, paths, q, rng):
    p, target = model.predictive(), np.array(distribution(rng, model.emission.shape[-1]), dtype=object)
    gamma, star = q.gamma, target[paths.y_0] - target[paths.y_s]
    tv = total_variation(p, target)
    floor = margin_floor(gamma, star)
    four = four_probability_floor(p[paths.y_s], p[paths.y_0], target[paths.y_s], target[paths.y_0])
    assert floor <= four <= tv
    cells = [four_cells(d[paths.y_s], d[paths.y_0]) for d in (p, target)]
    assert total_variation(*cells) == four
    assert chi2_floor(gamma, star) <= chi2(*cells) <= chi2(p, target)
    if len(p) == 2:
        assert floor == tv and chi2_floor(gamma, star) == chi2(p, target)
    pairs = [merge_to_pair(d, y_s=paths.y_s, y_0=paths.y_0) for d in (p, target)]
    assert (pairs[0][0] - pairs[0][1], pairs[1][1] - pairs[1][0]) == (gamma, star)  # the channel keeps the margins
    pairs = [pair.astype(float) for pair in pairs]
    p, target = p.astype(float), target.astype(float)
    for distance in (kl, hellinger2):
        for a, b, c, d in ((p, target, *pairs), (target, p, *reversed(pairs))):
            assert distance(a, b) >= distance(c, d) - 1e-12 or distance(a, b) == distance(c, d)
    if max(abs(gamma), abs(star)) < Fraction(99, 100):  # nearer to 1 a margin as a float has lost digits
        margins = float(gamma), float(star)
        floors = (kl_floor(*margins), reverse_kl_floor(*margins), hellinger2_floor(*margins))
        assert np.allclose(floors, (kl(*pairs), kl(*reversed(pairs)), hellinger2(*pairs)), rtol=1e-12, atol=1e-14)
        return ["floors", "margin_floors"]
    return ["floors"]


def _floats(model, paths, q, rng):
    """The log-space code agrees with the rational one."""
    arrays = (model.prior_key, model.prior_task, model.likelihood, model.emission)
    found = decompose(KeyTaskModel.from_probabilities(*(a.astype(float) for a in arrays)), paths)
    exact, flat = q.flat(), found.quantities.flat()
    for name, value in exact.items():
        got = float(flat[name])
        if value is None:
            assert math.isnan(got), name
        else:
            wanted = float(value)
            assert got == wanted or abs(got - wanted) <= 1e-11 * max(1.0, abs(wanted)), (name, got, wanted)
    logs = [float(value) for value in found.terms.values()]
    for (name, factor), got in zip(exact_factors(q).items(), logs, strict=True):
        assert math.isnan(got) if factor is None else got == _log(factor) or abs(got - _log(factor)) < 1e-11, name
    if not all(map(math.isfinite, logs)):
        return ["floats"]
    if q.ratio is None:  # both answers impossible: only a shared key without mass leaves every term finite
        assert math.isnan(found.dominance) and q.Ps == q.P0 == 0
        assert paths.mode == "same_key" and model.prior_key[paths.k_s] == 0
        return ["floats"]
    assert abs(sum(logs) - float(found.dominance)) < 1e-12 * max(1.0, *map(abs, logs))
    return ["floats", "float_terms_sum"]
