"""What a search finds, and what zero matches allow."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from latentkt.errors import InputError

if TYPE_CHECKING:
    from latentkt.phantom.search.journal import Journal

__all__ = ["Found", "Searched", "Searcher", "rate_bounds"]


@dataclass(frozen=True, slots=True)
class Searched:
    """What was searched.

    Attributes:
        corpus: Its name: paths, folder or name of an index.
        engine: `scan`, `index` or `http`.
        quantity: What one match is.
        tokens: How many tokens the corpus holds; None where nobody knows.
        unit: What these tokens are: `words`, or tokens or bytes of an index.
        documents: How many documents; None where nobody knows.
        details: More, such as skipped lines.
    """

    corpus: str
    engine: str
    quantity: str
    tokens: int | None
    unit: str
    documents: int | None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Found:
    """Matches of each text, summed over its casings.

    Attributes:
        matches: One number a text.
        approximate: Texts whose number is an estimate of the index.
        searched: What was searched.
    """

    matches: NDArray[np.int64]
    approximate: NDArray[np.bool_]
    searched: Searched


class Searcher(Protocol):
    """What `verify` needs."""

    @property
    def counts_words(self) -> bool:
        """Whether the made word of a blend is worth a count of its own (a scan has it for nothing)."""

    def ticks(self, texts: Sequence[str]) -> float:
        """How far `advance` goes in a search for these texts."""

    def identity(self) -> dict[str, Any]:
        """What the numbers depend on; a journal of another identity is not gone on with."""

    def search(self, texts: Sequence[str], journal: Journal, advance: Callable[[float], None]) -> Found:
        """Count texts; what the journal holds already is not counted again."""


def rate_bounds(matches: NDArray[np.int64], tokens: int | None, level: float = 0.95) -> NDArray[np.float64]:
    """Upper limit of a rate per million tokens: one-sided Clopper–Pearson, tokens taken for independent draws.

    For no match in N tokens it is 1 − (1 − level)^(1/N), about 3/N at 95 %. Matches come in bursts, so the truth is
    less sure than this; the share of documents is the cautious unit.

    Args:
        matches: Numbers of matches, shape `[n]`.
        tokens: Tokens searched; None gives NaN.
        level: Confidence level.

    Raises:
        InputError: The level is not between 0 and 1.

    Example:
        >>> rate_bounds(np.array([0, 15]), 1_000_000).round(2).tolist()
        [3.0, 23.1]
    """
    from scipy.stats import beta

    if not 0 < level < 1:
        raise InputError("bad confidence level", expected="between 0 and 1", found=level)
    if not tokens:
        return np.full(len(matches), math.nan)
    distinct, place = np.unique(matches, return_inverse=True)
    capped = np.minimum(distinct, tokens)
    bounds = np.where(capped < tokens, beta.ppf(level, capped + 1, np.maximum(tokens - capped, 1)), 1.0)
    bounds[distinct == 0] = -math.expm1(math.log1p(-level) / tokens)
    return 1e6 * bounds[place]
