"""Layers of a recorded run, replayed on some of its tokens for many variants at once.

Everything before a segment is the recorded run's; causal attention makes that exact. Several segments of one run can be
packed into one sequence: none sees another, and each sees the run's own tokens before its start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from latentkt.internals.layer_calls import CACHE_NAMES, LayerCall
from latentkt.internals.lean import is_lean
from latentkt.internals.lean_block import Span, lean_block
from latentkt.internals.recording import Recording

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from latentkt.models import ModelHandle

__all__ = ["Replay", "Suffix", "replayed"]


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


@dataclass(frozen=True, eq=False)
class Suffix:
    """The tokens of a run from one on, and what stands before them.

    Attributes:
        tokens: Packed tokens, ascending.
        lender: Another recorded run, whose keys and values stand right before the tokens; None for the run itself.
        n_lent: So many of them; before those, the run's own.
    """

    tokens: Int[Tensor, "token"]
    lender: Recording | None = None
    n_lent: int = 0

    @property
    def start(self) -> int:
        """The first token that is not the run's own."""
        return int(self.tokens[0]) - self.n_lent


class Replay:
    """Replays layers on packed suffixes of a recorded run.

    Args:
        handle: The model.
        recording: The run.
        suffixes: Packed side by side; each sees the run before its start, and itself.
        chunk_tokens: Rows of a matrix product inside a layer; bounds memory.

    Attributes:
        tokens: The packed tokens of all suffixes.
    """

    def __init__(
        self, handle: ModelHandle, recording: Recording, suffixes: Sequence[Suffix], *, chunk_tokens: int = 512
    ) -> None:
        self._layers, self._recording, device = handle.arch.layers, recording, handle.device
        self._lenders = [(one.lender, slice(one.start, one.start + one.n_lent)) for one in suffixes if one.lender]
        own = torch.cat([one.tokens for one in suffixes])
        self._n_before = max(one.start for one in suffixes)
        lent = [torch.arange(run.start, run.stop) for _, run in self._lenders]
        self.tokens, self._keys = own.to(device), torch.cat([torch.arange(self._n_before), *lent, own]).to(device)
        self._sees = self._seen(suffixes).to(device)
        self._at_once = max(1, chunk_tokens // len(own))
        self._masks: dict[int, Tensor] = {}
        self._angles: dict[int, tuple[Tensor, ...]] = {}

    def _seen(self, suffixes: Sequence[Suffix]) -> Tensor:
        """Which keys each token may see, causality apart: the run before its suffix, what was lent to that, itself."""
        number = torch.arange(len(suffixes))
        of_token = torch.repeat_interleave(number, torch.tensor([len(one.tokens) for one in suffixes]))
        of_lent = torch.repeat_interleave(number, torch.tensor([one.n_lent for one in suffixes]))
        starts = torch.tensor([one.start for one in suffixes])
        before = torch.arange(self._n_before)[None] < starts[of_token][:, None]
        return torch.cat([before, of_token[:, None] == torch.cat([of_lent, of_token])[None]], 1)

    def layer(self, index: int, h: Float[Tensor, "variant token d_model"]) -> Float[Tensor, "variant token d_model"]:
        """Apply layer `index` to the tokens of every variant."""
        parts = [replayed(index, part.flatten(0, 1).clone(), [(self, len(part))]) for part in h.split(self._at_once)]
        return torch.cat(parts).view(h.shape)

    def layer_at(
        self, index: int, h: Float[Tensor, "variant token d_model"], at: Int[Tensor, "reader"]
    ) -> Float[Tensor, "variant reader d_model"]:
        """Apply layer `index`, but give its output only at the tokens `at`: the others lend their keys and values."""
        if 2 * len(at) > len(self.tokens):
            return self.layer(index, h)[:, at]
        if self.is_lean(index):
            parts = [
                lean_block(self._layers[index], part.flatten(0, 1), [self.span(index, len(part), asked=at)])
                for part in h.split(self._at_once)
            ]
            return torch.cat(parts).view(len(h), len(at), -1)
        every = torch.arange(len(self.tokens), device=h.device)
        parts = []
        for part in h.split(self._at_once):
            prefix = _Prefix(*self._before(index), stop=True)
            try:
                self._call(index, part, every, prefix)
            except _Stop:
                assert prefix.seen is not None
                parts.append(self._call(index, part[:, at], at, _Whole(prefix.seen, len(at))))
            else:  # the layer did not use the cache that it was given
                return self.layer(index, h)[:, at]
        return torch.cat(parts)

    def is_lean(self, index: int) -> bool:
        """Whether a lean block stands in for layer `index`."""
        return is_lean(self._layers[index], self._recording.calls[index])

    def span(self, index: int, variants: int, *, asked: Int[Tensor, "reader"] | None = None) -> Span:
        """What a lean block has to know of the tokens of so many variants."""
        call = self._recording.calls[index]
        if id(call) not in self._angles:
            self._angles[id(call)] = tuple(angle[self.tokens] for angle in call.by_token["position_embeddings"])
        return Span(variants, self._angles[id(call)], self._mask(call), lambda: self._before(index), asked=asked)

    def call(self, index: int, h: Float[Tensor, "variant token d_model"]) -> Float[Tensor, "variant token d_model"]:
        """Layer `index` by the model's own module."""
        return self._call(index, h, torch.arange(len(self.tokens), device=h.device), _Prefix(*self._before(index)))

    def _before(self, index: int) -> tuple[Tensor, Tensor]:
        runs = [(self._recording, slice(self._n_before)), *self._lenders]
        keys = [run.keys[index][None, :, tokens] for run, tokens in runs]
        values = [run.values[index][None, :, tokens] for run, tokens in runs]
        return (keys[0], values[0]) if len(runs) == 1 else (torch.cat(keys, 2), torch.cat(values, 2))

    def _call(self, index: int, h: Tensor, at: Tensor, cache: Any) -> Tensor:
        call, tokens = self._recording.calls[index], self.tokens[at]
        arguments = {name: cache if name in CACHE_NAMES else value for name, value in call.constant.items()}
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


def replayed(
    index: int,
    rows: Float[Tensor, "row d_model"],
    blocks: Sequence[tuple[Replay, int]],
    head: Span | None = None,
) -> Float[Tensor, "row d_model"]:
    """Apply layer `index` to rows of one or several replays of a model.

    Args:
        index: The layer.
        rows: Replay by replay, variant by variant, token by token; they may be written over.
        blocks: The replays, each with its number of variants.
        head: What the first rows are, if they are no replay's; all blocks are lean then.
    """
    first = blocks[0][0]
    if head is not None or first.is_lean(index):
        spans = [replay.span(index, count) for replay, count in blocks]
        return lean_block(first._layers[index], rows, spans if head is None else [head, *spans])
    parts = rows.split([count * len(replay.tokens) for replay, count in blocks])
    done = [
        replay.call(index, part.view(count, -1, part.shape[-1])).flatten(0, 1)
        for (replay, count), part in zip(blocks, parts, strict=True)
    ]
    return done[0] if len(done) == 1 else torch.cat(done)


def _take(value: Any, tokens: Tensor) -> Any:
    if isinstance(value, tuple):
        return tuple(_take(part, tokens) for part in value)
    return value[tokens][None]
