"""Rows of TrapQA, or of any set like it, as items: a field map, aliases of field names, and refusals by line and id.

The names of the fields are the data set's own. Each field that is needed is looked for under the name that the user's
map gives it, else under the usual names of such a field; what is not found is refused with the fields that were seen.
Rows hold no spans and no control, so their items can be asked but not patched.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from latentkt.errors import DataError, InputError
from latentkt.results import read_json_lines
from latentkt.trapqa.items import Candidate, Control, ProbeQuestion, ProbeRole, TrapItem
from latentkt.trapqa.pieces import Order
from latentkt.trapqa.running.questions import Given
from latentkt.trapqa.running.records import CONDITIONS
from latentkt.trapqa.templates import TEMPLATES

__all__ = ["FIELD_NAMES", "load_rows"]

FIELD_NAMES: dict[str, tuple[str, ...]] = {
    "id": ("question_id", "qid", "item_id", "id", "uid"),
    "question": ("question", "question_text", "text", "scenario", "query"),
    "prompt": ("prompt", "full_prompt", "input"),
    "options": ("options", "choices", "candidates"),
    "option_a": ("option_a", "candidate_a", "name_a", "option_1", "person_a"),
    "option_b": ("option_b", "candidate_b", "name_b", "option_2", "person_b"),
    "correct": ("correct", "correct_answer", "answer", "gold", "gold_answer", "ground_truth", "target", "label"),
    "shortcut": ("shortcut", "distractor", "incorrect", "wrong", "wrong_answer", "incorrect_answer"),
    "correct_aliases": ("correct_aliases", "answer_aliases"),
    "shortcut_aliases": ("shortcut_aliases", "distractor_aliases"),
    "correct_profile": ("correct_profile", "answer_profile"),
    "shortcut_profile": ("shortcut_profile", "distractor_profile"),
    "family": ("family", "relation_family", "relation", "template_family", "category"),
    "aspect": ("aspect", "domain", "life_aspect"),
    "constraint_kind": ("constraint_kind", "constraint_type", "constraint"),
    "correct_fame": ("correct_fame", "answer_fame"),
    "shortcut_fame": ("shortcut_fame", "distractor_fame"),
    "probe_of": ("question_id", "parent_id", "qid", "id"),
    "probe_role": ("probe_role", "role", "probe_type", "probe", "type"),
    "probe_question": ("probe_question", "question", "text", "probe_text", "prompt"),
    "probe_answer": ("probe_answer", "answer", "gold", "label", "target", "correct"),
}
"""What a row can hold -> the names under which it is looked for, in this order."""

_ROLES: dict[str, ProbeRole] = {
    "eliminative": "eliminative",
    "elimination": "eliminative",
    "shortcut": "eliminative",
    "distractor": "eliminative",
    "compatibility": "compatibility",
    "compatible": "compatibility",
    "correct": "compatibility",
}
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_PLACE = {"0": 0, "a": 0, "option_a": 0, "1": 1, "b": 1, "option_b": 1}


class _Row:
    """Reads the fields of one row under their names in this data set."""

    def __init__(self, data: Mapping[str, Any], names: Mapping[str, str], where: str) -> None:
        self._data, self._names, self.where = data, names, where

    def get(self, field: str) -> Any:
        if field in self._names:
            return self._data.get(self._names[field])
        return next((self._data[name] for name in FIELD_NAMES[field] if self._data.get(name) is not None), None)

    def need(self, field: str) -> Any:
        value = self.get(field)
        if value is None or value == "":
            tried = self._names.get(field) or ", ".join(FIELD_NAMES[field])
            raise DataError(
                f"{self.where}: no field for {field!r}",
                expected=f"a field named {tried}",
                found=f"the fields {', '.join(self._data)}",
                fix=f"name it in the field map: {field}=FIELD",
            )
        return value

    def text(self, field: str) -> str | None:
        value = self.get(field)
        return None if value is None else str(value)

    def aliases(self, field: str) -> tuple[str, ...]:
        value = self.get(field) or ()
        return (value,) if isinstance(value, str) else tuple(map(str, value))


def load_rows(path: str | Path, condition: str, *, fields: Mapping[str, str] | None = None) -> list[Given]:
    """Read the rows of one configuration.

    Args:
        path: JSON lines.
        condition: `names`, `profiles`, `real_life`, or `probes`, whose rows are one probe question each; they are
            linked by the id of their question.
        fields: What a row can hold (a key of `FIELD_NAMES`) -> its name in this file, where it is not a usual one.

    Returns:
        The items, in the order of the file, with the prompt that a row brings with it.

    Raises:
        InputError: The file cannot be read, or the map names something that rows do not hold.
        DataError: A row lacks a field or holds a wrong value, or an id stands twice; the message lists the fields seen.
    """
    fields = dict(fields or {})
    unknown = sorted(fields.keys() - FIELD_NAMES.keys())
    if unknown or condition not in CONDITIONS:
        raise InputError(
            "rows cannot be read so", expected=f"fields among {', '.join(FIELD_NAMES)}", found=unknown or condition
        )
    rows = list(read_json_lines(path, lambda data, where: _Row(data, fields, where)))
    if condition == "probes":
        return _probe_items(rows)
    found: dict[str, Given] = {}
    for row in rows:
        identity = str(row.need("id"))
        row.where += f", question {identity!r}"
        if identity in found:
            raise DataError(f"{row.where}: the id stands twice", expected="unique ids")
        found[identity] = _given(row, identity, condition)
    return list(found.values())


def _given(row: _Row, identity: str, condition: str) -> Given:
    correct, shortcut = _answers(row)
    item = TrapItem(
        id=identity,
        kind="action" if condition == "real_life" else "scientist",
        family=row.text("family") or "",
        text=str(row.need("prompt") if row.get("question") is None else row.get("question")),
        correct=Candidate(correct, row.aliases("correct_aliases"), row.text("correct_profile")),
        shortcut=Candidate(shortcut, row.aliases("shortcut_aliases"), row.text("shortcut_profile")),
        spans={},
        control=Control("neutral", "", {}),
        aspect=row.text("aspect"),
        constraint_kind=row.text("constraint_kind"),
        meta={name: row.get(name) for name in ("correct_fame", "shortcut_fame") if row.get(name) is not None},
    )
    prompt = row.text("prompt")
    if prompt is not None:
        return Given(item, prompt, order=_order(prompt, item, row))
    if condition != "real_life":
        return Given(item)
    if _holds_both(item.text, item):  # the question names its options itself, in an order of its own
        return Given(item, order=_order(item.text, item, row))
    return Given(item, template=TEMPLATES["scientist", "names"])


def _holds_both(text: str, item: TrapItem) -> bool:
    return item.correct.text.casefold() in text.casefold() and item.shortcut.text.casefold() in text.casefold()


def _order(prompt: str, item: TrapItem, row: _Row) -> Order:
    places = [prompt.casefold().find(candidate.text.casefold()) for candidate in (item.correct, item.shortcut)]
    if min(places) < 0 or places[0] == places[1]:
        raise DataError(
            f"{row.where}: the prompt does not show both answers",
            expected=f"{item.correct.text!r} and {item.shortcut.text!r} in it",
            found=prompt[:120],
            fix="map `question` instead of `prompt`, and the library writes the prompt",
        )
    return "correct_first" if places[0] < places[1] else "shortcut_first"


def _answers(row: _Row) -> tuple[str, str]:
    """The two answers: named, or one named and both listed, or the place of the right one and both listed."""
    options = row.get("options")
    if options is None and row.get("option_a") is not None:
        options = [row.need("option_a"), row.need("option_b")]
    listed = [str(option) for option in (options.values() if isinstance(options, dict) else options or ())]
    correct, shortcut = str(row.need("correct")), row.text("shortcut")
    if shortcut is None and len(listed) == 2:
        at = listed.index(correct) if correct in listed else _PLACE.get(correct.casefold().strip(" .)("))
        if at is not None:
            correct, shortcut = listed[at], listed[1 - at]
    if shortcut is None:
        row.need("shortcut" if not listed else "options")
        raise DataError(
            f"{row.where}: the right answer is not among the options",
            expected="one of two options, its number (0, 1) or letter (A, B)",
            found=f"{correct!r} of {listed}",
        )
    if correct.casefold() == shortcut.casefold():
        raise DataError(f"{row.where}: both answers are the same", expected="two different answers", found=correct)
    return correct, shortcut


def _probe_items(rows: list[_Row]) -> list[Given]:
    """One item a question, with its one or two probe questions and nothing else."""
    probes: dict[str, dict[ProbeRole, ProbeQuestion]] = {}
    for row in rows:
        identity = str(row.need("probe_of"))
        row.where += f", question {identity!r}"
        role = _ROLES.get(str(row.need("probe_role")).casefold())
        answer = _TRUTH.get(str(row.need("probe_answer")).casefold())
        if role is None or answer is None:
            raise DataError(
                f"{row.where}: a probe question that cannot be read",
                expected=f"a role among {', '.join(_ROLES)}, an answer among {', '.join(_TRUTH)}",
                found=f"{row.get('probe_role')!r}, {row.get('probe_answer')!r}",
            )
        mine = probes.setdefault(identity, {})
        if role in mine:
            raise DataError(f"{row.where}: a second {role} probe question", expected="one of each role")
        mine[role] = ProbeQuestion(role, str(row.need("probe_question")), answer)
    return [Given(_probe_item(identity, tuple(mine.values()))) for identity, mine in probes.items()]


def _probe_item(identity: str, probes: tuple[ProbeQuestion, ...]) -> TrapItem:
    return TrapItem(
        id=identity,
        kind="scientist",
        family="",
        text=probes[0].text,
        correct=Candidate("Yes"),
        shortcut=Candidate("No"),
        spans={},
        control=Control("neutral", "", {}),
        probe_questions=probes,
    )
