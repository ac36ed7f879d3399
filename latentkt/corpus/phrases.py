"""Count long lists of phrases, and prove that those found are there: each first hit is checked against the text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from latentkt.corpus.documents import Skipped, make_buffer
from latentkt.corpus.fields import choose_fields
from latentkt.corpus.kernel import Kernel, open_kernel
from latentkt.corpus.kernel.hashing import Buffer
from latentkt.corpus.kernel.table import build_table
from latentkt.corpus.matching import Matching
from latentkt.corpus.readers import first_record, read_shard
from latentkt.corpus.shards import find_shards
from latentkt.errors import InputError, RunError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PhraseCounts", "PhraseScanner", "count_phrases"]


@dataclass(frozen=True)
class PhraseCounts:
    """Occurrences and documents of phrases.

    Attributes:
        phrases: As they were given.
        occurrences: Matches of each.
        documents: Documents that hold each.
        n_documents: Documents read.
        text_bytes: Bytes of text read.
        skipped: Reason -> how often something could not be read.
    """

    phrases: tuple[str, ...]
    occurrences: NDArray[np.int64]
    documents: NDArray[np.int64]
    n_documents: int
    text_bytes: int
    skipped: dict[str, int]

    @property
    def exists(self) -> NDArray[np.bool_]:
        """Which phrases occur; every yes has been checked against the text itself."""
        return self.occurrences > 0

    def upper_bound(self, level: float = 0.95) -> float:
        """Upper limit of the share of documents that hold a phrase found in none: 1 − (1 − level)^(1/N), about 3/N."""
        return float("nan") if self.n_documents == 0 else -float(np.expm1(np.log1p(-level) / self.n_documents))

    def to_frame(self) -> pd.DataFrame:
        """One row a phrase."""
        import pandas as pd

        return pd.DataFrame({"phrase": self.phrases, "occurrences": self.occurrences, "documents": self.documents})


class PhraseScanner:
    """Counts phrases over buffers; forms with punctuation at their edges or over eight words are refused.

    Args:
        phrases: The phrases.
        matching: How text is compared.
        kernel: The kernel's module.

    Raises:
        InputError: A phrase cannot be hashed; use patterns for those.
    """

    def __init__(self, phrases: Sequence[str], matching: Matching, kernel: Kernel) -> None:
        self.matching, self.kernel = matching, kernel
        prepared, self._owner = _variants(phrases, matching)
        table = build_table(prepared, matching, kernel)
        if (table.slot_of < 0).any():
            bad = phrases[self._owner[int(np.flatnonzero(table.slot_of < 0)[0])]]
            raise InputError(
                "a phrase cannot be counted in a list",
                expected="1 to 8 words, a word character at either end",
                found=repr(bad),
                fix="strip it, or count it as a form of a pattern file",
            )
        self._slot_of = table.slot_of
        self._counter = kernel.PhraseCounter(table)
        self._prepared, self._n = prepared, len(phrases)
        self._first_with_slot = np.full(table.n_slots, -1, np.int32)
        self._first_with_slot[table.slot_of[::-1]] = np.arange(len(prepared), dtype=np.int32)[::-1]

    def add(self, buffer: Buffer) -> None:
        """Count a buffer and check every phrase met for the first time.

        Raises:
            RunError: A hash matched other text (64-bit hashes make that about as likely as never).
        """
        slots, ends = self._counter.add(buffer)
        for slot, end in zip(slots.tolist(), ends.tolist(), strict=True):
            self._verify(buffer, self._prepared[self._first_with_slot[slot]], end)

    def _verify(self, buffer: Buffer, phrase: str, end: int) -> None:
        as_written = phrase.encode("utf-8")
        found = buffer.data[max(end - len(as_written), 0) : end].tobytes()
        if found == as_written or (self.matching.folds and found.lower() == as_written.lower()):
            return
        low = int(buffer.starts[np.searchsorted(buffer.starts, end) - 1])
        wanted = self.matching.fold(" ".join(phrase.split()))
        for reach in (4 * len(phrase) + 16, 1 << 12, end - low):
            raw = buffer.data[max(low, end - reach) : end].tobytes().decode("utf-8", "ignore")
            there = self.matching.fold(" ".join(raw.split()))
            if there.endswith(wanted):
                return
        raise RunError(f"the hash of {phrase!r} matched other text", expected=wanted, found=there[-80:])

    def totals(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Occurrences and documents of each phrase.

        For ``casings`` both are sums over the casings, as PhantomBench takes them.
        """
        return self._sums(self._counter.occurrences), self._sums(self._counter.documents)

    def _sums(self, by_slot: NDArray[np.int64]) -> NDArray[np.int64]:
        by_variant = by_slot[self._slot_of]
        if len(by_variant) == self._n:
            return by_variant
        sums = np.zeros(self._n, np.int64)
        np.add.at(sums, self._owner, by_variant)
        return sums


