"""`latentkt trapqa pairs|questions|associations|scenarios`: make trap items, stage by stage."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Actions = argparse._SubParsersAction[argparse.ArgumentParser]

__all__ = ["RUN", "configure"]


def configure(actions: Actions) -> None:
    """Add the stages."""


RUN: dict[str, Callable[[argparse.Namespace], int]] = {}
"""Stage -> what runs it; each returns the exit code."""
