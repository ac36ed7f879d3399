"""Controlled perturbations: what may change in an item while its answer may not.

Names and distances are exchanged in item and control alike; cue and constraint change places; the constraint is said at
four levels of explicitness, from 0 (to be inferred) over 1 (a rule of thumb that holds in item and control) and 2 (what
follows) to 3 (that the other option will not do). The order of the options needs no items of its own: rendering shows
either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from latentkt.errors import InputError
from latentkt.trapqa.build.everyday.compose import Order, Recipe, places_of

__all__ = ["Perturbation", "perturbed"]

Perturbation = Literal["names", "distances", "order", "levels"]
OTHERS = {
    "person": ("Robin", "Kim", "Alex", "Sam", "Jo"),
    "woman": ("Greta", "Amina", "Yuki", "Carmen", "Olga"),
    "man": ("Hugo", "Omar", "Kenji", "Pablo", "Ivan"),
    "distance": ("eighty steps", "three blocks", "a quarter of a mile", "four minutes on foot", "five hundred yards"),
}
_OF = {"names": ("person", "woman", "man"), "distances": ("distance",)}


def perturbed(recipes: Sequence[Recipe], kinds: Sequence[Perturbation], rng: np.random.Generator) -> list[Recipe]:
    """The recipes with their perturbed versions behind them.

    Args:
        recipes: Recipes of items.
        kinds: Which perturbations; a recipe that has no place for one is left as it is. With `levels`, a recipe whose
            scene is written at four levels becomes level 0 of a group of four.
        rng: For the choice of names and distances.

    Raises:
        InputError: Another perturbation was asked for.
    """
    unknown = set(kinds) - set(get_args(Perturbation))
    if unknown:
        raise InputError(
            "unknown perturbation", expected=", ".join(get_args(Perturbation)), found=", ".join(sorted(unknown))
        )
    found: list[Recipe] = []
    drawn: dict[tuple[str, str, str], str] = {}
    for recipe in recipes:
        levelled = "levels" in kinds and bool(recipe.scene.levels)
        found += [replace(recipe, level=level) for level in range(4)] if levelled else [recipe]
        for kind in ("names", "distances"):
            places = {name for name in places_of(recipe.scene) if name in _OF[kind]}
            if kind in kinds and places:
                changed = tuple((name, _drawn(recipe, name, drawn, rng)) for name in sorted(places))
                found.append(replace(recipe, places=changed, change=kind))
        if "order" in kinds:
            other: Order = "constraint_first" if recipe.order == "cue_first" else "cue_first"
            found.append(replace(recipe, order=other, change="order"))
    return found


def _drawn(recipe: Recipe, place: str, drawn: dict[tuple[str, str, str], str], rng: np.random.Generator) -> str:
    """One choice a scene, so that mirror images stay mirror images."""
    key = recipe.family.name, recipe.scene.id, place
    if key not in drawn:
        own = places_of(recipe.scene)[place]
        drawn[key] = str(rng.choice([word for word in OTHERS[place] if word != own]))
    return drawn[key]
