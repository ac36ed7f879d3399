"""Stages that look inside the network beyond lens, role patching and probes: attribution, placebos, components."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latentkt.errors import LatentKTError
from latentkt.study.work import Cells, Tables, _runs, _skipped

if TYPE_CHECKING:
    from latentkt.internals.lens import LensRun
    from latentkt.models import Pair
    from latentkt.study.context import Context

__all__ = ["attribution", "components", "effects", "placebo"]

_COMPONENTS = ("attn_out", "mlp_out")


def attribution(context: Context, cells: Cells) -> Tables:
    """Direct logit attribution of items and controls, and the head table. About one forward pass a prompt."""
    from latentkt.internals import attribute, head_table
    from latentkt.internals.runs import with_columns

    skipped: list[dict[str, Any]] = []
    runs = list(_runs(context, cells, ("item", "control"), "attribution", skipped))
    tables = {"attribution": attribute(context.handle, runs), "heads": head_table(context.handle, runs)}
    tables = {name: with_columns(table, name) for name, table in tables.items()}
    return {**tables, "attribution_skipped": _skipped(skipped)}


def placebo(context: Context, cells: Cells) -> Tables:
    """Patches of resid_post by role from matched donors: what `patch` is held against. Costs what `patching` costs."""
    from latentkt.internals import placebo_roles
    from latentkt.internals.runs import with_columns

    pairs, skipped = _pairs(context, cells, "placebo")
    table = placebo_roles(context.handle, pairs, _pool(context, {order for _, order in cells}))
    return {"placebo": with_columns(table, "placebo"), "placebo_skipped": _skipped(skipped)}


def effects(context: Context, batch: tuple[None, Tables]) -> Tables:
    """Effects held against placebo effects; needs the whole tables `patch` and `placebo`."""
    import pandas as pd

    from latentkt.internals import effects_against_placebo

    patch, found = batch[1]["patch"], batch[1]["placebo"]
    return {"effects": effects_against_placebo(patch, found) if len(patch) and len(found) else pd.DataFrame()}


def components(context: Context, cells: Cells) -> Tables:
    """attn_out and mlp_out of the constraint and the last token, and z head by head at the last token."""
    import pandas as pd

    from latentkt.internals import engine_of, patch
    from latentkt.internals.runs import with_columns

    pairs, skipped = _pairs(context, cells, "components")
    engine = engine_of(context.handle)
    by_role = patch(engine, pairs, sites=_COMPONENTS, where=("constraint", "last"))
    by_head = patch(engine, pairs, sites=("z",), where=("last",), heads=True)
    table = pd.concat([by_role, by_head], ignore_index=True) if pairs else pd.DataFrame()
    return {"components": with_columns(table, "patch"), "components_skipped": _skipped(skipped)}


def _pairs(context: Context, cells: Cells, stage: str) -> tuple[list[Pair], list[dict[str, Any]]]:
    """The pairs of a batch that are not shifted; the others are listed."""
    from latentkt.internals import pairs_of_item

    pairs: list[Pair] = []
    skipped: list[dict[str, Any]] = []
    for item_id, order in cells:
        reason = ""
        try:
            options = {"order": order, "template": context.template, "system": context.options.system}
            made = pairs_of_item(context.handle, context.items[item_id], **options)
            if any(pair.alignment.shifted for pair in made):
                reason = "item and control are of unequal length: after the first difference positions shift"
            else:
                pairs += made
        except LatentKTError as error:
            reason = error.what
        if reason:
            skipped.append({"stage": stage, "item": item_id, "which": "pair", "order": order, "reason": reason})
    return pairs, skipped


def _pool(context: Context, orders: set[str]) -> list[LensRun]:
    """Every prompt that the model takes; refusals are listed by the stages that measure these items."""
    every = tuple((item_id, order) for item_id in context.items for order in sorted(orders))
    return list(_runs(context, every, ("item", "control"), "placebo", []))
