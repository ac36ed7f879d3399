"""Theorem 3.4 as printed: P(y_s|z)/P(y*|z) ≳ Π·α_s/α_0 ≳ 1.

It is false as a finite statement: see `theory/03-theorem-3.4-as-printed.md`. It is kept, labelled as printed, together
with the list of what it silently needs, each as a number that says whether it holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from latentkt.keytask.quantities import Quantities
from latentkt.keytask.rational import Number, quotient

__all__ = ["Need", "PrintedTheorem", "printed_theorem"]


@dataclass(frozen=True, slots=True)
class Need:
    """Something that the printed theorem needs.

    Attributes:
        name: Short name.
        stated: Whether the paper states it (in the assumptions or the proof).
        meaning: The condition in words and symbols.
        value: The number that decides.
        holds: Whether the condition holds exactly.
    """

    name: str
    stated: bool
    meaning: str
    value: Number
    holds: Number


@dataclass(frozen=True, slots=True)
class PrintedTheorem:
    """What Theorem 3.4 as printed says of a model, and whether it is so.

    Attributes:
        bound: Π·α_s/α_0, the printed lower bound of the ratio.
        predicts_dominance: The bound is 1 or more.
        ratio: What the ratio is.
        bound_holds: ratio ≥ bound (the first printed inequality).
        dominates: ratio ≥ 1.
        needs: What the statement needs; if all hold, both inequalities are true (proved).
    """

    bound: Number
    predicts_dominance: Number
    ratio: Number
    bound_holds: Number
    dominates: Number
    needs: tuple[Need, ...]

    @property
    def all_needs_hold(self) -> Number:
        """Whether every need holds."""
        holds = self.needs[0].holds
        for need in self.needs[1:]:
            holds = holds & need.holds
        return holds


def printed_theorem(q: Quantities) -> PrintedTheorem:
    """Judge the printed theorem on exact quantities or on a batch of floats.

    Where a ratio does not exist (both answers impossible) nothing is said to hold.
    """
    e, m = q.emissions, q.masses
    correct, prior_odds = m.W_0 * e.alpha_0, q.Pi
    bound = _times(prior_odds, quotient(e.alpha_s, e.alpha_0, undefined=None))

    def per_correct(mass: Number) -> Number:
        return quotient(mass, correct, undefined=correct * 0)

    below = _times(m.W_0, prior_odds)
    path_ratio = None if below is None else quotient(m.W_s, below, undefined=None)
    rows = (
        ("key_prior", True, "rho_k = π(k_s)/π(k*) ≥ 1 (used by the proof, not by the definition)", q.rho_k, 1),
        ("task_prior", True, "rho_t = π(t_s|k_s)/π(t*|k*) ≥ 1 (likewise)", q.rho_t, 1),
        ("confidence", True, "α_s − α_0 ≥ 0 (Assumption 3.3)", e.alpha_s - e.alpha_0, 0),
        ("path_evidence", False, "P(z|k_s,t_s)/P(z|k*,t*) = R·LR_k·(ν_s/ν_0)·(1−ε_s)/(1−ε_0) ≥ 1", path_ratio, 1),
    )
    needs = [Need(n, stated, text, value, _at_least(value, least)) for n, stated, text, value, least in rows]
    leaks = (
        ("leakage", True, "y* from the shortcut path, over y* from the correct path, is 0", q.from_0.cross),
        ("mixed_paths", False, "y* from the mixed paths, over y* from the correct path, is 0", q.from_0.mixed),
        ("off_task_paths", True, "y* from other tasks, over y* from the correct path, is 0", q.from_0.off_task),
        ("off_key_paths", True, "y* from other keys, over y* from the correct path, is 0", q.from_0.off_key),
    )
    needs += [Need(n, stated, text, per_correct(mass), mass == 0) for n, stated, text, mass in leaks]
    return PrintedTheorem(
        bound=bound,
        predicts_dominance=_at_least(bound, 1),
        ratio=q.ratio,
        bound_holds=_at_least(q.ratio, bound),
        dominates=_at_least(q.ratio, 1),
        needs=tuple(needs),
    )


def _times(a: Number, b: Number) -> Number:
    if a is None or b is None:
        return None
    with np.errstate(invalid="ignore"):
        product = a * b
    return None if isinstance(product, float) and np.isnan(product) and not isinstance(a, np.ndarray) else product


def _at_least(a: Number, b: Number) -> Number:
    """A ≥ b, false where either does not exist; floats may fall short by rounding (1e-12 of b)."""
    if a is None or b is None:
        return False
    if isinstance(a, Fraction) or (np.ndim(a) == 0 and a == np.inf):
        return a >= b
    with np.errstate(invalid="ignore"):
        return (a >= b) | (a >= b - 1e-12 * np.abs(b))  # the first for two infinities
