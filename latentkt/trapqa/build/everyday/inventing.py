"""Scenes by a language model: two seeds of a family in, a scene of the same form as the written ones out.

The model writes the scene only. Items, controls and mirror images are made of it as of any scene, and proved by the
same rules; what a rule refuses is logged like everything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from latentkt.errors import DataError
from latentkt.trapqa.build.everyday.families import ASPECTS, Family, Scene, read_scene
from latentkt.trapqa.build.everyday.seeds import Seed
from latentkt.trapqa.build.language import Failure, generate
from latentkt.trapqa.build.log import StageLog

if TYPE_CHECKING:
    from inspect_ai.model import Model

__all__ = ["Draft", "invent_scenes", "pairs_of_seeds"]

STAGE = "scenes of the model"
_PROMPT = """\
You write one everyday scene in which somebody has to choose between two options.

Family: {family}. {role}. What decides: {constraint}.
Option a has to contain the word "{response_a}", option b the word "{response_b}". In a survey, people who heard
"{cue_a}" often answered "{response_a}", and people who heard "{cue_b}" often answered "{response_b}".

Write, in simple American English, first person:
- a, b: two short options of the same shape and nearly the same length, such as "take the *car*" and "go on *foot*". Put
  stars round the required word.
- cue_a: one short sentence that makes option a tempting, though it decides nothing. It contains the word "{cue_a}" in
  stars and puts square brackets round its main words: "[My *garage* opens at the push of a button]." cue_b likewise for
  option b, with the word "{cue_b}". Neither sentence contains a word of an option.
- need: one sentence that says what the person wants, with {{which}} exactly once. It must be true and sensible beside
  either cue.
- for_a, for_b: two phrases with equally many words that can stand in {{which}}. With for_a only option a does what the
  person wants; with for_b only option b does. Put stars round the one word of each phrase that decides. Do not name an
  option in them, and do not say outright what follows: a reader has to infer it, without special knowledge.
- ask: a question that ends the scene and contains {{option_a}} and then {{option_b}} once each, such as "For the way
  there, do I {{option_a}} or {{option_b}}?"
- why: one sentence that says why for_a rules out b and for_b rules out a.
- kind: what the constraint is: physical, spatial, procedural or medium.
- aspect: one of {aspects}.

Be ordinary: nothing cruel, nothing magical, no brand of your own making. Both options have to be plausible."""


@dataclass
class Draft:
    """What the model writes; the fields of a scene."""

    aspect: str
    kind: str
    a: str
    b: str
    cue_a: str
    cue_b: str
    need: str
    for_a: str
    for_b: str
    ask: str
    why: str


def pairs_of_seeds(seeds: Sequence[Seed], count: int, rng: np.random.Generator) -> list[tuple[Seed, Seed]]:
    """Pairs of seeds of one family with two responses and two cues; no association stands in two pairs.

    Seeds without a written scene come first, the stronger ones more likely.
    """
    order = sorted(seeds, key=lambda s: (bool(s.scenes), -s.association.strength * (0.5 + rng.random())))
    pairs: list[tuple[Seed, Seed]] = []
    used: set[tuple[str, str]] = set()
    for one in order:
        for other in order:
            mine, theirs = one.association, other.association
            keys = {(each.cue, each.response) for each in (mine, theirs)}
            words = {mine.cue, mine.response, theirs.cue, theirs.response}
            if len(pairs) < count and len(words) == 4 and not keys & used:
                pairs.append((one, other))
                used |= keys
    return pairs


def invent_scenes(
    family: Family,
    pairs: Sequence[tuple[Seed, Seed]],
    model: str | Model,
    log: StageLog,
    *,
    seed: int = 0,
    retries: int = 2,
    journal: str | Path | None = None,
) -> list[Scene]:
    """Have a model write a scene for each pair of seeds.

    Args:
        family: The family.
        pairs: Two seeds a scene.
        model: A model of inspect-ai.
        log: Where replies that are no scene go, by kind.
        seed: Passed on to the model.
        retries: How often a reply of the wrong form is sent back.
        journal: Where answers are kept as they come.
    """
    prompts = [_prompt(family, one, other) for one, other in pairs]
    replies = generate(model, prompts, Draft, retries=retries, seed=seed, journal=journal)
    scenes = []
    for (one, other), reply in zip(pairs, replies, strict=True):
        name = f"{one.association.cue}-{other.association.cue}".replace(" ", "_")
        if isinstance(reply, Failure):
            log.remove(STAGE, f"{family.name}-{name}", f"model: {reply.why}", reply.detail)
            continue
        record = {"id": f"model-{name}", **asdict(reply)}
        try:
            scene = read_scene(record, where=f"{family.name}, {name}", source=f"written by {model}")
            _holds_words(scene, one, other)
        except DataError as error:
            log.remove(STAGE, f"{family.name}-{name}", "no scene", str(error))
            continue
        scenes.append(scene)
    return scenes


def _prompt(family: Family, one: Seed, other: Seed) -> str:
    return _PROMPT.format(
        **{name: value for name, value in family.metadata.items() if name in ("family", "role", "constraint")},
        cue_a=one.association.cue,
        response_a=one.association.response,
        cue_b=other.association.cue,
        response_b=other.association.response,
        aspects=", ".join(ASPECTS),
    )


def _holds_words(scene: Scene, one: Seed, other: Seed) -> None:
    """The starred words are those that were asked for, in any of their forms."""
    for side, seed in (("a", one), ("b", other)):
        for marked, wanted, forms in (
            (scene.cue[side], seed.association.cue, seed.association.cue_forms),
            (scene.option[side], seed.association.response, seed.association.response_forms),
        ):
            if marked.word.lower() not in {wanted, *forms} and not marked.word.lower().startswith(wanted):
                raise DataError(f"side {side}: another word between stars", expected=wanted, found=marked.word)
