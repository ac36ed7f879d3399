"""Read shards: text files, JSON lines, parquet and streamed hub data sets, all into batches of documents."""

from __future__ import annotations

import codecs
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from typing import Any

import numpy as np

from latentkt.corpus.documents import Batch, Packer, Skipped
from latentkt.corpus.extraction import can_extract, extract_batches
from latentkt.corpus.fields import Fields
from latentkt.corpus.jsonl import iterate_lines, parse_line
from latentkt.corpus.kernel import Kernel
from latentkt.corpus.matching import Matching
from latentkt.corpus.records import cluster_name, usable_text
from latentkt.corpus.shards import HUB, Shard, open_shard
from latentkt.corpus.tally import cluster_hash
from latentkt.errors import DataError, MissingExtraError

__all__ = ["first_record", "iterate_records", "read_shard"]

BATCH_BYTES = 4_000_000
_PIECE = 1 << 20
_Record = tuple[int, Mapping[str, Any], int]  # line or row from 1, fields, stored bytes read so far


def read_shard(
    shard: Shard,
    fields: Fields,
    matching: Matching,
    kernel: Kernel,
    skipped: Skipped,
    *,
    batch_bytes: int = BATCH_BYTES,
) -> Iterator[Batch]:
    """The documents of a shard, about `batch_bytes` of text at a time (one long document comes alone).

    Args:
        shard: What to read.
        fields: Which fields hold the text and the cluster.
        matching: How text is prepared.
        kernel: Whose checks to use.
        skipped: Told of every line, row or byte that cannot be used.
        batch_bytes: Text in one batch.

    Raises:
        DataError: The shard cannot be read; in strict mode also for the first bad line.
    """
    if shard.format == "text":
        yield _text_file(shard, fields, matching, kernel, skipped)
        return
    if shard.format == "jsonl" and can_extract(fields, kernel):
        yield from extract_batches(shard, fields, matching, kernel, skipped, batch_bytes)
        return
    packer, clusters, done = Packer(), list[int](), 0
    with closing(iterate_records(shard, fields, skipped)) as records:
        for line, record, done in records:
            text = usable_text(shard, line, fields, record, skipped)
            if text is None:
                continue
            packer.add(text)
            clusters.append(cluster_hash(cluster_name(shard, line, fields, fields.cluster_of(record), skipped)))
            if packer.size >= batch_bytes:
                yield Batch(packer.buffer(matching, kernel), np.array(clusters, np.uint64), done)
                packer, clusters = Packer(), []
    if clusters or done == 0:
        yield Batch(packer.buffer(matching, kernel), np.array(clusters, np.uint64), done)


def first_record(shard: Shard) -> Mapping[str, Any] | None:
    """The first good record of a shard, None if there is none."""
    with closing(iterate_records(shard, None, Skipped())) as records:
        return next((record for _, record, _ in records), None)


def _text_file(shard: Shard, fields: Fields, matching: Matching, kernel: Kernel, skipped: Skipped) -> Batch:
    with open_shard(shard) as stream:
        raw = bytearray()
        for piece in stream.pieces():
            raw += piece
        done = stream.done
    if not _is_utf8(raw):
        for number, line in enumerate(raw.split(b"\n"), start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                skipped.add(shard.name, number, "undecodable bytes, read as U+FFFD", error)
        raw = bytearray(raw.decode("utf-8", "replace").encode("utf-8"))
    if raw.startswith(codecs.BOM_UTF8):
        del raw[: len(codecs.BOM_UTF8)]
    packer = Packer()
    packer.add(raw)
    del raw  # it may be large
    cluster = "" if fields.cluster == "none" else shard.name
    return Batch(packer.buffer(matching, kernel), np.array([cluster_hash(cluster)], np.uint64), done)


def _is_utf8(raw: bytearray) -> bool:
    """Whether bytes are UTF-8, without a string of all of them."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    view = memoryview(raw)
    try:
        for low in range(0, len(raw), _PIECE):
            decoder.decode(view[low : low + _PIECE])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def iterate_records(
    shard: Shard, fields: Fields | None, skipped: Skipped
) -> Generator[_Record, None, None]:  # fmt: skip
    """Records of a shard that is no plain text, with line or row from 1 and the stored bytes read so far."""
    if shard.format == "parquet":
        return _parquet_records(shard, fields)
    return _hub_records(shard) if shard.format == "hub" else _json_records(shard, skipped)


def _json_records(shard: Shard, skipped: Skipped) -> Generator[_Record, None, None]:
    with open_shard(shard) as stream:
        for number, line in iterate_lines(stream):
            record = parse_line(line)
            if isinstance(record, str):
                skipped.add(shard.name, number, "damaged line", record)
            elif record is not None:
                yield number, record, stream.done


def _parquet_records(shard: Shard, fields: Fields | None) -> Generator[_Record, None, None]:
    import fsspec
    import pyarrow
    from pyarrow import parquet

    columns = None if fields is None else fields.columns()
    row = 0
    try:
        with fsspec.open(shard.path, "rb") as file:
            source = parquet.ParquetFile(file)
            total = max(source.metadata.num_rows, 1)
            for batch in source.iter_batches(batch_size=1024, columns=columns):
                names = batch.schema.names
                for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    row += 1
                    yield row, dict(zip(names, values, strict=True)), shard.size * row // total
    except (OSError, pyarrow.ArrowException) as error:
        raise DataError(f"cannot read {shard.path}", expected="a readable parquet file", found=error) from error


def _hub_records(shard: Shard) -> Generator[_Record, None, None]:
    try:
        import datasets
    except ImportError as error:
        raise MissingExtraError("datasets", extra="corpus", purpose=f"streaming {shard.path}") from error
    name, _, split = shard.path.removeprefix(HUB).rpartition("#")
    name, split = (name, split) if name else (split, "train")
    name, _, config = name.partition("@")
    try:
        stream = datasets.load_dataset(name, config or None, split=split, streaming=True)
        for row, record in enumerate(stream, start=1):
            yield row, record, 0
    except (OSError, ValueError, RuntimeError) as error:
        raise DataError(
            f"cannot stream the data set {shard.path}", expected="hub:NAME[@CONFIG][#SPLIT]", found=str(error)[:300]
        ) from error
