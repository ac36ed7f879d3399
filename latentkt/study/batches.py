"""What the stages share: the prompts and pairs of a batch, and the rows of what was skipped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from latentkt.errors import LatentKTError

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.internals.lens import LensRun
    from latentkt.models import Pair
    from latentkt.study.context import Context

__all__ = ["Cells", "Tables", "nothing", "pairs_of", "runs_of", "skipped_table"]

Cells = tuple[tuple[str, str], ...]
"""(item id, option order) of what a batch measures."""
Tables = dict[str, "pd.DataFrame"]

SHIFTED = "item and control are of unequal length: after the first difference their tokens stand at other positions"
SKIPPED = ["stage", "item", "which", "order", "reason"]


def skipped_table(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Rows of what was left out: stage, item, which, order, reason."""
    import pandas as pd

    return pd.DataFrame(rows, columns=SKIPPED).astype("str")


def nothing() -> pd.DataFrame:
    """A part without rows; its columns are those of the parts that have some."""
    import pandas as pd

    return pd.DataFrame({"item": pd.Series(dtype="str")})


def runs_of(
    context: Context, cells: Cells, whiches: tuple[str, ...], stage: str, skipped: list[dict[str, Any]]
) -> Iterator[LensRun]:
    """The prompts of a batch; those that this model refuses are listed and left out."""
    from latentkt.internals import item_run

    for item_id, order in cells:
        for which in whiches:
            try:
                yield item_run(
                    context.handle,
                    context.items[item_id],
                    which=which,
                    order=order,
                    template=context.template,
                    system=context.options.system,
                )
            except LatentKTError as error:
                skipped.append({"stage": stage, "item": item_id, "which": which, "order": order, "reason": error.what})


def pairs_of(context: Context, cells: Cells, stage: str, skipped: list[dict[str, Any]]) -> list[Pair]:
    """Item and control in both directions; pairs that cannot be patched by position are listed and left out."""
    from latentkt.internals import pairs_of_item

    options = {"template": context.template, "system": context.options.system}
    pairs: list[Pair] = []
    for item_id, order in cells:
        try:
            made = pairs_of_item(context.handle, context.items[item_id], order=order, **options)
        except LatentKTError as error:
            skipped.append({"stage": stage, "item": item_id, "which": "pair", "order": order, "reason": error.what})
            continue
        if any(pair.alignment.shifted for pair in made):
            skipped.append({"stage": stage, "item": item_id, "which": "pair", "order": order, "reason": SHIFTED})
        else:
            pairs.extend(made)
    return pairs
