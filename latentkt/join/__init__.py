"""Counts × items × measurements: one table, item by item, and the slope of dominance on the log prior ratio."""

from __future__ import annotations

from typing import Any

from latentkt import lazy

_HOME = {
    "Line": "slope",
    "errors_in_both": "slope",
    "item_certificates": "certificate",
    "item_priors": "items",
    "join_dominance": "verdict",
    "prior_verdict": "verdict",
    "read_precision": "precision",
    "write_precision_sheet": "precision",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOME, name)


def __dir__() -> list[str]:
    return __all__
