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
from latentkt.internals.lean import Span, is_lean_block, is_lean_call, is_lean_model, lean_block
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
    """

    def __init__(self, handle: ModelHandle, runs: Sequence[Branches], tree: _Tree, entered: Tensor, call: LayerCall):
        self._layers, self._call, self._tree = handle.arch.layers, call, tree
        self._rows, self._done = entered, 0
        self._nothing = entered.new_empty(1, handle.n_kv_heads, 0, handle.d_head)
        self.recordings = [self._recording(handle, run, tree.at(number)) for number, run in enumerate(runs)]
        self._keep_rows(0)

    def __len__(self) -> int:
        return len(self._rows)

    def _recording(self, handle: ModelHandle, run: Branches, at: Tensor) -> Recording:
        def empty() -> list[Tensor]:
            return [self._rows.new_empty(handle.n_kv_heads, len(at), handle.d_head) for _ in self._layers]

        by_token = {name: _chosen(value, at) for name, value in self._call.by_token.items()}
        call = LayerCall(self._call.mask[at][:, at], by_token, None, self._call.constant)
        resid = self._rows.new_empty(handle.n_layers + 1, len(at), handle.d_model)
        return Recording(run, resid, empty(), empty(), [call] * handle.n_layers)

    def rise(
        self, layer: int, rows: Float[Tensor, "row d_model"] | None = None, spans: Sequence[Span] = ()
    ) -> Float[Tensor, "row d_model"] | None:
        """Take the runs through the next layer, and others' rows with them.

        Args:
            layer: The layer; each is to be asked for once, in order.
            rows: Rows that enter it.
            spans: What they are.

        Returns:
            The rows that leave it.
        """
        assert layer == self._done
        angles = tuple(angle[None] for angle in self._call.by_token["position_embeddings"])
        mine = Span(1, angles, self._call.mask[None, None], lambda: (self._nothing, self._nothing), self._keep)
        entered = self._rows if rows is None else torch.cat([self._rows, rows])
        left = lean_block(self._layers[layer], entered, [mine, *spans])
        self._rows, others = left.split([len(self._rows), len(left) - len(self._rows)])
        self._done += 1
        self._keep_rows(self._done)
        return None if rows is None else others

    def _keep(self, keys: Float[Tensor, "1 n_kv row d_head"], values: Float[Tensor, "1 n_kv row d_head"]) -> None:
        for run, shared, own in zip(self.recordings, self._tree.shared, self._tree.own, strict=True):
            for kept, new in ((run.keys[self._done], keys[0]), (run.values[self._done], values[0])):
                kept[:, :shared], kept[:, shared:] = new[:, :shared], new[:, own]

    def _keep_rows(self, entry: int) -> None:
        for run, shared, own in zip(self.recordings, self._tree.shared, self._tree.own, strict=True):
            run.resid[entry, :shared], run.resid[entry, shared:] = self._rows[:shared], self._rows[own]


class _Tree:
    """The tokens of several runs, those with which all begin only once.

    Attributes:
        ids: The token of each row.
        position: Its position in its plain sequence.
        sees: Which rows it may attend to.
        shared: Per run, how many tokens it shares with the first run: its first rows.
        own: Per run, the rows of the tokens behind those.
    """

    ids: Int[Tensor, "row"]
    position: Int[Tensor, "row"]
    sees: Bool[Tensor, "row row"]

    def __init__(self, runs: Sequence[Branches]) -> None:
        ids: list[int] = []
        position: list[int] = []
        self.shared: list[int] = []
        self.own: list[slice] = []
        for run in runs:
            shared = 0 if run is runs[0] else _alike(runs[0].prompt, run.prompt)
            self.shared.append(shared)
            self.own.append(slice(len(ids), len(ids) + len(run.row) - shared))
            ids.extend(run.packed[shared:])
            position.extend(run.position[shared:].tolist())
        self.ids, self.position = torch.tensor(ids), torch.tensor(position)
        self.sees = torch.zeros(len(ids), len(ids), dtype=torch.bool)
        for number, run in enumerate(runs):
            at = self.at(number)
            self.sees[at[:, None], at[None]] = torch.as_tensor(run.sees)

    def at(self, run: int) -> Int[Tensor, "token"]:
        """The rows of a run's packed tokens."""
        own = self.own[run]
        return torch.cat([torch.arange(self.shared[run]), torch.arange(own.start, own.stop)])


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
    return Growing(handle, runs, tree, entered, call)
