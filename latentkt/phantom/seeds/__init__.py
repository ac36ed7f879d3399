"""Seeds: concepts that exist, by category, from the files in which people keep them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latentkt import lazy

if TYPE_CHECKING:
    from latentkt.phantom.seeds.loading import FORMATS as FORMATS
    from latentkt.phantom.seeds.loading import load_seeds as load_seeds
    from latentkt.phantom.seeds.seeds import Seeds as Seeds
    from latentkt.phantom.seeds.wikidata import event_query as event_query

_HOME = {"FORMATS": "loading", "Seeds": "seeds", "event_query": "wikidata", "load_seeds": "loading"}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOME, name)


def __dir__() -> list[str]:
    return __all__
