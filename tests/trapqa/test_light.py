"""Reading items and writing plain prompts needs none of the heavy libraries, and no model."""

from __future__ import annotations

import subprocess
import sys

from latentkt import trapqa

CODE = """
import sys
from latentkt.trapqa import check_items, load_items, render
items = load_items(sys.argv[1])
check_items(items)
assert render(items.items[0], template="plain").text
heavy = {"torch", "transformers", "pandas", "tokenizers", "latentkt.models", "latentkt.internals"} & sys.modules.keys()
assert not heavy, heavy
"""


def test_items_load_and_render_without_torch_transformers_pandas_or_models(small_path):
    subprocess.run([sys.executable, "-c", CODE, str(small_path)], check=True)


def test_every_public_name_is_there():
    for name in trapqa.__all__:
        assert getattr(trapqa, name).__name__ == name
    assert dir(trapqa) == trapqa.__all__
