"""Runs of which only a part is the base run's: single nodes, or single edges, have the source run's values.

A node is the embedding, a head or an MLP. Where it is replaced it writes what it wrote in the source run; the others
are computed from what reaches them. With edges it is the reader that decides: each query, key, value, MLP and the
logits reads the residual stream with the source run's write in place of the live one, for exactly those senders that
are cut from it. All of it is edits of named sites, so it runs on every engine. Only prompt tokens that have a partner
are touched.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import torch

from latentkt.internals.attribution import head_writes
from latentkt.internals.paths import LOGITS, Node
from latentkt.internals.receivers import project, reads

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from latentkt.internals.engines.base import Edit, SiteKey
    from latentkt.models import ModelHandle

__all__ = ["CutEdges", "all_edges", "all_nodes", "node_edits", "writes_of"]

Edge = tuple[Node, Node]


def all_nodes(handle: ModelHandle) -> list[Node]:
    """The embedding, and every head and MLP, in the order of the forward pass."""
    nodes = [Node("resid_pre", 0)]
    for layer in range(handle.n_layers):
        nodes += [*(Node("z", layer, head) for head in range(handle.n_heads)), Node("mlp_out", layer)]
    return nodes


def all_edges(handle: ModelHandle) -> list[Edge]:
    """Every sender with every receiver that reads it."""
    receivers = []
    for layer in range(handle.n_layers):
        for site, heads in (("q", handle.n_heads), ("k", handle.n_kv_heads), ("v", handle.n_kv_heads)):
            receivers += [Node(site, layer, head) for head in range(heads)]
        receivers.append(Node("mlp_out", layer))
    receivers.append(LOGITS)
    return [(s, r) for s in all_nodes(handle) for r in receivers if reads(handle, s, r)]


def node_edits(
    replaced: Iterable[Node], positions: tuple[int, ...], values: Callable[[SiteKey], Tensor]
) -> dict[SiteKey, Edit]:
    """Edits that give nodes other values.

    Args:
        replaced: The nodes.
        positions: Where.
        values: Of a (site, layer), [position, …] what stands there afterwards.
    """
    heads: dict[SiteKey, list[int] | None] = {}
    for node in replaced:
        key = (node.site, node.layer)
        if node.head is None:
            heads[key] = None
        else:
            heads[key] = [*(heads.get(key) or []), node.head]
    return {key: _Partly(positions, values(key), chosen) for key, chosen in heads.items()}


class _Partly:
    """An edit that puts values at some positions, of all heads or of some."""

    def __init__(self, positions: tuple[int, ...], values: Tensor, heads: list[int] | None) -> None:
        self._at, self._values, self._heads = list(positions), values, heads

    def __call__(self, value: Tensor) -> Tensor:
        out, new = value.clone(), self._values.to(value)
        if self._heads is None:
            out[:, self._at] = new
        else:
            for head in self._heads:
                out[:, self._at, head] = new[:, head]
        return out


def writes_of(
    handle: ModelHandle,
    layer: int,
    z: Float[Tensor, "*batch n_heads d_head"],
    attn_out: Float[Tensor, "*batch d_model"],
) -> Float[Tensor, "*batch n_heads d_model"]:
    """What each head adds to the residual stream, the attention's biases shared out evenly: they sum to `attn_out`."""
    writes, bias = head_writes(handle, layer, z, attn_out)
    return (writes + bias.unsqueeze(-2) / handle.n_heads).to(attn_out)


