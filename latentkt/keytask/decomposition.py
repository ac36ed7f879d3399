"""The odds identity: log P(y_s|z) − log P(y*|z) as a sum of named terms, without approximation.

    P(y_s|z)     Π · R · LR_k · (ν_s/ν_0) · (1−ε_s)/(1−ε_0) · (α_s/α_0) · (1+λ_s)/(1+λ_0)
    -------- =
    P(y*|z)

Derivation in `theory/02-odds-identity.md`. The last factor is split along the way a sum grows: first the other path
of the pair (leakage), then the mixed paths, then other tasks, then other keys. The split depends on that order, its
product does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from latentkt.keytask.exact import paths_of
from latentkt.keytask.logspace import Logs, added, log_ratio, log_sum
from latentkt.keytask.model import KeyTaskModel
from latentkt.keytask.paths import PathPair
from latentkt.keytask.quantities import Contributions, Emissions, Masses, Quantities
from latentkt.keytask.rational import Number, quotient

__all__ = ["TERMS", "Decomposition", "decompose", "exact_factors"]

TERMS = {
    "key_prior_ratio": "log π(k_s)/π(k*)",
    "task_prior_ratio": "log π(t_s|k_s)/π(t*|k*)",
    "pair_normaliser": "log R, the factor that the printed theorem drops",
    "key_evidence": "log P(z|k_s)/P(z|k*): Assumption 3.1 (ii) says 0",
    "task_evidence": "log ν_s/ν_0: Assumption 3.2 (ii) says 0",
    "off_task_mass": "log (1−ε_s)/(1−ε_0): Assumption 3.2 (i) says 0",
    "confidence": "log α_s/α_0: Assumption 3.3 says 0 or more",
    "leakage": "each path saying the other's answer: Assumption 3.3 says small",
    "mixed_paths": "the paths (k_s, t*) and (k*, t_s): no assumption speaks of them",
    "off_task_paths": "answers from keys of the pair with other tasks",
    "off_key_paths": "answers from other keys: Assumption 3.1 (i) says small",
}
"""The terms of the identity, in order, and what each is."""

_GROUPS = ("cross", "mixed", "off_task", "off_key")
_GROUP_TERMS = ("leakage", "mixed_paths", "off_task_paths", "off_key_paths")


@dataclass(frozen=True, slots=True, eq=False)
class Decomposition:
    """The log-odds of a batch of models, in parts.

    Attributes:
        terms: Name of the term -> array of the batch's shape, in nats, positive in favour of the shortcut. A term is
            ±inf where a mass is zero, NaN only where it is a quotient without a value (0/0 or ∞/∞).
        dominance: log P(y_s|z) − log P(y*|z), computed directly; the terms sum to it where all of them are finite and
            it exists. Where both answers have probability 0 it is NaN; finite terms go with that only where the paths
            share a key whose mass is zero, which cancels out of every term.
        quantities: The same numbers out of log space, with the masses and emissions that the bounds need.
    """

    terms: Mapping[str, Float[ndarray, "*batch"]]
    dominance: Float[ndarray, "*batch"]
    quantities: Quantities

    def undefined(self) -> dict[str, int]:
        """How many models of the batch lack a term (NaN), for the terms that any model lacks."""
        missing = {name: int(np.isnan(values).sum()) for name, values in self.terms.items()}
        return {name: count for name, count in missing.items() if count}


def decompose(model: KeyTaskModel, paths: PathPair) -> Decomposition:
    """Split the log-odds of the two answers into the terms of the identity.

    Raises:
        InputError: An index of `paths` is not one of the model's.

    Example:
        >>> import numpy as np
        >>> says = [[[0, 1, 0], [0, 0, 1]], [[0, 0, 1], [1, 0, 0]]]
        >>> model = KeyTaskModel.from_probabilities([0.25, 0.75], [[0.3, 0.7], [0.2, 0.8]], np.ones((2, 2)), says)
        >>> parts = decompose(model, PathPair(k_s=1, t_s=1, k_0=0, t_0=0, y_s=0, y_0=1))
        >>> {name: round(float(value), 6) for name, value in parts.terms.items() if abs(value) > 1e-12}
        {'key_prior_ratio': 1.098612, 'task_prior_ratio': 0.980829}
        >>> round(float(np.exp(parts.dominance)), 9)
        8.0
    """
    paths.check_within(model.n_keys, model.n_tasks, model.n_answers)
    with np.errstate(over="ignore", invalid="ignore"):
        return _decompose(model, paths)


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """One key of the pair with its own task `t` and the other's task: everything the identity needs of it, in logs."""

    evidence: Logs  # log P(z | k)
    log_tau: Logs  # log P(t | k, z, task in pair)
    log_nu: Logs
    log_inside: Logs  # log(1 − ε)
    eps: Logs  # ε itself, summed from the tasks outside and not 1 − …
    log_pair_prior: Logs
    log_b: Logs


