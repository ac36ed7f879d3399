"""Read shards: text files, JSON lines, parquet and streamed hub data sets, all into batches of documents."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from latentkt.corpus.documents import Batch, Skipped, make_buffer
from latentkt.corpus.fields import Fields, choose_fields
from latentkt.corpus.jsonl import iterate_lines, parse_line
from latentkt.corpus.kernel import Kernel
from latentkt.corpus.matching import Matching
from latentkt.corpus.shards import HUB, Shard, find_shards, open_shard
from latentkt.corpus.tally import cluster_hash
from latentkt.errors import DataError, MissingExtraError

__all__ = ["first_record", "read_shard", "read_texts"]

BATCH_BYTES = 4_000_000
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
    texts: list[str] = []
    clusters: list[int] = []
    size = done = 0
    with closing(_records(shard, fields, skipped)) as records:
        for line, record, done in records:
            text = fields.text_of(record)
            if not isinstance(text, str) or not _encodable(text):
                skipped.add(shard.name, line, f"no text in field {fields.text!r}", repr(text)[:80])
                continue
            texts.append(text)
            clusters.append(cluster_hash(_cluster(shard, line, fields, record, skipped)))
            size += len(text)
            if size >= batch_bytes:
                yield Batch(make_buffer(texts, matching, kernel), np.array(clusters, np.uint64), done)
                texts, clusters, size = [], [], 0
    if texts or done == 0:
        yield Batch(make_buffer(texts, matching, kernel), np.array(clusters, np.uint64), done)


def first_record(shard: Shard) -> Mapping[str, Any] | None:
    """The first good record of a shard, None if there is none."""
    with closing(_records(shard, None, Skipped())) as records:
        return next((record for _, record, _ in records), None)


def read_texts(paths: Sequence[str], *, text_field: str | None = None) -> Iterator[str]:
    """The texts of a corpus one by one, as they are stored: for tokenizers, not for counting.

    Args:
        paths: Files, folders, globs, URLs or hub ids, as everywhere.
        text_field: Field of the text; found in the first record if None.

    Raises:
        InputError: The paths name nothing that can be read.
        DataError: A shard cannot be read.
    """
    shards, _ = find_shards(paths)
    record = next((first_record(shard) for shard in shards if shard.format != "text"), None)
    fields = choose_fields(record, text=text_field, cluster="none")
    for shard in shards:
        if shard.format == "text":
            with open_shard(shard) as stream:
                yield b"\n".join(line for _, line in iterate_lines(stream)).decode("utf-8", errors="replace")
            continue
        with closing(_records(shard, fields, Skipped())) as records:
            texts = (fields.text_of(each) for _, each, _ in records)
            yield from (text for text in texts if isinstance(text, str))


def _cluster(shard: Shard, line: int, fields: Fields, record: Mapping[str, Any], skipped: Skipped) -> str:
    name = fields.cluster_of(record)
    if name is None and fields.cluster not in {"document", "none"}:
        skipped.missing_clusters += 1
    return f"{shard.name}\n{line}" if name is None else name


def _encodable(text: str) -> bool:
    """Whether a text holds no lone surrogate (which JSON can smuggle in, and UTF-8 cannot hold)."""
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _text_file(shard: Shard, fields: Fields, matching: Matching, kernel: Kernel, skipped: Skipped) -> Batch:
    with open_shard(shard) as stream:
        raw = b"".join(iter(lambda: stream.read(1 << 20), b""))
        done = stream.done
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        for number, line in enumerate(raw.split(b"\n"), start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                skipped.add(shard.name, number, "undecodable bytes, read as U+FFFD", error)
        text = raw.decode("utf-8", "replace")
    text = text.removeprefix("\ufeff")
    cluster = "" if fields.cluster == "none" else shard.name
    return Batch(make_buffer([text], matching, kernel), np.array([cluster_hash(cluster)], np.uint64), done)


def _records(shard: Shard, fields: Fields | None, skipped: Skipped) -> Generator[_Record, None, None]:
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
