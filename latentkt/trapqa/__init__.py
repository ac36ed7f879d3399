"""Trap items: what they are, how they are read, and how they become prompts.

The names below are loaded when they are first used, so that `import latentkt.trapqa` stays light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latentkt import lazy

if TYPE_CHECKING:  # what type checkers and editors see
    from latentkt.trapqa.authoring import mark_item as mark_item
    from latentkt.trapqa.check import CheckReport as CheckReport
    from latentkt.trapqa.check import check_items as check_items
    from latentkt.trapqa.items import Candidate as Candidate
    from latentkt.trapqa.items import Control as Control
    from latentkt.trapqa.items import ItemSet as ItemSet
    from latentkt.trapqa.items import ProbeQuestion as ProbeQuestion
    from latentkt.trapqa.items import TrapItem as TrapItem
    from latentkt.trapqa.levels import LevelImport as LevelImport
    from latentkt.trapqa.levels import import_levels as import_levels
    from latentkt.trapqa.loading import builtin_items as builtin_items
    from latentkt.trapqa.loading import load_items as load_items
    from latentkt.trapqa.loading import save_items as save_items
    from latentkt.trapqa.rendering import Rendered as Rendered
    from latentkt.trapqa.rendering import own_condition as own_condition
    from latentkt.trapqa.rendering import render as render
    from latentkt.trapqa.rendering import render_given as render_given
    from latentkt.trapqa.rendering import render_probe as render_probe
    from latentkt.trapqa.templates import read_prompt_template as read_prompt_template

_HOME = {
    "Candidate": "items",
    "Control": "items",
    "ItemSet": "items",
    "ProbeQuestion": "items",
    "TrapItem": "items",
    "builtin_items": "loading",
    "load_items": "loading",
    "save_items": "loading",
    "Rendered": "rendering",
    "own_condition": "rendering",
    "read_prompt_template": "templates",
    "render": "rendering",
    "render_given": "rendering",
    "render_probe": "rendering",
    "mark_item": "authoring",
    "CheckReport": "check",
    "check_items": "check",
    "LevelImport": "levels",
    "import_levels": "levels",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOME, name)


def __dir__() -> list[str]:
    return __all__
