"""Refuse what is no model: wrong shapes, NaN, negative masses, rows that do not sum to 1.

One set of checks serves floats (with a tolerance) and exact rationals (arrays of `Fraction`, tolerance 0).
Every refusal names the array, the index and the value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latentkt.errors import InputError

__all__ = ["ROW_TOLERANCE", "as_array", "check_model", "check_nonnegative", "check_rows", "check_unit"]

ROW_TOLERANCE = 1e-9
"""How far from 1 the sum of a row of floats may lie; exact rows must sum to exactly 1."""

Names = Mapping[str, str]


def at(name: str, index: tuple[Any, ...]) -> str:
    """The way an entry is written in a message: `prior_task[0, 1]`."""
    return f"{name}[{', '.join(str(int(i)) for i in index)}]" if index else name


def first(mask: NDArray[Any]) -> tuple[Any, ...]:
    """Index of the first true entry."""
    return tuple(np.unravel_index(int(np.argmax(mask)), mask.shape))


def as_array(name: str, value: Any) -> NDArray[np.float64]:
    """`value` as an array of floats.

    Raises:
        InputError: It is ragged, or not numeric.
    """
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not an array of numbers", expected="a rectangular array", found=error) from None


def check_nonnegative(name: str, array: NDArray[Any]) -> None:
    """Refuse NaN, infinity and negative masses."""
    if array.dtype != object and not np.isfinite(array).all():
        index = first(~np.isfinite(array))
        raise InputError(
            f"{at(name, index)} is not a finite number", expected="finite, 0 or more", found=float(array[index])
        )
    negative = array < 0
    if negative.any():
        index = first(negative)
        raise InputError(f"{at(name, index)} is negative", expected="a mass, 0 or more", found=array[index])


def check_rows(name: str, array: NDArray[Any]) -> None:
    """Refuse masses whose last axis does not sum to 1."""
    check_nonnegative(name, array)
    sums = array.sum(axis=-1)
    sums = np.asarray(sums, dtype=object if array.dtype == object else np.float64)
    wrong = sums != 1 if array.dtype == object else np.abs(sums - 1) > ROW_TOLERANCE
    if np.any(wrong):
        index = first(np.asarray(wrong))
        raise InputError(
            f"{at(name, (*index,))} does not sum to 1" if index else f"{name} does not sum to 1",
            expected="a row of probabilities that sums to 1",
            found=f"sum {sums[index]} of {[str(x) for x in array[index]]}",
            fix="divide the row by its sum" if array.dtype != object else "write the rest of the row as an entry",
        )


def check_unit(name: str, value: Any) -> None:
    """Refuse what is no probability (NaN, below 0, above 1), for numbers and arrays of any kind."""
    array = np.asarray(value)
    bad = ~((array >= 0) & (array <= 1))
    if bad.any():
        index = first(bad)
        raise InputError(f"{at(name, index)} is no probability", expected="a number from 0 to 1", found=array[index])


def _need_shape(name: str, array: NDArray[Any], core: tuple[int, ...], letters: str) -> None:
    if array.ndim < len(core) or array.shape[array.ndim - len(core) :] != core:
        raise InputError(
            f"{name} has the wrong shape",
            expected=f"(…, {letters}) = (…, {', '.join(map(str, core))})",
            found=array.shape,
            fix="K, T and Y are read from prior_key and emission",
        )


def check_model(arrays: Mapping[str, NDArray[Any]], names: Names | None = None) -> None:
    """Check the four arrays of a model against each other and one by one.

    Args:
        arrays: `prior_key` (…, K), `prior_task` (…, K, T), `likelihood` (…, K, T), `emission` (…, K, T, Y).
        names: What to call each of them in messages, where that is something else.

    Raises:
        InputError: Naming array, index and value.
    """
    called = {key: (names or {}).get(key, key) for key in arrays}
    for key, least in (("prior_key", 1), ("emission", 3)):
        if arrays[key].ndim < least or 0 in arrays[key].shape:
            raise InputError(
                f"{called[key]} has the wrong shape",
                expected=f"at least {least} axes, none empty",
                found=arrays[key].shape,
            )
    n_keys, (n_tasks, n_answers) = arrays["prior_key"].shape[-1], arrays["emission"].shape[-2:]
    _need_shape(called["prior_task"], arrays["prior_task"], (n_keys, n_tasks), "K, T")
    _need_shape(called["likelihood"], arrays["likelihood"], (n_keys, n_tasks), "K, T")
    _need_shape(called["emission"], arrays["emission"], (n_keys, n_tasks, n_answers), "K, T, Y")
    core = {"prior_key": 1, "prior_task": 2, "likelihood": 2, "emission": 3}
    leading = {called[key]: arrays[key].shape[:-axes] for key, axes in core.items()}
    try:
        np.broadcast_shapes(*leading.values())
    except ValueError:
        raise InputError("leading axes do not fit together", expected="shapes that broadcast", found=leading) from None
    for key in ("prior_key", "prior_task", "emission"):
        check_rows(called[key], arrays[key])
    check_nonnegative(called["likelihood"], arrays["likelihood"])
    possible = (arrays["prior_key"][..., None] > 0) & (arrays["prior_task"] > 0) & (arrays["likelihood"] > 0)
    impossible = ~np.asarray(possible, dtype=bool).any(axis=(-2, -1))
    if np.any(impossible):
        index = first(np.asarray(impossible))
        raise InputError(
            f"the prompt {at('z', index)} is impossible: {called['likelihood']} is 0 wherever the prior is not",
            expected="at least one path (k, t) with prior and likelihood above 0",
            found=arrays["likelihood"][index] if arrays["likelihood"].ndim > 2 else arrays["likelihood"],
        )
