"""What can be read from the residual stream, layer by layer, and what words, size and memory alone give away."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from latentkt.errors import DataError
from latentkt.plots.columns import require
from latentkt.plots.series import band, caption_of, layer_axis, legend_above, reference_line
from latentkt.plots.style import look, panels, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["chosen_rows", "probe_by_layer"]

LINES = {
    "generalisation": (
        ("probe", "", "probe"),
        ("bag", "bag_", "bag of tokens"),
        ("random_init", "random_init_", "untrained"),
    ),
    "selectivity": (("probe", "", "task"), ("control_task", "control_", "control task")),
}
PANEL = {
    "generalisation": "accuracy on families left out (%)",
    "selectivity": "accuracy on items seen (%)",
}


@styled
def probe_by_layer(
    probe_layers: pd.DataFrame, *, target: str | None = None, kind: str | None = None, role: str = "last",
    caption: str = "",
) -> Figure:  # fmt: skip
    """Held-out accuracy by layer: left-out families beside the baselines, and task beside control task.

    Args:
        probe_layers: Table `probe_layers` of `latentkt.plots.columns`.
        target: Which target to show; needed only where the table holds several.
        kind: Which kind of probe; default the first in the table.
        role: Where the activations were read.
        caption: What the table cannot tell: preset, model.

    Returns:
        The figure, one panel a split; bands are 95 % intervals that count families (items).

    Raises:
        DataError: A column is missing, there are no rows, or the target is not in the table.
    """
    table = chosen_rows(probe_layers, target=target, kind=kind, role=role)
    splits = [split for split in LINES if _measured(table, split).any()]
    if not splits:
        raise DataError("probe figure", expected="a split with scores", found="; ".join(table["reason"].unique()))
    rows = table[table["split"] == splits[0]].iloc[0]
    figure, axes = panels(
        len(splits),
        height=2.4,
        title=f"Can it be read? {table['target'].iloc[0]}",
        caption=caption_of(
            f"{int(rows['n_rows'])} held-out rows, {int(rows['n_groups'])} families; "
            f"{table['kind'].iloc[0].replace('_', ' ')} probe at {role}",
            caption,
            "Layer −1 is the embedding; untrained: random weights. Bands: 95 % intervals over families and over items",
        ),
    )
    for panel, split in zip(axes, splits, strict=True):
        _panel(panel, table[_measured(table, split)], split)
    layer_axis(axes[-1])
    legend_above(figure, axes[0])
    return figure


def chosen_rows(probe_layers: pd.DataFrame, *, target: str | None, kind: str | None, role: str) -> pd.DataFrame:
    """The rows of one target, kind and role.

    Raises:
        DataError: As `probe_by_layer`.
    """
    require(probe_layers, "probe_layers")
    targets = sorted(probe_layers["target"].unique())
    chosen = targets[0] if target is None and len(targets) == 1 else target
    if chosen not in targets:
        raise DataError("target of the probe figure", expected=f"one of {', '.join(targets)}", found=target)
    table = probe_layers[(probe_layers["target"] == chosen) & (probe_layers["role"] == role)]
    kinds = list(dict.fromkeys(table["kind"]))
    if not kinds or (kind is not None and kind not in kinds):
        raise DataError("probe figure", expected=f"a kind of {', '.join(kinds) or 'none'} at {role}", found=kind)
    return table[table["kind"] == (kind or kinds[0])]


def _measured(table: pd.DataFrame, split: str) -> pd.Series:
    return (table["split"] == split) & table["score"].notna()


def _panel(axes: Axes, rows: pd.DataFrame, split: str) -> None:
    for position, (name, prefix, label) in enumerate(LINES[split]):
        there = rows[rows[f"{prefix}score"].notna()]
        if len(there):
            shown = pd.DataFrame(
                {end: 100 * there[f"{prefix}{column}"] for end, column in _ENDS.items()}, index=there.index
            )
            band(axes, there["layer"], shown, look(name, position), label=label)
    reference_line(axes, 100 * float(rows["majority_score"].mean()), label="majority")
    axes.set_ylim(0, 102)
    axes.set_ylabel(PANEL[split])


_ENDS = {"value": "score", "low": "low", "high": "high"}
