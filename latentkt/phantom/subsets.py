"""Stratified samples: the subsets on which models are compared, and real concepts to hold against them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from latentkt.errors import DataError, InputError
from latentkt.phantom.concepts import Concept, Existence, Kind

__all__ = ["SUBSETS", "Subset", "comparison", "sample_stratified", "sample_subset"]


@dataclass(frozen=True, slots=True)
class Subset:
    """What a subset takes.

    Attributes:
        kind: Of its concepts.
        size: How many.
        categories: Beginnings or parts of the names of its categories, in lower case; none: all of the kind.
    """

    kind: Kind
    size: int
    categories: tuple[str, ...] = ()

    def holds(self, concept: Concept) -> bool:
        """Whether a concept may be in it: a made and verified one of its kind and categories."""
        name = concept.category.lower()
        fits = not self.categories or any(part in name for part in self.categories)
        return concept.existence == "phantom" and concept.kind == self.kind and fits


SUBSETS: Mapping[str, Subset] = {
    # The sizes of T and E follow from the steps in which the paper's percentages move; the others are "about 1,000".
    "T": Subset("term", 1060),
    "E": Subset("entity", 1200),
    "Med": Subset("term", 1000, ("medal", "ncbi", "umnsrs", "disease", "drug", "medic", "pharma", "symptom", "anatom")),
    "Legal": Subset("term", 1000, ("legal", "law", "crime", "juri")),
}
"""Phantom-T, -E, -Med and -Legal."""


def sample_subset(
    concepts: Iterable[Concept], subset: str | Subset, *, size: int | None = None, seed: int = 0
) -> list[Concept]:
    """A subset of verified concepts: the same number of each category, as far as they have so many.

    Args:
        concepts: Verified concepts; real and unverified ones are passed over.
        subset: A name of `SUBSETS`, or one's own.
        size: Another size than the subset's.
        seed: Of the draw.

    Returns:
        The concepts, by category. Fewer than `size` where there are not so many.

    Raises:
        InputError: There is no such subset, or the size is not positive.
        DataError: No concept is of its kind and categories.
    """
    if isinstance(subset, str) and subset not in SUBSETS:
        raise InputError("unknown subset", expected=", ".join(SUBSETS), found=repr(subset))
    chosen = SUBSETS[subset] if isinstance(subset, str) else subset
    concepts = list(concepts)
    pool = [concept for concept in concepts if chosen.holds(concept)]
    if not pool:
        raise DataError(
            f"no concept for the subset {subset}",
            expected=f"verified made ones of kind {chosen.kind!r}, category {' or '.join(chosen.categories) or 'any'}",
            found=", ".join(sorted({concept.category for concept in concepts})[:10]) or "nothing",
        )
    return sample_stratified(pool, chosen.size if size is None else size, seed=seed)


def sample_stratified(
    concepts: Sequence[Concept],
    size: int,
    *,
    seed: int = 0,
    by: Callable[[Concept], str] = lambda concept: concept.category,
) -> list[Concept]:
    """Equal numbers of each stratum; what a small one lacks is shared out among the others.

    Within a stratum the order of a hash of seed and id decides, so the order of the rows changes nothing.

    Raises:
        InputError: The size is not positive.

    Example:
        >>> made = [Concept.make(f"x{i}", kind="term", category="ab"[i > 2]) for i in range(30)]
        >>> [concept.category for concept in sample_stratified(made, 8)]
        ['a', 'a', 'a', 'b', 'b', 'b', 'b', 'b']
    """
    if size < 1:
        raise InputError("bad size of a sample", expected="at least 1", found=size)
    strata: dict[str, list[Concept]] = {}
    for concept in concepts:
        strata.setdefault(by(concept), []).append(concept)
    quotas = fill_equally(size, {name: len(own) for name, own in strata.items()})
    return [
        concept
        for name in sorted(strata)
        for concept in sorted(strata[name], key=lambda concept: _rank(seed, concept))[: quotas[name]]
    ]


def _rank(seed: int, concept: Concept) -> bytes:
    return hashlib.blake2b(f"{seed}/{concept.id}".encode(), digest_size=8).digest()


def fill_equally(size: int, room: Mapping[str, int]) -> dict[str, int]:
    """Shares as equal as the room of each allows; odd ones go to the first names.

    Example:
        >>> fill_equally(10, {"a": 1, "b": 9, "c": 9}), fill_equally(10, {"a": 2})
        ({'a': 1, 'b': 5, 'c': 4}, {'a': 2})
    """
    shares = dict.fromkeys(room, 0)
    left = min(size, sum(room.values()))
    while left:
        open_names = sorted(name for name in room if shares[name] < room[name])
        each, odd = divmod(left, len(open_names))
        for place, name in enumerate(open_names):
            given = min(each or int(place < odd), room[name] - shares[name])
            shares[name] += given
            left -= given
    return shares


def comparison(
    real: Iterable[Concept], subset: Sequence[Concept], existence: Existence, *, seed: int = 0
) -> list[Concept]:
    """Real concepts to hold against a subset: as many of each category as it has, as far as there are.

    Common ones are those with the most matches, rare ones those with the fewest (the paper's choice); of equals, and of
    unattested ones, a draw by seed.

    Args:
        real: Verified real concepts; others are passed over.
        subset: The made ones.
        existence: `common`, `rare`, `between` or `unattested`.
        seed: Of the draw.

    Raises:
        DataError: There is none in any category of the subset.
    """
    wanted: dict[tuple[str, str], int] = {}
    for concept in subset:
        stratum = (concept.kind, concept.category)
        wanted[stratum] = wanted.get(stratum, 0) + 1
    strata: dict[tuple[str, str], list[Concept]] = {}
    for concept in real:
        stratum = (concept.kind, concept.category)
        if not concept.made and concept.existence == existence and stratum in wanted:
            strata.setdefault(stratum, []).append(concept)
    if not strata:
        raise DataError(
            f"no real concept that is {existence}",
            expected="verified seeds of the subset's categories",
            fix="verify the seeds in the same corpus (--seeds), or change the limits (--common, --rare)",
        )
    sign = -1 if existence == "common" else 1
    return [
        concept
        for stratum in sorted(strata)
        for concept in sorted(strata[stratum], key=lambda c: (sign * _matches(c), _rank(seed, c)))[: wanted[stratum]]
    ]


def _matches(concept: Concept) -> int:
    return int((concept.search or {}).get("matches", 0))
