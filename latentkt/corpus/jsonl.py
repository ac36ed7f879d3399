"""JSON lines: cut a stream into lines, and read one line strictly, with orjson where it is installed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any, NoReturn

from latentkt.corpus.shards import Stream

__all__ = ["iterate_lines", "parse_line"]

_BLOCK = 1 << 20
_ORJSON = find_spec("orjson") is not None


def iterate_lines(stream: Stream) -> Iterator[tuple[int, bytes]]:
    """Lines of a stream, numbered from 1, without their line feeds."""
    number, kept = 0, b""
    block = memoryview(bytearray(_BLOCK))
    while size := stream.readinto(block):
        *lines, kept = (kept + bytes(block[:size])).split(b"\n")
        for line in lines:
            number += 1
            yield number, line
    if kept:
        yield number + 1, kept


def parse_line(line: bytes) -> Mapping[str, Any] | str | None:
    """The object on a line; None for a blank one; a text that says what is wrong.

    Example:
        >>> parse_line(b'{"text": "x"}'), parse_line(b" "), parse_line(b"[1]")
        ({'text': 'x'}, None, 'not an object')
    """
    if not line.strip():
        return None
    try:
        record = _loads(line)
    except (ValueError, RecursionError) as error:
        return str(error) or type(error).__name__
    return record if isinstance(record, dict) else "not an object"


def _loads(line: bytes) -> Any:
    if _ORJSON:
        import orjson

        return orjson.loads(line)
    return json.loads(line.decode("utf-8"), parse_constant=_refuse)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")
