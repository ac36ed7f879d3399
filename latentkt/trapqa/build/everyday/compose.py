"""From scenes to items: the cue of one side, the constraint of the other; the control has the first side's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from latentkt.trapqa.authoring import mark_item
from latentkt.trapqa.build.everyday.bank import Association, Bank
from latentkt.trapqa.build.everyday.families import Family, Scene, Side
from latentkt.trapqa.build.everyday.seeds import Seed
from latentkt.trapqa.build.log import StageLog
from latentkt.trapqa.items import Polarity, TrapItem

__all__ = ["Order", "Recipe", "compose", "places_of", "recipes", "trimmed"]

Order = Literal["cue_first", "constraint_first"]
_PLACE = re.compile(r"\{(person|woman|man|distance)=([^{}]+)\}")
_NEGATION = re.compile(r"\b(?:no|not|never|nothing|nobody|none|neither|cannot|without|\w+n't)\b", re.I)
OTHER: dict[Side, Side] = {"a": "b", "b": "a"}


@dataclass(frozen=True)
class Recipe:
    """All that one item is made of.

    Attributes:
        family: The family.
        scene: The scene.
        side: The side whose cue stands in the text: that option is the shortcut.
        association: The association behind the cue.
        order: Whether the cue or the constraint comes first.
        level: Level of explicitness 0 to 3, or None for an item that exists at no other level.
        places: What to put into the places of the scene; what is not named keeps its own words.
        change: Name of the perturbation, or None.
    """

    family: Family
    scene: Scene
    side: Side
    association: Association
    order: Order
    level: int | None = None
    places: tuple[tuple[str, str], ...] = ()
    change: str | None = None

    @property
    def base(self) -> str:
        """Id of the item without levels and perturbations."""
        return f"{self.family.name}-{self.scene.id}-{self.side}"


def recipes(
    family: Family,
    scenes: Sequence[Scene],
    seeds: Sequence[Seed],
    bank: Bank,
    rng: np.random.Generator,
    log: StageLog,
    used: set[tuple[str, str]] | None = None,
) -> list[Recipe]:
    """Two recipes a scene, mirror images; in half of the scenes the cue comes first.

    A scene needs a seed for each of its two cues, and no association is used twice.

    Args:
        family: The family.
        scenes: Its scenes.
        seeds: Its seeds.
        bank: The bank, for the lemmas of the marked words.
        rng: For the order of cue and constraint.
        log: Where scenes go that have no seed.
        used: Associations of other families' scenes; those of this family are added.
    """
    known = {(seed.association.cue, seed.association.response): seed.association for seed in seeds}
    used = set() if used is None else used
    usable: list[tuple[Scene, dict[str, Association]]] = []
    for scene in scenes:
        pairs = {side: (bank.lemma(scene.cue[side].word), bank.lemma(scene.option[side].word)) for side in OTHER}
        missing = [" -> ".join(pair) for pair in pairs.values() if pair not in known]
        repeated = [" -> ".join(pair) for pair in pairs.values() if pair in used]
        if missing or repeated:
            rule = "no seed of that association" if missing else "association of another scene"
            log.remove("scenes", f"{family.name}-{scene.id}", rule, ", ".join(missing or repeated))
            continue
        used.update(pairs.values())
        usable.append((scene, {side: known[pair] for side, pair in pairs.items()}))
    first = rng.permutation(len(usable)) % 2 == 0
    return [
        Recipe(family, scene, side, associations[side], "cue_first" if cue_first else "constraint_first")
        for (scene, associations), cue_first in zip(usable, first, strict=True)
        for side in OTHER
    ]


def compose(recipe: Recipe, bank: Bank, *, source: str) -> TrapItem:
    """Make the item of a recipe.

    Args:
        recipe: The recipe.
        bank: The bank, for the strength of the constraint's own association.
        source: What to call the association file.

    Raises:
        DataError: The item breaks a clause of the format.
    """
    scene, side, other = recipe.scene, recipe.side, OTHER[recipe.side]
    wrong, right = scene.option[side], scene.option[other]
    text, swapped = _texts(recipe)
    each = recipe.association
    return mark_item(
        id="-".join(str(part) for part in (recipe.base, recipe.level, recipe.change) if part is not None),
        kind="action",
        family=recipe.family.name,
        aspect=scene.aspect,
        constraint_kind=scene.kind,
        polarity=_polarity(scene.which[other].text, scene.which[side].text),
        group=None if recipe.level is None else recipe.base,
        level=recipe.level,
        text=text,
        control=swapped,
        correct={"text": right.text},
        shortcut={"text": wrong.text},
        paths={"correct": f"{_name(scene.which[other].word, bank)}:{_name(right.word, bank)}",
               "shortcut": f"{each.cue}:{each.response}"},
        source=[
            f"Association: {each.cue} -> {each.response}, {each.count} of {each.n} people, {source}.",
            f"Scene: {scene.source}.",
        ],
        meta=_meta(recipe, bank),
    )  # fmt: skip


def _meta(recipe: Recipe, bank: Bank) -> dict[str, Any]:
    scene, other = recipe.scene, OTHER[recipe.side]
    each = recipe.association
    return {
        **recipe.family.metadata,
        "scene": scene.id,
        "mirror": f"{recipe.family.name}-{scene.id}-{other}",
        "order": recipe.order,
        "association": {"cue": each.cue, "response": each.response, "strength": round(each.strength, 4), "n": each.n},
        "strength_of_constraint": round(bank.pull([scene.which[other].word], scene.option[other].word), 4),
        "why_the_constraint_decides": scene.why,
        "change": recipe.change,
    }


def _polarity(item: str, control: str) -> Polarity:
    negated, affirmed = bool(_NEGATION.search(item)), bool(_NEGATION.search(control))
    return "none" if negated == affirmed else "negated" if negated else "affirmed"


def _name(word: str, bank: Bank) -> str:
    return bank.lemma(word).replace(":", " ")


def _texts(recipe: Recipe) -> tuple[str, str]:
    """The marked text and the marked control."""
    scene, side, other = recipe.scene, recipe.side, OTHER[recipe.side]
    cue = scene.cue[side]
    assert cue.span is not None
    start, end = cue.span
    marked_cue = f"{cue.text[:start]}[[shortcut: {cue.text[start:end]}]]{cue.text[end:]}"
    before, mine, control, after = trimmed(scene.which[other].text, scene.which[side].text)
    made = []
    for which, words in ((other, mine), (side, control)):
        need = scene.need.replace("{which}", f"{before}[[constraint: {words}]]{after}")
        more = _explicit(scene, recipe.level or 0, which)
        parts = [marked_cue, need + more] if recipe.order == "cue_first" else [need + more, marked_cue]
        made.append(_placed(" ".join([*parts, scene.ask]), dict(recipe.places)))
    return made[0], made[1]


def _explicit(scene: Scene, level: int, which: Side) -> str:
    """What the levels add behind the constraint.

    1: a rule that holds in item and control; 2: what follows from the constraint; 3: that the other option will not do.
    """
    added = [scene.levels["rule"]] if level == 1 else []
    if level >= 2:
        added.append(f"[[constraint: {scene.levels[f'so_{which}']}]]")
    if level >= 3:
        added.append(f"[[constraint: {scene.levels[f'no_{which}']}]]")
    return "".join(f" {sentence}" for sentence in added)


def trimmed(mine: str, control: str) -> tuple[str, str, str, str]:
    """Two phrases without the words that they share at the beginning and at the end; one word at least is left.

    Example:
        >>> trimmed("all rail workers are out", "all airline crews are out")
        ('all ', 'rail workers', 'airline crews', ' are out')
    """
    one, other = mine.split(), control.split()
    most = min(len(one), len(other)) - 1
    start = next((i for i in range(most) if one[i] != other[i]), most)
    end = next((i for i in range(most - start) if one[-1 - i] != other[-1 - i]), most - start)
    middle = [" ".join(words[start : len(words) - end]) for words in (one, other)]
    before = " ".join([*one[:start], ""])
    after = " ".join(["", *one[len(one) - end :]]) if end else ""
    return before, middle[0], middle[1], after


def _placed(text: str, places: dict[str, str]) -> str:
    return _PLACE.sub(lambda match: places.get(match.group(1), match.group(2)), text)


def places_of(scene: Scene) -> dict[str, str]:
    """The places of a scene and their own words."""
    whole = " ".join([scene.need, scene.ask, *(cue.text for cue in scene.cue.values())])
    return dict(_PLACE.findall(whole))
