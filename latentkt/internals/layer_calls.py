"""What a model's layers are called with, by name, and told apart by what it depends on."""

from __future__ import annotations

import inspect
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from latentkt.models import ModelHandle

__all__ = ["CACHE_NAMES", "PASSED_ON", "LayerCall", "bound_arguments", "call_of_tokens", "first_call", "has_tensor"]

CACHE_NAMES = ("cache", "past_key_values", "layer_past", "past_key_value")
PASSED_ON = ("use_cache", "output_attentions")


@dataclass(frozen=True, eq=False)
class LayerCall:
    """What one layer was called with, on packed tokens.

    Attributes:
        mask: Additive, [query token, key token]: the model's own mask, and the branches apart.
        by_token: Arguments with one entry a token, [token, …] each, or tuples of such.
        alibi: Bias [head, 1, key token] where the model has one.
        constant: Arguments that do not depend on tokens; the cache stands here as None.
    """

    mask: Float[Tensor, "query key"]
    by_token: dict[str, Any]
    alibi: Tensor | None
    constant: dict[str, Any]


def bound_arguments(module: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """Arguments of a module's call, by name."""
    bound = dict(inspect.signature(module.forward).bind(*args, **kwargs).arguments)
    return {**{k: v for k, v in bound.items() if k != "kwargs"}, **bound.get("kwargs", {})}


def has_tensor(value: Any) -> bool:
    """Whether an argument is a tensor, or a tuple with one."""
    if isinstance(value, tuple):
        return any(map(has_tensor, value))
    return isinstance(value, torch.Tensor)


class _Reached(Exception):
    """Raised as soon as the first layer is called."""


def first_call(
    handle: ModelHandle,
    ids: Int[Tensor, "token"],
    position: Int[Tensor, "token"],
    mask: Float[Tensor, "token token"],
) -> tuple[Float[Tensor, "token d_model"], dict[str, Any]]:
    """What the model makes of packed tokens before its first layer: their vectors, and the layer's other arguments.

    Args:
        handle: The model; takes positions and a key/value cache.
        ids: Token ids.
        position: Their positions in their plain sequences.
        mask: Additive; which token sees which.
    """
    from transformers import DynamicCache

    seen: dict[str, Any] = {}

    def reached(module: Any, args: Any, kwargs: Any) -> None:
        seen.update(bound_arguments(module, args, kwargs))
        raise _Reached

    hook = handle.arch.layers[0].register_forward_pre_hook(reached, with_kwargs=True)
    tokens = {"input_ids": ids[None], "position_ids": position[None], "attention_mask": mask[None, None]}
    with suppress(_Reached):
        try:
            handle.model.base_model(**tokens, use_cache=True, **{str(handle.arch.cache_keyword): DynamicCache()})
        finally:
            hook.remove()
    return seen.pop("hidden_states")[0], seen


def call_of_tokens(arguments: dict[str, Any], mask: Float[Tensor, "token token"]) -> LayerCall | None:
    """A layer's arguments on packed tokens, [1, token, …] each; None where one is of another kind."""
    by_token: dict[str, Any] = {}
    constant: dict[str, Any] = {}
    for name, value in arguments.items():
        if name in CACHE_NAMES:
            constant[name] = None
        elif name in PASSED_ON or not has_tensor(value):
            constant[name] = value
        elif name != "attention_mask":
            by_token[name] = _without_row(value, len(mask))
    if not set(CACHE_NAMES) & set(arguments) or None in by_token.values():
        return None
    return LayerCall(mask, by_token, None, constant)


def _without_row(value: Any, n_tokens: int) -> Any:
    """[1, token, …] -> [token, …], in tuples too; None for anything else."""
    if isinstance(value, tuple):
        parts = tuple(_without_row(part, n_tokens) for part in value)
        return None if any(part is None for part in parts) else parts
    fits = isinstance(value, torch.Tensor) and value.ndim >= 2 and value.shape[:2] == (1, n_tokens)
    return value[0] if fits else None
