"""JSON lines: cut a stream into lines, and read one line strictly, with orjson where it is installed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any, NoReturn

from latentkt.corpus.shards import Stream

__all__ = ["SLACK", "iterate_blocks", "iterate_lines", "parse_line"]

SLACK = 128
_BLOCK, _FEED = 1 << 20, 0x0A
_ORJSON = find_spec("orjson") is not None
if _ORJSON:
    import orjson


def iterate_blocks(stream: Stream, size: int = _BLOCK) -> Iterator[tuple[bytearray, int]]:
    """Blocks of whole lines, each line with its line feed: a buffer, used again for the next block, and its bytes.

    A block has about `size` bytes, more where a line is longer, and `SLACK` bytes to spare behind.
    """
    block = bytearray(size + SLACK)
    kept = 0
    while True:
        room = len(block) - SLACK
        searched = kept
        while kept < room and (read := stream.readinto(memoryview(block)[kept:room])):
            kept += read
        if kept < room:
            if kept and block[kept - 1] != _FEED:
                block[kept] = _FEED
                kept += 1
            if kept:
                yield block, kept
            return
        end = block.rfind(b"\n", searched, kept) + 1
        if not end:
            block = block + bytes(len(block))
            continue
        yield block, end
        block[: kept - end] = bytes(memoryview(block)[end:kept])
        kept -= end


def iterate_lines(stream: Stream) -> Iterator[tuple[int, memoryview]]:
    """Lines of a stream, numbered from 1, without their line feeds; each is valid until the next is asked for."""
    number = 0
    for block, size in iterate_blocks(stream):
        view = memoryview(block)
        low = 0
        while low < size:
            high = block.find(_FEED, low)
            number += 1
            yield number, view[low:high]
            low = high + 1


def parse_line(line: bytes | memoryview) -> Mapping[str, Any] | str | None:
    """The object on a line; None for a blank one; a text that says what is wrong.

    Example:
        >>> parse_line(b'{"text": "x"}'), parse_line(b" "), parse_line(b"[1]")
        ({'text': 'x'}, None, 'not an object')
    """
    try:
        record = _loads(line)
    except (ValueError, RecursionError) as error:
        if not bytes(line).strip():
            return None
        return str(error) or type(error).__name__
    return record if isinstance(record, dict) else "not an object"


def _loads(line: bytes | memoryview) -> Any:
    if _ORJSON:
        return orjson.loads(line)
    return json.loads(str(line, "utf-8"), parse_constant=_refuse)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")
