"""Confidence asked in a second turn: a whole number from 0 to 100, or nothing."""

from __future__ import annotations

import re

from latentkt.trapqa.matching.forms import normalise

__all__ = ["CONFIDENCE_QUESTION", "read_confidence"]

CONFIDENCE_QUESTION = (
    "How sure are you that this answer is right? Reply with one whole number from 0 (certainly wrong) to 100 "
    "(certainly right) and nothing else."
)
_NUMBER = re.compile(
    r"(?:(?:my )?confidence(?: level| score)?(?: is|:)? )?(\d{1,3})(?:\.0+)? ?(?:%|percent|/ ?100)?[.!]?"
)


def read_confidence(text: str) -> float | None:
    """The number in a reply that is nothing but one number from 0 to 100, with or without a percent sign; else None.

    What is vague ("about 80%"), a range or out of range is no number: it is counted as missing, never rounded.

    Example:
        >>> read_confidence("85%"), read_confidence("about 80%"), read_confidence("70-80"), read_confidence("101")
        (85.0, None, None, None)
    """
    match = _NUMBER.fullmatch(normalise(text))
    if match is None or int(match[1]) > 100:
        return None
    return float(match[1])
