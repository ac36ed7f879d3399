"""Answers: what a model said to one question about one concept, and how that was judged. One JSON object each."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentkt.errors import DataError
from latentkt.phantom.concepts import EXISTENCE, KINDS, METHODS
from latentkt.phantom.prompts import PROPERTIES
from latentkt.results import json_line, read_json_lines, write_json_lines

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "ABSTENTIONS",
    "JUDGEMENTS",
    "TRUNCATED",
    "Answer",
    "Key",
    "answer_line",
    "answers_frame",
    "check_unique",
    "read_answers",
    "write_answers",
]

Key = tuple[str, str, str | None]

TRUNCATED = ("thinking", "answer")
"""Where a limit cut a reply off: in its reasoning, so that there is no answer, or in the answer itself."""

JUDGEMENTS = ("abstained", "answered", "unparsable", "no_answer")
"""Whether the answer abstains. `unparsable`: the judge gave no verdict that could be read, whatever it said.
`no_answer`: there was nothing to judge."""

ABSTENTIONS = ("uncertainty", "alternative", "context", "decompose", "presume")
"""Kinds of abstention (Section 6.2): it does not know; it takes the name for a slip and speaks of another thing; it
asks for context; it takes the name apart and guesses; it does not name the property but takes the concept for granted.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer. Fields that do not exist for it are None.

    Attributes:
        prompt_id: The question.
        concept_id: The concept.
        concept: Its text.
        concept_kind: `term` or `entity`.
        category: The seed list it comes from.
        group: What intervals are grouped by: the first parent of a made concept, a real one itself.
        method: `recombined`, `blended`, `pattern` or `real`.
        existence: `phantom`, `common`, `rare`, `unattested`, `between` or `unverified`.
        property: What was asked.
        variant: Which phrasing.
        question: The question, word for word.
        setting: Who answered: a model with its settings.
        model: The model's id.
        answer: What it answered, without its reasoning; empty where it did not come to an answer.
        reasoning: What it wrote before.
        finished: Whether it came to its end by itself; None where the provider does not say.
        truncated: `thinking` or `answer`: where a limit cut it off; None where none did or it is not known.
        thinking_tokens: Tokens of reasoning; None where they were not counted.
        thinking_budget: What was allowed for reasoning: tokens, or the provider's word (`low`, `high`).
        error: Why there is no reply at all.
        judgement: One of `JUDGEMENTS`; None: not judged yet.
        judge: Who judged, by a name that says how.
        kind: One of `ABSTENTIONS`, for an answer that abstains; `unparsable` where the judge's word could not be read.
        meta: More: the judge's raw words, the rule of the phrase list, provider parameters.
    """

    prompt_id: str
    concept_id: str
    concept: str
    concept_kind: str
    property: str
    question: str
    setting: str
    category: str = ""
    group: str = ""
    method: str = "real"
    existence: str = "unverified"
    variant: int = 0
    model: str | None = None
    answer: str = ""
    reasoning: str | None = None
    finished: bool | None = None
    truncated: str | None = None
    thinking_tokens: int | None = None
    thinking_budget: int | str | None = None
    error: str | None = None
    judgement: str | None = None
    judge: str | None = None
    kind: str | None = None
    meta: dict[str, Any] = field(default_factory=dict, hash=False)

    @builtins.property  # `property` is a field
    def key(self) -> Key:
        """What no two answers of a file share."""
        return self.prompt_id, self.setting, self.judge

    @builtins.property
    def asked(self) -> tuple[str, str]:
        """The question and who was asked, whoever judged."""
        return self.prompt_id, self.setting


_NAMES = tuple(each.name for each in fields(Answer))
_NEEDED = ("prompt_id", "concept_id", "concept", "concept_kind", "property", "question", "setting")


def answer_line(answer: Answer) -> str:
    """An answer as one line of JSON, with its line feed."""
    return json_line(asdict(answer))


def write_answers(answers: Iterable[Answer], path: str | Path) -> None:
    """Write answers as JSON lines, whole or not at all.

    Raises:
        DataError: Two answers have the same key.
        RunError: The disk is full or the folder cannot be written to.
    """
    answers = list(answers)
    check_unique(answers, "the answers to be written")
    write_json_lines((asdict(answer) for answer in answers), path)


def read_answers(*paths: str | Path) -> list[Answer]:
    """Read and check files of answers, as one.

    Raises:
        InputError: A file is not there.
        DataError: A line is no answer, a value is not what its field holds, or one question stands twice for a setting
            and judge; the message names file, line and question.
    """
    answers = [answer for path in paths for answer in read_json_lines(path, _parsed)]
    check_unique(answers, " and ".join(map(str, paths)))
    return answers


def check_unique(answers: Sequence[Answer], where: str) -> None:
    """Refuse two answers of one key.

    Raises:
        DataError: Names the question.
    """
    seen: set[Key] = set()
    for answer in answers:
        if answer.key in seen:
            raise DataError(
                f"{where}: a second answer to {answer.prompt_id!r}",
                expected="one a question, setting and judge",
                found=f"setting {answer.setting!r}, judge {answer.judge!r}",
                fix="keep one of the two, or give the settings different names",
            )
        seen.add(answer.key)


def _parsed(row: dict[str, Any], where: str) -> Answer:
    unknown = [name for name in row if name not in _NAMES]
    missing = [name for name in _NEEDED if name not in row]
    if unknown or missing:
        raise DataError(
            f"{where}: no answer",
            expected=f"the fields {', '.join(_NEEDED)}; others are optional",
            found=f"unknown: {', '.join(unknown) or 'none'}; missing: {', '.join(missing) or 'none'}",
            fix="move what else there is to say into meta",
        )
    answer = Answer(**row)
    for name, (expected, fits) in _FITS.items():
        if not fits(getattr(answer, name)):
            raise DataError(
                f"{where}, question {answer.prompt_id!r}: {name} is wrong",
                expected=expected,
                found=repr(getattr(answer, name))[:120],
            )
    _check_together(answer, where)
    return answer if answer.group else replace(answer, group=answer.concept)


def _check_together(answer: Answer, where: str) -> None:
    """An answer of a kind abstains; a verdict has a judge."""
    if answer.kind is not None and answer.judgement != "abstained":
        raise DataError(
            f"{where}, question {answer.prompt_id!r}: a kind of abstention without one",
            expected="judgement abstained",
            found=f"judgement {answer.judgement!r}, kind {answer.kind!r}",
        )
    if answer.judgement is not None and not answer.judge:
        raise DataError(f"{where}, question {answer.prompt_id!r}: judged by nobody", expected="a name under judge")


def _is_named(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_count(value: object) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0)


_TEXT = ("text or null", lambda value: isinstance(value, str | None))
_FITS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("prompt_id", "concept_id", "concept", "question", "setting"), ("text, not blank", _is_named)),
    **dict.fromkeys(("category", "group", "answer"), ("text", lambda value: isinstance(value, str))),
    **dict.fromkeys(("model", "reasoning", "error", "judge"), _TEXT),
    "concept_kind": (" | ".join(KINDS), KINDS.__contains__),
    "method": (" | ".join(METHODS), METHODS.__contains__),
    "existence": (" | ".join(EXISTENCE), EXISTENCE.__contains__),
    "property": ("a name", _is_named),
    "variant": ("a whole number", lambda value: isinstance(value, int)),
    "finished": ("true, false or null", lambda value: value is None or isinstance(value, bool)),
    "truncated": ("thinking, answer or null", (*TRUNCATED, None).__contains__),
    "thinking_tokens": ("a count or null", _is_count),
    "thinking_budget": ("tokens, a word or null", lambda value: isinstance(value, str | int | None)),
    "judgement": (f"{' | '.join(JUDGEMENTS)} or null", (*JUDGEMENTS, None).__contains__),
    "kind": (f"{' | '.join(ABSTENTIONS)}, unparsable or null", (*ABSTENTIONS, "unparsable", None).__contains__),
    "meta": ("an object", lambda value: isinstance(value, dict)),
}


def answers_frame(answers: Iterable[Answer]) -> pd.DataFrame:
    """Answers as a table, one column a field, without `meta`; settings as they come, properties as in `PROPERTIES`."""
    import pandas as pd

    rows = [{k: v for k, v in asdict(answer).items() if k != "meta"} for answer in answers]
    frame = pd.DataFrame(rows, columns=[name for name in _NAMES if name != "meta"])
    order = {name: place for place, name in enumerate(PROPERTIES)}
    budgets = [None if row["thinking_budget"] is None else str(row["thinking_budget"]) for row in rows]
    frame["thinking_budget"] = pd.Series(budgets, index=frame.index, dtype="object")
    frame["thinking_tokens"] = frame["thinking_tokens"].astype("float64")
    frame["finished"] = frame["finished"].astype("boolean")
    settings = {name: place for place, name in enumerate(dict.fromkeys(frame["setting"]))}
    rank = frame["setting"].map(settings) * len(PROPERTIES) * 2
    rank += frame["property"].map(lambda name: order.get(name, len(order)))
    return frame.iloc[rank.argsort(kind="stable")].reset_index(drop=True) if len(frame) else frame
