"""Where sentences start, by rule.

A sentence ends after a run of ``. ! ? …`` and closing quotes or brackets that white space follows, unless the run is
one full stop behind an abbreviation of the list or behind a single letter (an initial), or unless a lower-case letter
follows; after ``。 ！ ？``; and at a blank line.
"""

from __future__ import annotations

import re

__all__ = ["ABBREVIATIONS", "sentence_starts"]

# fmt: off
ABBREVIATIONS = frozenset((
    "mr", "mrs", "ms", "messrs", "dr", "prof", "rev", "hon", "st", "sr", "jr", "gen", "col", "capt", "lt", "sgt",
    "maj", "gov", "sen", "rep", "pres", "vs", "etc", "cf", "al", "vol", "vols", "no", "nos", "pp", "fig", "figs",
    "eq", "eqs", "ch", "sec", "ed", "eds", "trans", "dept", "univ", "inc", "ltd", "co", "corp", "viz", "approx",
    "ca", "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sept", "sep", "oct", "nov", "dec", "phil", "esq",
    "bros", "mt", "ft", "messr", "mme", "mlle",
))
# fmt: on
_END = re.compile(
    r"(?P<blank>\n[^\S\n]*\n\s*)"
    r"|(?<![.!?\u2026\u3002\uff01\uff1f])"
    r"(?:(?P<run>[.!?\u2026]+[\"'\u201d\u2019)\]]*)(?=\s)|[\u3002\uff01\uff1f]+)\s*"
)
_LAST_WORD = re.compile(r"\w*$")


def sentence_starts(text: str) -> list[int]:
    """Offsets at which the sentences of a document start; the first is 0.

    Example:
        >>> sentence_starts("Mr. Darwin wrote. It sold well.")
        [0, 18]
    """
    starts, at = [0], 0
    while match := _END.search(text, at):
        if match["blank"] is None and _goes_on(text, match):
            at = match.start() + 1
            continue
        if starts[-1] < match.end() < len(text):
            starts.append(match.end())
        at = match.end()
    return starts


def _goes_on(text: str, match: re.Match[str]) -> bool:
    if match["run"] == ".":
        word = _LAST_WORD.search(text[max(0, match.start() - 40) : match.start()])
        before = word.group() if word else ""
        if before.lower() in ABBREVIATIONS or (len(before) == 1 and before.isalpha()):
            return True
    return match.end() < len(text) and text[match.end()].islower()
