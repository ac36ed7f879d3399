"""Batches of documents: texts with their clusters, made into the buffers that the kernels read; what is skipped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latentkt.corpus.kernel import Kernel
from latentkt.corpus.kernel.hashing import PAD, Buffer
from latentkt.corpus.matching import Matching, character_tables
from latentkt.errors import DataError

__all__ = ["Batch", "Packer", "Skipped", "make_buffer", "prepare_buffer"]

_LISTED = 1000
_PIECE, _STEP = 1 << 20, 1 << 12


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


class Packer:
    """Puts documents one after the other, as they come, into the memory of a buffer."""

    def __init__(self) -> None:
        self.size = 0
        self._data, self._starts = bytearray(), [0]

    def add(self, document: bytes | bytearray) -> None:
        """Add a document of UTF-8; a NUL in it, which would end it, becomes U+0001."""
        self._data += document.replace(b"\0", b"\1") if b"\0" in document else document
        self._data += b"\0"
        self.size = len(self._data)
        self._starts.append(self.size)

    def buffer(self, matching: Matching, kernel: Kernel) -> Buffer:
        """The documents so far, prepared where that may change them; none can be added any more."""
        self._data += bytes(PAD)
        data = np.frombuffer(self._data, np.uint8)
        return prepare_buffer(Buffer(data, self.size, np.array(self._starts)), matching, kernel)


def make_buffer(texts: Sequence[str | bytes], matching: Matching, kernel: Kernel) -> Buffer:
    """The buffer of some texts, as strings or as UTF-8: prepared where that may change them, else as they are."""
    packer = Packer()
    for text in texts:
        packer.add(text.encode("utf-8") if isinstance(text, str) else text)
    return packer.buffer(matching, kernel)


def prepare_buffer(buffer: Buffer, matching: Matching, kernel: Kernel) -> Buffer:
    """The buffer with the documents prepared that preparation may change."""
    careful = kernel.careful(buffer, character_tables(matching))
    if not len(careful):
        return buffer
    data, done = bytearray(), 0
    for index in careful.tolist():
        low, high = int(buffer.starts[index]), int(buffer.starts[index + 1]) - 1
        data += buffer.data[done:low].data
        for piece in _pieces(buffer.data[low:high].data):
            data += matching.prepare(str(piece, "utf-8")).encode("utf-8")
        done = high
    data += buffer.data[done : buffer.size].data
    size = len(data)
    data += bytes(PAD)
    prepared = np.frombuffer(data, np.uint8)
    return Buffer(prepared, size, np.append(np.zeros(1, np.int64), np.flatnonzero(prepared[:size] == 0) + 1))


def _pieces(document: memoryview) -> Iterator[memoryview]:
    """A document in parts of about `_PIECE` bytes that can be prepared one by one, so that memory stays bounded.

    A part starts with an ASCII character: none composes with what stands before it.
    """
    low = 0
    while low < len(document):
        high = _next_ascii(document, low + _PIECE)
        yield document[low:high]
        low = high


def _next_ascii(document: memoryview, at: int) -> int:
    """The first place from `at` on with an ASCII character, the end of the document if there is none."""
    while at < len(document):
        found = np.flatnonzero(np.frombuffer(document[at : at + _STEP], np.uint8) < 0x80)[:1]
        if len(found):
            return at + int(found[0])
        at += _STEP
    return len(document)
