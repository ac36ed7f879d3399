"""JSON lines the fast way: the kernel extracts the fields; every line that it does not understand goes to a parser."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latentkt.corpus.documents import Batch, Skipped, prepare_buffer
from latentkt.corpus.fields import Fields
from latentkt.corpus.jsonl import SLACK, iterate_blocks, parse_line
from latentkt.corpus.kernel import Kernel
from latentkt.corpus.kernel.hashing import PAD, Buffer
from latentkt.corpus.matching import Matching
from latentkt.corpus.records import cluster_name, usable_text
from latentkt.corpus.shards import Shard, open_shard
from latentkt.corpus.tally import cluster_hash

__all__ = ["can_extract", "extract_batches"]


def can_extract(fields: Fields, kernel: Kernel) -> bool:
    """Whether the kernel has an extractor, and the fields are plain names (not paths into nested objects)."""
    names = [fields.text, fields.cluster_field or ""]
    return hasattr(kernel, "extract_lines") and not any("." in name for name in names) and names[0] != names[1]


def extract_batches(
    shard: Shard, fields: Fields, matching: Matching, kernel: Kernel, skipped: Skipped, batch_bytes: int
) -> Iterator[Batch]:
    """The documents of a JSONL shard, a batch for each block of about `batch_bytes`; see `read_shard`.

    A batch is valid until the next one is asked for: its memory is used again.
    """
    extraction = _Extraction(shard, fields, kernel, skipped)
    with open_shard(shard) as stream:
        for block, size in iterate_blocks(stream, batch_bytes):
            buffer, clusters = extraction.extract(block, size)
            yield Batch(prepare_buffer(buffer, matching, kernel), clusters, stream.done)


class _Extraction:
    """Extracts the blocks of one shard, one after the other."""

    def __init__(self, shard: Shard, fields: Fields, kernel: Kernel, skipped: Skipped) -> None:
        self._shard, self._fields, self._kernel, self._skipped = shard, fields, kernel, skipped
        self._names = [np.frombuffer((n or "").encode("utf-8"), np.uint8) for n in (fields.text, fields.cluster_field)]
        self._out = _room(0)
        self._before = 0  # lines of earlier blocks
        self._parsed: dict[int, str] = {}  # clusters of the documents of this block that a parser has read

    def extract(self, block: bytearray, size: int) -> tuple[Buffer, NDArray[np.uint64]]:
        """The buffer of the next block, and the clusters of its documents."""
        from latentkt.corpus.kernel.extract import AT, CLUSTER_END, LINE, TEXT_END, N

        if len(self._out.text) < size + PAD + SLACK:
            self._out = _room(size)
        self._parsed.clear()
        out, data = self._out, np.frombuffer(block, np.uint8)
        out.at[:] = 0
        while True:
            self._kernel.extract_lines(data, size, *self._names, out)
            if out.at[AT] >= size:
                break
            end = block.find(b"\n", out.at[AT])
            self._parse(bytes(memoryview(block)[out.at[AT] : end]), out)
            out.at[AT], out.at[LINE] = end + 1, out.at[LINE] + 1
        n, used = int(out.at[N]), int(out.at[TEXT_END])
        out.text[used : used + PAD] = 0
        names = out.cluster[: out.at[CLUSTER_END]].tobytes()
        buffer = Buffer(out.text, used, np.append(out.starts[:n], used))
        clusters = self._clusters(out.lines[:n], names, out.cluster_ends[:n])
        self._before += int(out.at[LINE])
        return buffer, clusters

    def _parse(self, raw: bytes, out: Any) -> None:
        """Read a line with the parser and add its document, if it is good, to what has been extracted."""
        from latentkt.corpus.kernel.extract import CLUSTER_END, LINE, TEXT_END, N

        number = self._before + int(out.at[LINE]) + 1
        record = parse_line(raw)
        if isinstance(record, str):
            self._skipped.add(self._shard.name, number, "damaged line", record)
        if record is None or isinstance(record, str):
            return
        text = usable_text(self._shard, number, self._fields, record, self._skipped)
        if text is None:
            return
        encoded = np.frombuffer(text.replace(b"\0", b"\1") + b"\0", np.uint8)
        n, low = int(out.at[N]), int(out.at[TEXT_END])
        out.text[low : low + len(encoded)] = encoded
        out.starts[n], out.lines[n], out.cluster_ends[n] = low, out.at[LINE], out.at[CLUSTER_END]
        out.at[N], out.at[TEXT_END] = n + 1, low + len(encoded)
        found = self._fields.cluster_of(record)
        self._parsed[n] = cluster_name(self._shard, number, self._fields, found, self._skipped)

    def _clusters(self, lines: NDArray[np.int64], names: bytes, ends: NDArray[np.int64]) -> NDArray[np.uint64]:
        if self._fields.cluster == "none":
            return np.full(len(lines), cluster_hash(""), np.uint64)
        clusters = np.zeros(len(lines), np.uint64)
        low = 0
        for index, (line, end) in enumerate(zip(lines.tolist(), ends.tolist(), strict=True)):
            if index in self._parsed:
                clusters[index] = cluster_hash(self._parsed[index])
            else:
                found = None if self._fields.cluster == "document" else _name(self._fields, names[low:end])
                name = cluster_name(self._shard, self._before + line + 1, self._fields, found, self._skipped)
                clusters[index] = cluster_hash(name)
            low = end
        return clusters


def _room(size: int) -> Any:
    """Arrays for a block of so many bytes; a line with a text has at least eight."""
    from latentkt.corpus.kernel.extract import Extracted

    byte, place, lines = np.uint8, np.int64, size // 8 + 1
    return Extracted(
        np.zeros(5, place), np.empty(size + PAD + SLACK, byte), np.empty(lines, place), np.empty(lines, place),
        np.empty(size + SLACK, byte), np.empty(lines, place),
    )  # fmt: skip


@lru_cache(maxsize=1 << 12)
def _name(fields: Fields, raw: bytes) -> str | None:
    return fields.named(raw.decode("utf-8"))
