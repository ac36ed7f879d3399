"""Batches of documents: texts with their clusters, made into the buffers that the kernels read; what is skipped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentkt.corpus.kernel import Kernel
from latentkt.corpus.kernel.hashing import Buffer, pack, split
from latentkt.corpus.matching import Matching, character_tables
from latentkt.errors import DataError

__all__ = ["Batch", "Skipped", "make_buffer", "prepare_buffer"]

_LISTED = 1000


class Batch(NamedTuple):
    """Some documents of one shard.

    Attributes:
        buffer: Their prepared text.
        clusters: Hash of the cluster of each.
        done: Bytes of the shard, as stored, read so far.
    """

    buffer: Buffer
    clusters: NDArray[np.uint64]
    done: int


@dataclass
class Skipped:
    """What could not be read: counted by reason, the first thousand of a shard listed by file and line.

    Attributes:
        strict: Raise at the first instead.
        counts: Reason -> how often.
        listed: [file, line, reason] of each.
        missing_clusters: Documents without the cluster field; each counts as a cluster of its own.
    """

    strict: bool = False
    counts: dict[str, int] = field(default_factory=dict)
    listed: list[list[str | int]] = field(default_factory=list)
    missing_clusters: int = 0

    def add(self, file: str, line: int, reason: str, detail: object = None) -> None:
        """Count one; lines are counted from 1.

        Raises:
            DataError: In strict mode.
        """
        if self.strict:
            raise DataError(f"{file}:{line}: {reason}", found=detail, fix="mend the line, or count without --strict")
        self.counts[reason] = self.counts.get(reason, 0) + 1
        if len(self.listed) < _LISTED:
            self.listed.append([file, line, reason])


def make_buffer(texts: Sequence[str | bytes], matching: Matching, kernel: Kernel) -> Buffer:
    """The buffer of some texts, as strings or as UTF-8: prepared where that may change them, else as they are."""
    documents = [text.encode("utf-8") if isinstance(text, str) else text for text in texts]
    buffer = pack(documents)
    if len(buffer.starts) != len(documents) + 1:
        buffer = pack([document.replace(b"\0", b"\1") for document in documents])
    return prepare_buffer(buffer, matching, kernel)


def prepare_buffer(buffer: Buffer, matching: Matching, kernel: Kernel) -> Buffer:
    """The buffer with the documents prepared that preparation may change."""
    careful = kernel.careful(buffer, character_tables(matching))
    if not len(careful):
        return buffer
    parts, done = [], 0
    for index in careful.tolist():
        low, high = int(buffer.starts[index]), int(buffer.starts[index + 1]) - 1
        parts += [buffer.data[done:low].tobytes(), matching.prepare(buffer.document(index).decode("utf-8")).encode()]
        done = high
    return split(b"".join([*parts, buffer.data[done : buffer.size].tobytes()]))
