"""From text to priors: read a corpus, match keys and tasks, count, merge, estimate priors with uncertainty."""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "Counts": "counts",
    "Matching": "matching",
    "count_texts": "counter",
    "load_counts": "counts",
    "Form": "patterns",
    "Patterns": "patterns",
    "find_patterns": "patterns",
    "load_patterns": "patterns",
    "path_name": "patterns",
    "split_path": "patterns",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
