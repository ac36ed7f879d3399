"""Words of concepts: how a text is cut, which words are function words, and when two texts are the same concept."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from pathlib import Path

from latentkt.errors import DataError, InputError

__all__ = ["WordLists", "concept_key", "english", "is_numeric", "load_word_lists", "normalised", "script"]

_HAS_LETTER = re.compile(r"[^\W\d_]")
_JOINTS = re.compile(r"[\s\-_\u2010-\u2015]+")


@dataclass(frozen=True, slots=True)
class WordLists:
    """What the making of concepts knows of a language; all in lower case.

    Attributes:
        prefixes: Affixes joined with those found in the seeds; longer than one character.
        suffixes: The same at the end of words.
        stopwords: Words without content of their own.
        articles: Where an entity's pattern ends or begins with one, an item is put there.
        prepositions: The same.
        rejected: Further words that no item may hold (`vs`, `'s`).
    """

    prefixes: frozenset[str]
    suffixes: frozenset[str]
    stopwords: frozenset[str]
    articles: frozenset[str]
    prepositions: frozenset[str]
    rejected: frozenset[str]

    @property
    def function_words(self) -> frozenset[str]:
        """Stop words, articles and prepositions."""
        return self.stopwords | self.articles | self.prepositions

    @property
    def openers(self) -> frozenset[str]:
        """Articles and prepositions."""
        return self.articles | self.prepositions


@cache
def english() -> WordLists:
    """The lists of the library, written for it: common English affixes and function words.

    Example:
        >>> "the" in english().articles, "itis" in english().suffixes, "vs" in english().rejected
        (True, True, True)
    """
    source = resources.files("latentkt.phantom") / "data" / "english.json"
    return _parsed(json.loads(source.read_text(encoding="utf-8")), "english.json")


def load_word_lists(path: str | Path) -> WordLists:
    """Read lists of one's own: JSON with the fields of `WordLists`; a field that lacks is taken from `english`.

    Raises:
        InputError: There is no such file.
        DataError: It is not of that form.
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", expected="a JSON file of word lists") from error
    except ValueError as error:
        raise DataError(f"{path}: not JSON", found=error) from error
    return _parsed(data, str(path))


def _parsed(data: object, where: str) -> WordLists:
    names = [field.name for field in fields(WordLists)]
    if not isinstance(data, dict) or not data.keys() <= set(names):
        raise DataError(f"{where}: no word lists", expected=f"an object of {', '.join(names)}", found=repr(data)[:80])
    lists = {}
    for name in names:
        words = data[name] if name in data else sorted(getattr(english(), name))
        if not isinstance(words, list) or not all(isinstance(word, str) and word for word in words):
            raise DataError(f"{where}: {name}", expected="a list of words", found=repr(words)[:80])
        lists[name] = frozenset(word.lower() for word in words)
    short = [affix for affix in lists["prefixes"] | lists["suffixes"] if len(affix) < 2]
    if short:
        raise DataError(f"{where}: affixes", expected="longer than one character", found=sorted(short)[:5])
    return WordLists(**lists)


def normalised(text: str) -> str:
    r"""NFC, white-space runs as one space, nothing at the edges.

    Example:
        >>> normalised("  Hooke's\n law ")
        "Hooke's law"
    """
    return " ".join((text if text.isascii() else unicodedata.normalize("NFC", text)).split())


def concept_key(text: str) -> str:
    """What two spellings of one concept share: case, hyphens and spaces make no difference.

    Example:
        >>> concept_key("Brain-Stem") == concept_key("brainstem") == concept_key("brain stem")
        True
    """
    return _JOINTS.sub("", normalised(text).casefold())


def is_numeric(word: str) -> bool:
    """Whether a word has digits or signs but no letter.

    Example:
        >>> is_numeric("1914-18"), is_numeric("&"), is_numeric("B-52")
        (True, True, False)
    """
    return _HAS_LETTER.search(word) is None


@cache
def _char_script(char: str) -> str:
    return unicodedata.name(char, "?").split()[0].split("-")[0]


def script(word: str) -> str | None:
    """The script of a word's letters, by the first word of their Unicode names; None where they are of several.

    Example:
        >>> script("cell"), script("клетка"), script("cеll")
        ('LATIN', 'CYRILLIC', None)
    """
    found = {_char_script(char) for char in word if char.isalpha()}
    return found.pop() if len(found) == 1 else None
