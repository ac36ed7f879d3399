"""One forward pass of a prompt with its two answers, kept so that it can be resumed from any layer.

The model's own modules run the prompt once, and then both answers on its keys and values. What each layer was called
with (mask, rotary angles, ALiBi) is recorded there and laid out on the packed tokens. So sliding windows, padding and
position schemes are what the model made them, and nothing of an architecture is written twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from latentkt.errors import ModelRefusedError
from latentkt.internals.branches import Branches
from latentkt.internals.layer_calls import CACHE_NAMES, PASSED_ON, LayerCall, bound_arguments, has_tensor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jaxtyping import Float
    from torch import Tensor

    from latentkt.models import ModelHandle

__all__ = ["Recording", "is_stretch", "record", "record_together", "stretch"]


@dataclass(frozen=True, eq=False)
class Recording:
    """Activations and call arguments of one run.

    Attributes:
        branches: The layout of the tokens.
        resid: Residual stream on packed tokens: entry 0 enters layer 0, entry l + 1 leaves layer l.
        keys: Per layer the keys on packed tokens, [n_kv, token, d_head].
        values: Per layer the values, likewise.
        calls: Per layer the arguments of its call.
    """

    branches: Branches
    resid: Float[Tensor, "layer_plus_1 token d_model"]
    keys: Sequence[Float[Tensor, "n_kv token d_head"]]
    values: Sequence[Float[Tensor, "n_kv token d_head"]]
    calls: Sequence[LayerCall]


def stretch(tokens: Sequence[int]) -> slice | list[int]:
    """Tokens as an index: a slice, which makes no copy, where they follow one another."""
    first = tokens[0]
    return slice(first, first + len(tokens)) if is_stretch(tokens) else list(tokens)


def is_stretch(tokens: Sequence[int]) -> bool:
    """Whether each token is the one behind the one before it."""
    return list(tokens) == list(range(tokens[0], tokens[0] + len(tokens)))


@dataclass(frozen=True, eq=False)
class _Pass:
    """One call of the model: per layer its arguments and its output."""

    calls: list[dict[str, Any]]
    outputs: list[Tensor]

    def resid(self, entry: int) -> Tensor:
        return self.calls[0]["hidden_states"] if entry == 0 else self.outputs[entry - 1]

    def part(self, number: int, count: int) -> _Pass:
        """Part `number` of the `count` equal parts that the rows are made of."""
        n_rows = self.outputs[0].shape[0]
        chosen = slice(number * n_rows // count, (number + 1) * n_rows // count)
        calls = [{name: _rows(name, value, chosen, n_rows) for name, value in call.items()} for call in self.calls]
        return _Pass(calls, [output[chosen] for output in self.outputs])


def _rows(name: str, value: Any, chosen: slice, n_rows: int) -> Any:
    """The chosen rows of an argument; what all rows share is left as it is."""
    if isinstance(value, tuple):
        return tuple(_rows(name, one, chosen, n_rows) for one in value)
    if not isinstance(value, torch.Tensor) or value.ndim == 0:
        return value
    if name == "alibi":  # [rows * head, 1, position]
        return value.unflatten(0, (n_rows, -1))[chosen].flatten(0, 1)
    return value[chosen] if value.shape[0] == n_rows else value


def record(handle: ModelHandle, branches: Branches) -> Recording:
    """Run the prompt once, then both answers behind it, and keep what a resumed run needs.

    Args:
        handle: The model, opened and proved.
        branches: The prompt and its two answers.

    Returns:
        The recording, on the handle's device and in its dtype.

    Raises:
        ModelRefusedError: A layer's call is of a kind that cannot be replayed.
    """
    return record_together(handle, [branches])[0]


def record_together(handle: ModelHandle, runs: Sequence[Branches]) -> list[Recording]:
    """`record` of several runs in one batch; their prompts are of one length, and their answers of the same lengths."""
    from transformers import DynamicCache

    cache = DynamicCache()  # without the config: a sliding window's cache would forget what a replay needs
    n_prompt = runs[0].n_prompt
    tails = [sequence[n_prompt:] for run in runs for sequence in run.sequences]
    longest = max(map(len, tails))
    with torch.inference_mode():
        ids = torch.tensor([run.prompt for run in runs])
        passes = [_run(handle, ids, torch.ones_like(ids), cache)]
        if longest:
            cache.batch_repeat_interleave(2)
            ids = torch.tensor([[*tail, *[0] * (longest - len(tail))] for tail in tails])
            mask = torch.tensor([[1] * (n_prompt + len(tail)) + [0] * (longest - len(tail)) for tail in tails])
            passes.append(_run(handle, ids, mask, cache))
        count = len(runs)
        return [
            _recording(handle, run, [one.part(number, count) for one in passes], cache, number / count)
            for number, run in enumerate(runs)
        ]


def _recording(handle: ModelHandle, branches: Branches, passes: list[_Pass], cache: Any, share: float) -> Recording:
    """One run of a batch; its rows begin at the given share of the cache's."""
    layout = _Layout(handle, branches)
    position = layout.position

    def pack(x: Tensor) -> Tensor:  # [row, n_kv, position, d] -> [n_kv, token, d]
        first = round(share * x.shape[0])
        own = x[layout.row + first, :, position] if len(passes) == 2 else x[first].transpose(0, 1)
        return own.transpose(0, 1).contiguous()

    resid = [layout.pack([one.resid(entry) for one in passes]) for entry in range(handle.n_layers + 1)]
    return Recording(
        branches=branches,
        resid=torch.stack(resid),
        keys=[pack(layer.keys) for layer in cache.layers],
        values=[pack(layer.values) for layer in cache.layers],
        calls=[layout.call(index, [one.calls[index] for one in passes]) for index in range(handle.n_layers)],
    )


