"""What a record may hold, and the checks of one value each.

A record is one question asked in one setting, condition and option order. Values may be missing (null, or no such
field); what is there must be what its field says.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["CONDITIONS", "FIELDS", "NUMBERS", "PROBES", "REQUIRED", "TEXTS", "YES_NO", "checked"]

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
FIELDS = tuple(CHECKS)
_CHECKS = tuple(CHECKS.items())


def checked(record: Any) -> tuple[tuple[str | float | None, ...], str | None]:
    """The values of a record in the order of `FIELDS`, None where absent, and what is wrong with it, if anything.

    Example:
        >>> checked({"question_id": "q", "setting": "m", "condition": "names", "answer": "distractor"})[0][:5]
        ('q', 'm', 'names', None, 'shortcut')
        >>> checked({"question_id": "q", "setting": "m", "condition": "names", "confidence": "about 80%"})[1]
        "question 'q': confidence is 'about 80%', expected a number from 0 to 100"
    """
    if not isinstance(record, dict):
        return (), f"a record is a JSON object, found {type(record).__name__}"
    values: list[str | float | None] = []
    get = record.get
    for name, check in _CHECKS:
        value = get(name)
        if value is None or value != value:  # null or NaN
            if name in REQUIRED:
                return (), f"{name} is missing" + (f" (question {values[0]!r})" if values else "")
            values.append(None)
            continue
        try:
            values.append(check(value))
        except Refused as refusal:
            where = f"question {values[0]!r}: " if values else ""
            return (), f"{where}{name} is {value!r}, expected {refusal}"
    return tuple(values), None