class CutEdges:
    """The edits of one run in which receivers read the source run's writes from the senders cut from them.

    Live writes are noted as the pass reaches them, so an object serves one run.

    Args:
        handle: The model.
        positions: Prompt positions that have a partner in the source run.
        source: By (site, layer), the source run's values at the partners: resid_pre of layer 0, z, attn_out, mlp_out.
        cut: The edges.
    """

    def __init__(
        self, handle: ModelHandle, positions: tuple[int, ...], source: Mapping[SiteKey, Tensor], cut: Iterable[Edge]
    ) -> None:
        self._handle, self._at, self._source = handle, list(positions), source
        self._number = {node: n for n, node in enumerate(all_nodes(handle))}
        self._cut: dict[Node, list[int]] = defaultdict(list)
        for sender, receiver in cut:
            self._cut[receiver].append(self._number[sender])
        self._change = torch.empty(0)  # [sender, row, position, d_model]: live write minus the source's
        self._stream: dict[SiteKey, Tensor] = {}

    def edits(self) -> dict[SiteKey, Edit]:
        """All edits, in the order in which the pass reaches them."""
        handle, found = self._handle, {}
        for layer in range(handle.n_layers):
            found["resid_pre", layer] = self._bound(self._enter, layer)
            for site in ("q", "k", "v"):
                if handle.arch.parallel or any(r.layer == layer and r.site == site for r in self._cut):
                    found[site, layer] = self._bound(self._attend, layer, site)
            found["z", layer] = self._bound(self._note, layer, "z")
            found["attn_out", layer] = self._bound(self._attended, layer)
            if not handle.arch.parallel:
                found["resid_mid", layer] = self._bound(self._middle, layer)
            found["mlp_out", layer] = self._bound(self._mlp, layer)
            found["resid_post", layer] = self._bound(self._leave, layer)
        return found

    @staticmethod
    def _bound(method: Callable[..., Tensor], *args: object) -> Edit:
        return lambda value: method(value, *args)

    def _note(self, value: Tensor, layer: int, site: str) -> Tensor:
        self._stream[site, layer] = value
        return value

    def _enter(self, value: Tensor, layer: int) -> Tensor:
        self._stream["resid_pre", layer] = value
        if layer == 0:
            here = value[:, self._at]
            self._change = here.new_zeros(len(self._number), *here.shape)
            self._change[0] = here - self._source["resid_pre", 0].to(value)
        return self._less(value, Node("mlp_out", layer)) if self._handle.arch.parallel else value

    def _attend(self, value: Tensor, layer: int, site: str) -> Tensor:
        """Heads that are cut from a sender, and all in parallel blocks, whose input is the MLP's, read anew."""
        stream, parallel = self._stream["resid_pre", layer], self._handle.arch.parallel
        nodes = [Node(site, layer, head) for head in range(value.shape[2])]
        anew = [node for node in nodes if parallel or self._cut.get(node)]
        if not anew:
            return value
        out = value.clone()
        for node in anew:
            here = stream[:, self._at] - self._missing(node)
            out[:, self._at, node.head] = project(self._handle, layer, site, here)[:, :, node.head].to(value)
        return out

    def _attended(self, value: Tensor, layer: int) -> Tensor:
        self._stream["attn_out", layer] = value
        at, source = self._at, self._source
        ours = writes_of(self._handle, layer, self._stream["z", layer][:, at], value[:, at])
        theirs = writes_of(self._handle, layer, source["z", layer].to(value), source["attn_out", layer].to(value))
        first = self._number[Node("z", layer, 0)]
        self._change[first : first + self._handle.n_heads] = (ours - theirs).permute(2, 0, 1, 3)
        return value

    def _middle(self, value: Tensor, layer: int) -> Tensor:
        self._stream["resid_mid", layer] = value
        return self._less(value, Node("mlp_out", layer))

    def _mlp(self, value: Tensor, layer: int) -> Tensor:
        self._stream["mlp_out", layer] = value
        here = value[:, self._at] - self._source["mlp_out", layer].to(value)
        self._change[self._number[Node("mlp_out", layer)]] = here
        return value

    def _leave(self, value: Tensor, layer: int) -> Tensor:
        """The stream goes on with its own writes, whatever the MLP was given to read."""
        stream, parallel = self._stream, self._handle.arch.parallel
        before = stream["resid_pre", layer] + stream["attn_out", layer] if parallel else stream["resid_mid", layer]
        whole = (before + stream["mlp_out", layer]).to(value)
        return self._less(whole, LOGITS) if layer == self._handle.n_layers - 1 else whole

    def _missing(self, receiver: Node) -> Tensor | float:
        """What the cut senders write now more than in the source run."""
        senders = self._cut.get(receiver)
        return self._change[senders].sum(0) if senders else 0.0

    def _less(self, value: Tensor, receiver: Node) -> Tensor:
        if not self._cut.get(receiver):
            return value
        out = value.clone()
        out[:, self._at] -= self._missing(receiver)
        return out