def _side(model: KeyTaskModel, key: int, task: int, other: int) -> _Side:
    prior, likelihood = model.log_prior_task[..., key, :], model.log_likelihood[..., key, :]
    joint = prior + likelihood
    evidence = log_sum(joint)
    pair_prior, pair = prior[..., task], joint[..., task]
    if other != task:
        pair_prior, pair = np.logaddexp(pair_prior, prior[..., other]), np.logaddexp(pair, joint[..., other])
    outside = np.delete(joint, [task, other], axis=-1)
    return _Side(
        evidence=evidence,
        log_tau=log_ratio(joint[..., task], pair),
        log_nu=log_ratio(likelihood[..., task], log_ratio(pair, pair_prior)),
        log_inside=log_ratio(pair, evidence),
        eps=np.exp(log_ratio(log_sum(outside), evidence)),
        log_pair_prior=pair_prior,
        log_b=log_ratio(likelihood[..., other], likelihood[..., task]),
    )


def _decompose(model: KeyTaskModel, paths: PathPair) -> Decomposition:
    k_s, t_s, k_0, t_0 = paths.k_s, paths.t_s, paths.k_0, paths.t_0
    shortcut, correct = _side(model, k_s, t_s, t_0), _side(model, k_0, t_0, t_s)
    log_w = model.log_posterior()
    groups = {y: _answer_groups(model, log_w, paths, y, own) for y, own in paths_of(paths)}
    totals, growth = {}, {}
    for y in (paths.y_s, paths.y_0):
        totals[y], growth[y] = _grow(groups[y]["own"], [groups[y][name] for name in _GROUPS])
    says = model.log_emission
    rho_k = log_ratio(model.log_prior_key[..., k_s], model.log_prior_key[..., k_0])
    rho_t = log_ratio(model.log_prior_task[..., k_s, t_s], model.log_prior_task[..., k_0, t_0])
    if paths.mode == "same_key":
        rho_k = np.zeros_like(rho_k)
    terms = {
        "key_prior_ratio": rho_k,
        "task_prior_ratio": rho_t,
        "pair_normaliser": log_ratio(correct.log_pair_prior, shortcut.log_pair_prior),
        "key_evidence": log_ratio(shortcut.evidence, correct.evidence),
        "task_evidence": log_ratio(shortcut.log_nu, correct.log_nu),
        "off_task_mass": log_ratio(shortcut.log_inside, correct.log_inside),
        "confidence": log_ratio(says[..., k_s, t_s, paths.y_s], says[..., k_0, t_0, paths.y_0]),
    }
    terms |= {
        name: log_ratio(at_s, at_0)
        for name, at_s, at_0 in zip(_GROUP_TERMS, growth[paths.y_s], growth[paths.y_0], strict=True)
    }
    shape = np.broadcast_shapes(*(value.shape for value in terms.values()), totals[paths.y_s].shape)
    terms = {name: np.broadcast_to(value, shape) for name, value in terms.items()}
    dominance = np.broadcast_to(log_ratio(totals[paths.y_s], totals[paths.y_0]), shape)
    quantities = _quantities(model, paths, terms, (shortcut, correct), log_w, groups, dominance)
    return Decomposition(terms, dominance, quantities)


def _answer_groups(
    model: KeyTaskModel, log_w: Logs, paths: PathPair, answer: int, own: tuple[int, int]
) -> dict[str, Logs]:
    """Log of the parts of P(answer | z), by group of paths."""
    parts = log_w + model.log_emission[..., answer]
    other = (paths.k_0, paths.t_0) if own == (paths.k_s, paths.t_s) else (paths.k_s, paths.t_s)
    nothing = np.full(parts.shape[:-2], -np.inf)
    mixed = nothing
    if paths.mode == "distinct":
        mixed = np.logaddexp(parts[..., paths.k_s, paths.t_0], parts[..., paths.k_0, paths.t_s])
    shape = (model.n_keys, model.n_tasks)
    return {
        "own": parts[..., own[0], own[1]],
        "cross": parts[..., other[0], other[1]],
        "mixed": mixed,
        "off_task": log_sum(parts[..., paths.off_task_cells(*shape)]),
        "off_key": log_sum(parts[..., paths.off_key_cells(*shape)]),
    }


def _grow(own: Logs, extras: list[Logs]) -> tuple[Logs, list[Logs]]:
    """The total, and by how many nats each extra made it grow."""
    total, growth = own, []
    for extra in extras:
        total, step = added(total, extra)
        growth.append(step)
    return total, growth


