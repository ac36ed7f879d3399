"""Action worlds: a surface cue points to one action, a constraint cue to another; which one a conflict follows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from latentkt.errors import InputError
from latentkt.synthetic.documents import Documents, render
from latentkt.synthetic.make import count_levels, names
from latentkt.synthetic.training import Batch
from latentkt.synthetic.vocabulary import Vocabulary

if TYPE_CHECKING:
    import pandas as pd
    from jaxtyping import Float, Int

__all__ = ["ActionConfig", "ActionStream", "ActionWorld", "action_items", "action_prompts", "make_action_world"]

TEMPLATE = "{first} {second} : {a} or {b} ? {answer}"
NOTHING = "nothing"
REGIMES = ("never", "prior", "constraint")


@dataclass(frozen=True)
class ActionConfig:
    """The numbers an action world is made from.

    Attributes:
        domains: Each has two actions, and cues of its own.
        cues: Surface cues of a domain, and as many constraint cues; even, half of them for each action.
        counts: As in `WorldConfig`, over `cues` levels.
        regime: What documents say where the two cues disagree. "never": there is none, so nothing determines the answer
            to a conflict. "prior": the action of the cue that the document is counted for, so the odds are the count
            ratio. "constraint": always the constraint cue's action.
        conflict_share: Share of documents with two cues that disagree ("never": 0).
        held_out: Shifts of conflicting pairs that are held out (of `cues / 2`).
    """

    domains: int = 4
    cues: int = 16
    counts: dict[str, Any] = field(default_factory=lambda: {"kind": "geometric", "low": 8, "high": 512})
    regime: str = "prior"
    conflict_share: float = 0.25
    held_out: int = 2

    def __post_init__(self) -> None:
        if self.regime not in REGIMES:
            raise InputError("the regime is unknown", expected=REGIMES, found=self.regime)
        if self.cues < 4 or self.cues % 2 or self.domains < 1:
            raise InputError("too few cues", expected="an even number of at least 4 cues, 1 domain", found=self)
        if not 0 <= self.conflict_share < 1 or not 0 <= self.held_out < self.cues // 2:
            raise InputError(
                "nothing would be left to train on",
                expected=f"conflict_share in [0, 1), held_out under {self.cues // 2}",
                found=f"conflict_share {self.conflict_share}, held_out {self.held_out}",
            )


@dataclass(frozen=True)
class ActionWorld:
    """An action world as data. Cue `kind` 0 is a surface cue, 1 a constraint cue.

    Attributes:
        seed: What it was made from.
        cues: One word a cue.
        kind: 0 or 1, one for each cue.
        domain: Of each cue.
        action: 0 or 1: which of its domain's two actions it points to.
        counts: Documents an epoch that are counted for it.
        actions: The two words of each domain.
        regime: See `ActionConfig`.
        conflict_share: See `ActionConfig`.
        never_paired: (surface cue, constraint cue) that are never shown together.
    """

    seed: int
    cues: tuple[str, ...]
    kind: tuple[int, ...]
    domain: tuple[int, ...]
    action: tuple[int, ...]
    counts: tuple[int, ...]
    actions: tuple[tuple[str, str], ...]
    regime: str
    conflict_share: float
    never_paired: tuple[tuple[int, int], ...]

    @cached_property
    def conflicts(self) -> np.ndarray:
        """Whether two cues are of one domain, of different kinds, and disagree."""
        kind, domain, action = (np.array(values) for values in (self.kind, self.domain, self.action))
        return (
            (domain[:, None] == domain[None, :])
            & (kind[:, None] != kind[None, :])
            & (action[:, None] != action[None, :])
        )

    @cached_property
    def held_out(self) -> np.ndarray:
        """Which conflicting pairs are never shown."""
        held = np.zeros((len(self.cues),) * 2, dtype=bool)
        for first, second in self.never_paired:
            held[first, second] = held[second, first] = True
        return held

    @cached_property
    def partners(self) -> Int[np.ndarray, "cue number"]:
        """Cues that each cue may be shown in conflict with (as many for every cue)."""
        return np.array([np.flatnonzero(row) for row in self.conflicts & ~self.held_out])

    def answer_odds(
        self, surface: Int[np.ndarray, " item"], constraint: Int[np.ndarray, " item"]
    ) -> Float[np.ndarray, " item"]:
        """Exact log P(surface cue's action) - log P(constraint cue's action); NaN where nothing determines it."""
        if self.regime == "never":
            return np.full(len(surface), np.nan)
        if self.regime == "constraint":
            return np.full(len(surface), -np.inf)
        logs = np.log(np.array(self.counts))
        return logs[surface] - logs[constraint]

    def to_json(self) -> str:
        """The world as text."""
        return json.dumps({"format": "latentkt.action-world/1", **asdict(self)}, indent=1) + "\n"


def make_action_world(config: ActionConfig, *, seed: int) -> ActionWorld:
    """Make the action world of a seed.

    Example:
        >>> world = make_action_world(ActionConfig(), seed=0)
        >>> len(world.cues), world.partners.shape
        (128, (128, 6))
    """
    rng = np.random.default_rng([seed, 21])
    number = 2 * config.domains * config.cues
    words = names(number + 2 * config.domains, rng)
    levels = count_levels(config.counts, config.cues)
    half = config.cues // 2
    held = []
    for domain in range(config.domains):
        start = 2 * domain * config.cues
        for action in (0, 1):
            # Surface cues of one action against constraint cues of the other.
            surface = start + action * half
            constraint = start + config.cues + (1 - action) * half
            for shift in rng.choice(half, config.held_out, replace=False):
                held += [(surface + i, constraint + (i + int(shift)) % half) for i in range(half)]
    counts = [int(count) for _ in range(2 * config.domains) for count in rng.permutation(levels)]
    kinds = np.tile(np.repeat([0, 1], config.cues), config.domains)
    return ActionWorld(
        seed=seed,
        cues=tuple(word.lower() for word in words[:number]),
        kind=tuple(kinds.tolist()),
        domain=tuple(np.repeat(np.arange(config.domains), 2 * config.cues).tolist()),
        action=tuple(np.tile(np.repeat([0, 1], half), 2 * config.domains).tolist()),
        counts=tuple(counts),
        actions=tuple((words[number + 2 * d], words[number + 2 * d + 1]) for d in range(config.domains)),
        regime=config.regime,
        conflict_share=0.0 if config.regime == "never" else config.conflict_share,
        never_paired=tuple(held),
    )


@dataclass(frozen=True)
class ActionStream:
    """Redraws the documents of an action world for each epoch, the counts kept exactly."""

    world: ActionWorld
    batch: int = 64

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The words of the world."""
        actions = [word for pair in self.world.actions for word in pair]
        return Vocabulary.of([":", "or", "?", NOTHING, *actions, *self.world.cues])

    @property
    def vocabulary_size(self) -> int:
        """Number of ids."""
        return len(self.vocabulary)

    @property
    def steps(self) -> int:
        """Batches of one epoch."""
        return max(1, round(sum(self.world.counts) / self.batch))

    def draw(self, seed: list[int]) -> tuple[Documents, np.ndarray]:
        """An epoch's documents, and -log of the exact probability of each answer."""
        world, rng = self.world, np.random.default_rng(seed)
        cue = np.repeat(np.arange(len(world.cues)), world.counts)
        place = rng.integers(world.partners.shape[1], size=len(cue))
        conflict = rng.random(len(cue)) < world.conflict_share
        partner = np.where(conflict, world.partners[cue, place], -1)
        kind = np.array(world.kind)
        surface, constraint = np.where(kind[cue] == 0, cue, partner), np.where(kind[cue] == 0, partner, cue)
        speaker = np.where(conflict & (world.regime == "constraint"), constraint, cue)
        odds = np.where(conflict, world.answer_odds(surface, constraint), np.inf)
        signed = np.where(speaker == surface, odds, -odds)
        floor = np.where(conflict, np.logaddexp(0, -signed), 0.0)
        documents = self.documents(
            cue, partner, np.array(world.action)[speaker],
            cue_first=rng.random(len(cue)) < 0.5, zero_first=rng.random(len(cue)) < 0.5,
        )  # fmt: skip
        return documents, floor

    def documents(
        self, cue: np.ndarray, partner: np.ndarray, action: np.ndarray, *, cue_first: np.ndarray, zero_first: np.ndarray
    ) -> Documents:
        """Write documents: a cue and its partner (-1: none) in either order, the two actions in either order."""
        world, vocabulary = self.world, self.vocabulary
        ids = np.append(vocabulary.id_array(world.cues), vocabulary.id(NOTHING))
        actions = np.array([vocabulary.id_array(pair) for pair in world.actions])
        domain, rows = np.array(world.domain)[cue], np.arange(len(cue))
        options = actions[domain]
        slots = {
            "{first}": np.where(cue_first, ids[cue], ids[partner]),
            "{second}": np.where(cue_first, ids[partner], ids[cue]),
            "{a}": options[rows, np.where(zero_first, 0, 1)],
            "{b}": options[rows, np.where(zero_first, 1, 0)],
            "{answer}": options[rows, action],
        }
        return render(TEMPLATE, vocabulary, slots, prompt=True)

    def batches(self, epoch: int) -> Iterator[Batch]:
        """The epoch's documents in a new order, all of them."""
        documents, floor = self.draw([self.world.seed, 22, epoch])
        rng = np.random.default_rng([self.world.seed, 23, epoch])
        answer = np.zeros_like(documents.target)
        answer[:, -2] = True
        for rows in np.array_split(rng.permutation(len(floor)), self.steps):
            yield Batch(
                ids=torch.from_numpy(documents.ids[rows]),
                target=torch.from_numpy(documents.target[rows]),
                answer=torch.from_numpy(answer[rows]),
                floor=torch.from_numpy(floor[rows]).float(),
                other=torch.zeros(len(rows), dtype=torch.int64),
            )


