"""PhantomBench: make concepts that do not exist, verify that they do not, ask models about them, judge, analyse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latentkt import lazy

if TYPE_CHECKING:
    from latentkt.phantom.answers import Answer as Answer
    from latentkt.phantom.answers import answers_frame as answers_frame
    from latentkt.phantom.answers import read_answers as read_answers
    from latentkt.phantom.answers import write_answers as write_answers
    from latentkt.phantom.blending import BlendRules as BlendRules
    from latentkt.phantom.builtin import builtin_concepts as builtin_concepts
    from latentkt.phantom.concepts import Concept as Concept
    from latentkt.phantom.concepts import load_concepts as load_concepts
    from latentkt.phantom.concepts import save_concepts as save_concepts
    from latentkt.phantom.entities import EntityRules as EntityRules
    from latentkt.phantom.making import Made as Made
    from latentkt.phantom.making import make_concepts as make_concepts
    from latentkt.phantom.patterns import PatternRules as PatternRules
    from latentkt.phantom.plausibility import Plausibility as Plausibility
    from latentkt.phantom.plausibility import measure_plausibility as measure_plausibility
    from latentkt.phantom.prompts import Prompt as Prompt
    from latentkt.phantom.prompts import load_pools as load_pools
    from latentkt.phantom.prompts import load_prompts as load_prompts
    from latentkt.phantom.prompts import make_prompts as make_prompts
    from latentkt.phantom.prompts import save_prompts as save_prompts
    from latentkt.phantom.search import IndexSearch as IndexSearch
    from latentkt.phantom.search import Limits as Limits
    from latentkt.phantom.search import ScanSearch as ScanSearch
    from latentkt.phantom.search import Verification as Verification
    from latentkt.phantom.search import verify as verify
    from latentkt.phantom.seeds import Seeds as Seeds
    from latentkt.phantom.seeds import event_query as event_query
    from latentkt.phantom.seeds import load_seeds as load_seeds
    from latentkt.phantom.subsets import SUBSETS as SUBSETS
    from latentkt.phantom.subsets import Subset as Subset
    from latentkt.phantom.subsets import comparison as comparison
    from latentkt.phantom.subsets import sample_stratified as sample_stratified
    from latentkt.phantom.subsets import sample_subset as sample_subset
    from latentkt.phantom.terms import TermRules as TermRules
    from latentkt.phantom.words import WordLists as WordLists
    from latentkt.phantom.words import concept_key as concept_key
    from latentkt.phantom.words import load_word_lists as load_word_lists

_NAMES = {
    "answers": (
        "Answer",
        "answers_frame",
        "read_answers",
        "write_answers",
    ),
    "blending": ("BlendRules",),
    "builtin": ("builtin_concepts",),
    "concepts": (
        "Concept",
        "load_concepts",
        "save_concepts",
    ),
    "entities": ("EntityRules",),
    "making": (
        "Made",
        "make_concepts",
    ),
    "patterns": ("PatternRules",),
    "plausibility": ("Plausibility", "measure_plausibility"),
    "prompts": (
        "Prompt",
        "load_pools",
        "load_prompts",
        "make_prompts",
        "save_prompts",
    ),
    "search": (
        "IndexSearch",
        "Limits",
        "ScanSearch",
        "Verification",
        "verify",
    ),
    "seeds": (
        "Seeds",
        "event_query",
        "load_seeds",
    ),
    "subsets": (
        "SUBSETS",
        "Subset",
        "comparison",
        "sample_stratified",
        "sample_subset",
    ),
    "terms": ("TermRules",),
    "words": (
        "WordLists",
        "concept_key",
        "load_word_lists",
    ),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOME, name)


def __dir__() -> list[str]:
    return __all__
