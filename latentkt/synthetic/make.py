"""Make a world from a few numbers: levels of frequency, clusters, hold-outs by design."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from latentkt.errors import InputError
from latentkt.synthetic.world import Cluster, Relation, World

__all__ = ["WorldConfig", "count_levels", "make_world", "names"]

INDEPENDENT, COOCCURRING = "independent", "cooccurring"
VERBS = ("receive", "attend", "found", "visit", "lead", "edit", "fund", "join")
LAYOUTS = ("crossed", "nested", "mirrored")
CONSONANTS, VOWELS = "bdfgklmnprstvz", "aeiou"


@dataclass(frozen=True)
class WorldConfig:
    """The numbers that a world is made from.

    Attributes:
        levels: Entities of one cluster and polarity; each has another level of frequency.
        clusters: Name, opposed_share and noise of each cluster.
        relations: How many tasks; each orders the same entities by frequency in its own way.
        counts: {"kind": "geometric", "low", "high"}, {"kind": "zipf", "exponent", "high"} or
            {"kind": "table", "values": one number for each level}.
        easy_share: Share of choice documents that another cluster's entity makes easy.
        held_same: Shifts of same-polarity pairs that are held out (of `(levels - 1) // 2`).
        held_opposed: Shifts of opposed pairs that are held out (of `levels`).
        never_asked: Share of the entities that no question is asked about.
        held_out_templates: Names of templates that are never written.
        labels: "drawn" or "permuted"; see `World`.
        layout: "crossed": each relation deals the entities anew over clusters and polarities. "nested": cluster and
            polarity are the same in every relation, only counts differ. "mirrored": as nested, but every other
            relation has the polarities exchanged.
    """

    levels: int = 16
    clusters: tuple[Cluster, ...] = (Cluster(INDEPENDENT, 0.0), Cluster(COOCCURRING, 0.2))
    relations: int = 2
    counts: dict[str, Any] = field(default_factory=lambda: {"kind": "geometric", "low": 8, "high": 512})
    easy_share: float = 0.2
    held_same: int = 2
    held_opposed: int = 4
    never_asked: float = 0.25
    held_out_templates: tuple[str, ...] = ("late_question",)
    labels: str = "drawn"
    layout: str = "crossed"

    def __post_init__(self) -> None:
        if self.layout not in LAYOUTS:
            raise InputError("the layout of the relations is unknown", expected=LAYOUTS, found=self.layout)


def count_levels(counts: dict[str, Any], levels: int) -> np.ndarray:
    """The count of every level, rare first.

    Raises:
        InputError: If the description is of no known kind, or gives counts that cannot be.

    Example:
        >>> count_levels({"kind": "geometric", "low": 8, "high": 64}, 4).tolist()
        [8, 16, 32, 64]
        >>> count_levels({"kind": "zipf", "exponent": 1.0, "high": 60}, 4).tolist()
        [15, 20, 30, 60]
    """
    kind = counts.get("kind")
    if kind == "geometric":
        values = np.geomspace(counts["low"], counts["high"], levels)
    elif kind == "zipf":
        values = counts["high"] * np.arange(levels, 0, -1.0) ** -float(counts["exponent"])
    elif kind == "table":
        values = np.asarray(counts["values"], dtype=float)
    else:
        raise InputError("counts are of no known kind", expected="geometric, zipf or table", found=kind)
    if len(values) != levels or not np.all(np.isfinite(values)) or np.any(np.rint(values) < 1):
        raise InputError(
            "impossible counts", expected=f"{levels} whole numbers of at least 1", found=np.rint(values).tolist()
        )
    return np.rint(values).astype(np.int64)


def make_world(config: WorldConfig, *, seed: int) -> World:
    """Make the world of a seed.

    Pairs are held out by shifts on a circle (entity i with entity i + shift), so that every entity keeps the same
    number of partners and the choice of a partner says nothing about the answer.

    Raises:
        InputError: If nothing would be left to train on, or the counts cannot be.

    Example:
        >>> world = make_world(WorldConfig(), seed=0)
        >>> len(world.entities), world.counts.shape, int(world.counts.min()), int(world.counts.max())
        (64, (2, 64), 8, 512)
    """
    rng = np.random.default_rng([seed, 1])
    cells = 2 * len(config.clusters)
    number = cells * config.levels
    entities = names(number, rng)
    words = tuple(f"the{name.lower()}" for name in names(config.relations * len(config.clusters), rng))
    levels = count_levels(config.counts, config.levels)
    deals = _deals(config, levels, rng)
    asked_out = rng.choice(number, round(config.never_asked * number), replace=False)
    return World(
        seed=seed,
        entities=entities,
        clusters=config.clusters,
        relations=tuple(
            _relation(config, index, deal, levels, words[index * len(config.clusters) :])
            for index, deal in enumerate(deals)
        ),
        easy_share=config.easy_share,
        never_paired=tuple(
            sorted((index, *pair) for index, deal in enumerate(deals) for pair in _hold_out(config, deal, rng))
        ),
        never_asked=tuple(sorted(int(entity) for entity in asked_out)),
        held_out_templates=config.held_out_templates,
        labels=config.labels,
    )


def _relation(
    config: WorldConfig, index: int, deal: np.ndarray, levels: np.ndarray, words: tuple[str, ...]
) -> Relation:
    """One relation from a deal: entity `deal[cell, level]` has that cell's cluster and polarity and that level."""
    number = deal.size
    cell_of, level_of = np.empty(number, dtype=np.int64), np.empty(number, dtype=np.int64)
    cell_of[deal] = np.arange(deal.shape[0])[:, None]
    level_of[deal] = np.arange(deal.shape[1])[None, :]
    return Relation(
        name=_verb(index),
        verb=_verb(index),
        attributes=words[: len(config.clusters)],
        counts=tuple(int(count) for count in levels[level_of]),
        cluster=tuple(int(cell) // 2 for cell in cell_of),
        polarity=tuple(int(cell) % 2 for cell in cell_of),
    )


def _deals(config: WorldConfig, levels: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """For each relation, which entity stands at (cell, level): levels as good as uncorrelated between relations."""
    cells = 2 * len(config.clusters)
    first = rng.permutation(cells * config.levels).reshape(cells, config.levels)
    deals = [first]
    while len(deals) < config.relations:
        tries = [_redeal(config, first, rng) for _ in range(200)]
        deals.append(min(tries, key=lambda deal: _overlap(deal, deals, levels)))
    return deals


def _redeal(config: WorldConfig, first: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if config.layout == "crossed":
        return rng.permutation(first.ravel()).reshape(first.shape)
    kept = rng.permuted(first, axis=1)
    return kept if config.layout == "nested" else kept[np.arange(len(kept)) ^ 1]


def _overlap(deal: np.ndarray, others: list[np.ndarray], levels: np.ndarray) -> float:
    """Largest correlation of log counts with an earlier relation, over all entities and within its cells."""
    logs = np.empty(deal.size)
    logs[deal] = np.log(levels)
    largest = 0.0
    for other in others:
        theirs = np.empty(deal.size)
        theirs[other] = np.log(levels)
        cells = [abs(_correlation(logs[row], theirs[row])) for row in (*deal, *other)]
        largest = max(largest, abs(_correlation(logs, theirs)), float(np.mean(cells)))
    return largest


def _correlation(first: np.ndarray, second: np.ndarray) -> float:
    """0 where one of them does not vary."""
    if min(np.ptp(first), np.ptp(second)) == 0:
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])


def _verb(index: int) -> str:
    return VERBS[index] if index < len(VERBS) else f"verb{index}"


def names(number: int, rng: np.random.Generator) -> tuple[str, ...]:
    """Distinct words of two syllables.

    Raises:
        InputError: If there are not so many.
    """
    syllables = [first + second for first in CONSONANTS for second in VOWELS]
    if number > len(syllables) ** 2:
        raise InputError("too many entities to name", expected=f"at most {len(syllables) ** 2}", found=number)
    drawn = rng.choice(len(syllables) ** 2, number, replace=False)
    return tuple((syllables[code // len(syllables)] + syllables[code % len(syllables)]).capitalize() for code in drawn)


def _hold_out(config: WorldConfig, deal: np.ndarray, rng: np.random.Generator) -> set[tuple[int, int]]:
    size, shifts = config.levels, (config.levels - 1) // 2
    if not 0 <= config.held_same < max(shifts, 1) or not 0 <= config.held_opposed < size:
        raise InputError(
            "the hold-outs leave nothing to train on",
            expected=f"held_same under {shifts} and held_opposed under {size}",
            found=f"held_same {config.held_same}, held_opposed {config.held_opposed}",
            fix="hold out fewer shifts, or make more levels",
        )
    circles = rng.permuted(deal, axis=1)
    pairs = set()
    for cell, circle in enumerate(circles):
        for shift in 1 + rng.choice(shifts, config.held_same, replace=False):
            pairs |= {_pair(a, b) for a, b in zip(circle, np.roll(circle, int(shift)), strict=True)}
        if cell % 2 == 0:
            for shift in rng.choice(size, config.held_opposed, replace=False):
                pairs |= {_pair(a, b) for a, b in zip(circle, np.roll(circles[cell + 1], int(shift)), strict=True)}
    return pairs


def _pair(first: int, second: int) -> tuple[int, int]:
    return int(min(first, second)), int(max(first, second))
