"""Student's interval of a mean of independent values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from latentkt.errors import InputError
from latentkt.stats.interval import Interval, check_level

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float
    from numpy.typing import ArrayLike

__all__ = ["mean_interval", "present"]


def mean_interval(values: ArrayLike, *, level: float = 0.95) -> Interval:
    """Mean of independent values with Student's t interval.

    Args:
        values: Shape `[n]`; NaN are left out and counted in `missing`.
        level: Confidence level.

    Returns:
        The mean; its ends are NaN for fewer than two values.

    Raises:
        InputError: The values are not one-dimensional, or hold infinities.

    Example:
        >>> f"{mean_interval([1.0, 2.0, 3.0, float('nan')]):.2f}"
        '2.00 [-0.48, 4.48]'
    """
    kept, missing = present(values)
    return student(kept, level=level, n=len(kept), missing=missing)


def present(values: ArrayLike) -> tuple[Float[np.ndarray, " n"], int]:
    """The values that are there, and the number that is not.

    Raises:
        InputError: The values are not one-dimensional, or hold infinities.
    """
    import numpy as np

    array = np.asarray(values, dtype=float)
    if array.ndim != 1 or np.isinf(array).any():
        raise InputError(
            "values of a mean",
            expected="a one-dimensional array of finite numbers or NaN",
            found=f"shape {array.shape}",
        )
    kept = array[~np.isnan(array)]
    return kept, len(array) - len(kept)


def student(
    units: Float[np.ndarray, " units"],
    *,
    level: float,
    n: int,
    missing: int,
    clusters: int | None = None,
    method: str = "student-t",
) -> Interval:
    """Student's t interval of the mean of `units`, recorded as resting on `n` values."""
    from scipy.stats import t as student_t

    check_level(level)
    value = float(units.mean()) if len(units) else math.nan
    half = math.nan
    if len(units) >= 2:
        half = float(student_t.ppf((1 + level) / 2, len(units) - 1) * units.std(ddof=1) / math.sqrt(len(units)))
    return Interval(value, value - half, value + half, level, method, n, clusters, missing)
