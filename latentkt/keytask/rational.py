"""Exact numbers: rationals in, rationals out, and decimals of 17 right digits for what is irrational."""

from __future__ import annotations

import math
import re
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from latentkt.errors import InputError

__all__ = [
    "Number",
    "decimal_string",
    "exact_array",
    "exact_string",
    "log_exact",
    "quotient",
    "sqrt_exact",
    "to_fraction",
]

Number: TypeAlias = Any
"""A `Fraction`, a float or an array: formulas made of + − × ÷ are written once and hold for all three."""

_PRECISE = Context(prec=60)
_HUGE_EXPONENT = re.compile(r"[eE][+-]?0*[1-9]\d{4,}")


def to_fraction(name: str, value: Any) -> Fraction:
    """Read `1/3`, `0.25`, an integer or a `Fraction`; a float is refused, for 0.1 is not 1/10.

    Raises:
        InputError: Naming the entry and its value.

    Example:
        >>> to_fraction("pi_k[0]", "1/3")
        Fraction(1, 3)
    """
    huge = isinstance(value, str) and _HUGE_EXPONENT.search(value)  # would be written out digit by digit
    if isinstance(value, int | str | Fraction) and not isinstance(value, bool) and not huge:
        try:
            return Fraction(value)
        except (ValueError, ZeroDivisionError):
            pass
    raise InputError(
        f"{name} is not a rational number", expected='a number such as "1/3", 0.25 or 2', found=repr(value)
    )


def exact_array(name: str, value: Any) -> NDArray[Any]:
    """A nested list of rationals as an array of `Fraction`; the error names the first bad entry by its index."""

    def convert(part: Any, index: str) -> Any:
        if isinstance(part, list | tuple | np.ndarray):
            return [convert(x, f"{index}{', ' if index else ''}{i}") for i, x in enumerate(part)]
        return to_fraction(f"{name}[{index}]" if index else name, part)

    nested = convert(value, "")
    try:
        plain = np.array(nested, dtype=object)
    except ValueError:
        plain = np.array(None, dtype=object)
    flat = plain.reshape(-1)
    if not flat.size or not all(isinstance(x, Fraction) for x in flat):
        raise InputError(
            f"{name} has the wrong shape", expected="a rectangular array of numbers", found=str(value)[:200]
        )
    return plain


def quotient(numerator: Number, denominator: Number, *, undefined: Number) -> Number:
    """numerator/denominator of non-negative numbers; x/0 is inf, and 0/0 is `undefined`.

    Example:
        >>> quotient(Fraction(1), Fraction(0), undefined=None)
        inf
    """
    if isinstance(denominator, Fraction):
        if denominator:
            return numerator / denominator
        return math.inf if numerator else undefined
    numerator, denominator = np.asarray(numerator, dtype=float), np.asarray(denominator, dtype=float)
    zero = denominator == 0
    with np.errstate(over="ignore"):
        safe = numerator / np.where(zero, 1.0, denominator)
    return np.where(zero, np.where(numerator == 0, np.nan if undefined is None else undefined, np.inf), safe)[()]


def precise(value: Fraction | Decimal) -> Decimal:
    """A decimal of 60 digits."""
    if isinstance(value, Decimal):
        return value
    with localcontext(_PRECISE):
        return Decimal(value.numerator) / Decimal(value.denominator)


def log_exact(value: Fraction | float | None) -> Decimal | None:
    """Natural logarithm of an exact number to 60 digits; -Infinity at 0, Infinity at inf, None for None."""
    if value is None:
        return None
    if value == math.inf:
        return Decimal("Infinity")
    if value == 0:
        return Decimal("-Infinity")
    with localcontext(_PRECISE):
        return precise(Fraction(value)).ln()


def sqrt_exact(value: Fraction) -> Fraction | Decimal:
    """Square root: a `Fraction` where it is one, else 60 digits."""
    root = Fraction(math.isqrt(value.numerator), math.isqrt(value.denominator))
    if root * root == value:
        return root
    with localcontext(_PRECISE):
        return precise(value).sqrt()


def decimal_string(value: Decimal | Fraction) -> str:
    """17 significant digits, rounded rightly, without trailing zeros.

    Example:
        >>> decimal_string(Fraction(2, 3))
        '0.66666666666666667'
    """
    exact = precise(value)
    if not exact.is_finite():
        return "-inf" if exact < 0 else "inf"
    if not exact:
        return "0"
    rounded = Context(prec=17).plus(exact)
    if -7 < rounded.adjusted() < 21:
        text = format(rounded, "f")
        return text.rstrip("0").rstrip(".") if "." in text else text
    return str(rounded.normalize())


def exact_string(value: Fraction | float | None) -> str | None:
    """`3/10`, `8`, `inf`, or None for what does not exist."""
    if value is None:
        return None
    return str(value) if isinstance(value, Fraction) or value != math.inf else "inf"