def _quantities(
    model: KeyTaskModel,
    paths: PathPair,
    terms: Mapping[str, Logs],
    sides: tuple[_Side, _Side],
    log_w: Logs,
    groups: Mapping[int, Mapping[str, Logs]],
    dominance: Logs,
) -> Quantities:
    shortcut, correct = sides
    w = np.exp(log_w)
    from_s, from_0 = (
        Contributions(**{name: np.exp(values) for name, values in groups[y].items()}) for y in (paths.y_s, paths.y_0)
    )
    ratios = {name: np.exp(terms[name]) for name in ("key_prior_ratio", "task_prior_ratio", "pair_normaliser")}
    return Quantities(
        Pi=np.exp(terms["key_prior_ratio"] + terms["task_prior_ratio"]),
        rho_k=ratios["key_prior_ratio"],
        rho_t=ratios["task_prior_ratio"],
        R=ratios["pair_normaliser"],
        LR_k=np.exp(terms["key_evidence"]),
        nu_s=np.exp(shortcut.log_nu),
        nu_0=np.exp(correct.log_nu),
        b_s=np.exp(shortcut.log_b),
        b_0=np.exp(correct.log_b),
        kappa=_kappa(w, paths),
        tau_s=np.exp(shortcut.log_tau),
        tau_0=np.exp(correct.log_tau),
        eps_k=w[..., paths.off_key_cells(*w.shape[-2:])].sum(axis=-1),
        eps_t_s=shortcut.eps,
        eps_t_0=correct.eps,
        emissions=_emissions(model, paths),
        masses=_masses(w, paths),
        from_s=from_s,
        from_0=from_0,
        lam_s=quotient(from_s.total - from_s.own, from_s.own, undefined=None),
        lam_0=quotient(from_0.total - from_0.own, from_0.own, undefined=None),
        Ps=from_s.total,
        P0=from_0.total,
        ratio=np.exp(dominance),
        gamma=from_s.total - from_0.total,
    )


def _kappa(w: Any, paths: PathPair) -> Any:
    at_s, at_0 = w[..., paths.k_s, :].sum(axis=-1), w[..., paths.k_0, :].sum(axis=-1)
    return quotient(at_s, at_s if paths.mode == "same_key" else at_s + at_0, undefined=None)


def _masses(w: Any, paths: PathPair) -> Masses:
    zero = np.zeros(w.shape[:-2])
    distinct = paths.mode == "distinct"
    off = paths.off_task_cells(*w.shape[-2:]) | paths.off_key_cells(*w.shape[-2:])
    return Masses(
        W_s=w[..., paths.k_s, paths.t_s],
        W_0=w[..., paths.k_0, paths.t_0],
        W_1=w[..., paths.k_s, paths.t_0] if distinct else zero,
        W_2=w[..., paths.k_0, paths.t_s] if distinct else zero,
        W_off=w[..., off].sum(axis=-1),
    )


def _emissions(model: KeyTaskModel, paths: PathPair) -> Emissions:
    def says(key: int, task: int, answer: int) -> Any:
        return np.exp(model.log_emission[..., key, task, answer])

    k_s, t_s, k_0, t_0, y_s, y_0 = (getattr(paths, name) for name in ("k_s", "t_s", "k_0", "t_0", "y_s", "y_0"))
    mixed = [says(k_s, t_0, y_0), says(k_0, t_s, y_0), says(k_s, t_0, y_s), says(k_0, t_s, y_s)]
    if paths.mode != "distinct":
        mixed = [np.full_like(value, np.nan) for value in mixed]
    return Emissions(says(k_s, t_s, y_s), says(k_0, t_0, y_0), says(k_0, t_0, y_s), says(k_s, t_s, y_0), *mixed)


def exact_factors(q: Quantities) -> dict[str, Number]:
    """The factors of the identity for an exact model, by the names of `TERMS`; their product is `q.ratio`.

    A factor that does not exist (0/0) is None; inf is possible.
    """

    def ratio(a: Number, b: Number) -> Number:
        if a is None or b is None or (a == np.inf and b == np.inf):
            return None
        if a == np.inf or b == np.inf:
            return np.inf if a == np.inf else type(a)(0)
        return quotient(a, b, undefined=None)

    factors = {
        "key_prior_ratio": q.rho_k,
        "task_prior_ratio": q.rho_t,
        "pair_normaliser": q.R,
        "key_evidence": q.LR_k,
        "task_evidence": ratio(q.nu_s, q.nu_0),
        "off_task_mass": ratio(_inside(q.eps_t_s), _inside(q.eps_t_0)),
        "confidence": ratio(q.emissions.alpha_s, q.emissions.alpha_0),
    }
    grown = [_exact_growth(part) for part in (q.from_s, q.from_0)]
    return factors | {name: ratio(a, b) for name, a, b in zip(_GROUP_TERMS, *grown, strict=True)}


def _inside(eps: Number) -> Number:
    return None if eps is None else 1 - eps


def _exact_growth(part: Contributions) -> list[Number]:
    total, growth = part.own, []
    for name in _GROUPS:
        extra = getattr(part, name)
        growth.append(quotient(total + extra, total, undefined=None) if extra else type(total)(1))
        total += extra
    return growth
