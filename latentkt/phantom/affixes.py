"""Affixes: those that a set of seeds uses, joined with those of the language; and where a word is cut by them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from latentkt.phantom.words import WordLists, english

__all__ = ["Affixes", "collect_affixes"]


@dataclass(frozen=True, slots=True)
class Affixes:
    """What words are cut at.

    Attributes:
        prefixes: Beginnings, lower case.
        suffixes: Ends, lower case.
        longest: Length of the longest.
        n_found: How many were found in the seeds, and not in the lists of the language.
    """

    prefixes: frozenset[str]
    suffixes: frozenset[str]
    longest: int
    n_found: int

    def cut(self, word: str, *, least: int = 2) -> int | None:
        """Where a word is cut: behind its longest prefix or before its longest suffix, whichever of them is longer.

        Args:
            word: The word.
            least: Characters that both parts have at least.

        Returns:
            The place; None where no affix leaves that much.

        Example:
            >>> affixes = collect_affixes([])
            >>> affixes.cut("macromolecule"), affixes.cut("entermolecular"), affixes.cut("xyz")
            (5, 10, None)
        """
        word = word.lower()
        for length in range(min(self.longest, len(word) - least), max(least, 2) - 1, -1):
            if word[:length] in self.prefixes:
                return length
            if word[-length:] in self.suffixes:
                return len(word) - length
        return None


def collect_affixes(
    words: Iterable[str], *, more_than: int = 3, longest: int = 12, lists: WordLists | None = None
) -> Affixes:
    """The affixes of some words: beginnings and ends of more than one character that enough different words share.

    Args:
        words: Words of the seeds; case makes no difference, and a word counts once.
        more_than: How many words must be exceeded (the paper: three).
        longest: Length of the longest affix looked for; bounds time and memory.
        lists: The language's own affixes; English by default.

    Example:
        >>> found = collect_affixes(["cardiac", "cardiology", "cardioid", "cardiogram", "cardio"])
        >>> "cardi" in found.prefixes, "cardiog" in found.prefixes
        (True, False)
    """
    lists = lists or english()
    distinct = sorted({word.lower() for word in words})
    prefixes = _shared(distinct, more_than, longest)
    suffixes = {end[::-1] for end in _shared([word[::-1] for word in distinct], more_than, longest)}
    own = len(prefixes - lists.prefixes) + len(suffixes - lists.suffixes)
    both = (frozenset(prefixes | lists.prefixes), frozenset(suffixes | lists.suffixes))
    return Affixes(*both, max(map(len, both[0] | both[1]), default=0), own)


def _shared(words: Collection[str], more_than: int, longest: int) -> set[str]:
    # One length at a time: a word holds no shared beginning longer than those it was seen to hold.
    found: set[str] = set()
    for length in range(2, longest + 1):
        words = [word for word in words if len(word) > length]
        counts = Counter(word[:length] for word in words)
        kept = {start for start, count in counts.items() if count > more_than}
        found |= kept
        words = [word for word in words if word[:length] in kept]
        if not words:
            break
    return found
