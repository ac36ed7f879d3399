"""From one JSON object to one `TrapItem`: every field is known, present where it must be, and of its type.

What the fields say together (spans, slots, control, levels) is checked in `clauses`.
"""

from __future__ import annotations

from typing import Any, get_args

from latentkt.errors import DataError
from latentkt.trapqa.clauses import check_clauses
from latentkt.trapqa.items import (
    Candidate,
    Control,
    ControlKind,
    Kind,
    Paths,
    Polarity,
    ProbeQuestion,
    ProbeRole,
    Span,
    TrapItem,
)

__all__ = ["parse_item", "shortened"]

_MISSING = object()
MAX_NAME = 200


class _Fields:
    """Reads the fields of one object, and refuses those that nobody asked for."""

    def __init__(self, record: object, where: str, name: str) -> None:
        self.where, self.name = where, name
        if not isinstance(record, dict):
            raise self.refused("", "a JSON object", record)
        self._left: dict[str, Any] = dict(record)

    def refused(self, field: str, expected: str, found: object) -> DataError:
        path = ".".join(part for part in (self.name, field) if part) or "the line"
        shown = "nothing" if found is _MISSING else repr(found)
        return DataError(f"{self.where}: {path} is wrong", expected=expected, found=shortened(shown))

    def take(self, field: str, default: Any = _MISSING) -> Any:
        """The field, or `default`; what reads it refuses `_MISSING` as it refuses any wrong value."""
        return self._left.pop(field, default)

    def text(self, field: str) -> str:
        value = self.take(field)
        if not _is_text(value):
            raise self.refused(field, "text that is not blank, without space around it", value)
        return value

    def label(self, field: str) -> str:
        """Text that stands in tables and figures: one line, not long."""
        value = self.text(field)
        if not value.isprintable() or len(value) > MAX_NAME:
            raise self.refused(field, f"one line of at most {MAX_NAME} printable characters", value)
        return value

    def optional_text(self, field: str) -> str | None:
        value = self.take(field, None)
        if value is not None and not _is_text(value):
            raise self.refused(field, "null, or text that is not blank, without space around it", value)
        return value

    def choice(self, field: str, choices: tuple[Any, ...], default: Any = _MISSING) -> Any:
        value = self.take(field, default)
        if not any(value is choice or (value == choice and type(value) is type(choice)) for choice in choices):
            raise self.refused(field, "one of " + ", ".join(map(str, choices)), value)
        return value

    def texts(self, field: str) -> tuple[str, ...]:
        value = self.take(field, [])
        if not isinstance(value, list) or not all(map(_is_text, value)):
            raise self.refused(field, "a list of texts that are not blank, without space around them", value)
        return tuple(value)

    def finish(self, known: str) -> None:
        for field in self._left:
            path = f"{self.name}.{field}" if self.name else field
            raise DataError(
                f"{self.where}: the field {path} is unknown",
                expected=f"only {known}",
                found=shortened(repr(self._left[field])),
                fix="mend its name, or move it into meta",
            )


def parse_item(record: object, *, where: str) -> TrapItem:
    """Make an item of a decoded line and check every clause that one item can break.

    Args:
        record: The decoded JSON.
        where: File and line, for messages; the item's id is added.

    Raises:
        DataError: A field is missing, unknown or wrong, or the fields do not agree.
    """
    start = _Fields(record, where, "")
    item_id = start.text("id")
    if any(character.isspace() or not character.isprintable() for character in item_id) or len(item_id) > MAX_NAME:
        raise start.refused("id", f"an id of at most {MAX_NAME} printable characters, without spaces", item_id)
    fields = _Fields(record, f"{where}, item {item_id!r}", "")
    item = TrapItem(
        id=fields.text("id"),
        kind=fields.choice("kind", get_args(Kind)),
        family=fields.label("family"),
        text=fields.text("text"),
        correct=_candidate(fields, "correct"),
        shortcut=_candidate(fields, "shortcut"),
        spans=_spans(fields, "spans"),
        control=_control(fields),
        aspect=fields.optional_text("aspect"),
        constraint_kind=fields.optional_text("constraint_kind"),
        polarity=fields.choice("polarity", get_args(Polarity), "none"),
        group=fields.optional_text("group"),
        level=fields.choice("level", (None, 0, 1, 2, 3), None),
        paths=_paths(fields),
        probe_questions=_probes(fields),
        source=fields.texts("source"),
        meta=_meta(fields),
    )
    fields.finish(", ".join(item.to_dict()))
    check_clauses(item, where=fields.where)
    return item


def _is_text(value: object) -> bool:
    if not isinstance(value, str) or not value or value != value.strip():
        return False
    return not any("\ud800" <= character <= "\udfff" for character in value)


def shortened(shown: str) -> str:
    """The head of a text, for a message that fits one screen."""
    return shown if len(shown) <= 200 else shown[:199] + "…"


def _candidate(fields: _Fields, name: str) -> Candidate:
    inner = _Fields(fields.take(name), fields.where, name)
    candidate = Candidate(inner.text("text"), inner.texts("aliases"), inner.optional_text("profile"))
    inner.finish("text, aliases, profile")
    if any(len(answer.splitlines()) > 1 for answer in (candidate.text, *candidate.aliases)):
        raise inner.refused("text", "an answer of one line (a newline ends it)", candidate.text)
    return candidate


def _spans(fields: _Fields, name: str) -> dict[str, tuple[Span, ...]]:
    record = fields.take(name)
    if not isinstance(record, dict):
        raise fields.refused(name, "an object {role: [[start, end], …]}", record)
    for role, ranges in record.items():
        if not isinstance(ranges, list) or not ranges or not all(map(_is_range, ranges)):
            raise fields.refused(f"{name}.{role}", "at least one [start, end], whole numbers", ranges)
    return {role: tuple((start, end) for start, end in ranges) for role, ranges in record.items()}


def _is_range(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(type(offset) is int for offset in value)


def _control(fields: _Fields) -> Control:
    inner = _Fields(fields.take("control"), fields.where, "control")
    control = Control(inner.choice("kind", get_args(ControlKind)), inner.text("text"), _spans(inner, "spans"))
    inner.finish("kind, text, spans")
    return control


def _paths(fields: _Fields) -> Paths | None:
    record = fields.take("paths", None)
    if record is None:
        return None
    inner = _Fields(record, fields.where, "paths")
    paths = Paths(_path(inner, "correct"), _path(inner, "shortcut"))
    inner.finish("correct, shortcut")
    return paths


def _path(fields: _Fields, name: str) -> tuple[str, str]:
    value = fields.text(name)
    key, colon, task = value.partition(":")
    if not colon or not key or not task or ":" in task:
        raise fields.refused(name, '"KEY:TASK"', value)
    return key, task


def _probes(fields: _Fields) -> tuple[ProbeQuestion, ...]:
    record = fields.take("probe_questions", [])
    if not isinstance(record, list):
        raise fields.refused("probe_questions", "a list", record)
    return tuple(_probe(fields, entry, f"probe_questions[{index}]") for index, entry in enumerate(record))


def _probe(fields: _Fields, record: object, name: str) -> ProbeQuestion:
    inner = _Fields(record, fields.where, name)
    role, text = inner.choice("role", get_args(ProbeRole)), inner.text("text")
    probe = ProbeQuestion(role, text, inner.choice("answer", (True, False)))
    inner.finish("role, text, answer")
    return probe


def _meta(fields: _Fields) -> dict[str, Any]:
    record = fields.take("meta", {})
    if not isinstance(record, dict):
        raise fields.refused("meta", "an object", record)
    return record
