"""The stages of a study: what a batch is, and what a worker makes of it.

A stage is data (`Stage`), so that a plan can be printed, timed and resumed before any of it runs. Its `work` turns
one batch into the rows of its tables. Rows that cannot be had are no gaps: they stand in the stage's `*_skipped`
table with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from latentkt.study import gradients, inside, presets, reading, work

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
        per_cell: Forward passes of a whole prompt that one cell (an item in one order) costs.
        per_cell_layer: The same, for each layer of the model.
    """

    name: str
    tables: tuple[str, ...]
    batches: tuple[Any, ...]
    work: Work
    needs: tuple[str, ...] = field(default=())
    per_cell: float = 0.0
    per_cell_layer: float = 0.0

    def forwards(self, n_layers: int) -> float:
        """Forward passes of a whole prompt that the stage amounts to, for an estimate of its time."""
        cells = sum(len(batch) for batch in self.batches if batch is not None)
        return cells * (self.per_cell + self.per_cell_layer * n_layers)


def plan(items: Sequence[TrapItem], options: StudyOptions) -> list[Stage]:
    """The stages of a study, in order, with every batch.

    The limit and the preset choose from the same items, so what a limit leaves is measured as it would be without one.
    """
    preset = presets.preset_named(options.preset)
    asked = presets.select_items(items, per_kind=options.limit, seed=options.seed)
    every = [(item.id, order) for item in asked for order in ORDERS]
    looked_into = _cells(items, preset.per_kind, preset, options)
    close = _cells(items, preset.closely, preset, options)
    singly = _chunks(close, 1)
    return [
        Stage(
            "answers",
            ("answers", "answers_skipped"),
            _chunks(every, 2 * BATCH_ITEMS),
            work.answers,
            per_cell=3.5,  # item, control, neutral, and their answers
        ),
        Stage(
            "lens",
            ("lens", "activations", "lens_skipped"),
            _chunks(looked_into, BATCH_ITEMS),
            work.lens,
            per_cell=3.4,
            per_cell_layer=0.1,
        ),
        Stage(
            "patching",
            ("patch", "patch_skipped"),
            _chunks(looked_into, 1),
            work.patching,
            per_cell=4.0,
            per_cell_layer=0.5,  # three roles, two directions, each resumed on the rest of the prompt and of the layers
        ),
        Stage("components", ("components", "components_skipped"), singly, inside.components, per_cell_layer=1.0),
        Stage("placebo", ("placebo", "placebo_skipped"), singly, inside.placebo, per_cell=8.0, per_cell_layer=0.5),
        Stage(
            "attribution",
            ("attribution", "heads", "attribution_skipped"),
            singly,
            inside.attribution,
            per_cell_layer=0.4,
        ),
        Stage("tokens", ("lens_tokens", "patch_tokens", "tokens_skipped"), singly, inside.tokens, per_cell_layer=8.0),
        Stage(
            "gradients",
            ("atp", "faithfulness", "knockout", "gradients_skipped"),
            singly,
            gradients.gradients,
            per_cell=90.0 if preset.both_orders else 15.0,
        ),
        Stage("edges", ("edges", "edges_skipped"), singly[: preset.edges], gradients.edges, per_cell=12.0),
        Stage("probes", ("probe", "probe_layers", "probe_skipped"), (None,), reading.probes, needs=("activations",)),
        Stage(
            "donors",
            ("constraint_patch", "placebo_draws", "donors_skipped"),
            _chunks(_both(close), 1),
            reading.donors,
            per_cell=8.0,
            per_cell_layer=0.1,
        ),
        Stage(
            "steering",
            ("steer", "steer_text", "steering_skipped"),
            singly,
            reading.steering,
            needs=("activations",),
            per_cell=10.0,
        ),
    ]


def _cells(
    items: Sequence[TrapItem], per_kind: int | None, preset: presets.Preset, options: StudyOptions
) -> list[tuple[str, str]]:
    """Items and the option orders in which the preset looks inside them."""
    bounds = [bound for bound in (per_kind, options.limit) if bound is not None]
    return [
        (item.id, order)
        for item in presets.select_items(items, per_kind=min(bounds, default=None), seed=options.seed)
        for order in (ORDERS if preset.both_orders else (presets.drawn_order(item.id, options.seed),))
    ]


def _both(cells: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The items of cells, in both option orders: no verdict is given from one."""
    return [(item, order) for item in dict.fromkeys(item for item, _ in cells) for order in ORDERS]


def _chunks(cells: Sequence[Any], size: int) -> tuple[tuple[Any, ...], ...]:
    return tuple(tuple(cells[start : start + size]) for start in range(0, len(cells), size))
