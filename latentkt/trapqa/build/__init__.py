"""Construction: trap items from profiles of people and from word associations, with what was removed and why.

The names below are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latentkt import lazy

if TYPE_CHECKING:  # what type checkers and editors see
    from latentkt.trapqa.build.language import Failure as Failure
    from latentkt.trapqa.build.language import generate as generate
    from latentkt.trapqa.build.log import StageLog as StageLog
    from latentkt.trapqa.build.output import Source as Source
    from latentkt.trapqa.build.output import write_items as write_items

_HOME = {
    "Failure": "language",
    "Source": "output",
    "StageLog": "log",
    "generate": "language",
    "write_items": "output",
}
__all__ = list(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOME, name)
