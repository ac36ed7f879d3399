"""Counts × items × measurements: one table, item by item, and the slope of dominance on the log prior ratio."""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "Line": "slope",
    "errors_in_both": "slope",
    "item_priors": "items",
    "join_dominance": "verdict",
    "prior_verdict": "verdict",
    "read_precision": "precision",
    "write_precision_sheet": "precision",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
