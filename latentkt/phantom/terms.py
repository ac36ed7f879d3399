"""Terms that do not exist: half of a term's words exchanged for words of other terms, or for blends of such words."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from latentkt.phantom.affixes import collect_affixes
from latentkt.phantom.blending import BlendRules, make_blends
from latentkt.phantom.concepts import Concept, Method
from latentkt.phantom.words import WordLists, english, is_numeric

__all__ = ["TermRules", "Terms", "WordPool", "build_pool"]


@dataclass(frozen=True, slots=True)
class TermRules:
    """How terms are made.

    Attributes:
        most_words: Longer seeds are not taken apart (their words still are drawn).
        affix_uses: An affix of the seeds must be shared by more words than this.
        blends: Cap and limits of the blends.
        keep_function_words: A function word or number in the half that is exchanged stays where it is, and none is
            drawn; False draws from all words and exchanges all, as the paper says.
        by_position: Where a head is exchanged (the last word, or one before a function word) a word is drawn that is
            the head of some seed, elsewhere one that is not; a blend stands where its second word may. False draws from
            all words alike.
        lists: Function words and affixes of the language; English by default.
    """

    most_words: int = 4
    affix_uses: int = 3
    blends: BlendRules = field(default_factory=BlendRules)
    keep_function_words: bool = True
    by_position: bool = True
    lists: WordLists | None = None


@dataclass(frozen=True, slots=True)
class WordPool:
    """What is drawn from.

    Attributes:
        words: Words of the seeds and blends, each with what it was made of (nothing for a word of a seed).
        n_real: How many of them, at the front, are words of seeds.
    """

    words: tuple[tuple[str, tuple[str, ...]], ...]
    n_real: int

    def draw(self, rng: random.Random, *, blends_only: bool = False) -> tuple[str, tuple[str, ...]]:
        """One word, each as likely as another."""
        return self.words[rng.randrange(self.n_real if blends_only else 0, len(self.words))]


def build_pool(words: Sequence[str], rules: TermRules, *, rng: random.Random) -> WordPool:
    """The pool of some words: themselves, and blends of them."""
    affixes = collect_affixes(words, more_than=rules.affix_uses, lists=rules.lists)
    blends = make_blends(words, affixes, rng=rng, rules=rules.blends)
    made = [(blend.word, blend.parents) for blend in blends]
    return WordPool(tuple([*((word, ()) for word in words), *made]), len(words))


class Terms:
    """Candidates made from the terms of one category.

    Args:
        category: Its name.
        seeds: Its terms.
        rng: Draws everything.
        rules: How.
    """

    def __init__(self, category: str, seeds: Sequence[str], *, rng: random.Random, rules: TermRules) -> None:
        self.category, self._rng, self._rules = category, rng, rules
        self._function_words = (rules.lists or english()).function_words
        split = [seed.split() for seed in seeds]
        self._seeds = [words for words in split if len(words) <= rules.most_words]
        self._pools = self._build_pools(split)

    def _build_pools(self, split: Sequence[Sequence[str]]) -> tuple[WordPool, WordPool]:
        """The pools for words that are no heads, and for heads."""
        every = self._content(word for words in split for word in words)
        pool = build_pool(every, self._rules, rng=self._rng)
        if not self._rules.by_position:
            return pool, pool
        heads = {words[place] for words in split for place in range(len(words)) if self._is_head(words, place)}
        others = {words[place] for words in split for place in range(len(words)) if not self._is_head(words, place)}
        return self._restricted(pool, others), self._restricted(pool, heads)

    def _is_head(self, words: Sequence[str], place: int) -> bool:
        return place == len(words) - 1 or words[place + 1].lower() in self._function_words

    @staticmethod
    def _restricted(pool: WordPool, allowed: set[str]) -> WordPool:
        # A blend ends as its last word does, so it stands where that word may stand.
        real = [entry for entry in pool.words[: pool.n_real] if entry[0] in allowed]
        made = [entry for entry in pool.words[pool.n_real :] if entry[1][1] in allowed]
        return WordPool(tuple([*real, *made]), len(real))

    def _content(self, words: Iterator[str]) -> list[str]:
        keep = self._rules.keep_function_words
        return [word for word in dict.fromkeys(words) if not (keep and self._fixed(word))]

    def _fixed(self, word: str) -> bool:
        return is_numeric(word) or len(word) == 1 or word.lower() in self._function_words

    @property
    def per_pass(self) -> int:
        """Candidates of one pass: two a seed."""
        return 2 * len(self._seeds)

    passes: int | None = None
    """There is no end of passes."""

    def candidates(self) -> Iterator[Concept | None]:
        """Candidates, pass by pass: two of every seed, in random order; None where a half cannot be exchanged."""
        order = list(range(len(self._seeds)))
        while order:
            self._rng.shuffle(order)
            for index in order:
                words = self._seeds[index]
                half = max(1, len(words) // 2)
                yield self._exchanged(words, range(half))
                yield self._exchanged(words, range(len(words) - half, len(words)))

    def _exchanged(self, words: Sequence[str], places: range) -> Concept | None:
        keep = self._rules.keep_function_words
        places_left = [place for place in places if not (keep and self._fixed(words[place]))]
        # A single word of a seed is no new concept, so a term of one word becomes a blend.
        alone = len(words) == 1
        pools = {place: self._pools[self._is_head(words, place)] for place in places_left}
        if not pools or any(len(pool.words) == (pool.n_real if alone else 0) for pool in pools.values()):
            return None
        new, parents, blended = list(words), [" ".join(words)], False
        used = {word.lower() for word in words}
        for place, pool in pools.items():
            word, made_of = self._drawn(pool, alone, used)
            new[place] = word
            parents += made_of or (word,)
            blended = blended or bool(made_of)
        method: Method = "blended" if blended else "recombined"
        return Concept.make(" ".join(new), kind="term", category=self.category, parents=parents, method=method)

    def _drawn(self, pool: WordPool, blends_only: bool, used: set[str]) -> tuple[str, tuple[str, ...]]:
        """A word that the term does not hold already, unless the pool has hardly another."""
        for _ in range(10):
            word, made_of = pool.draw(self._rng, blends_only=blends_only)
            if word.lower() not in used:
                break
        used.add(word.lower())
        return word, made_of
