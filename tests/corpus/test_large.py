"""One document of 200 MB: counted right, also at the edges of chunks and pieces, and in bounded memory."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

CHUNK, BASE = 1 << 15, 450_000_000  # bytes: what the kernel reads at once; the process with numba, without a corpus
FILLER = "the quick brown fox jumps over the lazy dog, and the caf\u00e9 is closed;\n".encode()  # 14 words
PHRASE = " Charles DARWIN on natural\nselection, \u00e9tude of ".encode()  # 7 words
CODE = """
import json, sys
from pathlib import Path
from latentkt.corpus import Patterns
from latentkt.corpus.local import count_corpus

path, kernel, out = sys.argv[1:]
patterns = {"keys": {"d": ["Charles Darwin"]}, "tasks": {"e": ["natural selection"], "u": ["\\u00e9tude of"]}}
counts = count_corpus([path], Patterns.from_dict(patterns), out, windows=[4, 5], kernel=kernel, show_progress=False)
status = Path("/proc/self/status").read_text()
peak = int(status.partition("VmHWM:")[2].split()[0]) * 1024
about = {name: counts.manifest[name] for name in ("words", "documents")}
print(json.dumps({**counts.to_dict(), **about, "peak": peak}))
"""


def _document(size):
    """A text of about `size` bytes, the phrases planted in it, and its words.

    A phrase lies across every edge of a chunk of the text, at another place each time. The last one is not in NFC, so
    that the whole document must be prepared; nothing stands behind it.
    """
    parts, at, planted, fillers = [], 0, 0, 0
    for index, edge in enumerate(range(CHUNK, size, CHUNK)):
        rest = edge - index % len(PHRASE) - at
        parts += [FILLER * (rest // len(FILLER)), b"." * (rest % len(FILLER)), PHRASE]
        fillers, planted, at = fillers + rest // len(FILLER), planted + 1, at + rest + len(PHRASE)
    parts += [FILLER, PHRASE.rstrip().replace(b"\xc3\xa9", b"e\xcc\x81")]
    return b"".join(parts), planted + 1, 14 * (fillers + 1) + 7 * (planted + 1)


def _write(folder, document, kind):
    if kind == "txt":
        (folder / "one.txt").write_bytes(document)
        return folder / "one.txt"
    text = document.decode("utf-8")
    rows = [{"text": "Charles Darwin"}, {"n": [{}], "text": text, "source": "s"}, {"text": "natural selection"}]
    data = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    (folder / "one.jsonl").write_text(data, encoding="utf-8")
    return folder / "one.jsonl"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "kind", "kernel", "factor"),
    [
        (200_000_000, "txt", "numba", 3),
        (200_000_000, "jsonl", "numba", 5),
        (30_000_000, "txt", "numpy", 3),
        (30_000_000, "jsonl", "numpy", 5),
    ],
)
def test_one_large_document(tmp_path, size, kind, kernel, factor):
    document, planted, words = _document(size)
    path = _write(tmp_path, document, kind)
    command = [sys.executable, "-c", CODE, str(path), kernel, str(tmp_path / "out")]
    found = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    beside = kind == "jsonl"
    assert found["keys"] == {"d": planted + beside} and found["tasks"] == {"e": planted + beside, "u": planted}
    assert found["cooccurrence"] == {
        "document": {"d:e": 1, "d:u": 1},
        "window:4": {"d:e": planted, "d:u": 0},
        "window:5": {"d:e": planted, "d:u": planted},
    }
    assert (found["documents"], found["words"]) == (1 + 2 * beside, words + 4 * beside)
    assert found["peak"] < BASE + factor * len(document), found["peak"] / 1e6
