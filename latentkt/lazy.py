"""Names of a package that are loaded when they are first used, so that importing the package stays light.

A package's `__init__` says where each public name lives, and hands the rest to `lazy.load`::

    _HOME = {"open_model": "opening", "ModelHandle": "handle"}
    __all__ = sorted(_HOME)


    def __getattr__(name: str) -> Any:
        return lazy.load(__name__, _HOME, name)
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

__all__ = ["load"]


def load(package: str, home: Mapping[str, str], name: str) -> Any:
    """The object `name` of `package`, from the submodule that `home` gives for it.

    Raises:
        AttributeError: The package has no such name.

    Example:
        >>> load("latentkt", {"LatentKTError": "errors"}, "LatentKTError").__name__
        'LatentKTError'
    """
    if name not in home:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{package}.{home[name]}"), name)
