"""What must hold inside one item, and inside one set, beyond the types of the fields.

Each clause is a function that raises `DataError` with the place, the id, what was expected and what was found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from latentkt.corpus.patterns import Patterns
from latentkt.errors import DataError
from latentkt.trapqa.items import SLOTS, Candidate, Spans, TrapItem

__all__ = ["RENDER_ROLES", "check_clauses", "check_set", "fold", "outside"]

RENDER_ROLES = ("option_correct", "option_shortcut", "system", "template", "answer", "rest")
"""Roles that rendering gives; an item cannot use them for its spans."""
NEEDED_ROLES = ("shortcut", "constraint")
_ROLE = re.compile(r"[a-z][a-z0-9_]*")


def fold(text: str) -> str:
    """Text with its case and runs of white space made equal, for comparing answers."""
    return " ".join(text.split()).casefold()


def outside(text: str, spans: Spans) -> tuple[list[str], list[str]]:
    """The stretches of `text` between spans, and the roles of the spans in the order of the text.

    Example:
        >>> outside("he did not win", {"constraint": ((3, 10),)})
        (['he ', ' win'], ['constraint'])
    """
    stretches, roles, at = [], [], 0
    for start, end, role in _ordered(spans):
        stretches.append(text[at:start])
        roles.append(role)
        at = end
    return [*stretches, text[at:]], roles


def _ordered(spans: Spans) -> list[tuple[int, int, str]]:
    return sorted((start, end, role) for role, ranges in spans.items() for start, end in ranges)


def check_clauses(item: TrapItem, *, where: str) -> None:
    """Check what the fields of one item say together.

    Args:
        item: The item.
        where: File, line and id, for messages.

    Raises:
        DataError: The first clause that does not hold.
    """
    for name, text, spans in (("", item.text, item.spans), ("control.", item.control.text, item.control.spans)):
        _check_spans(text, spans, f"{where}: {name}spans")
        _check_slots(item, text, spans, f"{where}: {name}text")
    _check_answers(item, where)
    _check_minimal_pair(item, where)
    _check_level(item, where)
    _check_probes(item, where)
    if item.paths is not None and item.paths.correct == item.paths.shortcut:
        raise DataError(f"{where}: paths are equal", expected="two different paths", found=":".join(item.paths.correct))


def _check_spans(text: str, spans: Spans, where: str) -> None:
    missing = [role for role in NEEDED_ROLES if role not in spans]
    if missing:
        raise DataError(f"{where} lack a role", expected="at least shortcut and constraint", found=", ".join(spans))
    for role in spans:
        if role in RENDER_ROLES or not _ROLE.fullmatch(role):
            expected = f"small letters, digits, _; none of {', '.join(RENDER_ROLES)} (rendering gives those)"
            raise DataError(f"{where} have a bad role", expected=expected, found=repr(role))
    last = 0
    for start, end, role in _ordered(spans):
        if not 0 <= start < end <= len(text):
            expected = f"0 <= start < end <= {len(text)} (code points of the text)"
            raise DataError(f"{where}.{role} leave the text or are empty", expected=expected, found=[start, end])
        if not text[start:end].strip():
            raise DataError(f"{where}.{role} mark white space only", expected="some characters", found=[start, end])
        if start < last:
            expected = f"start >= {last}, the end of the span before it"
            raise DataError(f"{where}.{role} overlap another span", expected=expected, found=[start, end])
        last = end


def _check_slots(item: TrapItem, text: str, spans: Spans, where: str) -> None:
    found = re.findall(r"\{option_\w*\}", text)
    expected = list(SLOTS) if item.kind == "action" else []
    if found != expected:
        wanted = "{option_a}, then {option_b}, once each" if expected else "no slots (only actions have them)"
        raise DataError(f"{where} has wrong option slots", expected=wanted, found=", ".join(found) or "none")
    for slot in expected:
        slot_start = text.index(slot)
        for start, end, role in _ordered(spans):
            if start < slot_start + len(slot) and slot_start < end:
                raise DataError(
                    f"{where}: the span {role} touches the slot {slot}",
                    expected="slots outside every span (rendering marks them as options)",
                    found=[start, end],
                )


def _check_answers(item: TrapItem, where: str) -> None:
    correct, shortcut = _forms(item.correct), _forms(item.shortcut)
    if correct & shortcut:
        expected = "answers and aliases that no two candidates share (case and spacing apart)"
        raise DataError(
            f"{where}: the two answers are not distinct", expected=expected, found=sorted(correct & shortcut)
        )
    if item.kind != "action":
        return
    for name, text in (("text", item.text), ("control.text", item.control.text)):
        for answer in (item.correct.text, item.shortcut.text):
            if re.search(rf"(?<!\w){re.escape(fold(answer))}(?!\w)", fold(text)):
                raise DataError(
                    f"{where}: {name} holds an answer",
                    expected="only the slots stand for the answers",
                    found=repr(answer),
                )


def _forms(candidate: Candidate) -> set[str]:
    return {fold(form) for form in (candidate.text, *candidate.aliases)}


def _check_minimal_pair(item: TrapItem, where: str) -> None:
    if item.text == item.control.text:
        raise DataError(f"{where}: the control's text is the item's", expected="a text that differs inside a span")
    (item_rest, item_roles), (control_rest, control_roles) = (outside(*item.question(w)) for w in ("item", "control"))
    if item_roles != control_roles:
        raise DataError(
            f"{where}: item and control have different spans",
            expected=f"the item's roles in the order of its text: {', '.join(item_roles)}",
            found=", ".join(control_roles),
        )
    for mine, theirs in zip(item_rest, control_rest, strict=True):
        if mine != theirs:
            raise DataError(
                f"{where}: item and control differ outside the spans",
                expected=repr(mine),
                found=repr(theirs),
                fix="mark what differs, or make it equal (mind the spaces at the ends of spans)",
            )


def _check_level(item: TrapItem, where: str) -> None:
    if (item.group is None) != (item.level is None):
        raise DataError(
            f"{where}: group and level go together",
            expected="both or neither",
            found=f"group {item.group!r}, level {item.level!r}",
        )


def _check_probes(item: TrapItem, where: str) -> None:
    roles = [probe.role for probe in item.probe_questions]
    if len(set(roles)) < len(roles):
        raise DataError(f"{where}: two probe questions of one role", expected="at most one of each", found=roles)
    golds = [probe.answer for probe in item.probe_questions]
    if item.kind == "scientist" and len(golds) == 2 and golds[0] == golds[1]:
        raise DataError(
            f"{where}: the two probe questions have the same answer",
            expected="complementary answers: they ask for one relation, which only one candidate has",
            found=golds,
        )


def check_set(items: Sequence[TrapItem], patterns: Patterns | None, places: Sequence[str]) -> None:
    """Check what the items of a set say together.

    Args:
        items: The items.
        patterns: The set's patterns, or None where there is no pattern file.
        places: File, line and id of each item, for messages.

    Raises:
        DataError: An id, or a level of a group, occurs twice; a group changes its answers; a path has no pattern.
    """
    ids: dict[str, str] = {}
    groups: dict[str, TrapItem] = {}
    levels: dict[tuple[str, int | None], str] = {}
    for item, where in zip(items, places, strict=True):
        if item.id in ids:
            raise DataError(f"{where}: the id occurs twice", expected="ids that are unique", found=ids[item.id])
        ids[item.id] = where
        if item.group is not None:
            _check_group(item, groups.setdefault(item.group, item), where)
            if (item.group, item.level) in levels:
                found = levels[item.group, item.level]
                raise DataError(f"{where}: level {item.level} occurs twice in group {item.group!r}", found=found)
            levels[item.group, item.level] = where
        _check_paths(item, patterns, where)


def _check_group(item: TrapItem, first: TrapItem, where: str) -> None:
    def shared(one: TrapItem) -> tuple[str, ...]:
        return one.kind, one.family, one.correct.text, one.shortcut.text

    if shared(item) != shared(first):
        raise DataError(
            f"{where}: group {item.group!r} is not one question",
            expected=f"kind, family and answers of {first.id!r}: {shared(first)}",
            found=shared(item),
        )


def _check_paths(item: TrapItem, patterns: Patterns | None, where: str) -> None:
    if item.paths is None:
        return
    if patterns is None:
        raise DataError(
            f"{where}: paths name patterns, and there is no pattern file",
            expected="NAME.patterns.json beside NAME.jsonl, or patterns.json",
            fix='write the file, or set "paths" to null',
        )
    for side, (key, task) in (("correct", item.paths.correct), ("shortcut", item.paths.shortcut)):
        for name, kind, known in ((key, "key", patterns.keys), (task, "task", patterns.tasks)):
            if name not in known:
                raise DataError(
                    f"{where}: paths.{side} has no pattern",
                    expected=f"a {kind} of the pattern file ({_some(known)})",
                    found=repr(name),
                )


def _some(names: Iterable[str]) -> str:
    listed = sorted(names)
    return ", ".join(listed[:6]) + (", …" if len(listed) > 6 else "")
