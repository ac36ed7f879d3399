"""The ways of counting phrases that the corpus benchmark compares, and the process in which each of them runs.

A method builds its table once and then reads the text part by part, a new part each time: text that has just been read
is kinder to the caches than a corpus is. The exact peers check the characters on either
side of each hit; the inexact one takes bytes beyond ASCII for letters. Two more methods count nothing: `bytes.lower()`
over the same text, and decompression and parsing of the corpus file, so that both are timed in the same minutes.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import pickle
import re
import resource
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

LIMIT_SECONDS, LIMIT_BYTES = 60, 2_000_000_000
LOWER, PARSE = "bytes.lower()", "decompression and parsing"
OURS, REFERENCE = "latentkt, numba", "latentkt, NumPy"
_BLOCK = 1_000_000  # peers read the text in blocks, so that their lists of hits stay small


class Material(NamedTuple):
    """What the methods work on: the corpus file, parts of its texts, phrases."""

    corpus: Path
    parts: list[list[str]]
    phrases: list[str]


class Passes(NamedTuple):
    """A method ready to run: bytes of each part, CPU-seconds of its table, how to read a part, and all hits so far."""

    sizes: Sequence[int]
    build: float
    run: Callable[[int], Any]
    hits: Callable[[], int]


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    """CPU-seconds of one call, and its result."""
    start = time.process_time()
    result = action()
    return time.process_time() - start, result


def latentkt(material: Material, kernel_name: str) -> Passes:
    """The library's kernel: occurrences and documents of every phrase."""
    from latentkt.corpus.documents import make_buffer
    from latentkt.corpus.kernel import open_kernel
    from latentkt.corpus.kernel.table import build_table
    from latentkt.corpus.matching import Matching

    kernel = open_kernel(kernel_name)
    buffers = [make_buffer(part, Matching(), kernel) for part in material.parts]
    build_table(material.phrases[:10], Matching(), kernel)  # what is compiled or read once in a process
    seconds, table = timed(lambda: build_table(material.phrases, Matching(), kernel))
    counter = kernel.PhraseCounter(table)
    return Passes(
        [buffer.size for buffer in buffers],
        seconds,
        lambda part: counter.add(buffers[part]),
        lambda: int(counter.occurrences[table.slot_of].sum()),
    )


def _blocks(texts: Sequence[str]) -> list[str]:
    """Documents put together, each ended by a NUL."""
    blocks: list[list[str]] = [[]]
    size = 0
    for text in texts:
        blocks[-1].append(text)
        size += len(text)
        if size > _BLOCK:
            blocks.append([])
            size = 0
    return ["\0".join([*block, ""]) for block in blocks]


def _passes(parts: list[list[Any]], build: float, count: Callable[[Any], int]) -> Passes:
    total = [0]

    def run(part: int) -> None:
        for block in parts[part]:
            total[0] += count(block)

    sizes = [sum(len(block if isinstance(block, bytes) else block.encode()) for block in blocks) for blocks in parts]
    return Passes(sizes, build, run, lambda: total[0])


def aho_corasick(material: Material, mode: str, exact: bool) -> Passes:
    """The automaton of ahocorasick_rs over bytes, ASCII lower-cased, checking the characters beside each hit."""
    import ahocorasick_rs

    implementation = getattr(ahocorasick_rs.Implementation, mode)
    patterns = [phrase.encode() for phrase in material.phrases]
    seconds, automaton = timed(lambda: ahocorasick_rs.BytesAhoCorasick(patterns, implementation=implementation))
    lengths = np.array([len(pattern) for pattern in patterns])
    parts = [[block.encode() for block in _blocks(part)] for part in material.parts]

    def count(block: bytes) -> int:
        lower = block.lower()
        rows = np.array(automaton.find_matches_as_indexes(lower, overlapping=True), np.int64).reshape(-1, 3)
        return _bounded(lower, rows[:, 1], rows[:, 1] + lengths[rows[:, 0]], exact)

    return _passes(parts, seconds, count)


_LETTER = np.zeros(256, bool)
_LETTER[[*range(48, 58), *range(65, 91), 95, *range(97, 123)]] = True
_LETTER[128:] = True


def _bounded(data: bytes, start: Any, end: Any, exact: bool) -> int:
    """Hits without a word character on either side; bytes beyond ASCII are letters, or (exact) are decoded."""
    view = np.frombuffer(data, np.uint8)
    before = np.where(start > 0, _LETTER[view[np.maximum(start - 1, 0)]], False)
    after = _LETTER[view[end]]  # a block ends with a NUL
    if exact:
        for side, places in ((before, start - 1), (after, end)):
            for row in np.flatnonzero(side & (view[np.maximum(places, 0)] >= 128)):
                side[row] = _is_word(data, int(places[row]))
    return int((~before & ~after).sum())


def _is_word(data: bytes, at: int) -> bool:
    while data[at] & 0xC0 == 0x80:
        at -= 1
    return re.match(r"\w", data[at : at + 4].decode("utf-8", "ignore")) is not None


