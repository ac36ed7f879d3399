"""The README and the user guide cannot rot: their Python blocks and `latentkt` commands run here.

A block that follows a line `<!-- not run: REASON -->` is left out; blocks of other languages are text. Blocks of one
page run in order, in one namespace, in an empty folder.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from latentkt.cli import main

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"(?P<skip><!-- not run: [^>]+-->\n+)?^```(?P<language>python|bash)\n(?P<code>.*?)^```", re.M | re.S)


def _commands(code: str) -> list[list[str]]:
    joined = code.replace("\\\n", " ")
    lines = [shlex.split(line, comments=True) for line in joined.splitlines()]
    return [words for words in lines if words]


def _run_block(language: str, code: str, namespace: dict[str, object]) -> None:
    if language == "python":
        exec(compile(code, "<block>", "exec"), namespace)
        return
    for words in _commands(code):
        if words[0] == "latentkt":
            assert main(words[1:]) == 0, " ".join(words)
        elif words[0] not in {"make", "pip", "git", "cd"}:
            raise AssertionError(f"a bash block holds a command that the tests do not know: {words}")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_blocks_of_the_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "page"}
    for match in BLOCK.finditer(page.read_text(encoding="utf-8")):
        if not match["skip"]:
            _run_block(match["language"], match["code"], namespace)


def test_a_wrong_block_is_seen():
    with pytest.raises(AssertionError):
        _run_block("python", "assert 1 == 2", {})
    with pytest.raises(AssertionError):
        _run_block("bash", "rm -r everything", {})
