"""Counting speed: this library and its peers on the same text, in one run, per CPU-second of one process.

    python experiments/benchmarks/corpus_counting.py gutenberg.jsonl.zst --megabytes 60

Speeds are MB (10⁶ bytes) of uncompressed text per CPU-second, the best of a few passes; each method runs in a process
of its own, so that its peak memory is its own (with the text and the phrases). The exact peers check the characters on
either side of each hit; the byte DFA takes bytes beyond ASCII for letters and is printed as inexact. Beside the table:
decompression and parsing alone, and `bytes.lower()`, timed in the same run.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from latentkt.corpus.documents import make_buffer
from latentkt.corpus.kernel import open_kernel
from latentkt.corpus.kernel.table import build_table
from latentkt.corpus.matching import Matching

LIMIT_SECONDS, LIMIT_BYTES = 60, 2_000_000_000


def read_texts(path: Path, megabytes: float) -> list[str]:
    """Texts of a zst JSONL file, cut or repeated to a size."""
    import zstandard

    with path.open("rb") as file:
        raw = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()
    texts = [json.loads(line)["text"] for line in raw.splitlines()]
    chosen: list[str] = []
    size = 0
    while size < megabytes * 1e6:
        for text in texts:
            chosen.append(text)
            size += len(text)
            if size >= megabytes * 1e6:
                break
    return chosen


def phrase_list(texts: list[str], n: int, *, real: float, seed: int = 0) -> list[str]:
    """Phrases of 2 to 4 words of the text, some with their last word exchanged."""
    rng = random.Random(seed)
    words = re.findall(r"[a-z]+", " ".join(texts[:6000]).lower())
    found: dict[str, None] = {}
    while len(found) < n:
        length, at = rng.choice((2, 3, 4)), rng.randrange(len(words) - 4)
        phrase = words[at : at + length]
        if rng.random() >= real:
            phrase[-1] = words[rng.randrange(len(words))]
        found[" ".join(phrase)] = None
    return list(found)


def best(action: Callable[[], Any], passes: int) -> tuple[float, Any]:
    """Shortest CPU time of some passes, and the last result."""
    shortest, result = float("inf"), None
    for _ in range(passes):
        start = time.process_time()
        result = action()
        shortest = min(shortest, time.process_time() - start)
    return shortest, result


def run_kernel(name: str, texts: list[str], phrases: list[str], passes: int) -> dict[str, float]:
    """The library's kernel: occurrences of every phrase, as the peers count them."""
    kernel = open_kernel(name)
    buffer = make_buffer(texts, Matching(), kernel)
    build_table(phrases[:10], Matching(), kernel)
    seconds, table = best(lambda: build_table(phrases, Matching(), kernel), 2)
    kernel.PhraseCounter(table).add(make_buffer(texts[:10], Matching(), kernel))
    rate, counter = best(lambda: _counted(kernel.PhraseCounter(table), buffer), passes)
    return {
        "seconds": rate,
        "build": seconds,
        "hits": int(counter.occurrences[table.slot_of].sum()),
        "size": buffer.size,
    }


def _counted(counter: Any, buffer: Any) -> Any:
    counter.add(buffer)
    return counter


def run_aho(mode: str, texts: list[str], phrases: list[str], passes: int, exact: bool) -> dict[str, float]:
    """The automaton of ahocorasick_rs over bytes, ASCII lower-cased, checking the characters beside each hit."""
    import ahocorasick_rs

    implementation = getattr(ahocorasick_rs.Implementation, mode)
    patterns = [phrase.encode() for phrase in phrases]
    seconds, automaton = best(lambda: ahocorasick_rs.BytesAhoCorasick(patterns, implementation=implementation), 1)
    lengths = np.array([len(pattern) for pattern in patterns])
    data = "\0".join(texts).encode()

    def count() -> int:
        lower = data.lower()
        found = automaton.find_matches_as_indexes(lower, overlapping=True)
        rows = np.array(found, np.int64).reshape(-1, 3)
        return _bounded(lower, rows[:, 1], rows[:, 1] + lengths[rows[:, 0]], exact)

    rate, hits = best(count, passes)
    return {"seconds": rate, "build": seconds, "hits": hits, "size": len(data)}


