"""A number with its interval, and how both came about."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from latentkt.errors import InputError

__all__ = ["Interval", "check_level"]


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and its confidence interval.

    Attributes:
        value: The estimate.
        low: Lower end; NaN where too little was seen to give one.
        high: Upper end; NaN likewise.
        level: Confidence level, such as 0.95.
        method: How the interval was made.
        n: Units that went in (items, trials).
        clusters: Clusters that they came from; None where units count as independent.
        missing: Units left out because their value was NaN.

    Example:
        >>> share = Interval(0.514, 0.452, 0.576, level=0.95, method="wilson", n=250)
        >>> f"{share:.2f}", f"{share:.0%}"
        ('0.51 [0.45, 0.58]', '51 % [45, 58]')
    """

    value: float
    low: float
    high: float
    level: float
    method: str
    n: int
    clusters: int | None = None
    missing: int = 0

    def __format__(self, spec: str) -> str:
        """The estimate and its ends, each in the format `spec`; with a spec that ends in `%`, in percent."""
        if not spec.endswith("%"):
            return f"{self.value:{spec}} [{self.low:{spec}}, {self.high:{spec}}]"
        value, low, high = (f"{number:{spec}}".removesuffix("%") for number in (self.value, self.low, self.high))
        return f"{value} % [{low}, {high}]"

    def __str__(self) -> str:
        return f"{self:.3g}"

    def excludes(self, number: float) -> bool:
        """Whether `number` lies outside the interval; False where there is no interval."""
        return number < self.low or number > self.high

    @property
    def defined(self) -> bool:
        """Whether there is an interval at all."""
        return not (math.isnan(self.low) or math.isnan(self.high))

    def to_row(self) -> dict[str, Any]:
        """The fields as one row of a table."""
        return asdict(self)


def check_level(level: float) -> float:
    """Refuse what is no confidence level.

    Raises:
        InputError: `level` is not strictly between 0 and 1.
    """
    if not 0.0 < level < 1.0:
        raise InputError("confidence level", expected="a number between 0 and 1, such as 0.95", found=level)
    return level