def _variants(phrases: Sequence[str], matching: Matching) -> tuple[list[str], NDArray[np.int32]]:
    if matching.case != "casings" and all(map(str.isascii, phrases)):
        return [phrase.strip() for phrase in phrases], np.arange(len(phrases), dtype=np.int32)
    rows = [(index, variant) for index, phrase in enumerate(phrases) for variant in matching.casings(phrase)]
    prepared = [" ".join(matching.prepare(variant).split()) for _, variant in rows]
    return prepared, np.array([index for index, _ in rows], np.int32)


def count_phrases(
    phrases: Sequence[str],
    paths: Sequence[str] | None = None,
    *,
    texts: Iterable[str] | None = None,
    matching: Matching | None = None,
    text_field: str | None = None,
    kernel: str = "auto",
) -> PhraseCounts:
    r"""Count phrases in a corpus or in texts: up to millions of phrases in one pass.

    Args:
        phrases: The phrases.
        paths: Files, folders, globs, URLs (see `latentkt corpus count`).
        texts: Documents in memory, instead of `paths`.
        matching: How text is compared.
        text_field: Field of the text; found if None.
        kernel: ``auto``, ``numba`` or ``numpy``.

    Raises:
        InputError: Neither or both of paths and texts; a phrase that cannot be hashed.
        DataError: A shard cannot be read.

    Example:
        >>> counts = count_phrases(["New York", "Old York"], texts=["new\nyork, New York", "nothing"])
        >>> counts.occurrences.tolist(), counts.documents.tolist(), counts.exists.tolist()
        ([2, 0], [1, 0], [True, False])
    """
    if (paths is None) == (texts is None):
        raise InputError("nothing to count, or two things", expected="paths or texts", found=(paths, texts))
    scanner = PhraseScanner(phrases, matching or Matching(), open_kernel(kernel))
    skipped = Skipped()
    n_documents = text_bytes = 0
    buffers = (
        _text_buffers(texts, scanner)
        if texts is not None
        else _shard_buffers(paths or (), text_field, scanner, skipped)
    )
    for buffer in buffers:
        scanner.add(buffer)
        n_documents += len(buffer.starts) - 1
        text_bytes += buffer.size - len(buffer.starts) + 1
    occurrences, documents = scanner.totals()
    return PhraseCounts(tuple(phrases), occurrences, documents, n_documents, text_bytes, skipped.counts)


def _text_buffers(texts: Iterable[str], scanner: PhraseScanner) -> Iterable[Buffer]:
    kept: list[str] = []
    size = 0
    for text in texts:
        kept.append(text)
        size += len(text)
        if size > 4_000_000:
            yield make_buffer(kept, scanner.matching, scanner.kernel)
            kept, size = [], 0
    yield make_buffer(kept, scanner.matching, scanner.kernel)


def _shard_buffers(
    paths: Sequence[str], text_field: str | None, scanner: PhraseScanner, skipped: Skipped
) -> Iterable[Buffer]:
    shards, _ = find_shards(paths)
    record = next((first_record(shard) for shard in shards if shard.format != "text"), None)
    fields = choose_fields(record, text=text_field, cluster="none")
    for shard in shards:
        for batch in read_shard(shard, fields, scanner.matching, scanner.kernel, skipped):
            yield batch.buffer
