"""Open any causal language model, prove that it is read rightly, tokenise once, name its sites.

The names below are loaded when they are used, so that importing the package stays light.
"""

from __future__ import annotations

from typing import Any

from latentkt import lazy

_HOME = {
    "open_model": "load",
    "ModelHandle": "handle",
    "handle_from_hf": "load",
    "OpeningReport": "opening",
    "Architecture": "architecture",
    "SITES": "sites",
    "SiteAccess": "sites",
    "attached": "sites",
    "record": "sites",
    "NormReading": "norms",
    "Encoded": "tokens",
    "encode": "tokens",
    "Alignment": "alignment",
    "align": "alignment",
    "AnswerSet": "answers",
    "encode_answers": "answers",
    "AnswerScores": "scoring",
    "score_answers": "scoring",
    "Pair": "pair",
    "make_pair": "pair",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOME, name)


def __dir__() -> list[str]:
    return __all__
