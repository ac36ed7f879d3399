"""One forward pass of a prompt with its two answers, kept so that it can be resumed from any layer.

The pass runs the model's own modules on the two plain sequences. What each layer was called with (mask, rotary angles,
ALiBi) is recorded there and later gathered at the tokens that are replayed. So sliding windows, padding and position
schemes are what the model made them, and nothing of an architecture is written twice.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from latentkt.errors import ModelRefusedError
from latentkt.internals.branches import Branches

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from latentkt.models import ModelHandle

__all__ = ["Recording", "record"]

_CACHE_NAMES = ("cache", "past_key_values", "layer_past", "past_key_value")
_PASSED_ON = ("use_cache", "output_attentions", "hidden_states")


@dataclass(frozen=True)
class Recording:
    """Activations and call arguments of one run.

    Attributes:
        branches: The layout of the tokens.
        resid: Residual stream on packed tokens: entry 0 enters layer 0, entry l + 1 leaves layer l.
        keys: Per layer the keys on packed tokens, [n_kv, token, d_head].
        values: Per layer the values, likewise.
        calls: Per layer the arguments of its call, on the two plain sequences.
    """

    branches: Branches
    resid: Float[Tensor, "layer_plus_1 token d_model"]
    keys: Sequence[Float[Tensor, "n_kv token d_head"]]
    values: Sequence[Float[Tensor, "n_kv token d_head"]]
    calls: Sequence[dict[str, Any]]


def _bind(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    bound = inspect.signature(module.forward).bind(*args, **kwargs)
    arguments = dict(bound.arguments)
    arguments.update(arguments.pop("kwargs", {}))
    return arguments


def record(handle: ModelHandle, branches: Branches) -> Recording:
    """Run the prompt with both answers once and keep what a resumed run needs.

    Args:
        handle: The model, opened and proved.
        branches: The prompt and its two answers.

    Returns:
        The recording, on the handle's device and in its dtype.
    """
    from transformers import DynamicCache

    layers = handle.arch.layers
    calls: list[dict[str, Any]] = [{} for _ in layers]
    outputs: list[Tensor] = [torch.empty(0) for _ in layers]
    hooks = []
    for index, layer in enumerate(layers):

        def before(module: Any, args: Any, kwargs: Any, index: int = index) -> None:
            calls[index] = _bind(module, args, kwargs)

        def after(module: Any, args: Any, output: Any, index: int = index) -> None:
            outputs[index] = output[0] if isinstance(output, tuple) else output

        hooks.append(layer.register_forward_pre_hook(before, with_kwargs=True))
        hooks.append(layer.register_forward_hook(after))
    longest = max(map(len, branches.sequences))
    pad = handle.tokenizer.pad_token_id or 0
    ids = torch.tensor([list(s) + [pad] * (longest - len(s)) for s in branches.sequences], device=handle.device)
    mask = torch.tensor([[1] * len(s) + [0] * (longest - len(s)) for s in branches.sequences], device=handle.device)
    cache = DynamicCache()  # without the config: a sliding window's cache would forget what a replay needs
    arguments = {**handle.inputs(ids, mask), "use_cache": True, handle.arch.cache_keyword: cache}
    if "logits_to_keep" in inspect.signature(handle.model.forward).parameters:
        arguments["logits_to_keep"] = 1  # the answers are scored from the residual stream
    try:
        with torch.inference_mode():
            handle.model(**arguments)
    finally:
        for hook in hooks:
            hook.remove()
    row, position = torch.as_tensor(branches.row), torch.as_tensor(branches.position)

    def pack(x: Tensor) -> Tensor:  # [row, position, …] -> [token, …]
        return x[row, position]

    resid = torch.stack([pack(calls[0]["hidden_states"]), *map(pack, outputs)])
    keys = [pack(layer.keys.transpose(1, 2)).transpose(0, 1) for layer in cache.layers]
    values = [pack(layer.values.transpose(1, 2)).transpose(0, 1) for layer in cache.layers]
    for call in calls:
        call.pop("hidden_states")
    return Recording(branches=branches, resid=resid, keys=keys, values=values, calls=calls)


class _Prefix:
    """Stands in for a key–value cache: puts the base run's keys and values before the replayed ones."""

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        self.keys, self.values = keys, values

    def update(self, keys: Tensor, values: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        batch = keys.shape[0]
        return (
            torch.cat([self.keys.expand(batch, -1, -1, -1), keys], dim=2),
            torch.cat([self.values.expand(batch, -1, -1, -1), values], dim=2),
        )

    def get_seq_length(self, *_: Any) -> int:
        return int(self.keys.shape[2])


class Suffix:
    """Replays layers of a recorded run on its tokens from prompt position `start` on, for many variants at once.

    Everything before `start` is the recorded run's; causal attention makes that exact.
    """

    def __init__(self, handle: ModelHandle, recording: Recording, start: int, *, chunk_tokens: int = 512) -> None:
        self._layers = handle.arch.layers
        self._recording = recording
        branches = recording.branches
        self.tokens = np.arange(start, len(branches.row))
        self._start = start
        self._chunk = max(1, chunk_tokens // len(self.tokens))
        self._sees = torch.as_tensor(branches.sees[self.tokens])
        self._row = torch.as_tensor(branches.row)
        self._position = torch.as_tensor(branches.position)

    def layer(self, index: int, h: Float[Tensor, "variant token d_model"]) -> Float[Tensor, "variant token d_model"]:
        """Apply layer `index` to the suffix of every variant."""
        arguments = self._arguments(index, h)
        parts = [self._call(index, part, arguments) for part in h.split(self._chunk)]
        return torch.cat(parts)

    def _call(self, index: int, h: Tensor, arguments: dict[str, Any]) -> Tensor:
        if "alibi" in arguments:
            alibi = arguments["alibi"].repeat(h.shape[0], 1, 1)
            arguments = {**arguments, "alibi": alibi}
        output = self._layers[index](h, **arguments)
        return output[0] if isinstance(output, tuple) else output

    def _arguments(self, index: int, h: Tensor) -> dict[str, Any]:
        recorded, recording = self._recording.calls[index], self._recording
        prefix = _Prefix(recording.keys[index][None, :, : self._start], recording.values[index][None, :, : self._start])
        made: dict[str, Any] = {}
        for name, value in recorded.items():
            if name in _CACHE_NAMES:
                made[name] = prefix
            elif name == "attention_mask":
                made[name] = self._mask(value, h.dtype)
            elif name == "alibi":
                made[name] = self._alibi(value)
            elif name in _PASSED_ON or not _has_tensor(value):
                made[name] = value
            else:
                made[name] = self._gather(index, name, value)
        if not set(_CACHE_NAMES) & set(recorded):
            raise ModelRefusedError(
                f"layer {index} cannot be replayed: it takes no key–value cache",
                expected=f"an argument among {_CACHE_NAMES}",
                found=sorted(recorded),
                fix="use engine='reference'",
            )
        return made

    def _gather(self, index: int, name: str, value: Any) -> Any:
        """Take the suffix tokens of a tensor [row or 1, position, …], or of a tuple of such."""
        if isinstance(value, tuple):
            return tuple(self._gather(index, name, part) for part in value)
        length = max(map(len, self._recording.branches.sequences))
        if value.ndim < 2 or value.shape[1] != length or value.shape[0] not in (1, 2):
            raise ModelRefusedError(
                f"layer {index} cannot be replayed: argument {name!r} has a shape that is not understood",
                expected=f"[1 or 2, {length}, …]",
                found=list(value.shape),
                fix="use engine='reference'",
            )
        row = self._row[self.tokens] if value.shape[0] == 2 else torch.zeros(len(self.tokens), dtype=torch.long)
        return value[row, self._position[self.tokens]][None]

    def _mask(self, mask: Tensor | None, dtype: torch.dtype) -> Tensor:
        """Additive mask [1, 1, query, key] over all packed tokens: the model's own, and the branches apart."""
        floor = torch.finfo(dtype).min
        allowed = torch.where(self._sees, 0.0, floor).to(dtype)
        if mask is None:
            return allowed[None, None]
        row = self._row[self.tokens]
        own = mask[row if mask.shape[0] == 2 else torch.zeros_like(row), 0]  # [query, position, position]
        own = own[torch.arange(len(row)), self._position[self.tokens]][:, self._position]  # [query, key]
        if own.dtype == torch.bool:
            own = torch.where(own, 0.0, floor)
        return torch.where(self._sees, own.to(dtype), floor)[None, None]

    def _alibi(self, alibi: Tensor) -> Tensor:
        """ALiBi [row * head, 1, position] at the packed keys; every row holds the same slopes, the longest all positions."""
        lengths = list(map(len, self._recording.branches.sequences))
        heads = alibi.shape[0] // len(lengths)
        longest = lengths.index(max(lengths))
        return alibi[longest * heads : (longest + 1) * heads][..., self._position]


def _has_tensor(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(map(_has_tensor, value))
    return isinstance(value, torch.Tensor)
