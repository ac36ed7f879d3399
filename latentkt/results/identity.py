"""What a run's tables depend on, and whether two runs are the same in that."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from latentkt.errors import InputError, RunError
from latentkt.results.files import canonical_json

__all__ = ["differences", "plain", "refuse_differences"]

_ABSENT = "(absent)"


def plain(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata as they come back from the file: tuples are lists, keys are text.

    Raises:
        InputError: A value cannot be written as JSON.
    """
    if "schema_version" in metadata:
        raise InputError("metadata", expected="no key 'schema_version'", found=metadata["schema_version"])
    return json.loads(canonical_json(dict(metadata)))


def differences(before: Any, now: Any, at: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Every place where two JSON values differ, as (dotted path, value before, value now).

    Example:
        >>> list(differences({"model": {"hash": "a", "id": "m"}}, {"model": {"hash": "b", "id": "m"}}))
        [('model.hash', 'a', 'b')]
    """
    if isinstance(before, dict) and isinstance(now, dict):
        for key in sorted(before.keys() | now.keys()):
            inner = f"{at}.{key}" if at else key
            yield from differences(before.get(key, _ABSENT), now.get(key, _ABSENT), inner)
    elif before != now or type(before) is not type(now):
        yield at, before, now


def refuse_differences(path: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to go on with a run whose tables would be made otherwise.

    Raises:
        RunError: Names every difference.
    """
    found = list(differences(before, now))
    if not found:
        return
    lines = [f"{where}: the run has {_short(old)}, now {_short(new)}" for where, old, new in found]
    more = [f"and {len(lines) - 12} more"] if len(lines) > 12 else []
    raise RunError(
        f"run {path} was begun with another identity",
        expected="the same model, items, seeds, options and library versions",
        found="\n            ".join(["", *lines[:12], *more]).lstrip(),
        fix="resume with what the run was begun with, or begin a new run in another folder",
    )


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}…"
