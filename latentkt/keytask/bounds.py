"""Bounds on the odds and on the margin from masses, confidences and caps: Theorems A and B in mass form.

The formulas are made of + − × ÷ alone: they take exact rationals, floats and arrays. Proofs, equality cases and what
fails without a cap: `theory/04-ratio-bounds.md` and `theory/05-margin-certificate.md`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction

import numpy as np

from latentkt.keytask.checks import check_unit
from latentkt.keytask.quantities import Bounds, Emissions, Masses
from latentkt.keytask.rational import Number, quotient

__all__ = ["Caps", "margin_bounds", "ratio_bounds"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """Upper limits of what the paths of the pair say beside their own answer; all from 0 to 1.

    Attributes:
        B_0: Cap of P(y* | z; k_s, t_s).
        B_s: Cap of P(y_s | z; k*, t*).
        C_1: Cap of P(y* | z; k_s, t*).
        C_2: Cap of P(y* | z; k*, t_s).
        U_1: Cap of P(y_s | z; k_s, t*).
        U_2: Cap of P(y_s | z; k*, t_s).

    Raises:
        InputError: A cap is no probability.
    """

    B_0: Number
    B_s: Number
    C_1: Number
    C_2: Number
    U_1: Number
    U_2: Number

    def __post_init__(self) -> None:
        for field in fields(self):
            check_unit(field.name, getattr(self, field.name))

    @classmethod
    def own(cls, emissions: Emissions) -> Caps:
        """The tightest caps: the model's own emissions (0 for mixed paths that do not exist)."""
        e = emissions
        c_1, c_2, u_1, u_2 = (_or_zero(value) for value in (e.c1, e.c2, e.u1, e.u2))
        return cls(B_0=e.beta_0, B_s=e.beta_s, C_1=c_1, C_2=c_2, U_1=u_1, U_2=u_2)

    @classmethod
    def blind(cls, *, alpha_s: Number, alpha_0: Number) -> Caps:
        """Nothing known but the two confidences: whatever is not said rightly may all be the other answer."""
        one = alpha_s * 0 + 1
        return cls(B_0=1 - alpha_s, B_s=1 - alpha_0, C_1=one, C_2=one, U_1=one, U_2=one)


def _or_zero(value: Number) -> Number:
    if value is None:
        return Fraction(0)
    if isinstance(value, Fraction | int):
        return value
    return np.where(np.isnan(value), 0.0, value)


def ratio_bounds(masses: Masses, *, alpha_s: Number, alpha_0: Number, caps: Caps) -> Bounds:
    """Theorem A: two-sided bound of P(y_s|z)/P(y*|z).

    Args:
        masses: Posterior masses of the four paths and of the rest.
        alpha_s: P(y_s | z; k_s, t_s).
        alpha_0: P(y* | z; k*, t*).
        caps: What the paths may say beside that.

    Returns:
        Lower and upper bound; both are attained by some model. The upper one is inf where the correct path may be
        silent, the lower one 0 where the shortcut path is.

    Raises:
        InputError: A confidence is no probability.

    Example:
        >>> half, none = Fraction(1, 2), Fraction(0)
        >>> caps = Caps(B_0=none, B_s=none, C_1=none, C_2=none, U_1=none, U_2=none)
        >>> found = ratio_bounds(Masses(half, half / 2, none, none, half / 2), alpha_s=half, alpha_0=half, caps=caps)
        >>> str(found.lower), str(found.upper)
        ('2/3', '4')
    """
    check_unit("alpha_s", alpha_s)
    check_unit("alpha_0", alpha_0)
    m = masses
    most_0 = m.W_0 * alpha_0 + m.W_s * caps.B_0 + m.W_1 * caps.C_1 + m.W_2 * caps.C_2 + m.W_off
    most_s = m.W_s * alpha_s + m.W_0 * caps.B_s + m.W_1 * caps.U_1 + m.W_2 * caps.U_2 + m.W_off
    return Bounds(
        lower=quotient(m.W_s * alpha_s, most_0, undefined=m.W_s * 0),
        upper=quotient(most_s, m.W_0 * alpha_0, undefined=np.inf),
    )


def margin_bounds(masses: Masses, *, alpha_s: Number, alpha_0: Number, caps: Caps) -> Bounds:
    """Theorem B in mass form: bounds of γ = P(y_s|z) − P(y*|z); the lower one is the certificate γ_cert.

    Holds in the same-key and same-task modes too, where W_1 = W_2 = 0.

    Raises:
        InputError: A confidence is no probability.
    """
    check_unit("alpha_s", alpha_s)
    check_unit("alpha_0", alpha_0)
    m = masses
    return Bounds(
        lower=m.W_s * (alpha_s - caps.B_0) - m.W_1 * caps.C_1 - m.W_0 * alpha_0 - m.W_2 * caps.C_2 - m.W_off,
        upper=m.W_s * alpha_s + m.W_1 * caps.U_1 - m.W_0 * (alpha_0 - caps.B_s) + m.W_2 * caps.U_2 + m.W_off,
    )
