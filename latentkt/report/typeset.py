"""Plain text to HTML with a printer's care: subscripts, minus signs, percent signs that stay with their number."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["typeset"]

_RULES = (
    (re.compile(r"\by_s\b"), "y<sub>s</sub>"),
    (re.compile(r"(?<![\w.−-])-(?=\d)"), "−"),
    (re.compile(r"(?<=\d) (?=%)"), "\u00a0"),
    (re.compile(r"(?<=\bp [=<≤]) (?=\d)"), "\u00a0"),
    (re.compile(r"(?<=\bp) (?=[=<≤]|&lt;)"), "\u00a0"),
)


def typeset(text: str) -> Markup:
    """Escape plain text and set it well.

    Example:
        >>> print(typeset("y_s & -0.5"))
        y<sub>s</sub> &amp; −0.5
    """
    from markupsafe import Markup, escape

    html = str(escape(text))
    for pattern, replacement in _RULES:
        html = pattern.sub(replacement, html)
    return Markup(html)