def _bounded(data: bytes, start: Any, end: Any, exact: bool) -> int:
    """Hits without a word character on either side; bytes beyond ASCII are letters, or (exact) are decoded."""
    view = np.frombuffer(data, np.uint8)
    letter = np.zeros(256, bool)
    letter[[*range(48, 58), *range(65, 91), 95, *range(97, 123)]] = True
    letter[128:] = True
    before = np.where(start > 0, letter[view[np.maximum(start - 1, 0)]], False)
    after = np.where(end < len(view), letter[view[np.minimum(end, len(view) - 1)]], False)
    if exact:
        for side, places in ((before, start - 1), (after, end)):
            inside = (places >= 0) & (places < len(view))
            for row in np.flatnonzero(side & inside & (view[np.clip(places, 0, len(view) - 1)] >= 128)):
                side[row] = _is_word(data, int(places[row]))
    return int((~before & ~after).sum())


def _is_word(data: bytes, at: int) -> bool:
    low = at
    while data[low] & 0xC0 == 0x80:
        low -= 1
    return re.match(r"\w", data[low : low + 4].decode("utf-8", "ignore")) is not None


def run_pyahocorasick(texts: list[str], phrases: list[str], passes: int) -> dict[str, float]:
    """An automaton of pyahocorasick over lower-cased text, boundaries by Python's `re`."""
    import ahocorasick

    def build() -> Any:
        automaton = ahocorasick.Automaton()
        for phrase in phrases:
            automaton.add_word(phrase, len(phrase))
        automaton.make_automaton()
        return automaton

    seconds, automaton = best(build, 1)
    text = "\0".join(texts)
    word = re.compile(r"\w")

    def count() -> int:
        lower, hits = text.lower(), 0
        for end, length in automaton.iter(lower):
            start = end - length + 1
            hits += not (
                (start and word.match(lower, start - 1)) or (end + 1 < len(lower) and word.match(lower, end + 1))
            )
        return hits

    rate, hits = best(count, passes)
    return {"seconds": rate, "build": seconds, "hits": hits, "size": len(text.encode())}


def run_re(texts: list[str], phrases: list[str], passes: int) -> dict[str, float]:
    """One alternation of `re`: leftmost matches only, so it misses overlapping ones."""
    ordered = sorted(phrases, key=len, reverse=True)
    seconds, pattern = best(lambda: re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, ordered))})(?!\w)"), 1)
    text = "\0".join(texts)
    rate, hits = best(lambda: sum(1 for _ in pattern.finditer(text.lower())), passes)
    return {"seconds": rate, "build": seconds, "hits": hits, "size": len(text.encode())}


METHODS: dict[str, tuple[Callable[..., dict[str, float]], tuple[Any, ...]]] = {
    "latentkt numba": (run_kernel, ("numba",)),
    "latentkt numpy": (run_kernel, ("numpy",)),
    "ahocorasick_rs DFA, exact": (run_aho, ("DFA", True)),
    "ahocorasick_rs contiguous NFA, exact": (run_aho, ("ContiguousNFA", True)),
    "ahocorasick_rs DFA, inexact": (run_aho, ("DFA", False)),
    "pyahocorasick": (run_pyahocorasick, ()),
    "re alternation": (run_re, ()),
}


# Longer lists are not tried: they exceed the limits by far.
LARGEST = {"re alternation": 100, "pyahocorasick": 10_000, "ahocorasick_rs DFA, exact": 10_000,
           "ahocorasick_rs DFA, inexact": 10_000}  # fmt: skip


def _child(name: str, texts: list[str], few: list[str], phrases: list[str], passes: int, queue: Any) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (4 * LIMIT_SECONDS, 4 * LIMIT_SECONDS))
    function, options = METHODS[name]
    if function is run_aho:
        result = run_aho(options[0], few, phrases, 1, options[1])
    elif function is run_kernel:
        result = run_kernel(options[0], texts, phrases, passes)
        result["check"] = run_kernel(options[0], few, phrases, 1)["hits"]
    else:
        result = function(few, phrases, 1)
    result.setdefault("check", result["hits"])
    result["peak"] = _peak_bytes()
    queue.put(result)


