"""The same model in rational numbers: no rounding anywhere, one prompt at a time.

Written straight from the definitions, apart from the log-space code, so that each can be held against the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latentkt.errors import InputError
from latentkt.keytask.checks import check_model
from latentkt.keytask.paths import PathPair
from latentkt.keytask.quantities import Contributions, Emissions, Masses, Quantities
from latentkt.keytask.rational import exact_array, quotient

__all__ = ["ExactModel", "decompose_exact"]

_ONE, _ZERO = Fraction(1), Fraction(0)


@dataclass(frozen=True, slots=True, eq=False)
class ExactModel:
    """A key–task model of `Fraction`s.

    Attributes:
        prior_key: π(k), shape (K,), an array of `Fraction` as are the others.
        prior_task: π(t | k), shape (K, T).
        likelihood: P(z | k, t), shape (K, T).
        emission: P(y | z; k, t), shape (K, T, Y).

    Example:
        >>> says = [[[0, 1, 0], [0, 0, 1]], [[0, 0, 1], [1, 0, 0]]]
        >>> tasks = [["3/10", "7/10"], ["1/5", "4/5"]]
        >>> model = ExactModel.from_rationals(["1/4", "3/4"], tasks, [[1, 1], [1, 1]], says)
        >>> [str(p) for p in model.predictive()]
        ['3/5', '3/40', '13/40']
    """

    prior_key: NDArray[Any]
    prior_task: NDArray[Any]
    likelihood: NDArray[Any]
    emission: NDArray[Any]

    @classmethod
    def from_rationals(
        cls,
        prior_key: Any,
        prior_task: Any,
        likelihood: Any,
        emission: Any,
        *,
        names: Mapping[str, str] | None = None,
    ) -> ExactModel:
        """Make a model from nested lists of rationals (`"1/3"`, integers, `Fraction`).

        Args:
            prior_key: π(k), K numbers that sum to exactly 1.
            prior_task: π(t | k), K rows of T.
            likelihood: P(z | k, t), K rows of T, 0 or more.
            emission: P(y | z; k, t), K × T rows of Y.
            names: What to call the four arrays in messages.

        Raises:
            InputError: Naming array, index and value.
        """
        given = {"prior_key": prior_key, "prior_task": prior_task, "likelihood": likelihood, "emission": emission}
        called = names or {}
        arrays = {key: exact_array(called.get(key, key), value) for key, value in given.items()}
        for (key, array), axes in zip(arrays.items(), (1, 2, 2, 3), strict=True):
            if array.ndim != axes:
                raise InputError(
                    f"{called.get(key, key)} has the wrong shape", expected=f"{axes} axes", found=array.shape
                )
        check_model(arrays, names)
        return cls(**arrays)

    def posterior(self) -> NDArray[Any]:
        """P(k, t | z), shape (K, T), of `Fraction`."""
        joint = self.prior_key[:, None] * self.prior_task * self.likelihood
        return np.asarray(joint / joint.sum())

    def predictive(self) -> NDArray[Any]:
        """P(y | z), shape (Y,), of `Fraction`."""
        return np.asarray((self.posterior()[..., None] * self.emission).sum(axis=(0, 1)))


def decompose_exact(model: ExactModel, paths: PathPair) -> Quantities:
    """Every quantity of the odds identity, exactly.

    Raises:
        InputError: An index of `paths` is not one of the model's.
    """
    n_keys, n_tasks, n_answers = model.emission.shape
    paths.check_within(n_keys, n_tasks, n_answers)
    k_s, t_s, k_0, t_0 = paths.k_s, paths.t_s, paths.k_0, paths.t_0
    distinct = paths.mode == "distinct"
    prior, w = model.prior_task, model.posterior()
    pair_tasks = [t_s] if t_s == t_0 else [t_s, t_0]

    def pair_prior(key: int) -> Fraction:
        return sum((prior[key, t] for t in pair_tasks), _ZERO)

    def pair_evidence(key: int) -> Fraction:
        return sum((prior[key, t] * model.likelihood[key, t] for t in pair_tasks), _ZERO)

    evidence = (model.prior_task * model.likelihood).sum(axis=1)  # P(z | k)
    tau = {k: {t: _div(prior[k, t] * model.likelihood[k, t], pair_evidence(k)) for t in pair_tasks} for k in (k_s, k_0)}
    off_task = {k: _minus(1, _div(pair_evidence(k), evidence[k])) for k in (k_s, k_0)}
    key_posterior = w.sum(axis=1)
    rho_k = _ONE if k_s == k_0 else _div(model.prior_key[k_s], model.prior_key[k_0])
    rho_t = _div(prior[k_s, t_s], prior[k_0, t_0])

    def nu(key: int, task: int) -> Any:
        return _div(model.likelihood[key, task] * pair_prior(key), pair_evidence(key))

    from_s, from_0 = (_contributions(w, model.emission[:, :, y], paths, own=own) for y, own in paths_of(paths))
    pair_keys = [k_s] if k_s == k_0 else [k_s, k_0]
    W = Masses(
        W_s=w[k_s, t_s],
        W_0=w[k_0, t_0],
        W_1=w[k_s, t_0] if distinct else _ZERO,
        W_2=w[k_0, t_s] if distinct else _ZERO,
        W_off=_ZERO,
    )
    return Quantities(
        Pi=_div(*(prior[k, t] * (1 if k_s == k_0 else model.prior_key[k]) for k, t in ((k_s, t_s), (k_0, t_0)))),
        rho_k=rho_k,
        rho_t=rho_t,
        R=_div(pair_prior(k_0), pair_prior(k_s)),
        LR_k=_div(evidence[k_s], evidence[k_0]),
        nu_s=nu(k_s, t_s),
        nu_0=nu(k_0, t_0),
        b_s=_div(model.likelihood[k_s, t_0], model.likelihood[k_s, t_s]),
        b_0=_div(model.likelihood[k_0, t_s], model.likelihood[k_0, t_0]),
        kappa=_div(key_posterior[k_s], sum((key_posterior[k] for k in pair_keys), _ZERO)),
        tau_s=tau[k_s][t_s],
        tau_0=tau[k_0][t_0],
        eps_k=1 - sum((key_posterior[k] for k in pair_keys), _ZERO),
        eps_t_s=off_task[k_s],
        eps_t_0=off_task[k_0],
        emissions=_emissions(model.emission, paths),
        masses=Masses(W.W_s, W.W_0, W.W_1, W.W_2, 1 - W.W_s - W.W_0 - W.W_1 - W.W_2),
        from_s=from_s,
        from_0=from_0,
        lam_s=_div(from_s.total - from_s.own, from_s.own),
        lam_0=_div(from_0.total - from_0.own, from_0.own),
        Ps=from_s.total,
        P0=from_0.total,
        ratio=_div(from_s.total, from_0.total),
        gamma=from_s.total - from_0.total,
    )


def paths_of(paths: PathPair) -> tuple[tuple[int, tuple[int, int]], tuple[int, tuple[int, int]]]:
    """(y_s, its own path) and (y*, its own path)."""
    return (paths.y_s, (paths.k_s, paths.t_s)), (paths.y_0, (paths.k_0, paths.t_0))


def _div(a: Fraction, b: Fraction) -> Any:
    return quotient(a, b, undefined=None)


def _minus(a: int, b: Fraction | None) -> Fraction | None:
    return None if b is None else a - b


def _emissions(emission: NDArray[Any], paths: PathPair) -> Emissions:
    at_s, at_0 = emission[paths.k_s, paths.t_s], emission[paths.k_0, paths.t_0]
    mixed_s, mixed_0 = emission[paths.k_s, paths.t_0], emission[paths.k_0, paths.t_s]
    y_s, y_0 = paths.y_s, paths.y_0
    mixed = (mixed_s[y_0], mixed_0[y_0], mixed_s[y_s], mixed_0[y_s])
    if paths.mode != "distinct":
        mixed = (None, None, None, None)
    return Emissions(at_s[y_s], at_0[y_0], at_0[y_s], at_s[y_0], *mixed)


def _contributions(w: NDArray[Any], says: NDArray[Any], paths: PathPair, *, own: tuple[int, int]) -> Contributions:
    parts = w * says
    pair = {(paths.k_s, paths.t_s), (paths.k_0, paths.t_0)}
    mixed = {(paths.k_s, paths.t_0), (paths.k_0, paths.t_s)} - pair
    off_task, off_key = (f(*w.shape) for f in (paths.off_task_cells, paths.off_key_cells))
    return Contributions(
        own=parts[own],
        cross=sum((parts[cell] for cell in pair - {own}), _ZERO),
        mixed=sum((parts[cell] for cell in mixed), _ZERO),
        off_task=sum(parts[off_task], _ZERO),
        off_key=sum(parts[off_key], _ZERO),
    )
