"""What every item has to hold, by rule: the pull of its cue, no answer in its text, grammar, lengths, no twins.

An item whose mirror image fell falls with it, so that no option stays right more often than it is the shortcut.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from latentkt.trapqa.build.artefact_classifier import context, words
from latentkt.trapqa.build.everyday.bank import Bank
from latentkt.trapqa.build.everyday.builtin_words import STOP_WORDS
from latentkt.trapqa.build.log import StageLog
from latentkt.trapqa.check import REPEAT_LIMIT
from latentkt.trapqa.items import TrapItem
from latentkt.trapqa.sentences import repeated_sentences

__all__ = ["RULES", "prove"]

STAGE = "proof by rule"
LENGTH_RATIO = 2.0
LENGTH_WORDS = 2
TWIN = 0.8
# Verbs that stand in options of many kinds and name none of them.
_LIGHT_VERBS = "go use take get bring make turn put send come have give let begin sit stay read play"
_LIGHT = frozenset(_LIGHT_VERBS.split())
_BAD = (
    (re.compile(r"  "), "two spaces"),
    (re.compile(r"\ba [aeio]\w", re.I), "'a' before a vowel"),
    (re.compile(r"\ban (?![aeiouh])\w", re.I), "'an' before a consonant"),
    (re.compile(r"\b(\w+) \1\b", re.I), "a word twice"),
    (re.compile(r"[*\[\]]|\{(?!option_[ab]\})"), "a mark is left"),
    (re.compile(r"[.!?] [a-z]"), "a sentence begins small"),
    (re.compile(r" [,.;?]|,,|\.\."), "misplaced punctuation"),
)

Rule = Callable[[TrapItem, Bank], str]


def prove(items: Sequence[TrapItem], bank: Bank, log: StageLog, *, per_response: int = 12) -> list[TrapItem]:
    """The items that hold every rule.

    Args:
        items: The items.
        bank: The associations.
        log: Where removals go, by item.
        per_response: At most this many scenes of a family may have the same response as an option.

    Returns:
        Items in their order, mirror images together.
    """
    broken: dict[str, tuple[str, str]] = {}
    for item in items:
        for name, rule in RULES.items():
            detail = rule(item, bank)
            if detail:
                broken.setdefault(item.id, (name, detail))
    sets: dict[str, Callable[[Sequence[TrapItem]], dict[str, str]]] = {
        "twin of another item": _twins,
        "cap of its response": _over(per_response),
        "a sentence in too many items": _repeats,
    }
    for name, found in sets.items():
        left = [item for item in items if item.id not in broken]
        broken |= {item_id: (name, detail) for item_id, detail in found(left).items()}
    return without_halves(items, broken, log, STAGE)


def without_halves(
    items: Sequence[TrapItem], broken: dict[str, tuple[str, str]], log: StageLog, stage: str
) -> list[TrapItem]:
    """Take out what is broken, and the mirror images and levels that lost their other half."""
    halves = {_half(item) for item in items if item.id in broken}
    kept = []
    for item in items:
        if item.id in broken:
            log.remove(stage, item.id, *broken[item.id])
        elif _half(item) in halves:
            log.remove(stage, item.id, "its mirror image or level was removed")
        else:
            kept.append(item)
    log.count(stage, kept=len(kept))
    return kept


def _half(item: TrapItem) -> tuple[str, str, object]:
    return item.family, str(item.meta.get("scene", item.id)), item.meta.get("change")


def _pull(item: TrapItem, bank: Bank) -> str:
    cue, response = item.meta["association"]["cue"], item.meta["association"]["response"]
    shortcut = bank.pull([cue], response)
    right = next((word for word in reversed(words(item.correct.text)) if bank.lemma(word) == _task(item)), _task(item))
    counter = bank.pull(_content(item), right)
    return "" if counter < shortcut else f"{counter:.2f} for the right answer, {shortcut:.2f} for the shortcut"


def _task(item: TrapItem) -> str:
    assert item.paths is not None
    return item.paths.correct[1]


def _content(item: TrapItem) -> list[str]:
    """Words of the constraint."""
    spans = item.spans["constraint"][:1]
    return [word for start, end in spans for word in words(item.text[start:end]) if word not in STOP_WORDS]


def _cue_is_there(item: TrapItem, bank: Bank) -> str:
    cue, response = item.meta["association"]["cue"], item.meta["association"]["response"]
    start, end = item.spans["shortcut"][0]
    spoken = {bank.lemma(word) for word in words(item.text[start:end])} | {item.text[start:end].lower()}
    if cue not in spoken and not any(cue in each for each in spoken):
        return f"no {cue!r} in the cue"
    offered = {bank.lemma(word) for word in words(item.shortcut.text)}
    return "" if response in offered else f"no {response!r} in the shortcut answer"


def _leak(item: TrapItem, bank: Bank) -> str:
    """A word of one of the answers that the text has too, beside those that both answers share."""
    correct, shortcut = ({bank.lemma(w) for w in words(o.text)} for o in (item.correct, item.shortcut))
    telling = {w for w in correct ^ shortcut if w not in STOP_WORDS and w not in _LIGHT}
    for which in ("item", "control"):
        text, _ = item.question(which)
        found = telling & {bank.lemma(word) for word in words(re.sub(r"\{option_[ab]\}", " ", text))}
        if found:
            return ", ".join(sorted(found))
    return ""


def _grammar(item: TrapItem, bank: Bank) -> str:
    for text in (item.text, item.control.text):
        for option_a, option_b in ((item.correct.text, item.shortcut.text), (item.shortcut.text, item.correct.text)):
            filled = text.replace("{option_a}", option_a).replace("{option_b}", option_b)
            found = next((name for pattern, name in _BAD if pattern.search(filled)), "")
            if found or filled.count("?") != 1 or not filled.endswith("?") or not filled[0].isupper():
                return found or "not a text with one question at its end"
    return ""


def _lengths(item: TrapItem, bank: Bank) -> str:
    mine, theirs = len(item.text.split()), len(item.control.text.split())
    if abs(mine - theirs) > LENGTH_WORDS:
        return f"{mine} words in the item, {theirs} in its control"
    one, other = len(item.correct.text), len(item.shortcut.text)
    return f"answers of {one} and {other} characters" if max(one, other) > LENGTH_RATIO * min(one, other) else ""


RULES: dict[str, Rule] = {
    "the association is not there": _cue_is_there,
    "the constraint pulls harder than the cue": _pull,
    "the text holds a word of one answer": _leak,
    "grammar": _grammar,
    "lengths": _lengths,
}
"""Rules of one item: name -> what was found, or nothing."""


def _twins(items: Sequence[TrapItem]) -> dict[str, str]:
    """Items that are nearly another scene of their family, word by word."""
    found: dict[str, str] = {}
    seen: list[tuple[object, str, set[str], str]] = []
    for item in items:
        mine = set(context(item)) | {w for s, e in item.spans["constraint"] for w in words(item.text[s:e])}
        for scene, family, theirs, other in seen:
            if (
                family == item.family
                and scene != item.meta.get("scene")
                and len(mine & theirs) > TWIN * len(mine | theirs)
            ):
                found[item.id] = other
        seen.append((item.meta.get("scene"), item.family, mine, item.id))
    return found


def _over(per_response: int) -> Callable[[Sequence[TrapItem]], dict[str, str]]:
    def found(items: Sequence[TrapItem]) -> dict[str, str]:
        scenes: dict[tuple[str, str], list[str]] = {}
        over = {}
        for item in items:
            key = item.family, item.meta["association"]["response"]
            listed = scenes.setdefault(key, [])
            if item.meta["scene"] not in listed:
                listed.append(item.meta["scene"])
            if listed.index(item.meta["scene"]) >= per_response:
                over[item.id] = f"{key[1]}: more than {per_response}"
        return over

    return found


def _repeats(items: Sequence[TrapItem]) -> dict[str, str]:
    """Of the items that hold one sentence, those beyond the limit; changed names and distances are not counted."""
    counted = [item for item in items if not item.meta.get("change")]
    return {
        item_id: repeat.masked
        for repeat in repeated_sentences(counted, limit=REPEAT_LIMIT)
        for item_id in repeat.ids[REPEAT_LIMIT:]
    }
