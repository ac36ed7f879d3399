"""Counting speed: this library and its peers on the same text, in one run, per CPU-second of one process.

    python experiments/benchmarks/corpus_counting.py gutenberg.jsonl.zst

Speeds are MB (10⁶ bytes) of uncompressed text per CPU-second. Each method runs in a process of its own, so that its
peak memory is its own (with the text and the phrases). The methods of one set of phrases stay alive and take turns:
each reads a part of the text (and those behind it, until 0.2 CPU-seconds have passed), then the next round begins with
the next part. Ratios are those of one round, so that a machine whose speed changes from minute to minute does not make
them. `bytes.lower()` over the part, and decompression and parsing of the file, take their turns as well. A peer whose
table takes over 60 CPU-seconds or 2 GB is left out, and so are lists too long for a peer by far. Hits in the first part
are compared with the NumPy kernel's.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import pickle
import platform
import random
import re
import statistics
import tempfile
from pathlib import Path

from corpus_methods import LIMIT_BYTES, LIMIT_SECONDS, LOWER, METHODS, OURS, PARSE, REFERENCE, Material, Start, Worker
from corpus_whole import end_to_end, peak_memory, spread, two_processes

LARGEST = {"re, alternation": 100, "pyahocorasick": 10_000, "ahocorasick_rs, DFA, inexact": 10_000}
TURN = 0.2  # CPU-seconds
PARTS = ("100", "10,000", "dense", "few", "whole")


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


def with_false_endings(phrases: list[str], texts: list[str], *, seed: int = 0) -> list[str]:
    """Phrases that hardly occur: four letters of the text behind each.

    The letters differ from phrase to phrase, as in invented names. One ending for all would not do: where it holds a
    rare letter (say "xq"), an automaton searches for that letter alone and is ten times as fast as on any other list.
    """
    rng = random.Random(seed)
    letters = re.findall(r"[a-z]", " ".join(texts[:100]).lower())
    return [phrase + "".join(rng.choices(letters, k=4)) for phrase in phrases]


def machine() -> str:
    """Processor, cores, and the versions that matter."""
    names = re.findall(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    libraries = ("numpy", "numba", "ahocorasick_rs", "pyahocorasick")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in libraries)
    mhz = re.findall(r"cpu MHz\s*:\s*(\d+)", Path("/proc/cpuinfo").read_text())[:1]
    processor = f"{names[0] if names else platform.machine()}, {''.join(mhz) or '?'} MHz, {os.cpu_count()} cores"
    return f"{processor}; Python {platform.python_version()}, {versions}; load {os.getloadavg()[0]:.1f}"


class Group:
    """One set of phrases: its methods, ready, and the speeds of their passes."""

    def __init__(self, label: str, path: Path, n_phrases: int) -> None:
        self.label = label
        self.workers: dict[str, Worker] = {}
        self.starts: dict[str, Start] = {}
        self.refused: dict[str, str] = {}
        self.rates: dict[str, list[float]] = {}
        for name in METHODS:
            if n_phrases <= LARGEST.get(name, n_phrases):
                self._open(name, path)

    def _open(self, name: str, path: Path) -> None:
        worker = Worker(name, path)
        start = worker.start
        if start is None:
            self.refused[name] = f"stopped: its table takes more than {LIMIT_SECONDS} CPU-s, or it failed"
            return
        if "latentkt" not in name and (start.build > LIMIT_SECONDS or start.peak > LIMIT_BYTES):
            self.refused[name] = f"over the limits: {start.build:.0f} CPU-s, {start.peak / 1e9:.1f} GB"
            worker.close()
            return
        self.workers[name], self.starts[name] = worker, start

    def run(self, rounds: int) -> None:
        """Read part after part, all methods in turn."""
        for part in range(1, rounds + 1):
            for name, worker in self.workers.items():
                self.rates.setdefault(name, []).append(worker.measure(part, TURN)[0])
        for worker in self.workers.values():
            worker.close()

    def against(self, one: str, other: str) -> list[float]:
        """Speed of one method over that of another, round by round."""
        return [first / second for first, second in zip(self.rates[one], self.rates[other], strict=True)]

    def show(self) -> None:
        """Print the rows of the table."""
        for name, rates in self.rates.items():
            start = self.starts[name]
            row = [self.label, name, _figure(max(rates)), spread(rates, _digits(rates))]
            row.append("1" if name == OURS else spread(self.against(OURS, name), 1))
            row += [f"{statistics.median(self.against(name, bound)):.3f}" for bound in (LOWER, PARSE)]
            if name in {LOWER, PARSE}:
                row += [""] * 3
            else:
                row += [f"{start.build:.2f}", f"{start.peak / 1e6:.0f}", f"{self.agreement(name):.4f}"]
            print("| " + " | ".join(row) + " |", flush=True)
        for name, reason in self.refused.items():
            print(f"| {self.label} | {name} | {reason} |" + " |" * 7, flush=True)

    def agreement(self, name: str) -> float:
        """Hits of a method over those of the NumPy kernel; 1 where both have none."""
        hits, expected = self.starts[name].hits, self.starts[REFERENCE].hits
        return 1.0 if hits == expected else hits / expected if expected else float("inf")

    def summary(self) -> str:
        """One row: the library beside the fastest mode of ahocorasick_rs that gives the same counts."""
        exact = [name for name in self.rates if name.startswith("ahocorasick_rs") and self.agreement(name) == 1]
        rates = self.rates[OURS]
        row = [self.label, _figure(max(rates)), spread(rates)]
        row += [f"{statistics.median(self.against(OURS, bound)):.2f}" for bound in (LOWER, PARSE)]
        if exact:
            peer = max(exact, key=lambda name: statistics.median(self.rates[name]))
            row += [f"{peer}: {_figure(max(self.rates[peer]))}", spread(self.against(OURS, peer), 1)]
        else:
            row += ["none within the limits", ""]
        row += [_figure(max(self.rates[REFERENCE])), f"{self.starts[OURS].build:.2f}"]
        return "| " + " | ".join(row) + " |"


def _digits(rates: list[float]) -> int:
    return 0 if max(rates) >= 100 else 1


def _figure(rate: float) -> str:
    return f"{rate:.{_digits([rate])}f}"


HEAD = (
    "| phrases | method | MB per CPU-s, best | median (range) | latentkt numba is … times as fast | of bytes.lower() "
    "| of decompression and parsing | table built, CPU-s | peak MB | hits over NumPy's |\n" + "|---" * 10 + "|"
)
SUMMARY = (
    "\n| phrases | MB per CPU-s, best | median (range) | of bytes.lower() | of decompression and parsing "
    "| fastest exact peer | times as fast, median (range) | NumPy kernel | table built, CPU-s |\n" + "|---" * 9 + "|"
)


def main() -> None:
    """Print the tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--megabytes", type=float, default=8, help="of text in each part")
    parser.add_argument("--large", type=int, default=1_000_000, help="phrases of the long lists")
    parser.add_argument("--rounds", type=int, default=7, help="parts that each method reads")
    parser.add_argument("--only", nargs="*", choices=PARTS, default=PARTS)
    options = parser.parse_args()
    texts = read_texts(options.corpus, options.megabytes * (options.rounds + 1))
    long = {"dense", "few", "whole"} & set(options.only)
    dense = phrase_list(texts, options.large, real=0.25) if long else []
    sets = {
        "100": ("100", phrase_list(texts, 100, real=1.0)),
        "10,000": ("10,000", phrase_list(texts, 10_000, real=0.5)),
        "dense": (f"{options.large:,}, dense", dense),
        "few": (f"{options.large:,}, few hits", with_false_endings(dense, texts)),
    }
    print(machine() + "\n\n" + HEAD, flush=True)
    parts = [texts[low :: options.rounds + 1] for low in range(options.rounds + 1)]
    summary = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "material"
        for part, (label, phrases) in sets.items():
            if part in options.only:
                path.write_bytes(pickle.dumps(Material(options.corpus, parts, phrases)))
                group = Group(label, path, len(phrases))
                group.run(options.rounds)
                group.show()
                summary.append(group.summary())
        print("\n".join([SUMMARY, *summary]), flush=True)
        if "whole" in options.only:
            material = Material(options.corpus, parts, sets["10,000"][1])
            path.write_bytes(pickle.dumps(material))
            end_to_end(material, options.rounds)
            at_once = two_processes(path, options.rounds)
            print(
                f"\nTwo processes at once: {at_once.pop(OURS)} times the speed of one; on the same machine "
                + ", ".join(f"{name} {ratio}" for name, ratio in at_once.items())
                + ".",
                flush=True,
            )
            peak = peak_memory(options.corpus, dense)
            print(
                f"Peak memory of a process that counts {len(dense):,} phrases in the file: {peak:.0f} MB.", flush=True
            )


if __name__ == "__main__":
    main()