def _peak_bytes() -> int:
    """Peak resident memory of this process alone (`getrusage` begins with that of the parent)."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024


def measure(name: str, texts: list[str], few: list[str], phrases: list[str], passes: int) -> dict[str, float] | str:
    """Run one method in a process of its own; a text says why there is no figure."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=_child, args=(name, texts, few, phrases, passes, queue))
    process.start()
    deadline = time.monotonic() + 6 * LIMIT_SECONDS
    while process.is_alive() and queue.empty() and time.monotonic() < deadline:
        time.sleep(0.1)
    result = queue.get() if not queue.empty() else None
    process.kill() if result is None else process.join()
    if result is None:
        return "stopped: over the time limit" if time.monotonic() >= deadline else "failed or killed"
    if "latentkt" not in name and (result["build"] > LIMIT_SECONDS or result["peak"] > LIMIT_BYTES):
        return f"over the limits: build {result['build']:.0f} s, {result['peak'] / 1e9:.1f} GB"
    return result


def limits(path: Path, texts: list[str]) -> dict[str, float]:
    """Decompression and parsing alone, and bytes.lower(), in MB per CPU-second."""
    import orjson
    import zstandard

    target = memoryview(bytearray(1 << 20))

    def decompress() -> int:
        done = 0
        with path.open("rb") as file:
            reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
            while size := reader.readinto(target):
                done += size
        return done

    seconds, size = best(decompress, 3)
    data = "\0".join(texts[:5000]).encode()
    with path.open("rb") as file:
        lines = zstandard.ZstdDecompressor().stream_reader(file).read(30_000_000).split(b"\n")[:-1]
    parse_seconds, parsed = best(lambda: "\0".join([orjson.loads(line)["text"] for line in lines]).encode(), 3)
    lower_seconds, _ = best(data.lower, 5)
    rate, parse = size / seconds, len(parsed) / parse_seconds
    return {
        "zst decompression": rate / 1e6,
        "orjson and encoding": parse / 1e6,
        "decompression and parsing": 1e-6 / (1 / rate + 1 / parse),
        "bytes.lower()": len(data) / lower_seconds / 1e6,
    }


def end_to_end(path: Path, phrases: list[str]) -> dict[str, float]:
    """From zst JSONL to occurrences and documents of the phrases, MB of text per CPU-second."""
    import zstandard

    import latentkt.corpus.readers as readers
    from latentkt.corpus import count_phrases

    with path.open("rb") as file:
        raw = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()
    rates = {}
    extract = readers.can_extract
    with tempfile.TemporaryDirectory() as folder:
        level3 = Path(folder) / "level3.jsonl.zst"
        level3.write_bytes(zstandard.ZstdCompressor(level=3).compress(raw))
        for label, shard in (("as given", path), ("level 3", level3)):
            for parser in ("extractor", "orjson"):
                readers.can_extract = extract if parser == "extractor" else lambda *_: False
                count_phrases(phrases[:10], [str(shard)])
                seconds, counts = best(lambda shard=shard: count_phrases(phrases, [str(shard)]), 3)
                rates[f"{label}, {parser}"] = counts.text_bytes / seconds / 1e6
    readers.can_extract = extract
    return rates


def peak_memory(path: Path, phrases: list[str]) -> float:
    """Peak resident memory, in MB, of a process that counts the phrases in a corpus of files."""
    with tempfile.NamedTemporaryFile("w") as file:
        file.write("\n".join(phrases))
        file.flush()
        code = (
            "import re, sys; from pathlib import Path; from latentkt.corpus import count_phrases;"
            "count_phrases(Path(sys.argv[1]).read_text().split(chr(10)), [sys.argv[2]]);"
            "print(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1])"
        )
        done = subprocess.run([sys.executable, "-c", code, file.name, str(path)], capture_output=True, check=True)
    return int(done.stdout) * 1024 / 1e6


def windows(texts: list[str], *, n_keys: int, n_tasks: int) -> float:
    """Keys × tasks with window co-occurrence, MB of text per CPU-second; common n-grams stand for keys and tasks."""
    from latentkt.corpus import count_texts

    names = phrase_list(texts, n_keys + n_tasks, real=1.0, seed=5)
    patterns = {
        "keys": {f"k{i}": [name] for i, name in enumerate(names[:n_keys])},
        "tasks": {f"t{i}": [name] for i, name in enumerate(names[n_keys:])},
    }
    clusters = [str(i % 200) for i in range(len(texts))]
    count_texts(texts[:50], patterns, windows=[50], clusters=clusters[:50])
    seconds, counts = best(lambda: count_texts(texts, patterns, windows=[50], clusters=clusters), 1)
    return counts.manifest["text_bytes"] / seconds / 1e6


