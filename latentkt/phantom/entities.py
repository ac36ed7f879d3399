"""Entities that do not exist: a pattern of one name with the core of another."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from latentkt.phantom.concepts import Concept
from latentkt.phantom.patterns import Parts, PatternRules, find_parts
from latentkt.phantom.words import english

__all__ = ["Entities", "EntityRules"]


@dataclass(frozen=True, slots=True)
class EntityRules:
    """How entities are made.

    Attributes:
        patterns: Which n-grams are patterns, which are items.
        uses: How often each pattern is used.
        side: Chance that an item stands on a side of a pattern without article or preposition at either end; where
            none is drawn for either side, both are drawn again.
        before_articles: Whether an item may stand before an article with which a pattern begins (`Wagner the Great
            War`); an article opens what follows it, so by default it is only one at the end that takes an item.
        longest: Words of an entity; longer ones are drawn again as another use.
    """

    patterns: PatternRules = field(default_factory=PatternRules)
    uses: int = 20
    side: float = 0.3
    before_articles: bool = False
    longest: int = 10


class Entities:
    """Candidates made from the entities of one category.

    Args:
        category: Its name.
        seeds: Its entities.
        rng: Draws everything.
        rules: How.
    """

    def __init__(self, category: str, seeds: Sequence[str], *, rng: random.Random, rules: EntityRules) -> None:
        self.category, self._rng, self._rules = category, rng, rules
        self._lists = rules.patterns.lists or english()
        self.parts: Parts = find_parts(category, seeds, rules.patterns)

    @property
    def per_pass(self) -> int:
        """Candidates of one pass: one a pattern."""
        return len(self.parts.patterns) if self.parts.items else 0

    @property
    def passes(self) -> int:
        """How many passes there are."""
        return self._rules.uses

    def candidates(self) -> Iterator[Concept | None]:
        """Candidates, pass by pass, patterns in random order; None for one that is too long."""
        for _ in range(self.passes if self.per_pass else 0):
            order = list(self.parts.patterns)
            self._rng.shuffle(order)
            yield from map(self._filled, order)

    def _filled(self, pattern: tuple[str, ...]) -> Concept | None:
        before, after = self._sides(pattern)
        items = self._rng.sample(self.parts.items, min(before + after, len(self.parts.items)))
        words = list(pattern)
        if before:
            words[:0] = items[0].split()
        if after:
            words += items[-1].split()
        if len(words) > self._rules.longest:
            return None
        text = " ".join(self.parts.shapes.restore(word, self._rng) for word in words)
        parents = (" ".join(pattern), *items)
        return Concept.make(text, kind="entity", category=self.category, parents=parents, method="pattern")

    def _sides(self, pattern: tuple[str, ...]) -> tuple[bool, bool]:
        first, last = pattern[0].lower(), pattern[-1].lower()
        takes_before = self._lists.openers if self._rules.before_articles else self._lists.prepositions
        before, after = first in takes_before, last in self._lists.openers
        while not (before or after):
            before, after = (self._rng.random() < self._rules.side for _ in range(2))
        return before, after
