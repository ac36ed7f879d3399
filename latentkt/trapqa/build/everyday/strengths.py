"""Files of association strengths, as the Small World of Words publishes them: one cue and one response a row.

The columns are `cue`, `response`, a count (`R1` or `R123`), the number of answers `N`, and the strength, separated by
tabs in spite of the ending `.csv` (the Chinese file has commas). The strength is recomputed as count / N.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from latentkt.errors import DataError, InputError
from latentkt.trapqa.build.log import StageLog, lines_of

__all__ = ["Strength", "read_strengths"]

STAGE = "rows of the file"
COUNTS = ("R1", "R123", "R2", "R3")
AGREE = 0.02


@dataclass(frozen=True, slots=True)
class Strength:
    """One row: how many of the people who were given a cue answered with a response.

    Attributes:
        cue: The cue, as written.
        response: The response, as written.
        count: People who gave it.
        n: People asked.
    """

    cue: str
    response: str
    count: int
    n: int


def read_strengths(path: str | Path, log: StageLog) -> list[Strength]:
    """Read a strength file; rows that cannot be used are removed and logged by line.

    Args:
        path: A text file in UTF-8 (or, where that fails, Latin-1), separated by tabs, commas or semicolons.
        log: Where removals go.

    Raises:
        InputError: There is no such file.
        DataError: The columns are not there, or no row can be used.
    """
    path = Path(path)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(f"no association file {path}", expected="a strength file", fix="check the path") from error
    lines = lines_of(_decoded(raw))
    separator, columns = _header(lines, path)
    kept = []
    for number, line in enumerate(lines[1:], start=2):
        if line.strip():
            fields = _split(line, separator)
            try:
                kept.append(_row(fields, columns))
            except _NoiseError as noise:
                log.remove(STAGE, f"line {number}", noise.rule, noise.detail)
    log.count(STAGE, kept=len(kept))
    if not kept:
        raise DataError(f"{path} holds no association", expected="rows under the header", found=f"{len(log)} bad rows")
    return kept


class _NoiseError(Exception):
    def __init__(self, rule: str, detail: str) -> None:
        self.rule, self.detail = rule, detail


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _split(line: str, separator: str) -> list[str]:
    if separator == "\t":
        return line.split("\t")  # quotes are part of a word there
    return next(iter(csv.reader([line], delimiter=separator)))


def _header(lines: Sequence[str], path: Path) -> tuple[str, dict[str, int]]:
    """The separator, and the place of each column."""
    first = lines[0] if lines else ""
    separator = max("\t,;", key=first.count)
    names = [name.strip().strip('"') for name in _split(first, separator)]
    places = {name.lower(): place for place, name in enumerate(names)}
    count = next((name for name in COUNTS if name.lower() in places), None)
    missing = [name for name in ("cue", "response", "n") if name not in places]
    if missing or count is None:
        raise DataError(
            f"{path}: not a file of association strengths",
            expected="the columns cue, response, R1 (or R123), N",
            found=", ".join(names)[:200] or "an empty file",
        )
    columns = {"cue": places["cue"], "response": places["response"], "count": places[count.lower()], "n": places["n"]}
    strength = places.get(f"{count}.strength".lower())
    return separator, columns if strength is None else {**columns, "strength": strength}


def _row(fields: Sequence[str], columns: dict[str, int]) -> Strength:
    if len(fields) <= max(columns.values()):
        raise _NoiseError("too few fields", f"{len(fields)} fields")
    taken = {name: fields[place].strip().strip('"').strip() for name, place in columns.items()}
    cue, response = taken["cue"], taken["response"]
    if not cue or not response:
        raise _NoiseError("empty cue or response", f"{cue!r}, {response!r}")
    try:
        count, n = int(float(taken["count"])), int(float(taken["n"]))
    except (ValueError, OverflowError):
        raise _NoiseError("count is no number", f"{taken['count']!r} of {taken['n']!r}") from None
    if not 0 < count <= n:
        raise _NoiseError("impossible count", f"{count} of {n}")
    _check_strength(taken.get("strength", ""), count / n)
    return Strength(cue, response, count, n)


def _check_strength(written: str, strength: float) -> None:
    try:
        given = float(written) if written else strength
    except ValueError:
        raise _NoiseError("strength is no number", repr(written)) from None
    if not abs(given - strength) <= AGREE:
        raise _NoiseError("strength is not count / N", f"{given} for {strength:.4f}")
