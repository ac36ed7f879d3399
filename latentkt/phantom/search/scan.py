"""Searching text itself: all concepts in one pass, shard by shard."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latentkt.corpus import Form, Matching
from latentkt.corpus.documents import Skipped
from latentkt.corpus.fields import Fields, choose_fields
from latentkt.corpus.kernel import open_kernel
from latentkt.corpus.lexicon import build_lexicon
from latentkt.corpus.phrases import PhraseScanner
from latentkt.corpus.readers import first_record, read_shard
from latentkt.corpus.scan import scan
from latentkt.corpus.shards import Shard, find_shards
from latentkt.phantom.search.found import Found, Searched
from latentkt.phantom.search.journal import Journal

__all__ = ["ScanSearch"]

_HASHED = re.compile(r"\w(?:.*\w)?", re.S)
_QUANTITY = {
    "casings": "exact matches of whole words, summed over the casings original, UPPER, Title and lower",
    "simple": "matches of whole words, case ignored",
    "full": "matches of whole words, case ignored (full folding)",
    "sensitive": "exact matches of whole words",
}


class ScanSearch:
    """Counts in a corpus of files.

    Args:
        paths: Files, folders, globs, URLs, or `hub:NAME[@CONFIG][#SPLIT]`.
        matching: How text is compared; by default the paper's four casings.
        text_field: Field of the text; found in the first record if None.
        kernel: `auto`, `numba` or `numpy`.

    Raises:
        InputError: The paths name nothing that can be read.
    """

    counts_words = True

    def __init__(
        self,
        paths: Sequence[str],
        *,
        matching: Matching | None = None,
        text_field: str | None = None,
        kernel: str = "auto",
    ) -> None:
        self.paths = tuple(paths)
        self.matching = matching or Matching(case="casings")
        self._shards, self._passed = find_shards(self.paths)
        record = next((first_record(shard) for shard in self._shards if shard.format != "text"), None)
        self._fields = choose_fields(record, text=text_field, cluster="none")
        self._kernel = open_kernel(kernel)

    def identity(self) -> dict[str, Any]:
        """The shards and how text is compared."""
        shards = [[shard.path, shard.size] for shard in self._shards]
        return {"engine": "scan", "shards": shards, "matching": self.matching.to_dict(), "field": self._fields.text}

    def search(self, texts: Sequence[str], journal: Journal, advance: Callable[[float], None]) -> Found:
        """Count texts in every shard that the journal lacks; a tick of `advance` is a byte of a shard as stored."""
        total = np.zeros(len(texts), np.int64)
        for shard in self._shards:
            if shard.path not in journal.done:
                journal.add(shard.path, self._count(shard, texts))
            entry = journal.done[shard.path]
            total[entry["found"]] += entry["matches"]
            advance(shard.size)
        parts = [journal.done[shard.path] for shard in self._shards]
        sums = {name: sum(part[name] for part in parts) for name in ("tokens", "documents", "bytes")}
        details = {
            "bytes": sums["bytes"],
            "shards": len(parts),
            "matching": self.matching.to_dict(),
            "skipped": _added([part["skipped"] for part in parts]),
            "listed": [place for part in parts for place in part["listed"]][:1000],
            "passed_over": list(self._passed),
        }
        searched = Searched(
            corpus=", ".join(_name(path) for path in self.paths),
            engine="scan",
            quantity=_QUANTITY[self.matching.case],
            tokens=sums["tokens"],
            unit="words",
            documents=sums["documents"],
            details=details,
        )
        return Found(total, np.zeros(len(texts), np.bool_), searched)

    def _count(self, shard: Shard, texts: Sequence[str]) -> dict[str, Any]:
        counter = _Counter(texts, self.matching, self._kernel)
        fields = self._fields if shard.format != "text" else Fields(cluster="none")
        skipped = Skipped()
        for batch in read_shard(shard, fields, self.matching, self._kernel, skipped):
            counter.add(batch.buffer)
        matches = counter.matches()
        found = np.flatnonzero(matches)
        return {
            "found": found.tolist(),
            "matches": matches[found].tolist(),
            "tokens": counter.tokens,
            "documents": counter.documents,
            "bytes": counter.bytes,
            "skipped": skipped.counts,
            "listed": skipped.listed,
        }


class _Counter:
    """Counts texts over buffers: hashed where that can be, the few others by expression; and words."""

    def __init__(self, texts: Sequence[str], matching: Matching, kernel: Any) -> None:
        hashed = [_HASHED.fullmatch(text) is not None and len(re.findall(r"\w+", text)) <= 8 for text in texts]
        self._hashed = np.flatnonzero(hashed)
        odd = np.flatnonzero(~np.array(hashed, bool)).tolist()
        self._scanner = PhraseScanner([texts[index] for index in self._hashed], matching, kernel)
        self._lexicon = build_lexicon([(index, Form(texts[index])) for index in odd], matching, kernel)
        self._odd = np.zeros(len(texts), np.int64)
        self.tokens = self.documents = self.bytes = 0

    def add(self, buffer: Any) -> None:
        self._scanner.add(buffer)
        matches = scan(buffer, self._lexicon)
        np.add.at(self._odd, matches.entry, 1)
        self.tokens += int(matches.word_starts[-1])
        self.documents += len(buffer.starts) - 1
        self.bytes += buffer.size - len(buffer.starts) + 1

    def matches(self) -> NDArray[np.int64]:
        total = self._odd.copy()
        total[self._hashed] += self._scanner.totals()[0]
        return total


def _name(path: str) -> str:
    return path if "://" in path or path.startswith("hub:") else path.rstrip("/").rsplit("/", 1)[-1]


def _added(parts: Sequence[dict[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        for reason, count in part.items():
            total[reason] = total.get(reason, 0) + count
    return total
