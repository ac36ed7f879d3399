"""Searching an infini-gram index, here or over HTTP: one question for each casing of each text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from latentkt.corpus import Matching
from latentkt.corpus.infinigram import QUANTITY, IndexCount
from latentkt.phantom.search.found import Found, Searched
from latentkt.phantom.search.journal import Journal

__all__ = ["PUBLIC_INDEXES", "IndexSearch"]

PUBLIC_INDEXES: Mapping[str, tuple[int, int]] = {
    "v4_dolma-v1_7_llama": (2_604_642_372_173, 3_403_336_408),
}
"""Name of a public index -> its tokens and documents."""


class _Counts(Protocol):
    def count(self, text: str) -> IndexCount: ...


@dataclass(frozen=True, slots=True)
class IndexSearch:
    """Counts in an index. It is case-sensitive, so the casings are asked one by one, and knows no word boundaries.

    Attributes:
        backend: `InfiniGramIndex` or `InfiniGramClient` of `latentkt.corpus`, or whatever has their `count`.
        name: Name of the index, for the result.
        engine: `index` or `http`.
        tokens: Tokens that it holds; None where that is not known: then there is no rate and no bound.
        unit: What these are.
        documents: Documents that it holds.
        casings: Whether the casings original, UPPER, Title and lower are summed; else the text is asked as it is.
    """

    backend: _Counts
    name: str
    engine: str = "index"
    tokens: int | None = None
    unit: str = "tokens of the index"
    documents: int | None = None
    casings: bool = True

    @property
    def counts_words(self) -> bool:
        """A question more for every blend is not asked."""
        return False

    def ticks(self, texts: Sequence[str]) -> float:
        """Texts."""
        return len(texts)

    def identity(self) -> dict[str, Any]:
        """The index and the casings."""
        return {"engine": self.engine, "index": self.name, "casings": self.casings}

    def search(self, texts: Sequence[str], journal: Journal, advance: Callable[[float], None]) -> Found:
        """Ask for every text that the journal lacks; a tick of `advance` is a text.

        Raises:
            RunError: The index reports an error or cannot be reached; what was counted stays in the journal.
        """
        matching = Matching(case="casings" if self.casings else "sensitive")
        matches, approximate = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.bool_)
        for place, text in enumerate(texts):
            if text not in journal.done:
                counts = [self.backend.count(casing) for casing in matching.casings(text)]
                rough = any(count.approximate for count in counts)
                journal.add(text, {"matches": sum(count.count for count in counts), "approximate": rough})
            entry = journal.done[text]
            matches[place], approximate[place] = entry["matches"], entry["approximate"]
            advance(1)
        quantity = QUANTITY + ("; summed over the casings original, UPPER, Title and lower" if self.casings else "")
        searched = Searched(self.name, self.engine, quantity, self.tokens, self.unit, self.documents)
        return Found(matches, approximate, searched)
