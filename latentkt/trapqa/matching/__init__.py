"""From a free-text reply to one of an item's two answers, or to none: never a guess.

A reply that is nothing but one candidate is matched as it stands (the TrapQA paper's rule). A longer one is read clause
by clause: a candidate that is asked about, denied, quoted or only supposed is not an answer. See `match_answer`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latentkt import lazy

if TYPE_CHECKING:
    from latentkt.trapqa.matching.confidence import CONFIDENCE_QUESTION as CONFIDENCE_QUESTION
    from latentkt.trapqa.matching.confidence import read_confidence as read_confidence
    from latentkt.trapqa.matching.decision import Match as Match
    from latentkt.trapqa.matching.decision import match_answer as match_answer
    from latentkt.trapqa.matching.decision import match_truth as match_truth
    from latentkt.trapqa.matching.reply import Reply as Reply
    from latentkt.trapqa.matching.reply import read_reply as read_reply

_HOME = {
    "CONFIDENCE_QUESTION": "confidence",
    "Match": "decision",
    "Reply": "reply",
    "match_answer": "decision",
    "match_truth": "decision",
    "read_confidence": "confidence",
    "read_reply": "reply",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOME, name)


def __dir__() -> list[str]:
    return __all__