def pyahocorasick(material: Material) -> Passes:
    """An automaton of pyahocorasick over lower-cased text, boundaries by Python's `re`."""
    import ahocorasick

    def build() -> Any:
        automaton = ahocorasick.Automaton()
        for phrase in material.phrases:
            automaton.add_word(phrase, len(phrase))
        automaton.make_automaton()
        return automaton

    seconds, automaton = timed(build)
    word = re.compile(r"\w")

    def count(block: str) -> int:
        lower, hits = block.lower(), 0
        for end, length in automaton.iter(lower):
            start = end - length + 1
            hits += not ((start and word.match(lower, start - 1)) or word.match(lower, end + 1))
        return hits

    return _passes([_blocks(part) for part in material.parts], seconds, count)


def alternation(material: Material) -> Passes:
    """One alternation of `re`: leftmost matches only, so it misses overlapping ones."""
    ordered = sorted(material.phrases, key=len, reverse=True)
    seconds, pattern = timed(lambda: re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, ordered))})(?!\w)"))
    parts = [_blocks(part) for part in material.parts]
    return _passes(parts, seconds, lambda block: sum(1 for _ in pattern.finditer(block.lower())))


def lower(material: Material) -> Passes:
    """`bytes.lower()` over the text."""
    parts = ["\0".join(part).encode() for part in material.parts]
    return Passes([len(part) for part in parts], 0.0, lambda part: parts[part].lower(), lambda: 0)


def decompress_and_parse(material: Material) -> Passes:
    """Decompress the corpus file, parse its lines, encode the texts; sized by the text."""
    import orjson
    import zstandard

    def run(_: int) -> int:
        with material.corpus.open("rb") as file:
            raw = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read(20_000_000)
        return len("\0".join([orjson.loads(line)["text"] for line in raw.split(b"\n")[:-1]]).encode())

    return Passes([run(0)] * len(material.parts), 0.0, run, lambda: 0)


def in_cache(material: Material) -> Passes:
    """Hash the same 16 kB over and over: what the processor does where memory has no part in it."""
    block = bytes(1 << 14)

    def run(_: int) -> None:
        for _ in range(64):
            hashlib.sha256(block).digest()

    return Passes([64 * len(block)] * len(material.parts), 0.0, run, lambda: 0)


METHODS: dict[str, tuple[Callable[..., Passes], tuple[Any, ...]]] = {
    LOWER: (lower, ()),
    PARSE: (decompress_and_parse, ()),
    OURS: (latentkt, ("numba",)),
    REFERENCE: (latentkt, ("numpy",)),
    "ahocorasick_rs, DFA": (aho_corasick, ("DFA", True)),
    "ahocorasick_rs, contiguous NFA": (aho_corasick, ("ContiguousNFA", True)),
    "ahocorasick_rs, DFA, inexact": (aho_corasick, ("DFA", False)),
    "pyahocorasick": (pyahocorasick, ()),
    "re, alternation": (alternation, ()),
}
IN_CACHE = "hashing in the cache"
CONTROLS = {IN_CACHE: (in_cache, ()), LOWER: METHODS[LOWER]}  # what two processes at once can do on this machine


class Start(NamedTuple):
    """What a method says when part 0 is read: CPU-seconds of its table, hits, peak bytes."""

    build: float
    hits: int
    peak: int


class Worker:
    """A method in a process of its own; `start` is None if it could not be made ready.

    The processor time for its table is limited; part 0 of the text has then been read already.
    """

    def __init__(self, name: str, material: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self._here, there = context.Pipe()
        self._process = context.Process(target=_serve, args=(name, material, there), daemon=True)
        self._process.start()
        there.close()
        self.start: Start | None = None
        try:
            self.start = self._here.recv()
        except EOFError:
            self._process.join()

    def ask(self, part: int, at_least: float) -> None:
        """Have a part read, and those behind it until so many CPU-seconds have passed."""
        self._here.send((part, at_least))

    def answer(self) -> tuple[float, float]:
        """MB of text per CPU-second, and per second by the clock, of what was asked for."""
        result: tuple[float, float] = self._here.recv()
        return result

    def measure(self, part: int, at_least: float) -> tuple[float, float]:
        """Both at once."""
        self.ask(part, at_least)
        return self.answer()

    def close(self) -> None:
        """End the process."""
        self._here.close()
        self._process.join()


def _serve(name: str, path: Path, connection: Any) -> None:
    material = pickle.loads(path.read_bytes())
    function, options = {**METHODS, **CONTROLS}[name]
    no_limit = resource.RLIM_INFINITY
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + LIMIT_SECONDS + 20, no_limit))
    passes = function(material, *options)
    resource.setrlimit(resource.RLIMIT_CPU, (no_limit, no_limit))
    passes.run(0)
    connection.send(Start(passes.build, passes.hits(), peak_bytes()))
    while True:
        try:
            part, at_least = connection.recv()
        except EOFError:
            return
        connection.send(_rates(passes, part, at_least))


def _rates(passes: Passes, part: int, at_least: float) -> tuple[float, float]:
    cpu, wall, size = time.process_time(), time.monotonic(), 0
    while not size or time.process_time() - cpu < at_least:
        passes.run(part)
        size += passes.sizes[part]
        part = (part + 1) % len(passes.sizes)
    return size / 1e6 / (time.process_time() - cpu), size / 1e6 / (time.monotonic() - wall)


def peak_bytes() -> int:
    """Peak resident memory of this process alone (`getrusage` begins with that of the parent)."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) * 1024 if found else 0
