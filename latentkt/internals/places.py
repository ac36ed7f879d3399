"""Where a run is patched: tokens of a role, or single tokens, with their partners in the source run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from latentkt.errors import InputError

if TYPE_CHECKING:
    from latentkt.models import Pair

__all__ = ["Place", "places_of", "role_positions"]


@dataclass(frozen=True, slots=True)
class Place:
    """Aligned prompt positions.

    Attributes:
        role: The role whose tokens these are; `last` and `all` stand for the last prompt token and for all tokens.
        base: Positions in the base run, ascending.
        source: Their partners in the source run.
        position: The position, where the place is a single token of a sweep over positions.
    """

    role: str
    base: tuple[int, ...]
    source: tuple[int, ...]
    position: int | None = None

    def behind(self, first: int) -> Place:
        """The part from base position `first` on."""
        kept = [(p, q) for p, q in zip(self.base, self.source, strict=True) if p >= first]
        return Place(self.role, tuple(p for p, _ in kept), tuple(q for _, q in kept), self.position)


def role_positions(pair: Pair, role: str) -> Place:
    """Aligned positions of a role in the base and the source run; empty where the role does not exist or align.

    Args:
        pair: Base run, source run and their alignment.
        role: A span role of the base run, `last` (the last prompt token) or `all` (every token that has a partner).
    """
    if role == "last":
        return Place(role, (len(pair.base.ids) - 1,), (len(pair.source.ids) - 1,))
    if role == "all":
        return _aligned(pair, role, range(len(pair.base.ids)))
    return _aligned(pair, role, pair.base.positions(role))


def places_of(pair: Pair, where: Sequence[str] | str) -> list[Place]:
    """The places of a sweep.

    Args:
        pair: The pair.
        where: Roles, or `positions` for every prompt token on its own.

    Raises:
        InputError: `where` is another string.
    """
    if isinstance(where, str):
        if where != "positions":
            raise InputError("where to patch", expected="a sequence of roles, or 'positions'", found=where)
        one_by_one = [_aligned(pair, pair.base.roles[p], [p]) for p in range(len(pair.base.ids))]
        return [Place(place.role, place.base, place.source, p) for p, place in enumerate(one_by_one)]
    return [role_positions(pair, role) for role in where]


def _aligned(pair: Pair, role: str, inside: Sequence[int]) -> Place:
    partners = [int(pair.alignment.base_to_source[p]) for p in inside]
    kept = [(p, q) for p, q in zip(inside, partners, strict=True) if q >= 0]
    return Place(role, tuple(p for p, _ in kept), tuple(q for _, q in kept))
