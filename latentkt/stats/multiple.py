"""p values adjusted for having looked many times. NaN (not tested) stays NaN and is not counted as a look."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from latentkt.errors import InputError

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike

__all__ = ["benjamini_hochberg", "holm"]


def holm(p: ArrayLike) -> Float[np.ndarray, "..."]:
    """Holm's (1979) adjusted p values: keep the chance of any false positive at the level, whatever the dependence.

    Args:
        p: p values of any shape.

    Returns:
        Adjusted p values in the same shape.

    Raises:
        InputError: A value lies outside 0 to 1.

    Example:
        >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
        [0.03, 0.06, 0.06]
    """
    values, tested = _checked(p)
    kept = values[tested]
    order = np.argsort(kept, kind="stable")
    stepped = np.maximum.accumulate(kept[order] * np.arange(len(kept), 0, -1)) if len(kept) else kept
    adjusted = np.empty_like(kept)
    adjusted[order] = np.minimum(stepped, 1.0)
    return _placed(values, tested, adjusted)


def benjamini_hochberg(p: ArrayLike) -> Float[np.ndarray, "..."]:
    """Benjamini and Hochberg's (1995) adjusted p values: keep the expected share of false positives at the level.

    Args, returns and errors are those of `holm`.

    Example:
        >>> benjamini_hochberg([0.01, 0.04, 0.03]).round(3).tolist()
        [0.03, 0.04, 0.04]
    """
    from scipy.stats import false_discovery_control

    values, tested = _checked(p)
    kept = values[tested]
    return _placed(values, tested, false_discovery_control(kept, method="bh") if len(kept) else kept)


def _checked(p: ArrayLike) -> tuple[Float[np.ndarray, "..."], np.ndarray]:
    values = np.asarray(p, dtype=float)
    tested = ~np.isnan(values)
    if ((values[tested] < 0) | (values[tested] > 1)).any():
        raise InputError("p values", expected="numbers from 0 to 1, or NaN", found=values[tested].tolist()[:10])
    return values, tested


def _placed(values: np.ndarray, tested: np.ndarray, adjusted: np.ndarray) -> np.ndarray:
    result = np.full(values.shape, math.nan)
    result[tested] = adjusted
    return result
