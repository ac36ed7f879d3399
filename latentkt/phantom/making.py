"""Making concepts: rounds over the categories until enough different ones are there."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from latentkt.errors import DataError, InputError
from latentkt.phantom.concepts import Concept, Kind
from latentkt.phantom.entities import Entities, EntityRules
from latentkt.phantom.seeds.seeds import Seeds
from latentkt.phantom.terms import TermRules, Terms
from latentkt.phantom.words import concept_key

__all__ = ["Made", "make_concepts", "share_out"]

# As many candidates in a row that give nothing new: the seeds are exhausted.
_IN_VAIN = 1000
_NEEDS = {
    "term": "terms of at most four words, two or more of them, whose words are not all numbers or function words",
    "entity": "names that share an n-gram more often than the category's threshold, and other words beside it",
}


class _Maker(Protocol):
    category: str

    @property
    def per_pass(self) -> int: ...

    @property
    def passes(self) -> int | None: ...

    def candidates(self) -> Iterator[Concept | None]: ...


@dataclass(frozen=True, slots=True)
class Made:
    """Concepts that were made, not yet verified.

    Attributes:
        concepts: They, by category in the order of the seeds; none twice, none a seed.
        asked: How many were asked for; None: what one pass over the terms gives, or all uses of the patterns.
        rejected: Why candidates were passed over, and how many.
        by_category: Category -> how many were made.
    """

    concepts: tuple[Concept, ...]
    asked: int | None
    rejected: Mapping[str, int]
    by_category: Mapping[str, int]

    @property
    def shortfall(self) -> int:
        """How many of those asked for the seeds could not give."""
        return max(0, (self.asked or 0) - len(self.concepts))


def make_concepts(
    seeds: Seeds, *, kind: Kind, n: int | None = None, seed: int = 0, rules: TermRules | EntityRules | None = None
) -> Made:
    """Make concepts from seeds; each category from its own seeds alone.

    Terms: two candidates for each seed of at most four words, and more passes where more are asked for. Entities: each
    pattern is used 20 times at most. Two texts that differ in case, hyphens or spaces only are the same concept.

    Args:
        seeds: The seeds.
        kind: `term` or `entity`.
        n: How many, shared out over the categories by their candidates; None: one pass over the terms, all uses of the
            patterns. Fewer come back where the seeds give no more (`Made.shortfall`).
        seed: Same seeds and seed, same concepts.
        rules: Parameters of the making; the defaults of `TermRules` or `EntityRules`.

    Raises:
        InputError: `n` is not positive, or the rules are those of the other kind.
        DataError: Not one concept can be made.

    Example:
        >>> law = Seeds({"law": ("statutory law", "false verdict", "judicial review", "voidable contract")})
        >>> made = make_concepts(law, kind="term", n=3, seed=4)
        >>> [(concept.concept, concept.method) for concept in made.concepts]
        [('voidable verdict', 'recombined'), ('false contract', 'recombined'), ('voidable law', 'recombined')]
    """
    makers = [_maker(name, texts, kind, seed, rules) for name, texts in seeds.by_category.items()]
    if n is not None and n < 1:
        raise InputError("bad number of concepts", expected="at least 1", found=n)
    real = [*seeds.others, *(text for texts in seeds.by_category.values() for text in texts)]
    sieve = _Sieve({concept_key(text) for text in real})
    kept = _all_uses(makers, sieve) if n is None else _as_many(makers, sieve, n)
    concepts = tuple(concept for own in kept for concept in own)
    if not concepts:
        raise DataError(
            f"no {kind} can be made from these seeds",
            expected=_NEEDS[kind],
            found=f"{len(seeds)} seeds; {dict(sieve.rejected) or 'no candidate'}",
            fix="give more seeds, or put small categories together (--category NAME)",
        )
    by_category = {maker.category: len(own) for maker, own in zip(makers, kept, strict=True)}
    return Made(concepts, n, dict(sieve.rejected), by_category)


def _maker(category: str, texts: Sequence[str], kind: str, seed: int, rules: TermRules | EntityRules | None) -> _Maker:
    stream = hashlib.blake2b(f"{seed}/{kind}/{category}".encode(), digest_size=8).digest()
    rng = random.Random(int.from_bytes(stream, "big"))
    if kind == "term" and isinstance(rules, TermRules | None):
        return Terms(category, texts, rng=rng, rules=rules or TermRules())
    if kind == "entity" and isinstance(rules, EntityRules | None):
        return Entities(category, texts, rng=rng, rules=rules or EntityRules())
    raise InputError("kind and rules", expected="term with TermRules, entity with EntityRules", found=(kind, rules))


class _Sieve:
    """Lets through what is neither a seed nor made already, and counts the rest by reason."""

    def __init__(self, seeds: set[str]) -> None:
        self._seeds, self._made = seeds, set[str]()
        self.rejected: Counter[str] = Counter()

    def passes(self, candidate: Concept | None) -> bool:
        if candidate is None:
            self.rejected["nothing to exchange, or too long"] += 1
            return False
        key = concept_key(candidate.concept)
        if key in self._seeds or key in self._made:
            self.rejected["a seed" if key in self._seeds else "made before"] += 1
            return False
        self._made.add(key)
        return True


def _all_uses(makers: Sequence[_Maker], sieve: _Sieve) -> list[list[Concept]]:
    kept = []
    for maker in makers:
        candidates = islice(maker.candidates(), maker.per_pass * (maker.passes or 1))
        kept.append([candidate for candidate in candidates if sieve.passes(candidate) and candidate is not None])
    return kept


def _as_many(makers: Sequence[_Maker], sieve: _Sieve, n: int) -> list[list[Concept]]:
    kept: list[list[Concept]] = [[] for _ in makers]
    streams = {index: maker.candidates() for index, maker in enumerate(makers) if maker.per_pass}
    while streams and n > sum(map(len, kept)):
        open_makers = list(streams)
        shares = share_out(n - sum(map(len, kept)), [makers[index].per_pass for index in open_makers])
        for index, share in zip(open_makers, shares, strict=True):
            if not _pull(streams[index], sieve, share, kept[index]):
                del streams[index]
    return kept


def _pull(stream: Iterator[Concept | None], sieve: _Sieve, share: int, into: list[Concept]) -> bool:
    """Take a share from a stream; whether it may give more."""
    wanted, in_vain = len(into) + share, 0
    while len(into) < wanted:
        candidate = next(stream, _END)
        if candidate is _END:
            return False
        if sieve.passes(candidate) and candidate is not None:
            into.append(candidate)
            in_vain = 0
        elif (in_vain := in_vain + 1) == _IN_VAIN:
            return False
    return True


_END: Any = object()


def share_out(total: int, weights: Sequence[int]) -> list[int]:
    """Whole shares in proportion to weights, by largest remainders, that add up to the total.

    Example:
        >>> share_out(10, [1, 1, 1]), share_out(2, [5, 1])
        ([4, 3, 3], [2, 0])
    """
    whole = sum(weights)
    shares = [total * weight // whole for weight in weights]
    left = sorted(range(len(weights)), key=lambda index: (-(total * weights[index] % whole), index))
    for index in left[: total - sum(shares)]:
        shares[index] += 1
    return shares
