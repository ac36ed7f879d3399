"""How figures look: one palette that colour-blind readers can tell apart, one width, one place for title and caption.

The palette is Okabe and Ito's (2008). What a colour means is fixed for the whole library: vermilion the item and the
shortcut's side, blue the control and the constraint's side. Lines also differ in marker and dash, so that nothing rests
on colour alone. Figures are narrow: scaled to a phone they can still be read, and two stand side by side on a desk.
"""

from __future__ import annotations

import functools
import io
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

import matplotlib as mpl

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "GREY",
    "INK",
    "LOOKS",
    "TITLE",
    "Y_CORRECT",
    "Y_SHORTCUT",
    "Look",
    "look",
    "panels",
    "styled",
    "to_png",
    "to_svg",
]

P = ParamSpec("P")
R = TypeVar("R")

INK, GREY, PALE = "#222222", "#6b6b6b", "#d9d9d9"
BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY = "#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9"
Y_CORRECT, Y_SHORTCUT = "$y^*$", "$y_s$"
WIDTH = 4.4  # inches
CAPTION_LETTERS = 72

TITLE: dict[str, Any] = {"x": 0.01, "ha": "left", "fontsize": 10, "fontweight": "bold", "color": INK}

RC: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.titlecolor": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#ececec",
    "grid.linewidth": 0.8,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.6,
    "lines.markersize": 4,
    "figure.facecolor": "white",
    "svg.fonttype": "path",
    "svg.hashsalt": "latentkt",
}


class Look(NamedTuple):
    """How one series is drawn."""

    color: str
    marker: str
    dash: str


LOOKS: dict[str, Look] = {
    "item": Look(VERMILION, "o", "-"),
    "control": Look(BLUE, "s", "--"),
    "neutral": Look(GREY, "^", ":"),
    "scientist": Look(PURPLE, "o", "-"),
    "action": Look(GREEN, "s", "--"),
    "shortcut": Look(VERMILION, "o", "-"),
    "constraint": Look(BLUE, "s", "--"),
    "last": Look(GREEN, "^", "-."),
    "probe": Look(BLUE, "o", "-"),
    "bag": Look(ORANGE, "s", "--"),
    "random_init": Look(PURPLE, "D", ":"),
    "control_task": Look(GREY, "^", "-."),
}
_SPARE = [Look(PURPLE, "D", ":"), Look(SKY, "v", "-"), Look(ORANGE, "P", "--"), Look(GREY, "X", "-.")]


def look(name: str, position: int = 0) -> Look:
    """The look of a named series; a name that has none of its own takes a spare one by its position."""
    return LOOKS.get(name, _SPARE[position % len(_SPARE)])


def styled(function: Callable[P, R]) -> Callable[P, R]:
    """Run a figure function under the library's style, and leave the user's settings as they were."""

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with mpl.rc_context(RC):
            return function(*args, **kwargs)

    return wrapped


def panels(
    count: int, *, height: float, title: str, caption: str, sharex: bool = True, sharey: bool = False
) -> tuple[Figure, list[Axes]]:
    """A figure of `count` panels one above the other.

    Args:
        count: Panels.
        height: Height of each, in inches.
        title: What the figure shows, set above.
        caption: Items, preset and meaning of the intervals, set below and wrapped.
        sharex: One x axis for all panels.
        sharey: One y axis for all panels.
    """
    from matplotlib.figure import Figure

    lines = textwrap.wrap(caption, CAPTION_LETTERS)
    extra = 0.55 + 0.16 * len(lines)
    figure = Figure(figsize=(WIDTH, height * count + extra), layout="constrained")
    axes = figure.subplots(count, 1, sharex=sharex, sharey=sharey, squeeze=False)[:, 0]
    figure.suptitle(title, **TITLE)
    figure.supxlabel("\n".join(lines), x=0.01, ha="left", fontsize=8, color=GREY)
    return figure, list(axes)


def to_svg(figure: Figure) -> str:
    """The figure as SVG text; letters are outlines, so it looks the same wherever it is opened."""
    buffer = io.StringIO()
    with mpl.rc_context(RC):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def to_png(figure: Figure, *, dpi: int = 200) -> bytes:
    """The figure as PNG."""
    buffer = io.BytesIO()
    with mpl.rc_context(RC):
        figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": None})
    return buffer.getvalue()
