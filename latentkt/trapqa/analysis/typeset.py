"""Tables as Markdown and LaTeX, from their layouts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from latentkt.trapqa.analysis.layouts import LAYOUTS, Column

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

__all__ = ["cells", "latex", "markdown"]

ABSENT = "–"
DECIMALS = {"rate": 2, "points": 2, "number": 2, "ratio": 2}
LATEX = {"&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_", "$": r"\$", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}"}
LATEX |= {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "–": "--",
    "−": "$-$",
    "<": "$<$",
    ">": "$>$",
    "*": "$^*$",
}


def cells(name: str, table: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Headings and formatted cells of a table.

    Args:
        name: A name of `LAYOUTS`.
        table: The table.
    """
    columns = LAYOUTS[name].columns
    rows = [[_cell(column, row) for column in columns] for row in table.to_dict("records")]
    return [column.heading for column in columns], rows


def markdown(name: str, table: pd.DataFrame) -> str:
    r"""The table in Markdown, with its title above and its note below.

    Example:
        >>> import pandas as pd
        >>> print(markdown("table6", pd.DataFrame({"question_id": ["a|b"], "family": ["awards"], "settings": [8]})))
        ### Table 6. Questions that every setting misses
        <BLANKLINE>
        | question | correct candidate | shortcut candidate | family | settings |
        | --- | --- | --- | --- | ---: |
        | a\|b | – | – | awards | 8 |
        <BLANKLINE>
    """
    headings, rows = cells(name, table)
    marks = ["---" if column.kind == "text" else "---:" for column in LAYOUTS[name].columns]
    body = [headings, marks, *([text.replace("|", "\\|") for text in row] for row in rows)]
    lines = [f"### {LAYOUTS[name].title}", "", *("| " + " | ".join(row) + " |" for row in body), ""]
    return "\n".join([*lines, *([LAYOUTS[name].note, ""] if LAYOUTS[name].note else [])])


def latex(name: str, table: pd.DataFrame) -> str:
    """The table in LaTeX (packages booktabs, and inputenc's or a modern engine's UTF-8)."""
    layout = LAYOUTS[name]
    headings, rows = cells(name, table)
    align = "".join("l" if column.kind == "text" else "r" for column in layout.columns)
    lines = [r"\begin{table}", r"\centering", rf"\begin{{tabular}}{{{align}}}", r"\toprule"]
    lines += [" & ".join(map(_escape, headings)) + r" \\", r"\midrule"]
    lines += [" & ".join(map(_escape, row)) + r" \\" for row in rows]
    caption = " ".join(part for part in (layout.title.rstrip(".") + ".", layout.note) if part)
    lines += [
        r"\bottomrule",
        r"\end{tabular}",
        rf"\caption{{{_escape(caption)}}}",
        rf"\label{{tab:{name}}}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    return "".join(LATEX.get(letter, letter) for letter in text)


def _cell(column: Column, row: Mapping[Any, Any]) -> str:
    value = row.get(column.key)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ABSENT
    if column.kind == "text":
        return str(value)
    if column.kind == "count":
        return f"{value:.0f}" if float(value).is_integer() else f"{value:.1f}"
    if column.kind == "p":
        return "< 0.0001" if value < 0.0001 else f"{value:.4f}"
    sign = "+" if column.kind == "points" else ""
    spec = f"{sign}.{DECIMALS[column.kind]}f"
    ends = [row.get(f"{column.key}_{end}", math.nan) for end in ("low", "high")]
    known = not any(end is None or math.isnan(end) for end in ends)
    return f"{value:{spec}}" + (f" [{ends[0]:{spec}}, {ends[1]:{spec}}]" if known else "")
