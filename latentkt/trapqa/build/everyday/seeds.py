"""Seeds: associations that a family can turn into a shortcut, with the family's metadata, capped by lemma."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from latentkt.errors import InputError
from latentkt.trapqa.build.everyday.bank import Association, Bank
from latentkt.trapqa.build.everyday.families import Family
from latentkt.trapqa.build.log import StageLog

__all__ = ["Seed", "SeedLimits", "choose_seeds", "load_seeds", "save_seeds"]

STAGE = "seeds"


@dataclass(frozen=True, slots=True)
class SeedLimits:
    """The limits of the choice.

    Attributes:
        min_strength: Weaker associations are no shortcut.
        per_cue: At most this many seeds of one cue in a family.
        per_response: At most this many seeds of one response in a family.
    """

    min_strength: float = 0.08
    per_cue: int = 3
    per_response: int = 12

    def __post_init__(self) -> None:
        if not 0 < self.min_strength <= 1 or min(self.per_cue, self.per_response) < 1:
            raise InputError(
                "bad limits of the seeds", expected="a strength in (0, 1], caps of at least 1", found=astuple(self)
            )


@dataclass(frozen=True, slots=True)
class Seed:
    """An association in a family.

    Attributes:
        family: Name of the family.
        association: The association.
        scenes: Scenes of the family that use it, as `SCENE.SIDE`.
    """

    family: str
    association: Association
    scenes: tuple[str, ...] = ()


def choose_seeds(bank: Bank, families: Sequence[Family], log: StageLog, limits: SeedLimits | None = None) -> list[Seed]:
    """Choose the seeds of every family.

    An association can be a seed of a family whose anchors hold its response. Those with a written scene come first,
    then the strongest; each lemma is capped within its family. What no family can use stays in the bank, unlogged.

    Args:
        bank: The bank.
        families: The families.
        log: Where removals go.
        limits: The limits.
    """
    limits = limits or SeedLimits()
    seeds: list[Seed] = []
    for family in families:
        anchors = {bank.lemma(word) for word in family.anchors}
        anchors |= {bank.lemma(option.word) for scene in family.scenes for option in scene.option.values()}
        fit = [
            Seed(family.name, each, _scenes(each, family, bank))
            for each in bank.associations
            if each.response in anchors
        ]
        seeds += _capped(fit, limits, log)
    log.count(STAGE, kept=len(seeds))
    return seeds


def _scenes(association: Association, family: Family, bank: Bank) -> tuple[str, ...]:
    pair = association.cue, association.response
    return tuple(
        f"{scene.id}.{side}"
        for scene in family.scenes
        for side in ("a", "b")
        if (bank.lemma(scene.cue[side].word), bank.lemma(scene.option[side].word)) == pair
    )


def _capped(fit: Sequence[Seed], limits: SeedLimits, log: StageLog) -> list[Seed]:
    kept: list[Seed] = []
    cues: Counter[str] = Counter()
    responses: Counter[str] = Counter()
    for seed in sorted(fit, key=lambda s: (not s.scenes, -s.association.strength, s.association.cue)):
        each = seed.association
        rule = ""
        if each.strength < limits.min_strength:
            rule = "too weak for a shortcut"
        elif not seed.scenes and cues[each.cue] >= limits.per_cue:
            rule = "cap of its cue"
        elif not seed.scenes and responses[each.response] >= limits.per_response:
            rule = "cap of its response"
        if rule:
            log.remove(STAGE, f"{seed.family}: {each.cue} -> {each.response}", rule, f"{each.strength:.3f}")
            continue
        kept.append(seed)
        cues[each.cue] += 1
        responses[each.response] += 1
    return kept


def save_seeds(path: str | Path, bank: Bank, seeds: Sequence[Seed], families: Sequence[Family]) -> None:
    """Write the bank with its seeds: the line of an association lists the families that can use it."""
    metadata = {family.name: family.metadata for family in families}
    extra: dict[tuple[str, str], dict[str, Any]] = {}
    for seed in seeds:
        line = extra.setdefault((seed.association.cue, seed.association.response), {"seed_of": []})
        line["seed_of"].append({**metadata[seed.family], "scenes": list(seed.scenes)})
    bank.save(path, extra)


def load_seeds(path: str | Path) -> tuple[Bank, list[Seed]]:
    """Read what `save_seeds` wrote."""
    bank, extra = Bank.load(path)
    seeds = [
        Seed(entry["family"], each, tuple(entry.get("scenes", ())))
        for each in bank.associations
        for entry in extra.get((each.cue, each.response), {}).get("seed_of", ())
    ]
    return bank, seeds
