"""Verdicts of trap items, written to a run directory: what `latentkt verdict` calls."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentkt.errors import InputError
from latentkt.internals.lens import LensRun, answer_lens
from latentkt.internals.pairs import RUN_COLUMNS
from latentkt.internals.patching import patch
from latentkt.internals.placebo import placebo_draws
from latentkt.internals.runs import COLUMNS_OF
from latentkt.internals.verdicts import verdict_table
from latentkt.internals.working import Bench, Job, Tables, layers_of, work_items

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.models import ModelHandle
    from latentkt.results import RunWriter
    from latentkt.trapqa import TrapItem

__all__ = ["verdict_items", "with_items"]

COLUMNS = {
    "answers": (*RUN_COLUMNS, "log_odds"),
    "lens": COLUMNS_OF["lens"],
    "patch": COLUMNS_OF["patch"],
    "placebo": (*COLUMNS_OF["placebo"], "draw"),
}


def verdict_items(
    model: str | ModelHandle,
    out: str | os.PathLike[str],
    *,
    layers: Sequence[int] | None = None,
    donors: int = 5,
    seed: int = 0,
    **options: Any,
) -> Path:
    """A verdict for each item: answered how, and is its constraint read?

    Args:
        model: As in `lens_items`.
        out: As in `lens_items`.
        layers: Layers at which the constraint is patched; default all.
        donors: Placebo donors a pair.
        seed: Seed of the draw of donors.
        **options: As in `lens_items`.

    Returns:
        The run directory with the tables `verdict` (see `verdict_table`), `explicitness` where items have levels (see
        `dose_response`), and what they are made of: `answers`, `lens`, `patch`, `placebo` (see `placebo_draws`),
        `answers_skipped`. Effects and log-odds are nats of log P(y*) − log P(y_s).

    Raises:
        LatentKTError: As in `lens_items`.

    Example:
        >>> from latentkt.internals import verdict_items  # doctest: +SKIP
        >>> verdict_items("smollm2", "runs/verdict", limit=2)  # doctest: +SKIP
    """
    pools: dict[str, list[LensRun]] = {}
    fixed: dict[str, Any] = {"layers": layers}

    def measure(bench: Bench, item: TrapItem, order: str) -> Tables:
        if order not in pools:
            known = Bench(bench.engine, bench.items, bench.options)  # its refusals are listed with their own items
            pools[order] = [run for one in bench.items for run in known.runs(one, order)]
        lens, _ = answer_lens(bench.engine, list(bench.runs(item, order)))
        pairs = bench.pairs(item, order)
        return {
            "answers": _answers(lens),
            "lens": lens,
            "patch": patch(bench.engine, pairs, where=("constraint",), **fixed),
            "placebo": placebo_draws(bench.engine, pairs, pools[order], draws=donors, seed=seed, **fixed),
        }

    def closing(run: RunWriter, bench: Bench) -> None:
        from latentkt.internals.explicitness import dose_response

        answers = with_items(run.read("answers"), bench.items)
        skipped = run.read("answers_skipped")
        unpaired = skipped[skipped["which"] == "pair"]
        if not len(answers):
            return
        found = verdict_table(answers, run.read("lens"), run.read("patch"), run.read("placebo"), unpaired=unpaired)
        run.save("verdict", found)
        if found["level"].notna().any():
            run.save("explicitness", dose_response(found))

    if donors < 1:
        raise InputError("placebo donors of a verdict", expected="1 or more", found=donors)
    said: dict[str, Any] = {"layers": layers_of(layers), "donors": donors, "seed": seed}
    return work_items(Job(model, out, **options), COLUMNS, measure, closing=closing, **said)


def with_items(table: pd.DataFrame, items: Sequence[TrapItem]) -> pd.DataFrame:
    """The table with `group` and `level` of each row's item."""
    groups = {item.id: item.group for item in items}
    levels = {item.id: float("nan") if item.level is None else float(item.level) for item in items}
    named = table["item"].map(groups).astype("object")
    return table.assign(group=named.where(named.notna(), None), level=table["item"].map(levels).astype("float64"))


def _answers(lens: pd.DataFrame) -> pd.DataFrame:
    """The last layer's lens is the model's own output."""
    if not len(lens):
        return lens
    last = lens[lens["layer"] == lens["layer"].max()]
    return last[[name for name in COLUMNS["answers"] if name in last.columns]].reset_index(drop=True)
