"""Words and their ids: one token a word, so that an answer is one token and a count is a count of tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from latentkt.errors import InputError

__all__ = ["BOS", "NEWLINE", "PAD", "UNKNOWN", "Vocabulary"]

PAD, BOS, NEWLINE, UNKNOWN = 0, 1, 2, 3
SPECIAL = ("<pad>", "<bos>", "\n", "<unk>")


@dataclass(frozen=True)
class Vocabulary:
    """The words of a world, in the order of their ids.

    Example:
        >>> vocabulary = Vocabulary.of(["did", "yes"])
        >>> vocabulary.id("yes"), len(vocabulary)
        (5, 6)
    """

    words: tuple[str, ...]
    ids: dict[str, int] = field(repr=False, compare=False)

    @classmethod
    def of(cls, words: Iterable[str]) -> Vocabulary:
        """Give ids to words: first the padding, the start, the newline and the unknown word, then these."""
        listed = (*SPECIAL, *words)
        if len(set(listed)) != len(listed):
            twice = sorted({word for word in listed if listed.count(word) > 1})
            raise InputError("a word has two meanings in this world", expected="distinct words", found=twice)
        return cls(listed, {word: index for index, word in enumerate(listed)})

    def __len__(self) -> int:
        return len(self.words)

    def id(self, word: str) -> int:
        """The id of one word."""
        return self.ids[word]

    def id_array(self, words: Sequence[str]) -> np.ndarray:
        """The ids of some words."""
        return np.array([self.ids[word] for word in words], dtype=np.int64)

    def text(self, ids: Iterable[int]) -> str:
        """The text of a document, without start, padding and end."""
        return " ".join(self.words[index] for index in ids if index not in (PAD, BOS, NEWLINE))
