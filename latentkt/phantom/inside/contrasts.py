"""What is told apart: made from real, rare from common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from latentkt.phantom.concepts import Concept

__all__ = ["CONTRASTS", "Contrast"]

REAL = ("common", "between", "rare", "unattested")


@dataclass(frozen=True, slots=True)
class Contrast:
    """Two kinds of concepts.

    Attributes:
        name: Name in the tables.
        words: What the probe tells apart, for reports.
        kind: `term` or `entity`.
        methods: Methods of the concepts labelled 1.
        existence: What the concepts labelled 1 are.
        against: What the real concepts labelled 0 are.
    """

    name: str
    words: str
    kind: str
    methods: tuple[str, ...]
    existence: tuple[str, ...]
    against: tuple[str, ...]

    def sides(self, concepts: Sequence[Concept]) -> tuple[list[int], list[int]]:
        """Rows labelled 1 and rows labelled 0."""
        mine = [(row, concept) for row, concept in enumerate(concepts) if concept.kind == self.kind]
        ones = [row for row, c in mine if c.method in self.methods and c.existence in self.existence]
        zeros = [row for row, c in mine if c.method == "real" and c.existence in self.against]
        return ones, zeros


CONTRASTS: tuple[Contrast, ...] = (
    Contrast(
        "recombined", "recombined terms from real ones", "term", ("recombined",), ("phantom",), REAL
    ),
    Contrast("blended", "terms with blended words from real ones", "term", ("blended",), ("phantom",), REAL),
    Contrast("pattern", "made entities from real ones", "entity", ("pattern",), ("phantom",), REAL),
    Contrast("rare", "rare terms from common ones", "term", ("real",), ("rare",), ("common",)),
    Contrast(
        "recombined_rare", "recombined terms from rare ones", "term", ("recombined",), ("phantom",), ("rare",)
    ),
)  # fmt: skip
"""The first is the headline: all its words are real. Blended words are known by their letters."""
