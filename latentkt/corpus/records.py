"""What a record must hold to be counted, and which cluster it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from latentkt.corpus.documents import Skipped
from latentkt.corpus.fields import Fields
from latentkt.corpus.shards import Shard

__all__ = ["cluster_name", "usable_text"]


def usable_text(shard: Shard, line: int, fields: Fields, record: Mapping[str, Any], skipped: Skipped) -> bytes | None:
    """The text of a record as UTF-8; None, and `skipped` is told, where there is none that UTF-8 can hold.

    Raises:
        DataError: There is none, in strict mode.
    """
    text = fields.text_of(record)
    try:
        encoded = text.encode("utf-8") if isinstance(text, str) else None
    except UnicodeEncodeError:  # a lone surrogate, which JSON can smuggle in
        encoded = None
    if encoded is None:
        skipped.add(shard.name, line, f"no text in field {fields.text!r}", repr(text)[:80])
    return encoded


def cluster_name(shard: Shard, line: int, fields: Fields, found: str | None, skipped: Skipped) -> str:
    """The cluster of a record, given what its cluster field names; one that names none is a cluster of its own."""
    if found is None and fields.cluster not in {"document", "none"}:
        skipped.missing_clusters += 1
    return f"{shard.name}\n{line}" if found is None else found
