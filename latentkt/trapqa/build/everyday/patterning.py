"""The pattern file of a set: the words that keys and tasks are written with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from latentkt.corpus.patterns import Patterns
from latentkt.errors import DataError
from latentkt.trapqa.build.everyday.bank import Bank
from latentkt.trapqa.build.everyday.families import Scene
from latentkt.trapqa.items import TrapItem

__all__ = ["patterns_for"]

# Responses that name an act: endings that cannot be left to a rule.
_ACTS = {
    "bake": "bake bakes baked baking",
    "clean": "clean cleans cleaned cleaning",
    "cook": "cook cooks cooked cooking",
    "cut": "cut cuts cutting",
    "dig": "dig digs dug digging",
    "draw": "draw draws drew drawn drawing",
    "drink": "drink drinks drank drinking",
    "drive": "drive drives drove driven driving",
    "dry": "dry dries dried drying",
    "eat": "eat eats ate eaten eating",
    "film": "film films filmed filming",
    "leave": "leave leaves left leaving",
    "listen": "listen listens listened listening",
    "measure": "measure measures measured measuring",
    "paint": "paint paints painted painting",
    "pay": "pay pays paid paying",
    "plant": "plant plants planted planting",
    "read": "read reads reading",
    "run": "run runs ran running",
    "sing": "sing sings sang sung singing",
    "sleep": "sleep sleeps slept sleeping",
    "stop": "stop stops stopped stopping",
    "swim": "swim swims swam swum swimming",
    "talk": "talk talks talked talking",
    "vote": "vote votes voted voting",
    "wait": "wait waits waited waiting",
    "walk": "walk walks walked walking",
    "wash": "wash washes washed washing",
    "work": "work works worked working",
    "write": "write writes wrote written writing",
}
_SAME = {"foot": "foot", "scissors": "scissors", "cash": "cash", "music": "music", "chalk": "chalk", "ice": "ice"}
# Uses of a task's word in another sense, common enough to spoil a count.
_EXCLUDED = {
    "train": ("train of thought", "to train"),
    "foot": ("at the foot of", "foot of the"),
    "saw": (
        "i saw",
        "he saw",
        "she saw",
        "we saw",
        "they saw",
        "you saw",
        "who saw",
        "and saw",
        "it saw",
        "i never saw",
    ),
    "letter": ("to the letter", "letter of the law", "capital letter"),
    "home": ("home office", "home rule"),
    "work": ("work of art", "works of art"),
    "court": ("court yard", "paid court"),
    "party": ("party of", "political party"),
    "leave": ("by your leave", "take leave", "took leave"),
    "iron": ("iron will", "cast iron", "wrought iron"),
    "fire": ("under fire",),
    "fan": ("fan tracery",),
    "bank": ("bank of the river", "river bank", "on the bank of"),
    "safe": ("safe and sound", "quite safe", "be safe", "is safe", "was safe", "were safe"),
    "light": ("light of day",),
}


def patterns_for(items: Sequence[TrapItem], scenes: Iterable[Scene], bank: Bank) -> Patterns:
    """The patterns of the items' paths.

    A key is written as the bank has it in its forms and as it stands in its scene, an association cue in the plural
    too; an act in the forms of its verb, any other task in singular and plural.

    Args:
        items: Items with paths.
        scenes: The scenes they were made of.
        bank: The associations.
    """
    written: dict[str, set[str]] = {}
    for scene in scenes:
        for marked in (*scene.cue.values(), *scene.which.values()):
            written.setdefault(bank.lemma(marked.word), set()).add(marked.word.lower())
    keys: dict[str, list[str]] = {}
    tasks: dict[str, list[str]] = {}
    pairs: list[list[str]] = []
    for item in items:
        if item.paths is None:
            raise DataError(f"item {item.id!r} has no paths", expected="two paths")
        for key, task in (item.paths.correct, item.paths.shortcut):
            plural = _plural(key, bank) if key == item.meta["association"]["cue"] else []
            forms = {*keys.get(key, ()), key, *written.get(key, ()), *bank.forms(key), *plural}
            keys[key] = sorted(forms)
            tasks.setdefault(task, _task_forms(task, bank))
        pair = [item.paths.correct[0], item.paths.shortcut[0]]
        if pair[0] != pair[1] and pair not in pairs and pair[::-1] not in pairs:
            pairs.append(pair)
    return Patterns.from_dict(
        {"keys": _sorted(keys), "tasks": _sorted(tasks), "exclude": _excluded(tasks), "pairs": pairs}
    )


def _sorted(section: Mapping[str, list[str]]) -> dict[str, list[str]]:
    return {name: section[name] for name in sorted(section)}


def _excluded(tasks: Mapping[str, object]) -> dict[str, list[str]]:
    return {name: list(_EXCLUDED[name]) for name in sorted(tasks) if name in _EXCLUDED}


def _task_forms(task: str, bank: Bank) -> list[str]:
    if task in _ACTS:
        return _ACTS[task].split()
    if task in _SAME:
        return sorted({task, *(form for form in bank.forms(task) if form.startswith(task))})
    return sorted({task, *_plural(task, bank)})


def _plural(word: str, bank: Bank) -> list[str]:
    """The regular plural, unless the bank takes it for another word."""
    if " " in word or word.endswith(("ing", "ed", "ly", "s")):
        return []
    if word.endswith(("x", "ch", "sh")):
        plural = word + "es"
    elif word.endswith("y") and word[-2:-1] not in "aeiou":
        plural = word[:-1] + "ies"
    else:
        plural = word + "s"
    return [plural] if bank.lemma(plural) in (word, plural) else []
