"""Searching text itself: all concepts in one pass, shard by shard."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latentkt.corpus import Form, Matching
from latentkt.corpus.documents import Skipped
from latentkt.corpus.fields import Fields, choose_fields
from latentkt.corpus.kernel import open_kernel
from latentkt.corpus.kernel.hashing import Buffer
from latentkt.corpus.lexicon import build_lexicon
from latentkt.corpus.phrases import PhraseScanner
from latentkt.corpus.readers import first_record, read_shard
from latentkt.corpus.scan import scan
from latentkt.corpus.shards import Shard, find_shards
from latentkt.errors import DataError
from latentkt.phantom.search.found import Found, Searched
from latentkt.phantom.search.journal import Journal

__all__ = ["ScanSearch"]

_WORD = re.compile(r"\w+")
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

    def ticks(self, texts: Sequence[str]) -> float:
        """Bytes of the shards as stored."""
        return sum(shard.size for shard in self._shards)

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
            total[np.array(entry["found"], np.int64)] += np.array(entry["matches"], np.int64)
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
    """Counts texts over buffers, and the buffers' words."""

    def __init__(self, texts: Sequence[str], matching: Matching, kernel: Any) -> None:
        odd = [index for index, text in enumerate(texts) if not _can_be_hashed(text, matching)]
        self._hashed = np.setdiff1d(np.arange(len(texts)), odd)
        self._scanner = PhraseScanner([texts[index] for index in self._hashed], matching, kernel)
        self._odd = _OddTexts({index: texts[index] for index in odd}, matching, kernel)
        self.tokens = self.documents = self.bytes = 0

    def add(self, buffer: Buffer) -> None:
        self._scanner.add(buffer)
        self.tokens += self._odd.add(buffer)
        self.documents += len(buffer.starts) - 1
        self.bytes += buffer.size - len(buffer.starts) + 1

    def matches(self) -> NDArray[np.int64]:
        total = np.zeros(self._hashed.size + len(self._odd.matches), np.int64)
        total[self._hashed] = self._scanner.totals()[0]
        for index, count in self._odd.matches.items():
            total[index] = count
        return total


class _OddTexts:
    """Texts that cannot be hashed: an expression runs on the documents that hold their core, which can be."""

    def __init__(self, texts: Mapping[int, str], matching: Matching, kernel: Any) -> None:
        self._texts, self._matching, self._kernel = texts, matching, kernel
        cores = [(index, Form(_core(way))) for index, text in texts.items() for way in _ways(text, matching)]
        self._lexicon = build_lexicon(cores, matching, kernel)
        self._forms: dict[int, tuple[re.Pattern[str], ...]] = {}
        self.matches = dict.fromkeys(texts, 0)

    def add(self, buffer: Buffer) -> int:
        """Count a buffer; the number of its words."""
        cores = scan(buffer, self._lexicon)
        pairs = np.unique(np.stack([cores.document, cores.entry.astype(np.int64)]), axis=1)
        for document, index in pairs.T.tolist():
            text = self._matching.fold(buffer.document(document).decode("utf-8"))
            self.matches[index] += len({span for form in self._compiled(index) for span in _spans(form, text)})
        return int(cores.word_starts[-1])

    def _compiled(self, index: int) -> tuple[re.Pattern[str], ...]:
        if index not in self._forms:
            slow = build_lexicon([(index, Form(self._texts[index]))], self._matching, self._kernel).slow
            self._forms[index] = tuple(form.pattern for form in slow)
        return self._forms[index]


def _spans(form: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """All matches, overlapping ones too."""
    match = form.search(text)
    while match:
        yield match.span()
        match = form.search(text, match.start() + 1)


def _ways(text: str, matching: Matching) -> list[str]:
    """The literals that stand for a text, as they are searched."""
    return [matching.prepare(casing) for casing in matching.casings(text)]


def _can_be_hashed(text: str, matching: Matching) -> bool:
    # The case of a letter beyond ASCII may be several characters, the last of them no letter.
    if _core(text) != text:
        return False
    return text.isascii() or all(_core(way) == way for way in _ways(text, matching))


def _core(text: str) -> str:
    """What of a text can be hashed: from its first word to its last, or to its eighth.

    Raises:
        DataError: It has no word.
    """
    words = list(islice(_WORD.finditer(text), 9))
    if not words:
        raise DataError(f"{text!r} cannot be searched for", expected="at least one letter, digit or underscore")
    return text[words[0].start() : words[:8][-1].end()]


def _name(path: str) -> str:
    return path if "://" in path or path.startswith("hub:") else path.rstrip("/").rsplit("/", 1)[-1]


def _added(parts: Sequence[dict[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        for reason, count in part.items():
            total[reason] = total.get(reason, 0) + count
    return total
