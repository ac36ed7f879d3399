"""How much is measured: everything on everything, or what fits into minutes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latentkt.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from latentkt.trapqa import TrapItem

__all__ = ["PRESETS", "Preset", "select_items"]


@dataclass(frozen=True, slots=True)
class Preset:
    """What a study measures on how many items.

    Attributes:
        name: `quick` or `full`.
        per_kind: Items of each kind (scientist, action) whose inside is measured; None for all.
        both_orders: Whether the inside is measured in both option orders, or in one drawn per item from the seed.
        closely: Items of each kind on which the costlier measurements are made too (placebo, components, attribution,
            token by token, verdict, steering); None for all.
        edges: Of these, items (each in its orders) whose edges are attributed; None for all.
        probe_step: Probes are fitted after every so many layers.
    """

    name: str
    per_kind: int | None
    both_orders: bool
    closely: int | None
    edges: int | None
    probe_step: int


PRESETS = {
    "quick": Preset("quick", per_kind=8, both_orders=False, closely=1, edges=1, probe_step=5),
    "full": Preset("full", per_kind=None, both_orders=True, closely=None, edges=None, probe_step=1),
}


def preset_named(name: str) -> Preset:
    """The preset of a name, or a refusal that lists them."""
    if name not in PRESETS:
        raise InputError("unknown preset", expected=" or ".join(PRESETS), found=name)
    return PRESETS[name]


def select_items(items: Sequence[TrapItem], *, per_kind: int | None, seed: int) -> list[TrapItem]:
    """Items of a preset: of each kind `per_kind`, spread over its families, in the items' own order.

    Within a kind the families take turns in an order drawn from the seed, and so do the items of a family; the
    choice for a smaller number is contained in the choice for a larger one.

    Raises:
        InputError: `per_kind` is under 1.
    """
    if per_kind is None:
        return list(items)
    if per_kind < 1:
        raise InputError("number of items of each kind", expected="1 or more", found=per_kind)
    chosen: set[str] = set()
    for kind in sorted({item.kind for item in items}):
        rng = np.random.default_rng([seed, len(kind)])
        queues: dict[str, list[str]] = {}
        for item in items:
            if item.kind == kind:
                queues.setdefault(item.family, []).append(item.id)
        families = [sorted(queues)[i] for i in rng.permutation(len(queues))]
        order = {name: [queues[name][i] for i in rng.permutation(len(queues[name]))] for name in families}
        turns = [
            ids[turn] for turn in range(max(map(len, order.values()))) for ids in order.values() if turn < len(ids)
        ]
        chosen.update(turns[:per_kind])
    return [item for item in items if item.id in chosen]


def drawn_order(item_id: str, seed: int) -> str:
    """The option order of an item where only one is measured; half of all items get either."""
    import hashlib

    digest = hashlib.sha256(f"{seed}:{item_id}".encode()).digest()
    return "correct_first" if digest[0] % 2 == 0 else "shortcut_first"
