"""What stands beside the table of phrase counting: the whole way from files, peak memory, two processes at once."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from corpus_methods import CONTROLS, LOWER, METHODS, OURS, PARSE, Material, Worker, timed

from latentkt.corpus import count_phrases
from latentkt.corpus import readers as library_readers

_TURN = 0.7  # CPU-seconds


def spread(values: Sequence[float], digits: int = 0) -> str:
    """The median of some figures, with the lowest and the highest."""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}–{max(values):.{digits}f})"


def end_to_end(material: Material, rounds: int) -> None:
    """Print speeds from zst JSONL to occurrences and documents, as compressed and at level 3, by either parser."""
    import zstandard

    readers: Any = library_readers
    extract = readers.can_extract
    limits = {name: METHODS[name][0](material) for name in (LOWER, PARSE)}
    with material.corpus.open("rb") as file:
        raw = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()
    rates: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        level3 = Path(folder) / "level3.jsonl.zst"
        level3.write_bytes(zstandard.ZstdCompressor(level=3).compress(raw))
        del raw
        for turn in range(rounds + 1):
            for label, shard in (("as given", material.corpus), ("level 3", level3)):
                for parser in ("extractor", "orjson"):
                    readers.can_extract = extract if parser == "extractor" else lambda *_: False
                    seconds, counts = timed(lambda shard=shard: count_phrases(material.phrases, [str(shard)]))
                    rates.setdefault(f"{label}, {parser}", []).append(counts.text_bytes / seconds / 1e6)
            for name, passes in limits.items():
                rates.setdefault(name, []).append(passes.sizes[0] / timed(lambda run=passes.run: run(0))[0] / 1e6)
            if turn == 0:
                rates.clear()  # what is compiled or read once
    readers.can_extract = extract
    print(f"\n| zst JSONL to counts, {len(material.phrases):,} phrases | MB per CPU-s, best | median (range) |")
    print("|---|---|---|")
    for name, values in rates.items():
        print(f"| {name} | {max(values):.0f} | {spread(values)} |", flush=True)


def peak_memory(corpus: Path, phrases: Sequence[str]) -> float:
    """Peak resident memory, in MB, of a process that counts the phrases in a corpus file."""
    code = (
        "import re, sys; from pathlib import Path; from latentkt.corpus import count_phrases;"
        "count_phrases(Path(sys.argv[1]).read_text().split(chr(10)), [sys.argv[2]]);"
        "print(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1])"
    )
    with tempfile.NamedTemporaryFile("w") as file:
        file.write("\n".join(phrases))
        file.flush()
        done = subprocess.run([sys.executable, "-c", code, file.name, str(corpus)], capture_output=True, check=True)
    return int(done.stdout) * 1024 / 1e6


def two_processes(path: Path, rounds: int) -> dict[str, str]:
    """Speed by the clock of two processes over that of one, alone just before, then after; needs two free cores.

    So for the library, and for two controls: work in the cache of a core, and `bytes.lower()` over text in memory. What
    they lack of 2 is what the machine takes from two processes whatever these do.
    """
    pairs = {name: [Worker(name, path) for _ in range(2)] for name in (OURS, *CONTROLS)}
    ratios: dict[str, list[float]] = {name: [] for name in pairs}
    for _ in range(rounds):
        for name, (one, other) in pairs.items():
            before = one.measure(0, _TURN)[1]
            one.ask(0, _TURN)
            other.ask(0, _TURN)
            both = one.answer()[1] + other.answer()[1]
            alone = (before + other.measure(0, _TURN)[1]) / 2
            ratios[name].append(both / alone)
    for one, other in pairs.values():
        one.close()
        other.close()
    return {name: spread(values, 2) for name, values in ratios.items()}
