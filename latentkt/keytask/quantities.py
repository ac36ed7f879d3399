"""The numbers that decide between two paths, named as in `theory/`.

The same records hold exact rationals (one model) and arrays of floats (a batch of models).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

from latentkt.keytask.rational import Number

__all__ = ["Bounds", "Contributions", "Emissions", "Masses", "Quantities"]


class Bounds(NamedTuple):
    """A proven lower and upper bound."""

    lower: Number
    upper: Number


@dataclass(frozen=True, slots=True)
class Masses:
    """Posterior masses w(k, t) that the bounds need; they sum to 1.

    Attributes:
        W_s: The shortcut path (k_s, t_s).
        W_0: The correct path (k*, t*).
        W_1: The mixed path (k_s, t*); 0 where the paths share key or task.
        W_2: The mixed path (k*, t_s); 0 likewise.
        W_off: Everything else.
    """

    W_s: Number
    W_0: Number
    W_1: Number
    W_2: Number
    W_off: Number


@dataclass(frozen=True, slots=True)
class Emissions:
    """What the four paths of the pair say: P(y | z; k, t).

    Attributes:
        alpha_s: Confidence of the shortcut path, P(y_s | z; k_s, t_s).
        alpha_0: Confidence of the correct path, P(y* | z; k*, t*).
        beta_s: Leakage P(y_s | z; k*, t*).
        beta_0: Leakage P(y* | z; k_s, t_s).
        c1: Mixed emission P(y* | z; k_s, t*); None or NaN where there are no mixed paths.
        c2: Mixed emission P(y* | z; k*, t_s).
        u1: Mixed emission P(y_s | z; k_s, t*).
        u2: Mixed emission P(y_s | z; k*, t_s).
    """

    alpha_s: Number
    alpha_0: Number
    beta_s: Number
    beta_0: Number
    c1: Number
    c2: Number
    u1: Number
    u2: Number


@dataclass(frozen=True, slots=True)
class Contributions:
    """The parts that make up P(y | z) for one answer y; their sum is P(y | z).

    Attributes:
        own: The path whose answer y is.
        cross: The other path of the pair (leakage).
        mixed: The two mixed paths.
        off_task: Paths with a key of the pair and another task.
        off_key: Paths with another key.
    """

    own: Number
    cross: Number
    mixed: Number
    off_task: Number
    off_key: Number

    @property
    def total(self) -> Number:
        """P(y | z)."""
        return self.own + self.cross + self.mixed + self.off_task + self.off_key


@dataclass(frozen=True, slots=True)
class Quantities:
    """Every quantity of the odds identity and every assumption as a number.

    A quotient 0/0 does not exist: None for exact models, NaN for floats. Everything else is given, inf included.

    Attributes:
        Pi: π(k_s, t_s)/π(k*, t*) = rho_k · rho_t.
        rho_k: π(k_s)/π(k*).
        rho_t: π(t_s|k_s)/π(t*|k*).
        R: m(k*)/m(k_s) with m(k) = π(t*|k) + π(t_s|k): the factor that the printed theorem drops.
        LR_k: P(z|k_s)/P(z|k*): key evidence; Assumption 3.1 (ii) says 1.
        nu_s: P(t_s|k_s, z, pair)/π(t_s|k_s, pair): task evidence; Assumption 3.2 (ii) says 1.
        nu_0: P(t*|k*, z, pair)/π(t*|k*, pair), likewise.
        b_s: L(k_s, t*)/L(k_s, t_s); Assumption 3.2 (ii) says 1.
        b_0: L(k*, t_s)/L(k*, t*), likewise.
        kappa: P(k_s | z, key in pair); 1 where the paths share the key.
        tau_s: P(t_s | k_s, z, task in pair).
        tau_0: P(t* | k*, z, task in pair).
        eps_k: P(key not in pair | z); Assumption 3.1 (i).
        eps_t_s: P(task not in pair | z, k_s); Assumption 3.2 (i).
        eps_t_0: P(task not in pair | z, k*), likewise.
        emissions: What the four paths say; Assumption 3.3 and what it leaves open.
        masses: Posterior masses of the four paths and of the rest.
        from_s: Where P(y_s | z) comes from.
        from_0: Where P(y* | z) comes from.
        lam_s: P(y_s | z) from all other paths, over that from the shortcut path.
        lam_0: P(y* | z) from all other paths, over that from the correct path.
        Ps: P(y_s | z).
        P0: P(y* | z).
        ratio: P(y_s | z)/P(y* | z).
        gamma: P(y_s | z) − P(y* | z).
    """

    Pi: Number
    rho_k: Number
    rho_t: Number
    R: Number
    LR_k: Number
    nu_s: Number
    nu_0: Number
    b_s: Number
    b_0: Number
    kappa: Number
    tau_s: Number
    tau_0: Number
    eps_k: Number
    eps_t_s: Number
    eps_t_0: Number
    emissions: Emissions
    masses: Masses
    from_s: Contributions
    from_0: Contributions
    lam_s: Number
    lam_0: Number
    Ps: Number
    P0: Number
    ratio: Number
    gamma: Number

    def flat(self) -> dict[str, Number]:
        """All numbers in one mapping; `from_s.own` becomes `from_s_own`, the fields of the other records stand bare."""
        out: dict[str, Number] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Masses | Emissions):
                out.update({inner.name: getattr(value, inner.name) for inner in fields(value)})
            elif isinstance(value, Contributions):
                out.update({f"{field.name}_{inner.name}": getattr(value, inner.name) for inner in fields(value)})
            else:
                out[field.name] = value
        return out
