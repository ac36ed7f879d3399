"""What the question of a trap item adds to the names of its options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from latentkt.plots.columns import require
from latentkt.plots.scatter import against
from latentkt.plots.series import caption_of
from latentkt.plots.style import Y_CORRECT, Y_SHORTCUT, panels, styled
from latentkt.plots.summaries import items_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["evidence_by_item"]


@styled
def evidence_by_item(evidence: pd.DataFrame, *, caption: str = "") -> Figure:
    """Dominance after the whole prompt against dominance after the neutral one, one point an item and condition.

    Args:
        evidence: Table `evidence` of `latentkt.plots.columns`; rows that lack a neutral prompt are left out.
        caption: What the table cannot tell: preset, model.

    Returns:
        The figure, in nats; positive is for the shortcut. Below the diagonal the question moves the model towards y*.

    Raises:
        DataError: A column is missing or there are no rows.
    """
    require(evidence, "evidence")
    points = evidence[evidence["evidence"].notna()]
    below = int((points["evidence"] > 0).sum())
    figure, (axes,) = panels(
        1,
        height=4.1,
        title="What does the question add to its options?",
        caption=caption_of(
            items_of(points),
            caption,
            f"{below} of {len(points)} points lie below the diagonal. Means over option orders",
        ),
    )
    against(axes, points, "neutral_dominance", "dominance", by="condition")
    axes.set_xlabel(f"log-odds of {Y_SHORTCUT} over {Y_CORRECT} from the options alone (nats)")
    axes.set_ylabel(f"log-odds of {Y_SHORTCUT} over {Y_CORRECT} with the question (nats)")
    axes.legend(loc="upper left")
    return figure
