"""Placebo patches: the same cell, patched from another item that should make no difference.

Putting anything into a run moves the answer a little. So an effect is held against that of a matched donor: another
item of the same family, polarity and option order, with as many tokens in the patched role, in whose prompt the same
side is right as in the base run. What the effect has beyond the placebo's is due to what item and control differ in.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from latentkt.internals.engines import engine_of
from latentkt.internals.patching import ROLES, patch
from latentkt.internals.places import role_positions
from latentkt.internals.sources import Donor, partners

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.internals.engines.base import Engine
    from latentkt.internals.lens import LensRun
    from latentkt.models import ModelHandle, Pair

__all__ = ["find_donor", "find_donors", "placebo_draws", "placebo_roles"]

_MATCHED = ("family", "polarity", "order", "template")


def find_donor(pair: Pair, role: str, pool: Sequence[LensRun], *, seed: int = 0) -> LensRun | None:
    """A matched donor for one pair and role, drawn by seed; None where there is none.

    Args:
        pair: The pair, with the columns of `pairs_of_item` in its meta.
        role: The role that is patched.
        pool: Prompts to choose from (`item_run` of every item, for `item` and `control`).
        seed: Seed of the draw.
    """
    ordered = _candidates(pair, role, pool)
    if not ordered:
        return None
    digest = hashlib.sha256(f"{seed}:{pair.name}:{role}".encode()).digest()
    return ordered[int.from_bytes(digest[:8], "big") % len(ordered)]


def find_donors(pair: Pair, role: str, pool: Sequence[LensRun], number: int, *, seed: int = 0) -> list[LensRun]:
    """Up to `number` different matched donors for one pair and role, in an order drawn by seed.

    Args:
        pair: As in `find_donor`.
        role: The role that is patched.
        pool: Prompts to choose from.
        number: How many; fewer where there are fewer.
        seed: Seed of the draw.
    """

    def drawn(run: LensRun) -> bytes:
        named = f"{seed}:{pair.name}:{role}:{run.meta.get('item')}:{run.meta.get('which')}"
        return hashlib.sha256(named.encode()).digest()

    return sorted(_candidates(pair, role, pool), key=drawn)[:number]


def _candidates(pair: Pair, role: str, pool: Sequence[LensRun]) -> list[LensRun]:
    """All matched donors, in the order of their names."""
    place = role_positions(pair, role)
    if not place.base:
        return []
    matched = {key: pair.meta.get(key) for key in _MATCHED}
    candidates = [
        run
        for run in pool
        if run.meta.get("item") != pair.meta.get("item")
        and run.meta.get("right") == pair.meta.get("base_right")
        and all(run.meta.get(key) == value for key, value in matched.items())
        and partners(pair.base, run.prompt, place) is not None
    ]
    return sorted(candidates, key=lambda run: (str(run.meta.get("item")), str(run.meta.get("which"))))


def placebo_roles(
    model: ModelHandle | Engine,
    pairs: Iterable[Pair],
    pool: Sequence[LensRun],
    *,
    roles: Sequence[str] = ROLES,
    seed: int = 0,
    engine: str = "fast",
    **options: Any,
) -> pd.DataFrame:
    """Patch the tokens of roles from matched donors, layer by layer: the null that `patch_roles` is held against.

    Args:
        model: An opened model, or an engine.
        pairs: The pairs of `patch_roles`.
        pool: Prompts among which donors are sought.
        roles: The roles of `patch_roles`.
        seed: Seed of the draw of a donor.
        engine: As in `patch`.
        **options: As in `patch` (`sites`, `layers`, `heads`, `metric`, …).

    Returns:
        The columns of `patch`, with `source_kind` `placebo` and `donor` (the donor's item; None and NaN where there is
        no matched donor).
    """
    import pandas as pd

    runner = engine_of(model, engine)
    tables = []
    for pair in pairs:
        by_donor: dict[str, list[str]] = defaultdict(list)
        chosen: dict[str, LensRun] = {}
        for role in roles:
            donor = find_donor(pair, role, pool, seed=seed)
            name = "" if donor is None else f"{donor.meta['item']} {donor.meta['which']}"
            by_donor[name].append(role)
            if donor is not None:
                chosen[name] = donor
        for name, its_roles in by_donor.items():
            donor = chosen.get(name)
            source = Donor({} if donor is None else {pair.name: donor.prompt}, "placebo")
            table = patch(runner, [pair], where=its_roles, source=source, check=False, **options)
            tables.append(table.assign(donor=None if donor is None else str(donor.meta["item"])))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def placebo_draws(
    model: ModelHandle | Engine,
    pairs: Iterable[Pair],
    pool: Sequence[LensRun],
    *,
    role: str = "constraint",
    draws: int = 5,
    seed: int = 0,
    **options: Any,
) -> pd.DataFrame:
    """Patch one role from several matched donors, one after the other: the null of a verdict.

    Args:
        model: An opened model, or an engine.
        pairs: Pairs of items.
        pool: Prompts among which donors are sought.
        role: The role that is patched.
        draws: Different donors a pair; fewer where there are fewer.
        seed: Seed of the draw.
        **options: As in `patch`.

    Returns:
        The columns of `placebo_roles`, and `draw`: the number of the donor.
    """
    import pandas as pd

    runner = engine_of(model)
    tables = []
    for pair in pairs:
        for number, donor in enumerate(find_donors(pair, role, pool, draws, seed=seed)):
            source = Donor({pair.name: donor.prompt}, "placebo")
            table = patch(runner, [pair], where=(role,), source=source, check=False, **options)
            tables.append(table.assign(donor=str(donor.meta["item"]), draw=number))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()
