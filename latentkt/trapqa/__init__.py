"""Trap items: what they are, how they are read, and how they become prompts.

The names below are loaded when they are first used, so that `import latentkt.trapqa` stays light.
"""

from __future__ import annotations

import importlib

_HOME = {
    "Candidate": "items",
    "Control": "items",
    "ItemSet": "items",
    "ProbeQuestion": "items",
    "TrapItem": "items",
    "Patterns": "patterns",
    "builtin_items": "loading",
    "load_items": "loading",
    "save_items": "loading",
    "Rendered": "rendering",
    "own_condition": "rendering",
    "read_prompt_template": "templates",
    "render": "rendering",
    "render_probe": "rendering",
    "mark_item": "authoring",
    "CheckReport": "check",
    "check_items": "check",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
