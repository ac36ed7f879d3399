"""What binds the answer: the whole path, the key alone, or the task alone.

With the same priors the three give different odds (`theory/02-odds-identity.md`), so an experiment must say which it is
in, or find out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from latentkt.errors import InputError
from latentkt.keytask.quantities import Emissions
from latentkt.keytask.rational import Number

__all__ = ["Binding", "bound_ratio", "check_binding", "find_binding"]

Regime = Literal["path", "key", "task"]


@dataclass(frozen=True, slots=True, eq=False)
class Binding:
    """How far the emissions are from each regime: the largest departure of a mixed path's emission, from 0 to 1.

    Attributes:
        path: From "mixed paths say neither answer".
        key: From "a path says what its key says".
        task: From "a path says what its task says".
        regime: The nearest of the three, or `mixed` where none is within the tolerance, or `none` where the paths share
            key or task, so that there are no mixed paths and the regimes are one.
    """

    path: Number
    key: Number
    task: Number
    regime: Any


def find_binding(emissions: Emissions, *, tolerance: float = 0.1) -> Binding:
    """Infer the regime from what the mixed paths say.

    Args:
        emissions: Of one exact model, or of a batch.
        tolerance: A departure up to this still counts as being in the regime.

    Example:
        >>> find_binding(Emissions(1.0, 1.0, 0.0, 0.0, c1=0.0, c2=1.0, u1=1.0, u2=0.0)).regime
        'key'
    """
    e = emissions
    if e.c1 is None or np.all(np.isnan(np.asarray(e.c1, dtype=float))):
        return Binding(None, None, None, "none")
    path = _largest(e.u1, e.c1, e.u2, e.c2)
    key = _largest(abs(e.u1 - e.alpha_s), abs(e.c1 - e.beta_0), abs(e.c2 - e.alpha_0), abs(e.u2 - e.beta_s))
    task = _largest(abs(e.c1 - e.alpha_0), abs(e.u1 - e.beta_s), abs(e.u2 - e.alpha_s), abs(e.c2 - e.beta_0))
    departures = np.stack([np.asarray(x, dtype=float) for x in (path, key, task)])
    nearest = np.array(["path", "key", "task"])[departures.argmin(axis=0)]
    regime = np.where(departures.min(axis=0) <= tolerance, nearest, "mixed")
    return Binding(path, key, task, regime if regime.ndim else str(regime))


def check_binding(emissions: Emissions, declared: Regime, *, tolerance: float = 0.1) -> Binding:
    """Hold a declared regime against the emissions.

    Raises:
        InputError: The departure from the declared regime is above the tolerance.
    """
    if declared not in ("path", "key", "task"):
        raise InputError("the declared binding is not one", expected="'path', 'key' or 'task'", found=repr(declared))
    found = find_binding(emissions, tolerance=tolerance)
    departure = getattr(found, declared)
    if departure is not None and np.any(np.asarray(departure, dtype=float) > tolerance):
        raise InputError(
            f"the answers are not {declared}-bound as declared",
            expected=f"mixed paths that depart from {declared}-bound by at most {tolerance}",
            found=f"departure {np.max(np.asarray(departure, dtype=float)):.6g}; the nearest regime is {found.regime}",
            fix="declare that regime, or leave it to be inferred",
        )
    return found


def bound_ratio(
    regime: Regime, *, kappa: Number, tau_s: Number, tau_0: Number, alpha_s: Number = 1, alpha_0: Number = 1
) -> Number:
    """P(y_s|z)/P(y*|z) in one regime, where nothing leaks and no mass lies outside the pair.

    path: κτ_s α_s/((1−κ)τ_0 α_0). key: κα_s/((1−κ)α_0): tasks play no part. task: [κτ_s + (1−κ)(1−τ_0)] α_s over
    [(1−κ)τ_0 + κ(1−τ_s)] α_0.

    Example:
        >>> from fractions import Fraction as F
        >>> [str(bound_ratio(r, kappa=F(3, 4), tau_s=F(4, 5), tau_0=F(3, 10))) for r in ("path", "key", "task")]
        ['8', '3', '31/9']
    """
    if regime == "key":
        return kappa * alpha_s / ((1 - kappa) * alpha_0)
    shortcut, correct = kappa * tau_s, (1 - kappa) * tau_0
    if regime == "task":
        shortcut, correct = shortcut + (1 - kappa) * (1 - tau_0), correct + kappa * (1 - tau_s)
    return shortcut * alpha_s / (correct * alpha_0)


def _largest(*values: Number) -> Number:
    largest = values[0]
    for value in values[1:]:
        largest = np.maximum(largest, value)
    return largest
