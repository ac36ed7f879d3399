"""Hard pairs: the people whose name-removed profiles are most alike (Equation 1 of arXiv 2607.00447, Appendix D.2).

The score is the cosine of the two embeddings times m / (m + λ), where m is the smaller tag count of the two and λ the
median tag count: sparse profiles look alike for want of content. With people sorted by tag count, the smaller one is
that of the earlier person of a pair, so the factor belongs to a row and the scores of a block of rows are one matrix
product. Only the best pairs are kept, so memory does not grow with the number of pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from latentkt.errors import InputError

__all__ = ["HardPairs", "hard_pairs", "wanted_pairs"]

_BLOCK = 512
_SLACK = 1 << 20


@dataclass(frozen=True)
class HardPairs:
    """The best pairs, best first.

    Attributes:
        first: Index of one person of each pair, the smaller index.
        second: Index of the other.
        score: Equation 1.
        cosine: Its first factor.
        n_pairs: Number of all pairs, of which these are the top.
        median_tags: λ.
    """

    first: Int[np.ndarray, " pair"]
    second: Int[np.ndarray, " pair"]
    score: Float[np.ndarray, " pair"]
    cosine: Float[np.ndarray, " pair"]
    n_pairs: int
    median_tags: float

    def __len__(self) -> int:
        return len(self.score)

    @property
    def fraction(self) -> float:
        """The share of all pairs that was kept."""
        return len(self) / self.n_pairs


def wanted_pairs(n_people: int, *, top: int | None = None, fraction: float | None = None) -> int:
    """How many pairs a number or a fraction asks for; a fraction is rounded up.

    Raises:
        InputError: Both or neither were given, or the value is out of range.

    Example:
        >>> wanted_pairs(9090, fraction=1e-4)
        4131
    """
    n_pairs = n_people * (n_people - 1) // 2
    if n_pairs == 0:
        raise InputError("no pair can be made", expected="at least two usable profiles", found=n_people)
    if (top is None) == (fraction is None):
        raise InputError("how many pairs?", expected="either a number or a fraction", found=f"{top} and {fraction}")
    if fraction is not None:
        if not 0 < fraction <= 1:
            raise InputError("the fraction is wrong", expected="more than 0, at most 1", found=fraction)
        return math.ceil(fraction * n_pairs)
    assert top is not None
    if top < 1:
        raise InputError("the number of pairs is wrong", expected="at least 1", found=top)
    return min(top, n_pairs)


def hard_pairs(
    vectors: Float[np.ndarray, "person dimension"], tag_counts: Int[np.ndarray, " person"], *, top: int
) -> HardPairs:
    """The `top` pairs by Equation 1.

    Args:
        vectors: An embedding for each person.
        tag_counts: Number of attribute fields of each.
        top: How many pairs; see `wanted_pairs`.

    Returns:
        The pairs, best first; equal scores in the order of the two people by tag count and index. Scores are single
        precision; memory is a block of rows times people, and a few times `top`.

    Raises:
        InputError: The two arrays do not fit, or a tag count is not positive.

    Example:
        >>> found = hard_pairs(np.eye(3) + 0.1, np.array([2, 4, 4]), top=1)
        >>> (int(found.first[0]), int(found.second[0]), found.n_pairs, found.median_tags)
        (1, 2, 3, 4.0)
    """
    tags = np.asarray(tag_counts)
    if len(vectors) != len(tags) or len(tags) < 2 or tags.min() < 1:
        raise InputError(
            "vectors and tag counts do not fit",
            expected="one positive count a vector, at least two",
            found=f"{len(vectors)} vectors, {len(tags)} counts",
        )
    median = float(np.median(tags))
    order = np.argsort(tags, kind="stable")
    sorted_tags = tags[order].astype(np.float32)
    units = np.asarray(vectors, np.float32)[order]
    units = units / np.linalg.norm(units, axis=1, keepdims=True)
    factor = sorted_tags / (sorted_tags + np.float32(median))
    best = _best(units, factor, top)
    rows, columns, scores = best
    one, other = order[rows], order[columns]
    n_pairs = len(tags) * (len(tags) - 1) // 2
    return HardPairs(np.minimum(one, other), np.maximum(one, other), scores, scores / factor[rows], n_pairs, median)


_Found = tuple[np.ndarray, np.ndarray, np.ndarray]


def _best(units: np.ndarray, factor: np.ndarray, top: int) -> _Found:
    """The best pairs (row < column), by blocks of rows and columns; what cannot be among them is dropped."""
    n = len(units)
    scaled = units * factor[:, None]
    found: list[_Found] = []
    held, bar = 0, -np.inf
    for start in range(0, n - 1, _BLOCK):
        scores = scaled[start : start + _BLOCK] @ units[start:].T
        scores[np.tril_indices(len(scores), 0, scores.shape[1])] = -np.inf
        rows, columns = np.nonzero(scores > bar)
        found.append((rows.astype(np.int32) + start, columns.astype(np.int32) + start, scores[rows, columns]))
        held += len(rows)
        if held > top + min(top, _SLACK) or start == 0:
            found = [_cut(found, top)]
            held = len(found[0][2])
            bar = found[0][2][-1] if held == top else -np.inf
    return _cut(found, top)


def _cut(found: list[_Found], top: int) -> _Found:
    rows, columns, scores = (np.concatenate(parts) for parts in zip(*found, strict=True))
    if len(scores) > top:  # ties at the bar are settled by the order of the pairs, so the cut is a total order
        bar = np.partition(scores, len(scores) - top)[len(scores) - top]
        kept = scores >= bar
        rows, columns, scores = rows[kept], columns[kept], scores[kept]
    order = np.lexsort((columns, rows, -scores))[:top]
    return rows[order], columns[order], scores[order]
