"""The texts of a corpus as they are stored: for tokenizers, not for counting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

from latentkt.corpus.documents import Skipped
from latentkt.corpus.fields import choose_fields
from latentkt.corpus.readers import first_record, iterate_records
from latentkt.corpus.shards import find_shards, open_shard

__all__ = ["read_texts"]


def read_texts(paths: Sequence[str], *, text_field: str | None = None) -> Iterator[str]:
    r"""Texts one by one; records without one are passed over.

    Args:
        paths: Files, folders, globs, URLs or hub ids, as everywhere.
        text_field: Field of the text; found in the first record if None.

    Raises:
        InputError: The paths name nothing that can be read.
        DataError: A shard cannot be read.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "a.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n')
        ...     _ = Path(folder, "b.txt").write_text("three\nfour")
        ...     list(read_texts([folder]))
        ['one', 'two', 'three\nfour']
    """
    shards, _ = find_shards(paths)
    record = next((first_record(shard) for shard in shards if shard.format != "text"), None)
    fields = choose_fields(record, text=text_field, cluster="none")
    for shard in shards:
        if shard.format == "text":
            with open_shard(shard) as stream:
                yield b"".join(stream.pieces()).removesuffix(b"\n").decode("utf-8", errors="replace")
            continue
        with closing(iterate_records(shard, fields, Skipped())) as records:
            texts = (fields.text_of(each) for _, each, _ in records)
            yield from (text for text in texts if isinstance(text, str))
