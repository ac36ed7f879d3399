"""Steering of trap items along directions found on other families; what `latentkt steer` calls."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from latentkt.errors import InputError
from latentkt.internals.directions import HOW, Direction, direction_of_probe
from latentkt.internals.engines import engine_of
from latentkt.internals.probes import TARGETS, fit_probe, labels_of, probe_rows, random_init
from latentkt.internals.probes.kinds import kind_named
from latentkt.internals.probes.rows import ROW_COLUMNS
from latentkt.internals.probes.sweep import stacked
from latentkt.internals.steering import STRENGTHS, steer, steer_text
from latentkt.internals.working import Bench, Job, Tables, work_items

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.internals.engines.base import Engine
    from latentkt.models import ModelHandle, Pair
    from latentkt.results import RunWriter
    from latentkt.trapqa import TrapItem

__all__ = ["direction_without", "steer_items", "steer_left_out"]

RANDOM_MODEL_LAYERS = 6


def direction_without(
    handle: ModelHandle,
    rows: pd.DataFrame,
    family: str,
    *,
    target: str = "answer_side",
    layer: int,
    kind: str = "mean_difference",
    column: str = "residual",
    arbitrary: int | None = None,
) -> Direction:
    """The direction of a target, found on all families but one.

    Args:
        handle: The model that the rows are of.
        rows: Of `probe_rows`, of one role.
        family: The family that is left out.
        target: Name of the target.
        layer: The layer whose output is read.
        kind: Kind of probe.
        column: `residual`, or `random_init` for the random model's rows.
        arbitrary: Seed of a shuffle of the labels, for a direction that means nothing.

    Raises:
        InputError: No rows with labels are left, or one class only.
    """
    labels = labels_of(rows, target)
    kept = ~np.isnan(labels) & (rows["family"] != family).to_numpy()
    if not kept.any():
        raise InputError(f"no rows of target {target!r} outside family {family!r}", expected="two families or more")
    rows, known = rows[kept], labels[kept].astype(int)
    if arbitrary is not None:
        known = np.random.default_rng(arbitrary).permutation(known)
    features = stacked(rows, column)[:, layer + 1]
    name = target if arbitrary is None else "arbitrary labels"
    probe = fit_probe(features, known, rows["item"].tolist(), kind=kind, name=name)
    return direction_of_probe(handle, probe, features, known, layer=layer, name=name)


def steer_left_out(
    model: ModelHandle | Engine,
    pairs: Iterable[Pair],
    rows: pd.DataFrame,
    *,
    target: str = "answer_side",
    role: str = "last",
    layer: int | None = None,
    kind: str = "mean_difference",
    random_model: bool = True,
    seed: int = 0,
    **options: Any,
) -> pd.DataFrame:
    """Steer each pair along the direction that the other families give, with every control.

    Args:
        model: An opened model, or an engine.
        pairs: Pairs of items (`pairs_of_item`).
        rows: Of `probe_rows`, with `random_init` where the random model is asked for.
        target: Name of the target that gives the direction.
        role: Where it was read, and where it is put in.
        layer: Layer of the direction; default the middle.
        kind: Kind of probe.
        random_model: Also steer a model with random weights along the direction that its own activations give.
        seed: Seed of random directions, arbitrary labels and random weights.
        **options: As in `steer` (`how`, `strengths`, `n_random`, `parts`).

    Returns:
        The table of `steer`, with `model` (`trained`, `random weights`) and `target`; controls are random directions,
        `arbitrary labels`, `read`, `unread`.
    """
    import pandas as pd

    engine, chosen = engine_of(model), rows[rows["role"] == role]
    every = list(pairs)
    tables = []
    for name, runner, column in _models(engine, chosen, random_model, seed):
        handle = runner.handle
        at = handle.n_layers // 2 if layer is None or name != "trained" else layer
        for family in dict.fromkeys(str(pair.meta["family"]) for pair in every):
            fixed: dict[str, Any] = {"target": target, "layer": at, "kind": kind, "column": column}
            found = direction_without(handle, chosen, family, **fixed)
            shuffled = direction_without(handle, chosen, family, arbitrary=seed, **fixed)
            mine = [pair for pair in every if pair.meta["family"] == family]
            controls = {"arbitrary labels": shuffled}
            table = steer(runner, mine, found, where=(role,), controls=controls, seed=seed, **options)
            tables.append(table.assign(model=name, target=target))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def _models(engine: Engine, rows: pd.DataFrame, random_model: bool, seed: int) -> Iterator[tuple[str, Engine, str]]:
    yield "trained", engine, "residual"
    lengths = {len(flat) for flat in rows["random_init"]}
    if random_model and lengths and min(lengths):
        layers = min(lengths) // engine.handle.d_model - 1
        yield "random weights", engine_of(random_init(engine.handle, seed=seed, layers=layers)), "random_init"


def steer_items(
    model: str | ModelHandle,
    out: str | os.PathLike[str],
    *,
    target: str = "answer_side",
    role: str = "last",
    layer: int | None = None,
    kind: str = "mean_difference",
    how: Sequence[str] = HOW,
    strengths: Sequence[float] = STRENGTHS,
    n_random: int = 5,
    random_model: bool = True,
    texts: int = 2,
    seed: int = 0,
    **options: Any,
) -> Path:
    """Steer items along the direction of a target, found on the other families, beside every control.

    Args:
        model: As in `lens_items`.
        out: As in `lens_items`.
        target: Name of the target that gives the direction (see `TARGETS`; not `fact_known`).
        role: Where it is read and put in: `last`, or a role (the mean is read, every token is changed).
        layer: Layer of the direction; default the middle.
        kind: Kind of probe that gives it.
        how: `add`, `remove`, `interchange` (with the control's run).
        strengths: Steps of `add`; a step is the distance of the class means.
        n_random: Random directions of the same length.
        random_model: Also a model with random weights.
        texts: Items whose text is written while they are steered; 0 for none.
        seed: Seed of every draw.
        **options: As in `lens_items`.

    Returns:
        The run directory with the tables `steer` (see `steer_left_out`), `steer_text` (see `steer_text`), `activations`
        and `activations_skipped`. Effects are nats of log P(y*) − log P(y_s), changed − base.

    Raises:
        LatentKTError: As in `lens_items`; a target without two families or two classes.

    Example:
        >>> from latentkt.internals import steer_items  # doctest: +SKIP
        >>> steer_items("smollm2", "runs/steer", layer=20)  # doctest: +SKIP
    """
    if target == "fact_known":
        raise InputError(
            "steering along what is known of an item", expected="a target that prompts of an item differ in"
        )
    _check(target, kind, how, layer)
    fixed: dict[str, Any] = {"target": target, "layer": layer, "kind": kind}
    layers = RANDOM_MODEL_LAYERS if random_model else 0

    def measure(bench: Bench, item: TrapItem, order: str) -> Tables:
        last = bench.engine.handle.n_layers - 1
        if layer is not None and layer > last:
            raise InputError("unknown layer", expected=f"0 to {last}", found=layer)
        count = min(layers, bench.engine.handle.n_layers)
        rows = probe_rows(bench.engine, bench.runs(item, order), roles=(role,), random_layers=count, seed=seed)
        return {"activations": rows}

    def closing(run: RunWriter, bench: Bench) -> None:
        rows = run.read("activations")
        wanted = list(dict.fromkeys(zip(rows["item"], rows["order"], strict=True)))
        items = {item.id: item for item in bench.items}
        bench.skipped.clear()
        pairs = [p for name, order in wanted for p in bench.pairs(items[name], order) if p.meta["base"] == "item"]
        more: dict[str, Any] = {"how": how, "strengths": strengths, "n_random": n_random, "random_model": random_model}
        run.save("steer", steer_left_out(bench.engine, pairs, rows, role=role, seed=seed, **fixed, **more))
        if texts:
            run.save("steer_text", written_texts(bench.engine, pairs, rows, texts, role=role, seed=seed, **fixed))

    drawn = {"n_random": n_random, "random_model": random_model, "texts": texts, "seed": seed}
    said: dict[str, Any] = {**fixed, "roles": (role,), "how": list(how), "strengths": list(strengths), **drawn}
    return work_items(Job(model, out, **options), {"activations": ROW_COLUMNS}, measure, closing=closing, **said)


def _check(target: str, kind: str, how: Sequence[str], layer: int | None) -> None:
    """Refuse what is known to be wrong before any model is run."""
    kind_named(kind)
    for name, given, allowed in (("target", [target], TARGETS), ("ways to steer", how, HOW)):
        if not given or not set(given) <= set(allowed):
            raise InputError(name, expected=", ".join(allowed), found=list(given))
    if layer is not None and layer < 0:
        raise InputError("layer of a direction", expected="0 or more", found=layer)


def written_texts(
    engine: Engine,
    pairs: Sequence[Pair],
    rows: pd.DataFrame,
    number: int,
    *,
    role: str,
    target: str,
    layer: int | None,
    kind: str,
    seed: int,
    n_random: int = 1,
    max_new_tokens: int = 24,
) -> pd.DataFrame:
    """Texts of the first items, plain and steered one step either way along the direction of the other families."""
    import pandas as pd

    handle, chosen = engine.handle, rows[rows["role"] == role]
    at = handle.n_layers // 2 if layer is None else layer
    tables = []
    for pair in pairs[:number]:
        family = str(pair.meta["family"])
        found = direction_without(handle, chosen, family, target=target, layer=at, kind=kind)
        name = f"{pair.meta['item']}, {pair.meta['order']}"
        table = steer_text(
            handle, {name: pair.base}, found, seed=seed, n_random=n_random, max_new_tokens=max_new_tokens
        )
        tables.append(table.assign(item=pair.meta["item"], order=pair.meta["order"]))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()
