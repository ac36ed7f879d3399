"""Stages that read the network: probes, placebo donors of the verdict, steering along a probe's direction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latentkt.errors import LatentKTError
from latentkt.study.batches import Cells, Tables, nothing, pairs_of, runs_of, skipped_table
from latentkt.study.presets import drawn_order, preset_named

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.study.context import Context

__all__ = ["RANDOM_LAYERS", "donors", "probes", "steering", "verdicts"]

RANDOM_LAYERS = 6
"""The model with random weights is run to this depth: what it does to tokens is the same in every layer."""
DONOR_LAYER_STEP = 10
"""Placebos of the verdict go in after every so many layers; `latentkt verdict` takes every one."""
TEXT_TOKENS = 12


def probes(context: Context, batch: tuple[None, Tables]) -> Tables:
    """Probe the last prompt token by layer for every target, both splits."""
    from latentkt.internals import facts_known, sweep_probes

    rows, options = batch[1]["activations"], context.options
    if not len(rows):
        reason = "no prompt of the preset could be run"
        skipped = [{"stage": "probes", "item": "all", "which": "", "order": "", "reason": reason}]
        return {"probe": nothing(), "probe_layers": nothing(), "probe_skipped": skipped_table(skipped)}
    items = [context.items[name] for name in dict.fromkeys(rows["item"])]
    found = sweep_probes(
        rows,
        known=facts_known(context.handle, items, template=context.template, system=options.system),
        kinds={"answer_side": ("logistic",), "": ("ridge",)},
        layer_step=preset_named(options.preset).probe_step,
        seed=options.seed,
    )
    skipped = [{"stage": "probes", **row} for row in found.skipped]
    folds, layers = (table if len(table) else nothing() for table in (found.folds, found.layers))
    return {"probe": folds, "probe_layers": layers, "probe_skipped": skipped_table(skipped)}


def donors(context: Context, cells: Cells) -> Tables:
    """Patch the constraint from several matched donors, and from the control in the order that no stage has patched."""
    from latentkt.internals import engine_of, patch, placebo_draws

    skipped: list[dict[str, Any]] = []
    pairs = pairs_of(context, cells, "donors", skipped)
    families = {(context.items[item_id].family, order) for item_id, order in cells}
    pool_cells = tuple((i.id, order) for family, order in sorted(families) for i in context.of_family(family))
    pool = list(runs_of(context, pool_cells, ("item", "control"), "donors", []))
    engine, seed = engine_of(context.handle), context.options.seed
    layers = range(0, context.handle.n_layers, DONOR_LAYER_STEP)
    preset = preset_named(context.options.preset)
    new = [
        pair
        for pair in pairs
        if not preset.both_orders and pair.meta["order"] != drawn_order(str(pair.meta["item"]), seed)
    ]
    tables = {
        "constraint_patch": patch(engine, new, where=("constraint",), layers=layers) if new else nothing(),
        "placebo_draws": placebo_draws(engine, pairs, pool, layers=layers, seed=seed) if pairs else nothing(),
    }
    kept = {name: table if len(table) else nothing() for name, table in tables.items()}
    return {**kept, "donors_skipped": skipped_table(skipped)}


def steering(context: Context, batch: tuple[Cells, Tables]) -> Tables:
    """Steer an item along the direction of `answer_side` that the other families give, with every control."""
    from latentkt.internals import engine_of, steer_left_out
    from latentkt.internals.steering_runs import written_texts

    cells, rows = batch[0], batch[1]["activations"]
    skipped: list[dict[str, Any]] = []
    pairs = [pair for pair in pairs_of(context, cells, "steering", skipped) if pair.meta["base"] == "item"]
    tables = {"steer": nothing(), "steer_text": nothing()}
    fixed: dict[str, Any] = {"target": "answer_side", "role": "last", "layer": None, "kind": "mean_difference"}
    try:
        if pairs and len(rows):
            engine, seed = engine_of(context.handle), context.options.seed
            tables["steer"] = steer_left_out(engine, pairs, rows, seed=seed, n_random=3, **fixed)
            tables["steer_text"] = written_texts(
                engine, pairs, rows, len(pairs), seed=seed, n_random=0, max_new_tokens=TEXT_TOKENS, **fixed
            )
    except LatentKTError as error:
        skipped += [
            {"stage": "steering", "item": item, "which": "pair", "order": order, "reason": error.what}
            for item, order in cells
        ]
    return {**tables, "steering_skipped": skipped_table(skipped)}


def verdicts(tables: dict[str, pd.DataFrame], items: list[Any]) -> dict[str, pd.DataFrame]:
    """The verdict of every item that was asked, and dose and response where items have levels; nothing is measured.

    Args:
        tables: `answers`, `lens`, `patch`, `constraint_patch`, `placebo_draws` and `donors_skipped`.
        items: The items, for their group and level.
    """
    import pandas as pd

    from latentkt.internals import dose_response, verdict_table
    from latentkt.internals.verdict_runs import with_items

    answers, placebo = tables["answers"], tables["placebo_draws"]
    if not len(answers):
        return {}
    patched = tables["patch"]
    if len(patched) and len(placebo):
        close = patched["layer"].isin(set(placebo["layer"])) & patched["item"].isin(set(placebo["item"]))
        patched = pd.concat([patched[close], tables["constraint_patch"]], ignore_index=True)
    else:
        patched = patched.iloc[:0]
    unpaired = tables["donors_skipped"][["item", "order", "reason"]]
    found = verdict_table(with_items(answers, items), tables["lens"], patched, placebo, unpaired=unpaired)
    levels = {"explicitness": dose_response(found)} if found["level"].notna().any() else {}
    return {"verdict": found, **levels}
