"""How a measurement of trap items is worked off: batches of one item in one option order, written as a run directory.

A run that was killed goes on with the next batch. What a model refuses is listed with the reason in the table
`…_skipped`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentkt.errors import InputError, LatentKTError
from latentkt.internals.engines import engine_of
from latentkt.internals.pairs import item_run, pairs_of_item

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.internals.engines.base import Engine
    from latentkt.internals.lens import LensRun
    from latentkt.models import ModelHandle, Pair
    from latentkt.results import RunWriter
    from latentkt.trapqa import TrapItem

__all__ = ["ORDERS", "Bench", "Job", "Tables", "layers_of", "with_columns", "work_items"]

ORDERS = ("correct_first", "shortcut_first")
Tables = dict[str, "pd.DataFrame"]
Columns = Mapping[str, Sequence[str]]
"""Columns of each table, for one without rows."""


@dataclass(frozen=True)
class Job:
    """What one command does.

    Attributes:
        model: `smollm2`, a folder, a hub id, or an opened model.
        out: The run directory.
        items: A JSONL file; None for the built-in set.
        orders: Option orders.
        template: `chat` or `plain`; None for chat where the tokenizer has a template.
        system: None keeps the template's own system prompt.
        limit: The first so many items only, 1 or more.
        engine: Which engine runs the model.
        device: Where the model runs.
        dtype: The weights' dtype.
        memory_mb: Working memory of a sweep (engine `fast`); None for its default.
        resume: Go on with the run in `out`.
        command: The words of the command line, for the record.
    """

    model: str | ModelHandle
    out: str | os.PathLike[str]
    items: str | None = None
    orders: Sequence[str] = ORDERS
    template: str | None = None
    system: str | None = None
    limit: int | None = None
    engine: str = "fast"
    device: str = "cpu"
    dtype: str = "float32"
    memory_mb: float | None = None
    resume: bool = False
    command: Sequence[str] | None = None


@dataclass
class Bench:
    """An engine and the items that it measures.

    Attributes:
        engine: Runs the model.
        items: All items of the run.
        options: `template` and `system` of every prompt.
        skipped: What was left out of the batch so far, and why.
    """

    engine: Engine
    items: list[TrapItem]
    options: dict[str, Any]
    skipped: list[dict[str, Any]] = field(default_factory=list)

    def runs(self, item: TrapItem, order: str, whiches: Sequence[str] = ("item", "control")) -> Iterator[LensRun]:
        """The prompts of an item; those that the model refuses are listed."""
        for which in whiches:
            try:
                yield item_run(self.engine.handle, item, which=which, order=order, **self.options)
            except LatentKTError as error:
                self.skip(item, which, order, error.what)

    def pairs(self, item: TrapItem, order: str) -> list[Pair]:
        """The pairs of an item, none where they cannot be patched."""
        try:
            pairs = pairs_of_item(self.engine.handle, item, order=order, **self.options)
        except LatentKTError as error:
            self.skip(item, "pair", order, error.what)
            return []
        kept = [pair for pair in pairs if not pair.alignment.shifted]
        if len(kept) < len(pairs):
            self.skip(item, "pair", order, "item and control are of unequal length after their first difference")
        return kept

    def skip(self, item: TrapItem, which: str, order: str, reason: str) -> None:
        """List what was left out."""
        self.skipped.append({"item": item.id, "which": which, "order": order, "reason": reason})


def layers_of(layers: Sequence[int] | None) -> list[int] | None:
    """Layers as they are written to the metadata: a range is a list there; None for all."""
    return None if layers is None else [int(layer) for layer in layers]


def _check_roles(roles: Sequence[str], items: Sequence[TrapItem]) -> None:
    """A role that is misspelt would give a table of NaN."""
    from latentkt.trapqa.clauses import RENDER_ROLES

    known = {"last", "all", *RENDER_ROLES, *(role for item in items for role in item.spans)}
    unknown = sorted(set(roles) - known)
    if unknown:
        raise InputError("roles that no item has", expected=", ".join(sorted(known)), found=", ".join(unknown))


def with_columns(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """A table without rows has the columns of its kind, too."""
    import pandas as pd

    return table if len(table) else pd.DataFrame(columns=list(columns))


def work_items(
    job: Job,
    columns: Columns,
    measure: Callable[[Bench, TrapItem, str], Tables],
    *,
    closing: Callable[[RunWriter, Bench], None] | None = None,
    roles: Sequence[str] = (),
    **options: object,
) -> Path:
    """Plan the batches, work them off, write the tables.

    Args:
        job: What is asked for.
        columns: Tables that `measure` gives; the first names the measurement.
        measure: What becomes of one item in one option order.
        closing: Makes further tables of the whole.
        roles: Roles that are read or changed.
        **options: All else that the tables depend on. It is written to the metadata, so that a run cannot be gone on
            with under other options.

    Raises:
        InputError: Unknown option orders, a limit under 1, a role that no item has.
    """
    import pandas as pd

    from latentkt.models import open_model
    from latentkt.progress import progress
    from latentkt.results import create_run
    from latentkt.trapqa import builtin_items, load_items

    if not set(job.orders) <= set(ORDERS) or not job.orders:
        raise InputError("option orders", expected=" and/or ".join(ORDERS), found=list(job.orders))
    if job.limit is not None and job.limit < 1:
        raise InputError("limit of items", expected="1 or more, or none", found=job.limit)
    items = builtin_items() if job.items is None else load_items(job.items)
    chosen = list(items)[: job.limit]
    _check_roles(roles, chosen)
    handle = open_model(job.model, device=job.device, dtype=job.dtype) if isinstance(job.model, str) else job.model
    template = job.template or ("chat" if handle.has_chat_template else "plain")
    limit = {} if job.memory_mb is None else {"memory_mb": job.memory_mb}
    bench = Bench(engine_of(handle, job.engine, **limit), chosen, {"template": template, "system": job.system})
    cells = [(item, order) for item in chosen for order in job.orders]
    name = next(iter(columns))
    about: dict[str, object] = {"measurement": name, "engine": job.engine, "template": template}
    about |= {"orders": list(job.orders), "system": job.system, **({"roles": list(roles)} if roles else {})}
    metadata = {
        "model": handle.metadata(),
        "items": {"path": job.items or "built-in", "sha256": items.sha256, "n": len(chosen)},
        "options": {**about, **options},
    }
    with create_run(job.out, metadata=metadata, resume=job.resume, command=job.command) as run, progress() as bar:
        stage = bar.stage(name, total=len(cells))
        for batch in run.batches((*columns, f"{name}_skipped"), len(cells)):
            bench.skipped.clear()
            tables = measure(bench, *cells[batch])
            for table, its_columns in columns.items():
                run.write(table, batch, with_columns(tables[table], its_columns))
            reasons = pd.DataFrame(bench.skipped, columns=["item", "which", "order", "reason"])
            run.write(f"{name}_skipped", batch, reasons.astype("str"))
            stage.advance()
        if closing is not None:
            closing(run, bench)
        run.finish()
    return Path(job.out)
