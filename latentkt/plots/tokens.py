"""Layer by token, with the tokens written out and the roles marked: a patching sweep or a lens of one prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latentkt.errors import DataError
from latentkt.plots.series import caption_of
from latentkt.plots.style import GREY, look, panels, styled

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["layer_by_token"]

_QUIET = {"rest", "template", "system", "answer"}
_MOST_TOKENS = 130


@styled
def layer_by_token(
    table: pd.DataFrame, *, value: str = "effect", first: int = 0, title: str = "", caption: str = ""
) -> Figure:
    """Heat map of layer × token for one prompt: `patch_positions` of one pair and site, or `token_lens` of one run.

    Args:
        table: One row a layer and position, with `layer`, `position`, `token`, `role` and the column `value`.
        value: What is shown; colours are symmetric around 0 (blue negative, red positive), NaN is hatched grey.
        first: Leave out tokens in front of this position.
        title: What is shown, and of which item.
        caption: What the table cannot tell: preset, model.

    Returns:
        The figure; tokens run down the side in the order of the prompt, each with the colour of its role.

    Raises:
        DataError: A column is missing, there are no rows, or a cell stands twice (several pairs or sites).
    """
    needed = ["layer", "position", "token", "role", value]
    missing = [column for column in needed if column not in table.columns]
    if missing or table.empty:
        raise DataError("table of a layer by token figure", expected=", ".join(needed), found=", ".join(table.columns))
    if table.duplicated(["layer", "position"]).any():
        raise DataError("a cell stands twice", expected="one pair or run, one site, no heads", fix="filter the table")
    shown = table[table["position"] >= first]
    wide = shown.pivot(index="position", columns="layer", values=value).sort_index()
    if len(wide) > _MOST_TOKENS:
        raise DataError(
            "too many tokens to write out", expected=f"at most {_MOST_TOKENS}", found=len(wide), fix="pass first="
        )
    labels = shown.drop_duplicates("position").set_index("position").loc[wide.index]
    figure, (axes,) = panels(
        1,
        height=0.9 + 0.145 * len(wide),
        title=title or f"{value} by layer and token",
        caption=caption_of("", caption, "Colours of tokens: roles. Hatched: does not exist"),
    )
    _draw(axes, wide.to_numpy(dtype=float), figure, value)
    _name_tokens(axes, labels)
    layers = [int(layer) for layer in wide.columns]
    step = max(1, len(layers) // 10)
    axes.set_xticks(range(0, len(layers), step), [str(layer) for layer in layers[::step]])
    axes.set_xlabel("layer (−1: embedding)" if layers[0] < 0 else "layer")
    return figure


def _draw(axes: Axes, values: np.ndarray, figure: Figure, label: str) -> None:
    largest = float(np.nanmax(np.abs(values))) if np.isfinite(values).any() else 1.0
    axes.set_facecolor("#e4e4e4")
    axes.patch.set_hatch("////")
    axes.patch.set_edgecolor("#c8c8c8")
    image = axes.imshow(
        np.ma.masked_invalid(values), aspect="auto", cmap="RdBu_r", vmin=-largest, vmax=largest, interpolation="nearest"
    )
    axes.grid(visible=False)
    bar = figure.colorbar(image, ax=axes, shrink=0.6, pad=0.02)
    bar.set_label(f"{label.replace('_', ' ')} (nats)" if "rank" not in label and not label.startswith("p_") else label)
    bar.outline.set_visible(False)


def _name_tokens(axes: Axes, labels: pd.DataFrame) -> None:
    names = [_written(token) for token in labels["token"]]
    axes.set_yticks(range(len(names)), names, fontsize=6.5, family="DejaVu Sans Mono")
    roles = [str(role) for role in labels["role"]]
    marked = [role for role in dict.fromkeys(roles) if role not in _QUIET]
    for text, role in zip(axes.get_yticklabels(), roles, strict=True):
        quiet = role in _QUIET
        text.set_color(GREY if quiet else look(role, marked.index(role)).color)
        text.set_fontweight("normal" if quiet else "bold")
    for number, role in enumerate(marked):
        inside = [row for row, one in enumerate(roles) if one == role]
        axes.text(
            1.0, inside[0], f" {role.replace('_', ' ')}", transform=axes.get_yaxis_transform(),
            fontsize=6, color=look(role, number).color, va="center", ha="right", alpha=0.9,
        )  # fmt: skip


def _written(token: object) -> str:
    """A token as it stands in the text; spaces and line breaks are made visible, long ones cut."""
    text = "" if token is None else str(token)
    shown = text.replace(" ", "·").replace("\n", "↵") or "∅"
    return shown if len(shown) <= 18 else shown[:17] + "…"
