"""Questions at several levels of explicitness become items: one a level, all of a group with the same two answers.

The file holds one question a line: `id`, `domain`, `correct`, `levels` {"L0": text, …} from implicit to explicit, and
`control` {`question`, `correct`}: the same surface with the other answer right, or "either". (This is the layout of the
pilot of IGR-Bench.) Each text ends by offering two options, "Should I drive or walk there?".

What becomes of a text: the clause with the options is cut out and replaced by "Should I {option_a} or {option_b}?",
both options in their shortest form over the levels, so that a level differs from another in what it says and not in how
it offers the answers. The phrase of nearness ("50 meters", "next door") is the shortcut's span; whatever else differs
between item and control is the constraint's. A text whose options cannot be split, or that cannot be paired with the
control, is left out and listed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from latentkt.errors import DataError, LatentKTError
from latentkt.results import read_json_lines
from latentkt.trapqa.authoring import mark_item
from latentkt.trapqa.items import ItemSet, TrapItem

__all__ = ["LevelImport", "import_levels"]

_SENTENCE = re.compile(r"^(?P<premise>.*?[.!?,])?\s*(?P<offer>[^.!?,]+\?)$", re.S)
_TAIL = re.compile(r"^(?P<option>.+?)(?: there| over)?(?P<tail> to .+)?$")
_NEAR = (
    re.compile(r"\d+[- ]?(?:meters?|minutes?|kilometers?|miles?|blocks?)(?:[- ]walk)?"),
    re.compile(r"(?:across|down|along) the \w+(?: lot)?|next door|around the corner|on the ground floor"),
)
"""Phrases of nearness; those of the first kind that both texts hold are taken."""
_BOTH = "either"


@dataclass(frozen=True, slots=True)
class LevelImport:
    """Items, and what was left out.

    Attributes:
        items: The items, level by level.
        skipped: `question` (its id), `level` and `reason` of every text that gave none.
    """

    items: ItemSet
    skipped: tuple[dict[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Offer:
    """A text, cut at the clause that offers the options."""

    premise: str
    options: tuple[str, str]
    tail: str


def import_levels(path: str | Path, *, source: str = "") -> LevelImport:
    """Read a file of questions at several levels.

    Args:
        path: JSON lines; see the module.
        source: Where the questions come from, written to every item.

    Raises:
        InputError: There is no such file.
        DataError: A line is no such question, or no item comes of the whole file.

    Example:
        >>> import json, pathlib, tempfile
        >>> question = {"id": "wash", "domain": "car", "correct": "drive", "levels": {
        ...     "L0": "The car wash is 50 meters away. Should I drive or walk there?",
        ...     "L1": "My car is dirty. The car wash is 50 meters away. Should I walk or drive?"},
        ...     "control": {"question": "The bakery is 50 meters away. Should I drive or walk there?",
        ...                 "correct": "walk"}}
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "questions.jsonl"
        >>> _ = file.write_text(json.dumps(question))
        >>> found = import_levels(file)
        >>> [(item.id, item.level) for item in found.items], len(found.skipped)
        ([('wash-L0', 0), ('wash-L1', 1)], 0)
        >>> found.items.items[1].text
        'My car is dirty. The car wash is 50 meters away. Should I {option_a} or {option_b}?'
    """
    items: list[TrapItem] = []
    skipped: list[dict[str, str]] = []
    for record in read_json_lines(path, _checked):
        for level, made in _question(record, source):
            if isinstance(made, TrapItem):
                items.append(made)
            else:
                skipped.append({"question": record["id"], "level": level, "reason": made})
    if not items:
        raise DataError(
            f"no item comes of {path}", expected="texts that end by offering two options", found=skipped[:2]
        )
    return LevelImport(ItemSet(items=tuple(items)), tuple(skipped))


def _checked(record: dict[str, Any], where: str) -> dict[str, Any]:
    try:
        levels, control = dict(record["levels"]), record["control"]
        texts = [record["id"], record["domain"], record["correct"], control["question"], control["correct"]]
        whole = all(isinstance(text, str) for text in [*texts, *levels.values()]) and levels
        if not whole or not all(re.fullmatch(r"L[0-3]", name) for name in levels):
            raise TypeError("a field of another kind")
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{where}: no question at levels",
            expected="id, domain, correct, levels {L0 to L3: text} and control {question, correct}",
            found=f"{type(error).__name__}: {error}",
        ) from error
    return record


def _question(record: Mapping[str, Any], source: str) -> Iterator[tuple[str, TrapItem | str]]:
    """(level, item or the reason why there is none) of one question."""
    right, other = record["correct"], record["control"]["correct"]
    texts = {**record["levels"], "control": record["control"]["question"]}
    offers = {name: _offer(text, right, other) for name, text in texts.items()}
    known = [offer.options for offer in offers.values() if isinstance(offer, _Offer)]
    control = offers.pop("control")
    shortest = tuple(min((pair[side] for pair in known), key=len) for side in (0, 1)) if known else ("", "")
    for level, offer in sorted(offers.items()):
        if isinstance(offer, str):
            yield level, offer
        elif isinstance(control, str):
            yield level, f"the control's {control.removeprefix('the ')}"
        else:
            yield level, _item(record, level, offer, control, shortest, source)


def _offer(text: str, right: str, other: str) -> _Offer | str:
    """The text cut at its options, the right one first; or why it cannot be."""
    cut = _SENTENCE.match(text.strip())
    clause = re.match(r"(?:[Ss]hould I )?(.+?) or (.+)\?$", cut["offer"].strip()) if cut else None
    if cut is None or clause is None:
        return "the options cannot be split: the text does not end with one or another"
    (first, _), (second, tail) = _without_tail(clause[1]), _without_tail(clause[2])
    named = [_names(option, right) for option in (first, second)]
    if named[0] == named[1]:
        return f"the options cannot be split: {'both' if named[0] else 'neither'} of them says {right!r}"
    options = (first, second) if named[0] else (second, first)
    if other != _BOTH and not _names(options[1], other):
        return f"the options cannot be split: none of them says {other!r}"
    return _Offer(cut["premise"] or "", (options[0].lower(), options[1].lower()), tail)


def _without_tail(option: str) -> tuple[str, str]:
    found = _TAIL.match(option.strip())
    return (found["option"], found["tail"] or "") if found else (option.strip(), "")


def _names(option: str, answer: str) -> bool:
    """Whether an option says the answer's telling word: "ride my bike" says "ride the bike"."""
    return bool(set(re.findall(r"\w+", answer.lower())) - {"the", "a"} & set(re.findall(r"\w+", option.lower())))


