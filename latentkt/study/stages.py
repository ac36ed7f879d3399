"""The stages of a study: what a batch is, and what a worker makes of it.

A stage is data (`Stage`), so that a plan can be printed, timed and resumed before any of it runs. Its `work` turns one batch
into the rows of its tables. Rows that cannot be had are no gaps: they stand in the stage's `*_skipped` table with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from latentkt.study import presets, work

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.study.context import Context
    from latentkt.study.main import StudyOptions
    from latentkt.trapqa import TrapItem

__all__ = ["Stage", "plan"]

Work = Callable[["Context", Any], "dict[str, pd.DataFrame]"]

ORDERS = ("correct_first", "shortcut_first")
BATCH_ITEMS = 4


@dataclass(frozen=True)
class Stage:
    """One kind of measurement.

    Attributes:
        name: Shown in the progress bar.
        tables: Tables that each batch writes a part of.
        batches: What is measured, cut into units of resuming.
        work: Makes the rows of one batch, in a worker.
        needs: Tables of earlier stages that the batch is given whole.
    """

    name: str
    tables: tuple[str, ...]
    batches: tuple[Any, ...]
    work: Work
    needs: tuple[str, ...] = field(default=())


def plan(items: Sequence[TrapItem], options: StudyOptions) -> list[Stage]:
    """The stages of a study, in order, with every batch."""
    preset = presets.preset_named(options.preset)
    inside = presets.select_items(items, per_kind=preset.per_kind, seed=options.seed)
    cells = [
        (item.id, order)
        for item in inside
        for order in (ORDERS if preset.both_orders else (presets.drawn_order(item.id, options.seed),))
    ]
    every = [(item.id, order) for item in items for order in ORDERS]
    return [
        Stage("answers", ("answers", "answers_skipped"), _chunks(every, 2 * BATCH_ITEMS), work.answers),
        Stage("lens", ("lens", "last_token", "lens_skipped"), _chunks(cells, BATCH_ITEMS), work.lens),
        Stage("patching", ("patch", "patch_skipped"), _chunks(cells, 1), work.patching),
        Stage("probes", ("probe", "probe_skipped"), (None,), work.probes, needs=("last_token",)),
    ]


def _chunks(cells: Sequence[Any], size: int) -> tuple[tuple[Any, ...], ...]:
    return tuple(tuple(cells[start : start + size]) for start in range(0, len(cells), size))
