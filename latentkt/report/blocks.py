"""What a section of the report is made of. All text is plain: the page escapes it."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING

from latentkt.plots.style import to_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Block", "Finding", "Grid", "Note", "Picture", "Section"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence about what a measurement says, computed from a table.

    Attributes:
        text: The sentence, with the number, its interval and what it rests on.
        found: True: an effect is there. False: it was looked for and is not distinguishable from none. None: a number
            that is neither, such as a description.
    """

    text: str
    found: bool | None = None


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure with words for those who do not see it.

    Attributes:
        svg: The figure as SVG text.
        alt: What it shows, with its main numbers.
        caption: How to read it.
    """

    svg: str
    alt: str
    caption: str
    kind: str = "picture"

    @classmethod
    def of(cls, figure: Figure, *, alt: str, caption: str) -> Picture:
        """From a matplotlib figure."""
        return cls(to_svg(figure), alt, caption)

    @property
    def source(self) -> str:
        """The figure as a data address, so that the page needs no other file."""
        return "data:image/svg+xml;base64," + base64.b64encode(self.svg.encode()).decode()


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of text.

    Attributes:
        columns: Headings.
        rows: Cells, already formatted.
        caption: What it lists.
        numeric: Which columns are numbers, set to the right.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str
    numeric: frozenset[str] = frozenset()
    kind: str = "grid"


@dataclass(frozen=True, slots=True)
class Note:
    """A paragraph: how something was measured, or a warning about what it does not show."""

    text: str
    kind: str = "note"


Block = Picture | Grid | Note


@dataclass(frozen=True, slots=True)
class Section:
    """One section of the report.

    Attributes:
        name: Anchor on the page, unique.
        title: Heading.
        intro: What was measured and how to read it, in one or two sentences.
        findings: Sentences; the page also collects them at its top.
        blocks: Pictures, grids and notes, in order.
    """

    name: str
    title: str
    intro: str
    findings: tuple[Finding, ...] = ()
    blocks: tuple[Block, ...] = ()
