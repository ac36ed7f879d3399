"""What happens inside the trained networks: lens, patches, attribution and probes on traps, over seeds, in raw nats."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from latentkt.errors import InputError
from latentkt.internals import (
    Choice,
    LensRun,
    answer_lens,
    atp,
    attribute,
    edge_attribution,
    faithfulness,
    knockout,
    patch,
    placebo_draws,
    probe_table,
    verdict_table,
)
from latentkt.models import encode, encode_answers, make_pair, open_model
from latentkt.results import create_run, library_versions, load_run
from latentkt.synthetic.items import choice_items, item_prompts
from latentkt.synthetic.run import network_folder
from latentkt.synthetic.streams import FactStream
from latentkt.synthetic.summary import TRAP_RATIO
from latentkt.synthetic.world import load_world

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

    from latentkt.models import Encoded, ModelHandle, Pair
    from latentkt.results import Run
    from latentkt.synthetic.world import World

__all__ = ["TABLES", "run_inside", "trap_sample"]

TABLES = (
    *("lens", "patch", "patch_shortcut", "attribution", "probe", "probe_layers", "verdict"),
    *("atp", "edges", "knockout", "faithfulness"),
)
VERDICTS = 8
"""Traps of each cluster and network that a verdict is given for."""
READ = 2
"""Traps of each cluster, order and network whose gradients and attention are read."""
ORDERS = {"correct_first": True, "shortcut_first": False}
RIGHT = {"item": "correct", "control": "shortcut"}
# Place of the word that states the polarity, and of the two options, in a choice document.
WORD, FIRST, SECOND = 6, 0, 2


@dataclass(frozen=True)
class _Trap:
    """One prompt of a trap: the item or its control, in one order."""

    row: Any
    order: str
    which: str
    prompt: Encoded


def trap_sample(world: World, *, number: int, seed: int = 0) -> pd.DataFrame:
    """Traps (r > 6) on pairs never shown together: up to `number` of each cluster.

    Returns:
        Rows of `choice_items`.
    """
    items = choice_items(world)
    traps = items[(items["pairing"] == "opposed") & items["unseen"] & (items["log_prior_ratio"] > math.log(TRAP_RATIO))]
    shuffled = traps.sample(frac=1, random_state=seed)
    return shuffled.groupby("cluster", sort=True).head(number).sort_values("item")


def run_inside(
    run: Run, *, out: Path, number: int = 30, resume: bool = False, command: Sequence[str] | None = None
) -> Run:
    """Measure inside every network of a run.

    `kind` is the cluster and `family` the network, so that intervals over families are intervals over networks.
    Nothing is normalised: effects are nats.

    Args:
        run: A run of a fact preset.
        out: Run directory of the measurements.
        number: Traps of each cluster and network.
        resume: Go on with it.
        command: The command line, for the record.

    Returns:
        The run. Tables: `lens` (both answers by layer at the last token); `patch` (attention and MLP outputs from the
        prompt with the other polarity word, by role); `patch_shortcut` (the same from the prompt in which the rarest
        entity of the shortcut's cluster and polarity stands in its place); `attribution` (what each part adds to the
        log-odds); `probe` and `probe_layers` (the constraint at the last token, the fact at the name; see
        `probe_table`); `verdict` (of a few traps; see `verdict_table`; placebos are other traps of the network);
        of fewer still `atp`, `edges`, `knockout` and `faithfulness`.

    Raises:
        InputError: If the run holds no fact world.
    """
    seeds = run.identity.get("seeds", {}).get("networks", [])
    if run.identity.get("kind") != "synthetic" or str(run.identity.get("preset")).startswith("action"):
        raise InputError(
            f"{run.path} holds no fact world", expected="a run of a fact preset", found=run.identity["preset"]
        )
    metadata = {
        "kind": "synthetic-inside", "preset": run.identity["preset"], "seeds": run.identity["seeds"],
        "options": {"number": number}, "model": run.identity["model"], "versions": library_versions(),
    }  # fmt: skip
    with create_run(out, metadata=metadata, resume=resume, command=command) as writer:
        for batch in writer.batches(TABLES, len(seeds)):
            for name, table in _one_network(network_folder(run.path, seeds[batch]), int(seeds[batch]), number).items():
                writer.write(name, batch, table)
        writer.finish()
    return load_run(out)


def _one_network(folder: Path, seed: int, number: int) -> dict[str, pd.DataFrame]:
    world = load_world(folder / "world.json")
    handle = open_model(str(folder))
    traps = [
        _Trap(row, order, which, _encode(handle, text, order))
        for order, first in ORDERS.items()
        for which in ("item", "control")
        for row, text in _texts(world, trap_sample(world, number=number), first, which == "control")
    ]
    runs = [_lens_run(handle, world, trap, seed) for trap in traps]
    lens, residuals = answer_lens(handle, runs)
    items = [trap for trap in traps if trap.which == "item"]
    controls = {(trap.row.item, trap.order): trap for trap in traps if trap.which == "control"}
    pairs = [_pair(handle, world, trap, controls[trap.row.item, trap.order].prompt, seed) for trap in items]
    swapped = [_pair(handle, world, trap, _with_rare(handle, world, trap), seed) for trap in items]
    sites = ("attn_out", "mlp_out")
    probes = _probes(handle, world, traps, residuals)
    return {
        "lens": lens,
        "patch": patch(handle, pairs, sites=sites),
        "patch_shortcut": patch(handle, swapped, sites=sites),
        "attribution": attribute(handle, [_lens_run(handle, world, trap, seed) for trap in items]),
        **{name: table.assign(seed=seed) for name, table in probes.items()},
        "verdict": _verdicts(handle, world, traps, runs, lens, seed).assign(seed=seed),
        **_read(handle, pairs),
    }


def _read(handle: ModelHandle, pairs: Sequence[Pair]) -> dict[str, pd.DataFrame]:
    """What gradients and attention say of the first traps of each cluster and order."""
    few: list[Pair] = []
    for group in sorted({(pair.meta["kind"], pair.meta["order"]) for pair in pairs}):
        few += [pair for pair in pairs if (pair.meta["kind"], pair.meta["order"]) == group][:READ]
    nodes = {"sites": ("z", "mlp_out"), "where": ("shortcut", "constraint", "last"), "heads": True}
    cuts = [(read, "last") for read in ("constraint", "shortcut", "option_correct")]
    runs = [LensRun(pair.base, pair.answers, {**pair.meta, "which": "item"}) for pair in few]
    return {
        "atp": atp(handle, few, choice=Choice(5, 10), **nodes),
        "edges": edge_attribution(handle, few, choice=Choice(5, 10)),
        "knockout": knockout(handle, runs, edges=cuts),
        "faithfulness": faithfulness(handle, few, shares=(0.1, 0.2, 0.4)),
    }


def _verdicts(
    handle: ModelHandle, world: World, traps: Sequence[_Trap], runs: Sequence[LensRun], lens: pd.DataFrame, seed: int
) -> pd.DataFrame:
    """Verdicts of the first traps of each cluster; all traps of the network are donors of placebos."""
    first: dict[str, list[Any]] = {}
    for trap in traps:
        mine = first.setdefault(trap.row.cluster, [])
        if trap.row.item not in mine and len(mine) < VERDICTS:
            mine.append(trap.row.item)
    chosen = [trap for trap in traps if trap.row.item in first[trap.row.cluster]]
    other = {(trap.row.item, trap.order, trap.which): trap.prompt for trap in chosen}
    turned = {"item": "control", "control": "item"}
    pairs = [_pair(handle, world, trap, other[trap.row.item, trap.order, turned[trap.which]], seed) for trap in chosen]
    patches = patch(handle, pairs, where=("constraint",), check=False)
    placebos = placebo_draws(handle, pairs, runs, seed=seed)
    asked = lens[lens["item"].isin({f"{seed}-{trap.row.item}" for trap in chosen})]
    return verdict_table(asked[asked["layer"] == asked["layer"].max()], asked, patches, placebos)


def _texts(world: World, items: pd.DataFrame, correct_first: bool, other_word: bool) -> list[tuple[Any, str]]:
    vocabulary = FactStream(world).vocabulary
    documents = item_prompts(world, items, correct_first=correct_first, other_word=other_word)
    return [
        (row, vocabulary.text(ids[:-2])) for row, ids in zip(items.itertuples(), documents.ids.tolist(), strict=True)
    ]


def _encode(handle: ModelHandle, text: str, order: str) -> Encoded:
    words = text.split()
    starts = np.cumsum([0, *(len(word) + 1 for word in words)]).tolist()
    options = (SECOND, FIRST) if ORDERS[order] else (FIRST, SECOND)
    places = dict(zip(("shortcut", "option_correct", "constraint"), (*options, WORD), strict=True))
    spans = {role: [(starts[place], starts[place] + len(words[place]))] for role, place in places.items()}
    return encode(handle, text, chat=False, spans=spans)


def _meta(trap: _Trap, seed: int) -> dict[str, Any]:
    row = trap.row
    return {
        "item": f"{seed}-{row.item}", "kind": row.cluster, "family": f"network-{seed}", "relation": row.relation,
        "order": trap.order, "log_prior_ratio": row.log_prior_ratio, "polarity": str(int(row.word)),
    }  # fmt: skip


def _lens_run(handle: ModelHandle, world: World, trap: _Trap, seed: int) -> LensRun:
    correct, shortcut = (f" {world.entities[int(index)]}" for index in (trap.row.correct, trap.row.shortcut))
    answers = encode_answers(handle, trap.prompt, correct, shortcut)
    meta = {**_meta(trap, seed), "which": trap.which, "right": RIGHT[trap.which]}
    return LensRun(trap.prompt, answers, meta)


def _pair(handle: ModelHandle, world: World, trap: _Trap, source: Encoded, seed: int) -> Pair:
    """The trap as base; activations come from `source`."""
    correct, shortcut = (f" {world.entities[int(index)]}" for index in (trap.row.correct, trap.row.shortcut))
    direction = "control_to_item" if trap.which == "item" else "item_to_control"
    meta = {**_meta(trap, seed), "direction": direction, "base_right": RIGHT[trap.which]}
    name = f"{meta['item']} {trap.order} {trap.which}"
    return make_pair(handle, trap.prompt, source, correct=correct, shortcut=shortcut, name=name, meta=meta)


def _with_rare(handle: ModelHandle, world: World, trap: _Trap) -> Encoded:
    """The item with the rarest entity of the shortcut's cluster and polarity in the shortcut's place."""
    shortcut = int(trap.row.shortcut)
    relation = next(index for index, item in enumerate(world.relations) if item.name == trap.row.relation)
    alike = world.pairing_matrix("same")[relation, shortcut]
    rare = int(np.flatnonzero(alike)[np.argmin(world.counts[relation, alike])])
    words = trap.prompt.text.split()
    words[SECOND if ORDERS[trap.order] else FIRST] = world.entities[rare]
    return _encode(handle, " ".join(words), trap.order)


def _probes(
    handle: ModelHandle, world: World, traps: Sequence[_Trap], residuals: Sequence[Tensor]
) -> dict[str, pd.DataFrame]:
    """The constraint at the last token, by cluster; the fact at the name, by relation. Keys are left out together."""
    import pandas as pd

    found = []
    for cluster in sorted({trap.row.cluster for trap in traps}):
        chosen = [index for index, trap in enumerate(traps) if trap.row.cluster == cluster]
        words = [int(traps[i].row.word) ^ (traps[i].which == "control") for i in chosen]
        one = probe_table(
            np.stack([residuals[i].numpy() for i in chosen]),
            np.array(words),
            [str(traps[i].row.correct) for i in chosen],
            prompts=[traps[i].prompt.ids for i in chosen],
            target=f"constraint at the last token, {cluster}",
        )
        found.append(one)
    # At a name the network has seen nothing else, so the prompt that ends with it gives the same residual stream.
    prompts = [encode(handle, name, chat=False) for name in world.entities]
    names = [
        LensRun(prompt, encode_answers(handle, prompt, " yes", " no"), {"entity": index})
        for index, prompt in enumerate(prompts)
    ]
    _, at_name = answer_lens(handle, names)
    features = np.stack([resid.numpy() for resid in at_name])
    for index, relation in enumerate(world.relations):
        one = probe_table(
            features,
            world.polarity[index],
            [str(entity) for entity in range(len(world.entities))],
            prompts=[prompt.ids for prompt in prompts],
            target=f"fact at the name, {relation.name}",
        )
        found.append(one)
    return {
        "probe": pd.concat([one.folds for one in found], ignore_index=True),
        "probe_layers": pd.concat([one.layers for one in found], ignore_index=True),
    }
