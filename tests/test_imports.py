"""Importing the package is cheap, and the floors of the house hold."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_import_brings_in_nothing_heavy():
    code = (
        "import sys, latentkt, latentkt.cli; "
        "heavy = {'torch', 'transformers', 'pandas', 'sklearn', 'matplotlib', 'transformer_lens', 'nnsight'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert out.stdout.strip() == "[]"


def test_floors():
    lint = Path(sys.executable).parent / "lint-imports"
    out = subprocess.run(
        [str(lint), "--no-cache"],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert out.returncode == 0, out.stdout + out.stderr
