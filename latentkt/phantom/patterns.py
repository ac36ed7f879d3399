"""What entities are made of: recurring n-grams as patterns, rarer ones as items, numbers by their shape."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from latentkt.phantom.words import WordLists, english

__all__ = ["Parts", "PatternRules", "Shapes", "find_parts", "shape"]

_DIGITS = re.compile(r"\d+")
_PLACEHOLDER = re.compile(r"_num\d+_")
_OPEN, _SHUT = "([{“‘", ")]}”’"


@dataclass(frozen=True, slots=True)
class PatternRules:
    """Which n-grams are patterns and which are items. An n-gram's frequency is the number of entities that hold it.

    Attributes:
        lengths: Words of a pattern; those of an item of several words too.
        share: A pattern's frequency exceeds this share of the category's entities, …
        least: … but at least this number counts as the threshold, …
        most: … and at most this one (the paper's bound).
        thresholds: Category -> threshold, instead of the three above.
        word_least: Lowest frequency of an item of one word; items go up to the pattern's threshold.
        ngram_least: Lowest frequency of an item of several words.
        whole_runs: An item must be, in one entity at least, all that stands between pattern, function words and the
            ends of the name (`Coral Sea`, but neither `Coral` nor `Sea`); False takes any n-gram of fitting frequency.
        lists: Function words and rejected words of the language; English by default.
    """

    lengths: tuple[int, ...] = (2, 3)
    share: float = 0.01
    least: int = 5
    most: int = 30
    thresholds: Mapping[str, int] = field(default_factory=dict)
    word_least: int = 1
    ngram_least: int = 1
    whole_runs: bool = True
    lists: WordLists | None = None

    def threshold(self, category: str, n_entities: int) -> int:
        """The threshold of a category: a pattern's frequency exceeds it.

        Example:
            >>> [PatternRules().threshold("x", n) for n in (10, 274, 1500, 300_000)]
            [5, 5, 15, 30]
        """
        return self.thresholds.get(category, max(self.least, min(self.most, round(self.share * n_entities))))


def shape(word: str) -> str:
    """A word in lower case, each run of digits as a placeholder of its length.

    Example:
        >>> shape("2026"), shape("36th"), shape("1914-18"), shape("Olympics")
        ('_num4_', '_num2_th', '_num4_-_num2_', 'olympics')
    """
    lowered = word.lower()
    return _DIGITS.sub(lambda digits: f"_num{len(digits[0])}_", lowered) if _DIGITS.search(lowered) else lowered


class Shapes:
    """The numbers of a category by their shape, from which placeholders are restored.

    A number is drawn as often as it occurs, so a four-digit one is a year where the category's are, an ordinal keeps an
    ending that fits it, and a range stays one.
    """

    def __init__(self, words: Iterable[str]) -> None:
        seen: dict[str, Counter[str]] = {}
        for word in words:
            if _DIGITS.search(word):
                seen.setdefault(shape(word), Counter())[word] += 1
        self._words = {name: (list(counts), list(counts.values())) for name, counts in seen.items()}

    def restore(self, word: str, rng: random.Random) -> str:
        """A word with its placeholders filled."""
        if not _PLACEHOLDER.search(word.lower()):
            return word
        words, weights = self._words[word.lower()]
        return rng.choices(words, weights)[0]


@dataclass(frozen=True, slots=True)
class Parts:
    """What the entities of one category are made of.

    Attributes:
        category: Its name.
        threshold: A pattern's frequency exceeds it.
        patterns: n-grams as they are usually written, numbers as placeholders; frequent ones first.
        items: Words and n-grams as they are usually written.
        shapes: The numbers.
    """

    category: str
    threshold: int
    patterns: tuple[tuple[str, ...], ...]
    items: tuple[str, ...]
    shapes: Shapes


def find_parts(category: str, entities: Sequence[str], rules: PatternRules | None = None) -> Parts:
    """The patterns and items of the entities of one category.

    Discarded are patterns in which a word has one character or no letter or digit, or all words are function words or
    numbers, or that begin or end in a function word which is no article or preposition (`Medal and`); items in which a
    word has one character or no letter, holds a digit, is a function word or a rejected one; and whatever opens a
    bracket or quotation without closing it, or ends in a comma or the like. A word of a pattern is no item: it is more
    frequent than the pattern, and so than the threshold.

    Example:
        >>> names = ["Battle of Ypres", "Battle of Hastings", "battle of Jutland", "Battle of Coral Sea", "Great War"]
        >>> parts = find_parts("war", names, PatternRules(least=2))
        >>> parts.threshold, parts.patterns, parts.items
        (2, (('Battle', 'of'),), ('Ypres', 'Hastings', 'Jutland', 'Coral Sea', 'Great War'))
    """
    rules = rules or PatternRules()
    threshold = rules.threshold(category, len(entities))
    split = [entity.split() for entity in entities]
    words = Counter(word for own in split for word in {shape(word) for word in own})
    ngrams = _count_ngrams(split, words, rules, threshold)
    check = _Checks(rules.lists or english())
    patterns = {gram for gram, count in ngrams.items() if count > threshold and check.is_pattern(gram.split())}
    items = {word for word, n in words.items() if rules.word_least <= n <= threshold and check.is_item([word])}
    items |= {gram for gram, n in ngrams.items() if rules.ngram_least <= n <= threshold and check.is_item(gram.split())}
    if rules.whole_runs:
        items &= _runs(split, patterns, check, rules.lengths)
    written = _casings(split, patterns | items, rules.lengths)
    shapes = Shapes(word for own in split for word in own)
    ordered = sorted(patterns, key=lambda gram: (-ngrams[gram], gram))
    found = tuple(tuple(written[gram].split()) for gram in ordered)
    return Parts(category, threshold, found, tuple(written[item] for item in written if item in items), shapes)


def _grams(words: Sequence[str], lengths: Iterable[int]) -> Iterator[str]:
    for length in lengths:
        for at in range(len(words) - length + 1):
            yield " ".join(words[at : at + length])


def _count_ngrams(
    split: Iterable[Sequence[str]], words: Mapping[str, int], rules: PatternRules, threshold: int
) -> Counter[str]:
    # An n-gram is no more frequent than its rarest word: most of those that no rule can take are never stored.
    least = min(rules.ngram_least, threshold + 1)
    counts: Counter[str] = Counter()
    for own in split:
        shapes = [shape(word) for word in own]
        marked = [word if words[word] >= least else "" for word in shapes]
        counts.update({gram for gram in _grams(marked, rules.lengths) if _whole(gram)})
    return counts


def _runs(split: Iterable[Sequence[str]], patterns: set[str], check: _Checks, lengths: Iterable[int]) -> set[str]:
    """What patterns, function words and numbers leave over of each entity, in one piece."""
    found: set[str] = set()
    for own in split:
        words = [shape(word) for word in own]
        free = [check.is_core(word) for word in words]
        for length in lengths:
            for at in range(len(words) - length + 1):
                if " ".join(words[at : at + length]) in patterns:
                    free[at : at + length] = [False] * length
        for is_free, run in groupby(zip(free, words, strict=True), key=lambda pair: pair[0]):
            if is_free:
                found.add(" ".join(word for _, word in run))
    return found


def _whole(gram: str) -> bool:
    return not (gram.startswith(" ") or gram.endswith(" ") or "  " in gram) and gram != ""


def _casings(split: Iterable[Sequence[str]], wanted: set[str], lengths: Iterable[int]) -> dict[str, str]:
    """How each wanted n-gram is written most often (the first of equals), in the order in which they are met."""
    seen: dict[str, Counter[str]] = {}
    for own in split:
        cased = [_DIGITS.sub(lambda digits: f"_NUM{len(digits[0])}_", word) for word in own]
        for gram in _grams(cased, (1, *lengths)):
            if gram.lower() in wanted:
                seen.setdefault(gram.lower(), Counter())[gram] += 1
    return {gram: counts.most_common(1)[0][0] for gram, counts in seen.items()}


class _Checks:
    """The rules by which n-grams are discarded."""

    def __init__(self, lists: WordLists) -> None:
        self._function, self._rejected = lists.function_words, lists.rejected
        self._loose = lists.function_words - lists.openers

    def is_pattern(self, words: Sequence[str]) -> bool:
        bare = all(_is_bare(word) for word in words)
        empty = all(word in self._function or _is_number(word) for word in words)
        joins = words[0] in self._loose or words[-1] in self._loose
        return bare and not empty and not joins and _is_closed(" ".join(words))

    def is_item(self, words: Sequence[str]) -> bool:
        return all(self.is_core(word) for word in words) and _is_closed(" ".join(words))

    def is_core(self, word: str) -> bool:
        excluded = word in self._function or word.strip(".'’") in self._rejected or word in self._rejected
        return _is_bare(word) and not excluded and not _PLACEHOLDER.search(word)


def _is_bare(word: str) -> bool:
    """More than one character, and a letter or digit among them."""
    return len(word) > 1 and any(char.isalnum() for char in word)


def _is_number(word: str) -> bool:
    return not any(char.isalpha() for char in _PLACEHOLDER.sub("0", word))


def _is_closed(text: str) -> bool:
    paired = all(text.count(a) == text.count(b) for a, b in zip(_OPEN[:3], _SHUT[:3], strict=True))
    return paired and text.count('"') % 2 == 0 and text[-1] not in ",;:-–—/&" and text[0] not in ",;:-–—/&'’"