def action_items(world: ActionWorld) -> pd.DataFrame:
    """Every conflict of a surface cue (`shortcut`) with a constraint cue (`correct`); columns as in `choice_items`."""
    import pandas as pd

    kind = np.array(world.kind)
    surface, constraint = np.nonzero(world.conflicts & (kind[:, None] == 0))
    logs = np.log(np.array(world.counts))
    return pd.DataFrame(
        {
            "item": np.arange(len(surface)),
            "relation": "action",
            "cluster": [f"domain-{d}" for d in np.array(world.domain)[surface]],
            "pairing": "opposed",
            "shortcut": surface,
            "correct": constraint,
            "word": 0,
            "unseen": world.held_out[surface, constraint] | (world.regime == "never"),
            "log_prior_ratio": logs[surface] - logs[constraint],
            "log_other_ratio": np.nan,
        }
    )


def action_prompts(stream: ActionStream, cue: np.ndarray, partner: np.ndarray, *, cue_first: bool) -> Documents:
    """Prompts with one or two cues (`partner` -1: none); the options stand in the order of the cue's own action."""
    number = len(cue)
    action = np.array(stream.world.action)[cue]
    return stream.documents(
        cue, partner, action, cue_first=np.full(number, cue_first), zero_first=(action == 0) == cue_first
    )
