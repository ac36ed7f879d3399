"""The QK fix of attribution patching (Kramár et al. 2024): patched queries and keys go through the softmax exactly.

A patch of q or k acts through attention probabilities, and a saturated softmax has almost no gradient. So each layer
is run with the patched queries (or keys) while its input is held at the base run's; what becomes of the heads'
outputs z is exact, and only from z on is the metric taken to be linear. All layers and heads share one forward pass:
the held inputs keep them apart. Queries of unlike positions do not meet either; keys do, so they take a pass a place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from latentkt.internals.gradient import slopes

if TYPE_CHECKING:
    from torch import Tensor

    from latentkt.internals.engines.base import Edit, Engine, SiteKey
    from latentkt.internals.gradient import Slope
    from latentkt.internals.metrics import Scorer
    from latentkt.internals.plans import Plan

__all__ = ["fixed_predictions"]


def fixed_predictions(engine: Engine, scorer: Scorer, base: Slope, plans: Sequence[Plan]) -> dict[int, float]:
    """Predictions of the plans at q and k, by their number in `plans`.

    Args:
        engine: What runs the model.
        scorer: The base run's.
        base: The base run, with values and gradients at z, q, k and the inputs of the layers.
        plans: Rows of a sweep; others than q and k, and those without a patch, are left alone.
    """
    live = {n: plan for n, plan in enumerate(plans) if plan.site in ("q", "k") and plan.cell is not None}
    found: dict[int, float] = {}
    queries = {n: plan for n, plan in live.items() if plan.site == "q"}
    if queries:
        effect = _effects(engine, scorer, base, queries.values())
        found |= {n: _share(effect, plan, engine) for n, plan in queries.items()}
    for place in dict.fromkeys(plan.place for plan in live.values() if plan.site == "k"):
        keys = {n: plan for n, plan in live.items() if plan.site == "k" and plan.place == place}
        effect = _effects(engine, scorer, base, keys.values())
        found |= {n: _share(effect, plan, engine) for n, plan in keys.items()}
    return found


def _effects(engine: Engine, scorer: Scorer, base: Slope, plans: Iterable[Plan]) -> dict[int, Tensor]:
    """By layer: what the patches of these plans, all in place, do through z: [row, query, head], nats."""
    new: dict[SiteKey, Tensor] = {}
    for plan in plans:
        for patch in plan.cell or ():
            key = (patch.site, patch.layer)
            value = new.setdefault(key, base.values[key].clone())
            at = list(patch.positions)
            if patch.head is None:
                value[:, at] = patch.given.to(value)
            else:
                value[:, at, patch.head] = patch.given.to(value)
    layers = sorted({layer for _, layer in new})
    edits: dict[SiteKey, Edit] = {key: _Put(value) for key, value in new.items()}
    edits |= {("resid_pre", layer): _Put(base.values["resid_pre", layer]) for layer in layers}
    keys = [("z", layer) for layer in layers]
    (patched,) = slopes(engine, [scorer], keys, edits=edits, gradient=False)
    return {key[1]: ((patched.values[key] - base.values[key]) * base.grads[key]).sum(-1) for key in keys}


def _share(effect: Mapping[int, Tensor], plan: Plan, engine: Engine) -> float:
    """The part of a layer's effect that belongs to a plan's positions (of queries) and head."""
    assert plan.cell is not None
    patch, whole = plan.cell[0], effect[plan.layer]
    if patch.site == "q":
        whole = whole[:, list(patch.positions)]
    if patch.head is None:
        return float(whole.sum())
    group = engine.handle.n_heads // engine.handle.n_kv_heads if patch.site == "k" else 1
    return float(whole[..., patch.head * group : (patch.head + 1) * group].sum())


class _Put:
    """An edit that puts a whole value in place."""

    def __init__(self, value: Tensor) -> None:
        self._value = value

    def __call__(self, value: Tensor) -> Tensor:
        out: Tensor = self._value.to(value)
        return out
