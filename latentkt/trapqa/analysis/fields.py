"""What a record may hold, and the checks of one value each.

A record is one question asked in one setting, condition and option order. Values may be missing (null, or no such
field); what is there must be what its field says.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["CHECKS", "CONDITIONS", "NUMBERS", "PROBES", "REQUIRED", "TEXTS", "YES_NO", "problem_of"]

REQUIRED = ("question_id", "setting", "condition")
ANSWERS = {"correct": "correct", "shortcut": "shortcut", "distractor": "shortcut", "off": "off"}
CONDITIONS = {
    "names": "names",
    "prepend_names": "names",
    "profiles": "profiles",
    "prepend_profiles": "profiles",
    "real_life": "real_life",
    "neutral": "neutral",
    "probes": "probes",
}
ORDERS = {"correct_first": "correct_first", "shortcut_first": "shortcut_first"}
PROBES = ("eliminative", "compatibility")
YES_NO = tuple(f"probe_{role}_{what}" for role in PROBES for what in ("correct", "predicted"))
NUMBERS = ("confidence", "correct_fame", "shortcut_fame", "log_odds")
LABELS = ("family", "aspect", "constraint_kind")
TEXTS = (*REQUIRED, "order", "answer", *LABELS)


class Refused(ValueError):
    """A value is not what its field holds; the text says what would be."""


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise Refused("text")
    return value


def _one_of(known: Mapping[str, str]) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if not isinstance(value, str) or value not in known:
            raise Refused(f"one of {', '.join(known)}")
        return known[value]

    return check


def _yes_no(value: Any) -> float:
    if not isinstance(value, bool):
        raise Refused("true or false")
    return float(value)


def _number(low: float, high: float, words: str) -> Callable[[Any], float]:
    def check(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise Refused(words)
        return float(value)

    return check


CHECKS: dict[str, Callable[[Any], str | float]] = {
    "question_id": _text,
    "setting": _text,
    "condition": _one_of(CONDITIONS),
    "order": _one_of(ORDERS),
    "answer": _one_of(ANSWERS),
    **{label: _text for label in LABELS},
    **{name: _yes_no for name in YES_NO},
    "confidence": _number(0.0, 100.0, "a number from 0 to 100"),
    "correct_fame": _number(-sys.float_info.max, sys.float_info.max, "a finite number"),
    "shortcut_fame": _number(-sys.float_info.max, sys.float_info.max, "a finite number"),
    "log_odds": _number(-sys.float_info.max, sys.float_info.max, "a finite number"),
}


def problem_of(record: Any) -> tuple[dict[str, str | float], str | None]:
    """The checked values of a record that are there, and what is wrong with it, if anything.

    Example:
        >>> problem_of({"question_id": "q", "setting": "m", "condition": "names", "answer": "distractor"})
        ({'question_id': 'q', 'setting': 'm', 'condition': 'names', 'answer': 'shortcut'}, None)
        >>> problem_of({"question_id": "q", "setting": "m", "condition": "names", "confidence": "about 80%"})[1]
        "confidence is 'about 80%', expected a number from 0 to 100"
    """
    if not isinstance(record, dict):
        return {}, f"a record is a JSON object, found {type(record).__name__}"
    values: dict[str, str | float] = {}
    for name, check in CHECKS.items():
        value = record.get(name)
        absent = value is None or (isinstance(value, float) and math.isnan(value))
        if absent and name in REQUIRED:
            return values, f"{name} is missing"
        if absent:
            continue
        try:
            values[name] = check(value)
        except Refused as refusal:
            return values, f"{name} is {value!r}, expected {refusal}"
    return values, None
