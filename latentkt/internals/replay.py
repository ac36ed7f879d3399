"""Layers of a recorded run, replayed on some of its tokens for many variants at once.

Everything before a segment is the recorded run's; causal attention makes that exact. Several segments of one run can be
packed into one sequence: none sees another, and each sees the run's own tokens before its start.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from latentkt.internals.lean import is_lean, lean_block
from latentkt.internals.recording import CACHE_NAMES, LayerCall, Recording

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from latentkt.models import ModelHandle

__all__ = ["Replay"]


class _Stop(Exception):
    """Raised as soon as the keys and values that were wanted are there."""


class _Prefix:
    """Stands in for a key–value cache: puts the base run's keys and values before the replayed ones."""

    def __init__(self, keys: Tensor, values: Tensor, *, stop: bool = False) -> None:
        self.keys, self.values, self.stop = keys, values, stop
        self.seen: tuple[Tensor, Tensor] | None = None

    def update(self, keys: Tensor, values: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        batch = keys.shape[0]
        self.seen = (
            torch.cat([self.keys.expand(batch, -1, -1, -1), keys], dim=2),
            torch.cat([self.values.expand(batch, -1, -1, -1), values], dim=2),
        )
        if self.stop:
            raise _Stop
        return self.seen

    def get_seq_length(self, *_: Any) -> int:
        return int(self.keys.shape[2])


class _Whole:
    """Stands in for a cache that holds the keys and values of all tokens already."""

    def __init__(self, whole: tuple[Tensor, Tensor], n_new: int) -> None:
        self._whole, self._before = whole, int(whole[0].shape[2]) - n_new

    def update(self, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        return self._whole

    def get_seq_length(self, *_: Any) -> int:
        return self._before


class Replay:
    """Replays layers on packed segments of a recorded run.

    Args:
        handle: The model.
        recording: The run.
        segments: Packed tokens of each segment, ascending; a segment sees the run before its first token.
        chunk_tokens: Rows of a matrix product inside a layer; bounds memory.

    Attributes:
        tokens: The packed tokens of all segments.
        at_once: Variants that go through a layer together.
    """

    def __init__(
        self,
        handle: ModelHandle,
        recording: Recording,
        segments: Sequence[Int[Tensor, "token"]],
        *,
        chunk_tokens: int = 512,
    ) -> None:
        self._layers, self._recording = handle.arch.layers, recording
        device = handle.device
        self.tokens = torch.cat(list(segments)).to(device)
        lengths = torch.tensor([len(segment) for segment in segments])
        starts = torch.tensor([int(segment[0]) for segment in segments])
        self._n_before = int(starts.max())
        before = torch.arange(self._n_before)
        self._keys = torch.cat([before.to(device), self.tokens])
        number = torch.repeat_interleave(torch.arange(len(segments)), lengths)
        self._sees = torch.cat([before[None] < starts[number][:, None], number[:, None] == number[None]], 1).to(device)
        self.at_once = max(1, chunk_tokens // len(self.tokens))
        self._masks: dict[int, Tensor] = {}

    def layer(self, index: int, h: Float[Tensor, "variant token d_model"]) -> Float[Tensor, "variant token d_model"]:
        """Apply layer `index` to the tokens of every variant."""
        call, before = self._recording.calls[index], self._before(index)
        every = torch.arange(len(self.tokens), device=h.device)
        parts = [self._call(index, part, call, every, _Prefix(*before)) for part in h.split(self.at_once)]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def layer_at(
        self, index: int, h: Float[Tensor, "variant token d_model"], at: Int[Tensor, "reader"]
    ) -> Float[Tensor, "variant reader d_model"]:
        """Apply layer `index`, but give its output only at the tokens `at`: the others lend their keys and values."""
        if 2 * len(at) > len(self.tokens):
            return self.layer(index, h)[:, at]
        call, before = self._recording.calls[index], self._before(index)
        every = torch.arange(len(self.tokens), device=h.device)
        parts = []
        for part in h.split(self.at_once):
            prefix = _Prefix(*before, stop=True)
            try:
                self._call(index, part, call, every, prefix)
            except _Stop:
                assert prefix.seen is not None
                parts.append(self._call(index, part[:, at], call, at, _Whole(prefix.seen, len(at))))
            else:  # the layer did not use the cache that it was given
                return self.layer(index, h)[:, at]
        return torch.cat(parts)

    def _before(self, index: int) -> tuple[Tensor, Tensor]:
        keys, values = self._recording.keys[index], self._recording.values[index]
        return keys[None, :, : self._n_before], values[None, :, : self._n_before]

    def _call(self, index: int, h: Tensor, call: LayerCall, at: Tensor, cache: Any) -> Tensor:
        if isinstance(cache, _Prefix) and not cache.stop and is_lean(self._layers[index], call):
            angles = _take(call.by_token["position_embeddings"], self.tokens[at])
            mask = self._mask(call)[at][None, None]
            return lean_block(self._layers[index], h, angles, mask, (cache.keys, cache.values))
        arguments = {name: cache if name in CACHE_NAMES else value for name, value in call.constant.items()}
        tokens = self.tokens[at]
        arguments |= {name: _take(value, tokens) for name, value in call.by_token.items()}
        arguments["attention_mask"] = self._mask(call)[at][None, None]
        if call.alibi is not None:
            arguments["alibi"] = call.alibi[..., self._keys].repeat(h.shape[0], 1, 1)
        output = self._layers[index](h, **arguments)
        return output[0] if isinstance(output, tuple) else output

    def _mask(self, call: LayerCall) -> Tensor:
        key = id(call.mask)
        if key not in self._masks:
            own = call.mask[self.tokens][:, self._keys]
            self._masks[key] = own.masked_fill(~self._sees, torch.finfo(own.dtype).min)
        return self._masks[key]


def _take(value: Any, tokens: Tensor) -> Any:
    if isinstance(value, tuple):
        return tuple(_take(part, tokens) for part in value)
    return value[tokens][None]
