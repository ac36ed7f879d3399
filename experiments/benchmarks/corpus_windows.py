"""Counting speed with window co-occurrence: thousands of keys and tasks, from zst JSONL to sums by cluster.

    python experiments/benchmarks/corpus_windows.py gutenberg.jsonl.zst --megabytes 60

Speeds are MB (10⁶ bytes) of text per CPU-second of one process, best and median of a few passes. The passes of all rows
are interleaved: `bytes.lower()`, decompression and parsing alone, counting a shard, and the whole of `count_corpus`
from the pattern file to the saved counts. What is paid once a run (reading the patterns, building the table) is timed
apart. Common n-grams of the text stand for keys and tasks, so nearly every tenth word ends a match. Clusters are the
sources of the file, or 200 clusters dealt out in turn, the hardest case: no two neighbours share one.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from corpus_counting import phrase_list, read_texts

from latentkt.corpus.counter import Counter, Job
from latentkt.corpus.documents import Skipped
from latentkt.corpus.fields import Fields
from latentkt.corpus.layout import parse_scopes
from latentkt.corpus.local import count_corpus
from latentkt.corpus.patterns import load_patterns
from latentkt.corpus.readers import read_shard
from latentkt.corpus.shards import Shard, find_shards


def write_corpus(path: Path, texts: Sequence[str], sources: Sequence[str]) -> None:
    """A shard of zst JSONL at level 3."""
    import zstandard

    lines = (
        json.dumps({"id": index, "source": source, "text": text}, ensure_ascii=False)
        for index, (text, source) in enumerate(zip(texts, sources, strict=True))
    )
    path.write_bytes(zstandard.ZstdCompressor(level=3).compress("\n".join(lines).encode()))


def write_patterns(path: Path, texts: list[str], n_keys: int, n_tasks: int) -> None:
    """A pattern file of n-grams of the text, one form a name."""
    names = phrase_list(texts, n_keys + n_tasks, real=1.0, seed=5)
    data = {
        "keys": {f"key {name}": [name] for name in names[:n_keys]},
        "tasks": {f"task {name}": [name] for name in names[n_keys:]},
    }
    path.write_text(json.dumps(data), encoding="utf-8")


def book_of(texts: Sequence[str], corpus: Path) -> list[str]:
    """The source of each text, where the corpus names it."""
    import zstandard

    with corpus.open("rb") as file:
        raw = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()
    known = [json.loads(line).get("source", "") for line in raw.splitlines()]
    return [known[index % len(known)] for index in range(len(texts))]


def parse_alone(shard: Shard, job: Job, kernel: Any) -> int:
    """Read a shard into batches and throw them away; the bytes of its text."""
    batches = read_shard(shard, job.fields, job.matching, kernel, Skipped())
    return sum(batch.buffer.size - len(batch.clusters) for batch in batches)


def once(action: Callable[[], Any]) -> tuple[float, Any]:
    """CPU time of one call, and its result."""
    start = time.process_time()
    result = action()
    return time.process_time() - start, result


def setup(patterns: Path, window: int) -> tuple[Counter, dict[str, float]]:
    """What is paid once a run, and how long it takes warm."""
    for _ in range(2):
        reading, chosen = once(lambda: load_patterns(patterns))
        job = Job(chosen, scopes=parse_scopes(windows=[window]), fields=Fields("text", "source"))
        building, counter = once(lambda job=job: Counter(job))
    return counter, {"reading the pattern file": reading, "building the table": building}


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--megabytes", type=float, default=60)
    parser.add_argument("--keys", type=int, default=9000)
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--window", type=int, default=50)
    parser.add_argument("--passes", type=int, default=5)
    options = parser.parse_args()
    texts = read_texts(options.corpus, options.megabytes)
    data = "\0".join(texts[:5000]).encode()
    sources = {"by source": book_of(texts, options.corpus), "dealt out": [str(i % 200) for i in range(len(texts))]}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_patterns(folder / "patterns.json", texts, options.keys, options.tasks)
        shards = {}
        for label, clusters in sources.items():
            path = folder / f"{label}.jsonl.zst"
            write_corpus(path, texts, clusters)
            shards[label] = find_shards([str(path)])[0][0]
        counter, paid_once = setup(folder / "patterns.json", options.window)
        number = count()

        def whole(shard: Shard) -> Any:
            out = folder / f"counts {next(number)}"
            return count_corpus(
                [shard.path], load_patterns(folder / "patterns.json"), str(out), windows=[options.window]
            )

        size = parse_alone(shards["by source"], counter.job, counter.lexicon.kernel)
        actions: dict[str, tuple[int, Callable[[], Any]]] = {
            "bytes.lower()": (len(data), data.lower),
            "decompression and parsing alone": (
                size, lambda: parse_alone(shards["by source"], counter.job, counter.lexicon.kernel),
            ),
        }  # fmt: skip
        for label, shard in shards.items():
            actions[f"one shard, clusters {label}"] = (size, lambda shard=shard: counter.count_shard(shard))
            actions[f"whole run, clusters {label}"] = (size, lambda shard=shard: whole(shard))
        report(actions, paid_once, options, size)


def report(
    actions: dict[str, tuple[int, Callable[[], Any]]],
    paid_once: dict[str, float],
    options: argparse.Namespace,
    size: int,
) -> None:
    """Time everything in turn and print it."""
    seconds: dict[str, list[float]] = {label: [] for label in actions}
    results = {}
    for passed in range(options.passes + 1):
        for label, (_, action) in actions.items():
            spent, results[label] = once(action)
            if passed:  # the first one warms up
                seconds[label].append(spent)
    lower = actions["bytes.lower()"][0] / min(seconds["bytes.lower()"]) / 1e6
    cells = {label: len(result.tally.cells) for label, result in results.items() if hasattr(result, "tally")}
    print(f"{options.keys:,} keys x {options.tasks:,} tasks, window {options.window}, {size / 1e6:.0f} MB of text")
    print("; ".join(f"{label}: {spent:.3f} CPU-s, once a run" for label, spent in paid_once.items()))
    print("| | MB per CPU-s, best | median | of bytes.lower() | cells with a count |")
    print("|---|---|---|---|---|")
    for label, (done, _) in actions.items():
        best, median = (done / value / 1e6 for value in (min(seconds[label]), statistics.median(seconds[label])))
        print(f"| {label} | {best:.1f} | {median:.1f} | {best / lower:.3f} | {cells.get(label, '')} |")


if __name__ == "__main__":
    main()
