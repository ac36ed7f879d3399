"""What can be read from the residual stream, layer by layer, and what the words alone give away."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from latentkt.errors import DataError
from latentkt.plots.columns import require
from latentkt.plots.series import band, caption_of, layer_axis, legend_above, reference_line
from latentkt.plots.style import look, panels, styled
from latentkt.stats import mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["over_folds", "probe_by_layer"]


@styled
def probe_by_layer(probe: pd.DataFrame, *, target: str | None = None, caption: str = "") -> Figure:
    """Held-out accuracy of a probe by layer, beside a bag of tokens on the same folds and the majority class.

    Args:
        probe: Table `probe` of `latentkt.plots.columns`.
        target: Which target to show; needed only where the table holds several.
        caption: What the table cannot tell: preset, model.

    Returns:
        The figure; bands are 95 % intervals over folds (Student's t; folds share training rows, so they are a guide).

    Raises:
        DataError: A column is missing, there are no rows, or the target is not in the table.
    """
    require(probe, "probe")
    targets = sorted(probe["target"].unique())
    chosen = targets[0] if target is None and len(targets) == 1 else target
    if chosen not in targets:
        raise DataError("target of the probe figure", expected=f"one of {', '.join(targets)}", found=target)
    table = probe[(probe["target"] == chosen) & (probe["split"] == "generalisation")]
    folds = table.drop_duplicates("fold")
    figure, (axes,) = panels(
        1,
        height=2.7,
        title=f"Can {chosen!r} be read from the residual stream?",
        caption=caption_of(
            f"{int(folds['n_test'].sum())} test rows in {len(folds)} folds that leave whole families out",
            caption,
            "Bands: 95 % intervals over folds",
        ),
    )
    for name, column, label in (("probe", "score", "probe"), ("bag", "bag_score", "bag of tokens")):
        rows = over_folds(table, column)
        band(axes, rows["layer"], rows.assign(**_percent(rows)), look(name), label=label)
    reference_line(axes, 100 * float(folds["majority_score"].mean()), label="majority class")
    axes.set_ylim(0, 102)
    axes.set_ylabel("held-out accuracy (%)")
    layer_axis(axes)
    legend_above(figure, axes)
    return figure


def over_folds(probe: pd.DataFrame, column: str) -> pd.DataFrame:
    """Mean of a column over folds, by layer: `layer` and the fields of `Interval`."""
    groups = probe.groupby("layer", sort=True)[column]
    return pd.DataFrame([{"layer": layer, **mean_interval(values).to_row()} for layer, values in groups])


def _percent(rows: pd.DataFrame) -> dict[str, pd.Series]:
    return {name: (100 * rows[name]).clip(0, 100) for name in ("value", "low", "high")}
