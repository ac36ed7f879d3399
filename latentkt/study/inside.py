"""Stages that look inside the network beyond lens, role patching and probes; costlier, so on fewer items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latentkt.study.batches import Cells, Tables, nothing, pairs_of, runs_of, skipped_table

if TYPE_CHECKING:
    from latentkt.study.context import Context

__all__ = ["attribution", "components", "placebo", "tokens"]

LENS_TOKENS = 24
"""The lens is read at so many last prompt tokens."""
LAYER_STEP = 5
"""Token-by-token patches go in after every so many layers; `latentkt patch --positions` does every one."""


def components(context: Context, cells: Cells) -> Tables:
    """Patches of what attention and MLP add at the constraint and the last token; single heads, control into item."""
    import pandas as pd

    from latentkt.internals import patch

    skipped: list[dict[str, Any]] = []
    pairs = pairs_of(context, cells, "components", skipped)
    parts = [nothing()]
    if pairs:
        into_item = [pair for pair in pairs if pair.meta["base"] == "item"]
        parts = [patch(context.handle, pairs, sites=("attn_out", "mlp_out"), where=("constraint", "last"))]
        parts.append(patch(context.handle, into_item, sites=("z",), where=("last",), heads=True))
    return {"components": pd.concat(parts, ignore_index=True), "components_skipped": skipped_table(skipped)}


def placebo(context: Context, cells: Cells) -> Tables:
    """Patch the same cells from matched donors: other items of the family in which the same side is right."""
    from latentkt.internals import placebo_roles

    skipped: list[dict[str, Any]] = []
    pairs = pairs_of(context, cells, "placebo", skipped)
    families = {(context.items[item_id].family, order) for item_id, order in cells}
    pool_cells = tuple((i.id, order) for family, order in sorted(families) for i in context.of_family(family))
    pool = list(runs_of(context, pool_cells, ("item", "control"), "placebo", []))
    table = placebo_roles(context.handle, pairs, pool, seed=context.options.seed) if pairs else nothing()
    return {"placebo": table, "placebo_skipped": skipped_table(skipped)}


def attribution(context: Context, cells: Cells) -> Tables:
    """What each part of the network adds to the difference of the answers, and what each head reads."""
    from latentkt.internals import attribute, head_table

    skipped: list[dict[str, Any]] = []
    runs = list(runs_of(context, cells, ("item", "control"), "attribution", skipped))
    return {
        "attribution": attribute(context.handle, runs) if runs else nothing(),
        "heads": head_table(context.handle, runs) if runs else nothing(),
        "attribution_skipped": skipped_table(skipped),
    }


def tokens(context: Context, cells: Cells) -> Tables:
    """Token by token: the lens at the item's last tokens, and the control patched in after every fifth layer."""
    import pandas as pd

    from latentkt.internals import patch_positions, token_lens

    skipped: list[dict[str, Any]] = []
    runs = runs_of(context, cells, ("item",), "tokens", skipped)
    read = [token_lens(context.handle, [run], positions=range(-min(LENS_TOKENS, len(run.prompt)), 0)) for run in runs]
    layers = range(0, context.handle.n_layers, LAYER_STEP)
    pairs = [pair for pair in pairs_of(context, cells, "tokens", skipped) if pair.meta["base"] == "item"]
    return {
        "lens_tokens": pd.concat(read, ignore_index=True) if read else nothing(),
        "patch_tokens": patch_positions(context.handle, pairs, layers=layers) if pairs else nothing(),
        "tokens_skipped": skipped_table(skipped),
    }