def two_processes(texts: list[str], phrases: list[str]) -> float:
    """Wall speed of two processes over that of one; needs two free cores."""
    context = multiprocessing.get_context("spawn")
    rates = []
    for n in (1, 2):
        barrier, queue = context.Barrier(n), context.Queue()
        pool = [context.Process(target=_timed, args=(texts, phrases, barrier, queue)) for _ in range(n)]
        for process in pool:
            process.start()
        rates.append(sum(queue.get() for _ in pool))
        for process in pool:
            process.join()
    return rates[1] / rates[0]


def _timed(texts: list[str], phrases: list[str], barrier: Any, queue: Any) -> None:
    kernel = open_kernel("numba")
    buffer, table = make_buffer(texts, Matching(), kernel), build_table(phrases, Matching(), kernel)
    counter = kernel.PhraseCounter(table)
    counter.add(buffer)
    barrier.wait()
    start = time.monotonic()
    for _ in range(5):
        counter.add(buffer)
    queue.put(5 * buffer.size / (time.monotonic() - start))


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--megabytes", type=float, default=60)
    parser.add_argument("--peer-megabytes", type=float, default=10, help="the peers are slow: less text for them")
    parser.add_argument("--large", type=int, default=1_000_000)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--only", nargs="*", help="parts: 100 10,000 dense few rest; default all")
    options = parser.parse_args()
    texts, few = read_texts(options.corpus, options.megabytes), read_texts(options.corpus, options.peer_megabytes)
    only = set(options.only or ("100", "10,000", "dense", "few", "rest"))
    dense = phrase_list(texts, options.large, real=0.25) if only & {"dense", "few", "rest"} else []
    sets = {
        "100": phrase_list(texts, 100, real=1.0),
        "10,000": phrase_list(texts, 10_000, real=0.5),
        f"{options.large:,} dense": dense,
        f"{options.large:,} few hits": [phrase + "xq" for phrase in dense],
    }
    bound = limits(options.corpus, texts)
    for name, rate in bound.items():
        print(f"{name}: {rate:.0f} MB/CPU-s", flush=True)
    print("| phrases | method | MB per CPU-s | of bytes.lower() | table built, CPU-s | peak MB | hits over numpy's |")
    print("|---|---|---|---|---|---|---|")
    for label, phrases in sets.items():
        expected = 0.0
        if not any(label == part or label.split(" ")[1:2] == [part] for part in only):
            continue
        for method in METHODS:
            if len(phrases) > LARGEST.get(method, len(phrases)):
                continue
            expected = expected or run_kernel("numpy", few, phrases, 1)["hits"]
            result = measure(method, texts, few, phrases, options.passes)
            if isinstance(result, str):
                print(f"| {label} | {method} | {result} | | | | |", flush=True)
                continue
            rate = result["size"] / result["seconds"] / 1e6
            print(
                f"| {label} | {method} | {rate:.1f} | {rate / bound['bytes.lower()']:.3f} | {result['build']:.2f} | "
                f"{result['peak'] / 1e6:.0f} | {result['check'] / max(expected, 1):.4f} |",
                flush=True,
            )
    if "rest" in only:
        _rest(options, texts, sets["10,000"], dense)


def _rest(options: argparse.Namespace, texts: list[str], phrases: list[str], dense: list[str]) -> None:
    """What stands beside the table: scaling, the whole way from files, memory, windows."""
    print(f"two processes: {two_processes(texts, phrases):.2f} x one (wall)", flush=True)
    for label, rate in end_to_end(options.corpus, phrases).items():
        print(f"zst JSONL end to end, 10,000 phrases, {label}: {rate:.0f} MB/CPU-s", flush=True)
    print(f"peak memory with {options.large:,} phrases: {peak_memory(options.corpus, dense):.0f} MB", flush=True)
    many = texts * max(1, round(200 / options.megabytes))
    size = sum(map(len, many)) / 1e6
    rate = windows(many, n_keys=9000, n_tasks=1000)
    print(f"9,000 keys x 1,000 tasks, window 50, {size:.0f} MB: {rate:.0f} MB/CPU-s", flush=True)


if __name__ == "__main__":
    main()
