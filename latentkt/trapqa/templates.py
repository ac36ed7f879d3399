"""The words around a question: which parts a prompt has, and in which order.

Parts and order are those of the TrapQA paper (arXiv 2607.00447, Appendix E.2), in words of this project. A template
is text with placeholders: `{question}`, and the two options in the order in which they are shown, as `{option_a}` and
`{option_b}` (their answers) or `{profile_a}` and `{profile_b}` (name, newline, profile).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from latentkt.errors import InputError
from latentkt.trapqa.items import Kind

__all__ = [
    "CONDITIONS",
    "NEUTRAL_QUESTION",
    "PLAIN_CUE",
    "PROBE_TEMPLATE",
    "TEMPLATES",
    "Condition",
    "check_prompt_template",
    "read_prompt_template",
    "split_template",
]

Condition = Literal["names", "profiles", "neutral", "real_life"]

CONDITIONS: dict[Kind, tuple[Condition, ...]] = {
    "scientist": ("names", "profiles", "neutral"),
    "action": ("real_life", "neutral"),
}
"""Kind of item -> the conditions it can be asked in; the first is its own."""

_NAMES = """\
Answer the question below with exactly one of these two options:
1. {option_a}
2. {option_b}

Question:
{question}"""
_PROFILES = """\
Here are the profiles of two people:

{profile_a}

{profile_b}

Decide which one of the two profiles fits, and answer the question below with that person's name only:
{question}"""
_REAL_LIFE = """\
Two options are named in the question below. Answer it with exactly one of them, in the same words.

Question:
{question}"""

TEMPLATES: dict[tuple[Kind, Condition], str] = {
    ("scientist", "names"): _NAMES,
    ("scientist", "profiles"): _PROFILES,
    ("scientist", "neutral"): _NAMES,
    ("action", "real_life"): _REAL_LIFE,
    ("action", "neutral"): _REAL_LIFE,
}
"""(Kind, condition) -> the built-in template."""
NEUTRAL_QUESTION: dict[Kind, str] = {
    "scientist": "Who is this person?",
    "action": "Which of the two: {option_a} or {option_b}?",
}
"""What stands for the question in the neutral condition: the candidates without the description."""
PROBE_TEMPLATE = "{question}"
"""A probe question is asked alone."""
PLAIN_CUE = "\nAnswer:"
"""The end of a plain prompt; the answer follows after one space."""

_PLACEHOLDER = re.compile(r"(\{[a-z_][a-z0-9_]*\})")
_OPTIONS = ("{option_a}", "{option_b}")
_PROFILE_SLOTS = ("{profile_a}", "{profile_b}")
_KNOWN = ("{question}", *_OPTIONS, *_PROFILE_SLOTS)


def read_prompt_template(path: str | Path) -> str:
    """Read a prompt template from a file, exactly, but for the one newline that ends the file.

    Raises:
        InputError: The file cannot be read as UTF-8.
    """
    try:
        text = Path(path).read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the prompt template {path}: {error}", expected="a UTF-8 text file") from error
    return text.removesuffix("\n").removesuffix("\r")


def split_template(template: str) -> list[str]:
    r"""The parts of a template: texts and placeholders in turn, empty texts left out.

    Example:
        >>> split_template("Q: {question}\nA:")
        ['Q: ', '{question}', '\nA:']
    """
    return [part for part in _PLACEHOLDER.split(template) if part]


def check_prompt_template(template: str, *, kind: Kind, condition: Condition) -> None:
    """Check that a user's template can carry items of that kind in that condition.

    Raises:
        InputError: A placeholder is unknown, missing or does not belong to the condition.
    """
    found = _PLACEHOLDER.findall(template)
    unknown = [name for name in found if name not in _KNOWN]
    if unknown:
        _refuse("an unknown placeholder", f"only {', '.join(_KNOWN)}", unknown)
    if found.count("{question}") != 1:
        _refuse("not one question", "{question} exactly once", found)
    wanted = _PROFILE_SLOTS if condition == "profiles" else _OPTIONS
    if any(name in found for name in _PROFILE_SLOTS) and condition != "profiles":
        _refuse("profiles", f"no profiles in the condition {condition!r}", found)
    shown = [name for name in wanted if name in found]
    if len(shown) == 1 or (not shown and kind == "scientist"):
        _refuse("no options, or one of two", f"{' and '.join(wanted)} in the condition {condition!r}", found)


def _refuse(what: str, expected: str, found: list[str]) -> None:
    raise InputError(
        f"the prompt template has {what}", expected=expected, found=", ".join(found) or "no placeholder at all"
    )
