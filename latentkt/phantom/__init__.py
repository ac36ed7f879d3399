"""PhantomBench: make concepts that do not exist, verify that they do not, ask models about them, judge, analyse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latentkt import lazy

if TYPE_CHECKING:
    from latentkt.phantom.concepts import Concept as Concept
    from latentkt.phantom.concepts import load_concepts as load_concepts
    from latentkt.phantom.concepts import save_concepts as save_concepts
    from latentkt.phantom.prompts import Prompt as Prompt
    from latentkt.phantom.prompts import make_prompts as make_prompts

_HOME = {
    "Concept": "concepts",
    "Prompt": "prompts",
    "load_concepts": "concepts",
    "make_prompts": "prompts",
    "save_concepts": "concepts",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOME, name)


def __dir__() -> list[str]:
    return __all__
