"""Verification: how often a corpus holds a concept, and what follows where it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latentkt import lazy

if TYPE_CHECKING:
    from latentkt.phantom.search.index import PUBLIC_INDEXES as PUBLIC_INDEXES
    from latentkt.phantom.search.index import IndexSearch as IndexSearch
    from latentkt.phantom.search.scan import ScanSearch as ScanSearch
    from latentkt.phantom.search.verifying import Limits as Limits
    from latentkt.phantom.search.verifying import Verification as Verification
    from latentkt.phantom.search.verifying import verify as verify

_HOME = {
    "IndexSearch": "index",
    "Limits": "verifying",
    "PUBLIC_INDEXES": "index",
    "ScanSearch": "scan",
    "Verification": "verifying",
    "verify": "verifying",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOME, name)


def __dir__() -> list[str]:
    return __all__
