"""What is put into the base run: the source run's activations, another item's, a mean, zeros, or a random draw.

A source is asked once a pair (`fetch`) and then gives values for places. It gives None where there is nothing to put:
the cell is then NaN.
"""

from __future__ import annotations

import hashlib
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import torch

from latentkt.errors import InputError
from latentkt.internals.engines.base import FromRun
from latentkt.internals.places import Place

if TYPE_CHECKING:
    from torch import Tensor

    from latentkt.internals.engines.base import Engine, SiteKey
    from latentkt.models import Encoded, Pair

__all__ = ["Donor", "Mean", "Resample", "Source", "SourceRun", "Zero", "mean_source", "named_values"]

Fetched = Callable[["SiteKey", Place], "Tensor | FromRun | None"]
"""Values for a place: [position, …] as they lie at the site."""


class Source(ABC):
    """Where activations come from.

    Attributes:
        kind: Written to the column `source_kind`.
        exact: Whether positions before the first difference of the pair are exactly the base run's.
    """

    kind: ClassVar[str]
    exact: ClassVar[bool] = False

    @abstractmethod
    def fetch(self, engine: Engine, pair: Pair, keys: Sequence[SiteKey]) -> Fetched:
        """Run what is needed for one pair."""


@dataclass(frozen=True)
class SourceRun(Source):
    """The pair's own source run (the control of an item, or the item of a control)."""

    kind = "source_run"
    exact = True

    def fetch(self, engine: Engine, pair: Pair, keys: Sequence[SiteKey]) -> Fetched:
        """See `Source`."""
        found = engine.values(pair.source.ids, keys)
        return lambda key, place: found[key][list(place.source)]


def named_values(source: Source, pair: Pair) -> Fetched | None:
    """Values by name, where they are just those of the pair's source run; None where a source makes them itself."""
    if type(source) is not SourceRun:
        return None
    return lambda key, place: FromRun(tuple(pair.source.ids), tuple(place.source))


@dataclass(frozen=True)
class Zero(Source):
    """Zeros. They lie far from anything that the model ever sees, so an effect need not speak of the patched tokens."""

    kind = "zero"

    def fetch(self, engine: Engine, pair: Pair, keys: Sequence[SiteKey]) -> Fetched:
        """See `Source`."""
        warnings.warn(
            "zero ablation puts the network where it never is; prefer source='mean' or a source run", stacklevel=2
        )
        found = engine.values(pair.base.ids, keys)
        return lambda key, place: torch.zeros_like(found[key][list(place.base)])


@dataclass(frozen=True)
class Donor(Source):
    """Another prompt, such as another item's: its tokens of the same role, where there are as many.

    Attributes:
        prompts: By pair name, the donor's prompt; a pair without a donor gets NaN.
        kind_name: Written to the column `source_kind`.
    """

    prompts: Mapping[str, Encoded]
    kind_name: str = "other_item"
    kind = "other_item"

    def fetch(self, engine: Engine, pair: Pair, keys: Sequence[SiteKey]) -> Fetched:
        """See `Source`."""
        donor = self.prompts.get(pair.name)
        if donor is None:
            return lambda key, place: None
        found = engine.values(donor.ids, keys)

        def at(key: SiteKey, place: Place) -> Tensor | None:
            positions = partners(pair.base, donor, place)
            return None if positions is None else found[key][positions]

        return at


def partners(base: Encoded, donor: Encoded, place: Place) -> list[int] | None:
    """The donor's positions for a place: its tokens of the role, in order; None where their number differs."""
    if place.role == "last" and place.position is None:
        return [len(donor.ids) - 1]
    theirs = donor.positions(place.role)
    if place.position is not None:
        ours = base.positions(place.role)
        return [theirs[ours.index(place.position)]] if len(ours) == len(theirs) else None
    return list(theirs) if theirs and len(theirs) == len(place.base) else None


@dataclass(frozen=True)
class Resample(Source):
    """A prompt drawn from a pool for each pair, by seed and the pair's name.

    Attributes:
        pool: Prompts by name.
        seed: Seed of the draw.
    """

    pool: Mapping[str, Encoded]
    seed: int = 0
    kind = "resample"

    def fetch(self, engine: Engine, pair: Pair, keys: Sequence[SiteKey]) -> Fetched:
        """See `Source`."""
        names = sorted(name for name, prompt in self.pool.items() if prompt.ids != pair.base.ids)
        if not names:
            raise InputError("a pool to draw from is empty", expected="at least one prompt other than the base")
        digest = hashlib.sha256(f"{self.seed}:{pair.name}".encode()).digest()
        drawn = self.pool[names[int.from_bytes(digest[:8], "big") % len(names)]]
        return Donor({pair.name: drawn}).fetch(engine, pair, keys)


@dataclass(frozen=True)
class Mean(Source):
    """The mean over prompts of other families.

    Attributes:
        over: `role`: over all tokens of the same role; `position`: over the same position. Special tokens are left out.
        sums: By family, (site, layer) and role or position: sum and count.
    """

    over: str
    sums: Mapping[str, Mapping[tuple[SiteKey, str | int], tuple[Tensor, int]]] = field(repr=False)
    kind = "mean"

    def fetch(self, engine: Engine, pair: Pair, keys: Sequence[SiteKey]) -> Fetched:
        """See `Source`."""
        own = str(pair.meta.get("family", ""))
        others = [sums for family, sums in self.sums.items() if family != own]

        def mean(key: SiteKey, label: str | int) -> Tensor | None:
            parts = [sums[key, label] for sums in others if (key, label) in sums]
            count = sum(n for _, n in parts)
            return torch.stack([total for total, _ in parts]).sum(0) / count if count else None

        def at(key: SiteKey, place: Place) -> Tensor | None:
            labels = [self._label(pair.base, position) for position in place.base]
            found = [mean(key, label) for label in labels]
            return None if any(one is None for one in found) else torch.stack([one for one in found if one is not None])

        return at

    def _label(self, prompt: Encoded, position: int) -> str | int:
        return position if self.over == "position" else prompt.roles[position]


def mean_source(
    engine: Engine,
    prompts: Sequence[tuple[str, Encoded]],
    keys: Sequence[SiteKey],
    *,
    over: str = "role",
) -> Mean:
    """Means of activations, to be put in place of a run's own.

    A pair of family F gets the mean over the prompts of all other families.

    Args:
        engine: The engine that reads the activations.
        prompts: (family, prompt) pairs.
        keys: (site, layer) pairs that will be patched.
        over: `role`: over all tokens of the same role; `position`: over the same absolute position. Special tokens are
            left out by id.

    Raises:
        InputError: `over` is neither.
    """
    if over not in ("role", "position"):
        raise InputError("what a mean is over", expected="role or position", found=over)
    sums: dict[str, dict[tuple[SiteKey, str | int], tuple[Tensor, int]]] = {}
    for family, prompt in prompts:
        found = engine.values(prompt.ids, keys)
        mine = sums.setdefault(family, {})
        for position, (role, special) in enumerate(zip(prompt.roles, prompt.is_special, strict=True)):
            if special:
                continue
            label: str | int = position if over == "position" else role
            for key in keys:
                total, count = mine.get((key, label), (torch.zeros_like(found[key][position]), 0))
                mine[key, label] = (total + found[key][position], count + 1)
    return Mean(over, sums)