def _run(handle: ModelHandle, ids: Tensor, mask: Tensor, cache: Any) -> _Pass:
    if handle.arch.cache_keyword is None:
        raise _refused(handle, "the model takes no key/value cache")
    arguments = {**handle.inputs(ids, mask), "use_cache": True, handle.arch.cache_keyword: cache}
    with _watched(handle) as seen:
        handle.model.base_model(**arguments)  # the answers are scored from the residual stream
    return seen


@contextmanager
def _watched(handle: ModelHandle) -> Iterator[_Pass]:
    layers = handle.arch.layers
    seen = _Pass([{} for _ in layers], [torch.empty(0) for _ in layers])
    hooks = []

    def watch(index: int, layer: torch.nn.Module) -> None:
        def before(module: Any, args: Any, kwargs: Any) -> None:
            seen.calls[index] = bound_arguments(module, args, kwargs)

        def after(module: Any, args: Any, output: Any) -> None:
            seen.outputs[index] = output[0] if isinstance(output, tuple) else output

        hooks.append(layer.register_forward_pre_hook(before, with_kwargs=True))
        hooks.append(layer.register_forward_hook(after))

    try:
        for index, layer in enumerate(layers):
            watch(index, layer)
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


class _Layout:
    """Lays the arguments of the prompt's pass and of the answers' pass out on packed tokens."""

    def __init__(self, handle: ModelHandle, branches: Branches) -> None:
        self._handle, device = handle, handle.device
        self.row = torch.as_tensor(branches.row, device=device)
        self.position = torch.as_tensor(branches.position, device=device)
        self._sees = torch.as_tensor(branches.sees, device=device)
        self._n_prompt = branches.n_prompt
        self._masks: dict[tuple[int, ...], Tensor] = {}

    def pack(self, parts: list[Tensor]) -> Tensor:
        """[1, P, …] of the prompt and [2 or 1, A, …] of the answers -> [token, …]."""
        first = parts[0][0]
        if len(parts) == 1:
            return first
        row, place = self.row[self._n_prompt :], self.position[self._n_prompt :] - self._n_prompt
        return torch.cat([first, parts[1][row if parts[1].shape[0] == 2 else torch.zeros_like(row), place]])

    def call(self, index: int, calls: list[dict[str, Any]]) -> LayerCall:
        if not set(CACHE_NAMES) & set(calls[0]):
            raise _refused(self._handle, f"layer {index} takes no key/value cache")
        by_token: dict[str, Any] = {}
        constant: dict[str, Any] = {}
        alibi = None
        for name, value in calls[0].items():
            if name in ("hidden_states", "attention_mask"):
                continue
            if name == "alibi":
                alibi = self._alibi(calls[-1]["alibi"])
            elif name in CACHE_NAMES:
                constant[name] = None
            elif name in PASSED_ON or not has_tensor(value):
                constant[name] = value
            else:
                by_token[name] = self._gather(index, name, [call[name] for call in calls])
        mask = self._mask([call.get("attention_mask") for call in calls])
        return LayerCall(mask, by_token, alibi, constant)

    def _gather(self, index: int, name: str, parts: list[Any]) -> Any:
        if isinstance(parts[0], tuple):
            return tuple(self._gather(index, name, list(one)) for one in zip(*parts, strict=True))
        n_prompt = self._n_prompt
        if parts[0].ndim < 2 or parts[0].shape[:2] != (1, n_prompt):
            raise _refused(self._handle, f"argument {name!r} of layer {index} has shape {list(parts[0].shape)}")
        return self.pack(parts)

    def _mask(self, parts: list[Tensor | None]) -> Tensor:
        key = tuple(map(id, parts))  # layers share their masks
        if key not in self._masks:
            self._masks[key] = self._packed_mask(parts)
        return self._masks[key]

    def _packed_mask(self, parts: list[Tensor | None]) -> Tensor:
        dtype = self._handle.dtype
        floor = torch.finfo(dtype).min
        own = torch.zeros(self._sees.shape, dtype=dtype, device=self._sees.device)
        prompt = slice(self._n_prompt)
        if parts[0] is not None:
            own[prompt, prompt] = _additive(parts[0][0, 0], dtype)[:, prompt]
        if len(parts) == 2 and parts[1] is not None:
            rest = slice(self._n_prompt, None)
            row, place = self.row[rest], self.position[rest] - self._n_prompt
            picked = parts[1][row if parts[1].shape[0] == 2 else torch.zeros_like(row), 0, place]
            own[rest] = _additive(picked, dtype)[:, self.position]
        return torch.where(self._sees, own, floor)

    def _alibi(self, alibi: Tensor) -> Tensor:
        """[rows * head, 1, position] -> [head, 1, token]."""
        heads = self._handle.n_heads
        by_row = alibi.reshape(-1, heads, alibi.shape[-1])
        row = self.row if by_row.shape[0] == 2 else torch.zeros_like(self.row)
        return by_row[row, :, self.position].T[:, None]


def _additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    if mask.dtype == torch.bool:
        return torch.where(mask, 0.0, torch.finfo(dtype).min).to(dtype)
    return mask.to(dtype)


def _refused(handle: ModelHandle, why: str) -> ModelRefusedError:
    return ModelRefusedError(
        f"runs of model {handle.name!r} cannot be resumed: {why}",
        expected="layers that are called with a key/value cache and arguments [1, position, …]",
        fix="use engine='reference'",
    )
