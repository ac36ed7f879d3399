"""Blends: the first part of one word and the last part of another, cut where affixes end or begin."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from latentkt.phantom.affixes import Affixes
from latentkt.phantom.words import script

__all__ = ["Blend", "BlendRules", "make_blends"]

_THRICE = re.compile(r"(.)\1\1")


@dataclass(frozen=True, slots=True)
class BlendRules:
    """Which blends are made; the paper leaves all of this open but the cap.

    Attributes:
        most: Cap on their number; None: as many as there are words, at most 100,000.
        least_word: Characters of the words that are blended.
        least_part: Characters of each of the two parts.
        attested_join: The characters around the join must be heard of: both groups of three across it stand in some
            word of the seeds (`suspct` is not made).
        longest: Characters of a blend.
        tries: Draws for each blend asked for, after which fewer are made.
    """

    most: int | None = None
    least_word: int = 4
    least_part: int = 2
    attested_join: bool = True
    longest: int = 20
    tries: int = 20


@dataclass(frozen=True, slots=True)
class Blend:
    """A made word and the two it was made of."""

    word: str
    parents: tuple[str, str]


def make_blends(
    words: Sequence[str], affixes: Affixes, *, rng: random.Random, rules: BlendRules | None = None
) -> list[Blend]:
    """Blends of two words each, all different, none a word of the seeds.

    Only words of letters are blended, of one script, and not those in capitals (their letters are not sounds). A blend
    keeps the capital of its first word.

    Args:
        words: Words of the seeds.
        affixes: Where words are cut.
        rng: Draws the pairs.
        rules: Cap and limits.

    Example:
        >>> from latentkt.phantom.affixes import collect_affixes
        >>> words = ["macromolecule", "cardiology", "chemotherapy", "carbonate", "megalithic"]
        >>> [blend.word for blend in make_blends(words, collect_affixes(words), rng=random.Random(1))]
        ['chemology']
    """
    rules = rules or BlendRules()
    firsts, lasts = _parts(words, affixes, rules)
    most = min(len(words), 100_000) if rules.most is None else rules.most
    taken = {word.lower() for word in words}
    known = {word[at : at + 3] for word in taken for at in range(len(word) - 2)} if rules.attested_join else None
    blends: list[Blend] = []
    scripts = [name for name in sorted(firsts) if name in lasts]
    if not scripts:
        return blends
    weights = [len(firsts[name]) for name in scripts]
    for _ in range(rules.tries * most):
        if len(blends) >= most:
            break
        name = rng.choices(scripts, weights)[0] if len(scripts) > 1 else scripts[0]
        (start, one), (end, other) = rng.choice(firsts[name]), rng.choice(lasts[name])
        word = start + end
        if one != other and word.lower() not in taken and _sounds(start, end, known, rules.longest):
            taken.add(word.lower())
            blends.append(Blend(word, (one, other)))
    return blends


def _sounds(start: str, end: str, known: set[str] | None, longest: int) -> bool:
    around = start[-2:].lower() + end[:2]
    joins = known is None or (around[:3] in known and around[1:] in known)
    return joins and len(start) + len(end) <= longest and not _THRICE.search(start + end)


_Part = tuple[str, str]


def _parts(words: Sequence[str], affixes: Affixes, rules: BlendRules) -> tuple[dict[str, list[_Part]], ...]:
    """First parts and last parts by script, each with its word."""
    firsts: dict[str, list[_Part]] = {}
    lasts: dict[str, list[_Part]] = {}
    for word in words:
        letters = word.isalpha() and len(word) >= rules.least_word and (word[1:] == word[1:].lower())
        name = script(word) if letters else None
        cut = affixes.cut(word, least=rules.least_part) if name else None
        if name and cut:
            firsts.setdefault(name, []).append((word[:cut], word))
            lasts.setdefault(name, []).append((word[cut:].lower(), word))
    return firsts, lasts
