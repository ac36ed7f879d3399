"""Plain runs that go through a model beside the sweep that resumes them, in the same products.

Of a short prompt a plain run has few rows, and few rows make slow products. Here the base run and the source run climb
with the variants: each layer is given all of them at once, and what a variant needs of a run (its residual stream, its
keys and values) is there when the layer is reached. Runs that begin alike have their first tokens once. It stands in
for a run of the model only where all its blocks are lean, and where nobody has hung anything on the model itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from latentkt.internals.layer_calls import LayerCall, call_of_tokens, first_call
from latentkt.internals.lean import is_lean_block, is_lean_call, is_lean_model
from latentkt.internals.lean_block import Span, lean_block
from latentkt.internals.recording import Recording

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor

    from latentkt.internals.branches import Branches
    from latentkt.models import ModelHandle

__all__ = ["Growing", "grow"]


class Growing:
    """Runs on their way through the layers.

    Attributes:
        recordings: Of each run what has been reached of it; the rest is filled in layer by layer.
        rows: What has left the last layer that they went through, or enters the first.
    """

    def __init__(self, handle: ModelHandle, runs: Sequence[Branches], tree: _Tree, entered: Tensor, call: LayerCall):
        self._layers, self._call, self._at = handle.arch.layers, call, tree.at
        self.rows, self._done = entered, 0
        self._nothing = entered.new_empty(1, handle.n_kv_heads, 0, handle.d_head)
        self._keys: list[list[Tensor]] = [[] for _ in runs]
        self._values: list[list[Tensor]] = [[] for _ in runs]
        self.recordings = [self._recording(handle, number, run) for number, run in enumerate(runs)]
        self._keep_rows()

    def __len__(self) -> int:
        return len(self.rows)

    def _recording(self, handle: ModelHandle, number: int, run: Branches) -> Recording:
        at = self._at[number]
        by_token = {name: _chosen(value, at) for name, value in self._call.by_token.items()}
        call = LayerCall(self._call.mask[at][:, at], by_token, None, self._call.constant)
        resid = self.rows.new_empty(handle.n_layers + 1, len(at), handle.d_model)
        return Recording(run, resid, self._keys[number], self._values[number], [call] * handle.n_layers)

    def span(self) -> Span:
        """What a lean block has to know of `rows`; what it makes of them is for `rose`."""
        angles = self._call.by_token["position_embeddings"]
        return Span(1, angles, self._call.mask, lambda: (self._nothing, self._nothing), self._keep)

    def rose(self, rows: Float[Tensor, "row d_model"]) -> None:
        """What has left the layer that was next."""
        self.rows, self._done = rows, self._done + 1
        self._keep_rows()

    def rise(self) -> None:
        """Go through the next layer alone."""
        self.rose(lean_block(self._layers[self._done], self.rows, [self.span()]))

    def _keep(self, keys: Float[Tensor, "1 n_kv row d_head"], values: Float[Tensor, "1 n_kv row d_head"]) -> None:
        for at, kept_keys, kept_values in zip(self._at, self._keys, self._values, strict=True):
            kept_keys.append(keys[0].index_select(1, at))
            kept_values.append(values[0].index_select(1, at))

    def _keep_rows(self) -> None:
        for at, run in zip(self._at, self.recordings, strict=True):
            torch.index_select(self.rows, 0, at, out=run.resid[self._done])


class _Tree:
    """The tokens of several runs, those with which all begin only once.

    Attributes:
        ids: The token of each row.
        position: Its position in its plain sequence.
        sees: Which rows it may attend to.
        at: Of each run, the rows of its packed tokens.
    """

    ids: Int[Tensor, "row"]
    position: Int[Tensor, "row"]
    sees: Bool[Tensor, "row row"]

    def __init__(self, runs: Sequence[Branches]) -> None:
        ids: list[int] = []
        position: list[int] = []
        self.at: list[Tensor] = []
        for run in runs:
            shared = 0 if run is runs[0] else _alike(runs[0].prompt, run.prompt)
            own = torch.arange(len(ids), len(ids) + len(run.row) - shared)
            self.at.append(torch.cat([torch.arange(shared), own]))
            ids.extend(run.packed[shared:])
            position.extend(run.position[shared:].tolist())
        self.ids, self.position = torch.tensor(ids), torch.tensor(position)
        self.sees = torch.zeros(len(ids), len(ids), dtype=torch.bool)
        for at, run in zip(self.at, runs, strict=True):
            self.sees[at[:, None], at[None]] = torch.as_tensor(run.sees)


def _alike(one: Sequence[int], other: Sequence[int]) -> int:
    """With how many tokens two prompts begin alike."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _chosen(value: Any, at: Tensor) -> Any:
    return tuple(_chosen(part, at) for part in value) if isinstance(value, tuple) else value[at]


def grow(handle: ModelHandle, runs: Sequence[Branches]) -> Growing | None:
    """Plain runs at the model's first layer; None where they have to be run by the model itself.

    The model makes what its first layer is called with: embeddings, rotary angles and mask are its own.
    """
    layers = handle.arch.layers
    if handle.arch.cache_keyword is None or not is_lean_model(handle.model.base_model, len(layers)):
        return None
    if not all(map(is_lean_block, layers)):
        return None
    tree = _Tree(runs)
    mask = torch.zeros(tree.sees.shape, dtype=handle.dtype).masked_fill(~tree.sees, torch.finfo(handle.dtype).min)
    with torch.inference_mode():
        entered, found = first_call(handle, tree.ids, tree.position, mask)
        call = call_of_tokens(found, mask)
        if call is None or not is_lean_call(call):
            return None
        return Growing(handle, runs, tree, entered, call)  # what is kept of runs may not be written to