def _item(
    record: Mapping[str, Any], level: str, offer: _Offer, control: _Offer, answers: tuple[str, ...], source: str
) -> TrapItem | str:
    marked = _pair(offer, control)
    if marked is None:
        return "no phrase of nearness in item and control"
    flip = record["control"]["correct"] != _BOTH
    try:
        return mark_item(
            id=f"{record['id']}-{level}",
            kind="action",
            family=record["domain"],
            aspect=record["domain"],
            group=record["id"],
            level=int(level[1]),
            text=marked[0],
            control=marked[1],
            control_kind="flip" if flip else "neutral",
            correct={"text": f"{answers[0]} there", "aliases": [answers[0]]},
            shortcut={"text": f"{answers[1]} there", "aliases": [answers[1]]},
            source=[text for text in (source, str(record.get("shortcut_note") or "")) if text] or ["not stated"],
            meta={"question": record["levels"][level], "implicit_goal": record.get("implicit_goal")},
        )
    except LatentKTError as error:
        return error.what.removeprefix("mark_item, item ")


def _pair(item: _Offer, control: _Offer) -> tuple[str, str] | None:
    """Both texts with their spans marked; None where they share no kind of phrase of nearness."""
    for kind in _NEAR:
        mine, theirs = kind.search(item.premise), kind.search(control.premise)
        if mine is not None and theirs is not None:
            before = _differing(item.premise[: mine.start()], control.premise[: theirs.start()])
            after = _differing(item.premise[mine.end() :], control.premise[theirs.end() :])
            tail = _differing(f"{item.tail}?", f"{control.tail}?")
            offers = "Should I {option_a} or {option_b}"
            first, second = (
                f"{before[side]}[[shortcut: {spot[0]}]]{after[side]} {offers}{tail[side]}"
                for side, spot in enumerate((mine, theirs))
            )
            return first, second
    return None


def _differing(item: str, control: str) -> tuple[str, str]:
    """Both texts with what differs marked as constraint: their common beginning and end, whole words, stay outside."""
    if item == control:
        return item, control
    mine, theirs = (re.findall(r"\s*[^\s]+|\s+$", text) for text in (item, control))
    start = stop = 0
    most = min(len(mine), len(theirs)) - 1
    while start < most and mine[start] == theirs[start]:
        start += 1
    while stop < most - start and mine[-1 - stop] == theirs[-1 - stop]:
        stop += 1
    inner = ["".join(words[start : len(words) - stop]) for words in (mine, theirs)]
    spaces = [text[: len(text) - len(text.lstrip())] for text in inner]
    shared = spaces[0] if spaces[0] == spaces[1] else ""  # a space that only one of them begins with is its own
    first, second = (
        f"{''.join(words[:start])}{shared}[[constraint: {text[len(shared) :]}]]{''.join(words[len(words) - stop :])}"
        for words, text in zip((mine, theirs), inner, strict=True)
    )
    return first, second
