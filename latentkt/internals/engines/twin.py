"""A second model object on the same weights, for libraries that rebuild the model they are given."""

from __future__ import annotations

import copy
from typing import Any

from torch import nn

__all__ = ["twin"]


def twin(model: nn.Module) -> Any:
    """A copy of a model's modules that shares its parameters and buffers.

    Hooks, replaced modules and replaced methods of the copy do not touch the model; writing into a weight in place
    would.
    """
    shared = {id(tensor): tensor for tensor in [*model.parameters(), *model.buffers()]}
    return copy.deepcopy(model, shared)
