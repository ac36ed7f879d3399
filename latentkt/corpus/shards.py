"""Which files make up a corpus, and how each is opened: folders, globs, URLs, plain or compressed."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import PurePosixPath
from typing import Any, BinaryIO, cast

from latentkt.errors import DataError, InputError, MissingExtraError

__all__ = ["HUB", "Shard", "find_shards", "open_shard"]

HUB = "hub:"
_FORMATS = {
    ".txt": "text",
    ".text": "text",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
}
_COMPRESSIONS = {".gz": "gz", ".zst": "zst"}


@dataclass(frozen=True, slots=True)
class Shard:
    """One file of a corpus.

    Attributes:
        path: Local path or URL; ``hub:NAME[@CONFIG][#SPLIT]`` for a data set of the hub.
        name: What it is called in results: its path below the folder or glob that named it.
        format: ``text`` (the file is one document), ``jsonl``, ``parquet`` or ``hub``.
        compression: ``gz``, ``zst`` or None.
        size: Bytes of the file as stored; 0 where unknown.
    """

    path: str
    name: str
    format: str
    compression: str | None
    size: int

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for the plan."""
        return asdict(self)


def find_shards(paths: Sequence[str]) -> tuple[tuple[Shard, ...], tuple[str, ...]]:
    """The shards that some paths name, and the files in folders that are passed over for their suffix.

    Args:
        paths: Files, folders (searched to the bottom), globs, fsspec URLs of these, or ``hub:NAME[@CONFIG][#SPLIT]``.

    Raises:
        InputError: A path names nothing, or nothing that can be read; a file comes twice.
    """
    shards: list[Shard] = []
    passed: list[str] = []
    for path in paths:
        found, over = ([_hub_shard(path)], []) if path.startswith(HUB) else _files(path)
        shards += found
        passed += over
    if not shards:
        kinds = ", ".join([*_FORMATS, *(f"…{suffix}" for suffix in _COMPRESSIONS)])
        raise InputError("no files matched", expected=f"text files with one of the suffixes {kinds}", found=list(paths))
    seen = [shard.path for shard in shards]
    twice = sorted({path for path in seen if seen.count(path) > 1}) if len(set(seen)) < len(seen) else []
    if twice:
        raise InputError("a file is named twice and would count twice", found=twice[:5], fix="name it once")
    return tuple(shards), tuple(passed)


def _hub_shard(path: str) -> Shard:
    if not path.removeprefix(HUB):
        raise InputError("no data set named", expected="hub:NAME[@CONFIG][#SPLIT]", found=path)
    return Shard(path, path, "hub", None, 0)


def _files(path: str) -> tuple[list[Shard], list[str]]:
    import fsspec

    try:
        system, root = fsspec.core.url_to_fs(path)
        single = system.isfile(root)
        names = [root] if single else sorted(system.glob(root) if _is_glob(root) else system.find(root))
        files = [name for name in names if system.isfile(name)] if _is_glob(root) else names
        sizes = [int(system.size(name) or 0) for name in files]
    except (OSError, ValueError, ImportError) as error:
        raise InputError(f"cannot list {path}", expected="a file, folder, glob or URL", found=error) from error
    base = str(PurePosixPath(root).parent) if single or _is_glob(root) else root
    shards, passed = [], []
    for name, size in zip(files, sizes, strict=True):
        kind = _kind(name)
        if kind is None and not single:
            passed.append(name)
            continue
        form, compression = kind or ("text", None)
        shown = name.removeprefix(base.rstrip("/") + "/") if not _is_glob(base) else name
        shards.append(Shard(_address(system, name), shown, form, compression, size))
    return shards, passed


def _is_glob(path: str) -> bool:
    return any(char in path for char in "*?[")


def _address(system: Any, name: str) -> str:
    return name if _is_local(system) else system.unstrip_protocol(name)


def _is_local(system: Any) -> bool:
    protocol = system.protocol
    return "file" in ((protocol,) if isinstance(protocol, str) else protocol)


def _kind(name: str) -> tuple[str, str | None] | None:
    path = PurePosixPath(name.lower())
    compression = _COMPRESSIONS.get(path.suffix)
    suffix = PurePosixPath(path.stem).suffix if compression else path.suffix
    form = _FORMATS.get(suffix)
    return None if form is None or (form == "parquet" and compression) else (form, compression)


class _Counting(io.RawIOBase):
    """A raw file that knows how many of its bytes have been read, for the progress bar."""

    def __init__(self, inner: BinaryIO) -> None:
        self.inner, self.done = inner, 0

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        view = memoryview(target)
        data = self.inner.read(len(view))
        view[: len(data)] = data
        self.done += len(data)
        return len(data)


class Stream:
    """A decompressed shard: `readinto` and `pieces` give its bytes, `done` tells the stored bytes consumed."""

    def __init__(self, reader: Any, raw: _Counting) -> None:
        self._reader, self._raw = reader, raw

    @property
    def done(self) -> int:
        """Bytes of the file as stored that have been read."""
        return self._raw.done

    def readinto(self, target: memoryview) -> int:
        """Fill a part of `target`; 0 at the end."""
        return int(self._reader.readinto(target))

    def pieces(self, size: int = 1 << 20) -> Iterator[bytes]:
        """The rest, at most `size` bytes at a time."""
        while piece := bytes(self._reader.read(size)):
            yield piece


@contextmanager
def open_shard(shard: Shard) -> Iterator[Stream]:
    """Open a shard for reading, decompressed.

    Raises:
        DataError: It cannot be opened, or its compressed data are damaged.
        MissingExtraError: It is a zst file and zstandard is not installed.
    """
    import fsspec

    try:
        with fsspec.open(shard.path, "rb", compression=None) as inner:
            raw = _Counting(inner)
            yield Stream(_decompressed(shard, raw), raw)
    except (OSError, EOFError, _zstd_error()) as error:
        raise DataError(
            f"cannot read {shard.path}", expected=f"readable {shard.compression or 'plain'} data", found=error
        ) from error


def _decompressed(shard: Shard, raw: _Counting) -> Any:
    if shard.compression == "zst":
        if find_spec("zstandard") is None:
            raise MissingExtraError("zstandard", extra="corpus", purpose=f"reading {shard.path}")
        import zstandard

        return zstandard.ZstdDecompressor().stream_reader(cast(Any, raw), read_across_frames=True, read_size=1 << 18)
    if shard.compression == "gz":
        if find_spec("isal") is not None:
            from isal import igzip

            return igzip.GzipFile(fileobj=raw, mode="rb")
        return gzip.GzipFile(fileobj=io.BufferedReader(raw, 1 << 18), mode="rb")
    return io.BufferedReader(raw, 1 << 18)


def _zstd_error() -> type[Exception]:
    if find_spec("zstandard") is None:
        return EOFError
    import zstandard

    error: type[Exception] = zstandard.ZstdError
    return error
