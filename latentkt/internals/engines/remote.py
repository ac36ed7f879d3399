"""Requests for NDIF: built here, never sent.

NDIF runs large models for researchers; nnsight ships a traced block there. `ndif_request` builds what nnsight would
send: a header that names the model, and a payload with the tokens, what is read and what is put in its place. It holds
no weights and opens no connection. Whether a given server accepts it has not been tried from here.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from latentkt.errors import InputError
from latentkt.internals.engines.twin import twin

if TYPE_CHECKING:
    from jaxtyping import Int
    from torch import Tensor

    from latentkt.internals.engines.base import Cell, SiteKey
    from latentkt.models import ModelHandle

__all__ = ["RemoteRequest", "ndif_request"]

_Step = tuple[str, str, int, "tuple[int, int, int] | None", list[tuple[list[int], "int | None", "Tensor"]]]


@dataclass(frozen=True)
class RemoteRequest:
    """What would be sent.

    Attributes:
        header: JSON: the model's key and how the payload is packed.
        payload: The traced block, serialised by nnsight.
    """

    header: str
    payload: bytes


def ndif_request(
    handle: ModelHandle,
    ids: Int[Tensor, "batch pos"],
    *,
    repo_id: str,
    revision: str = "main",
    capture: Iterable[SiteKey] = (),
    cell: Cell = (),
) -> RemoteRequest:
    """Build the request that reads sites of a remote model, with patches in place.

    Args:
        handle: The same architecture, opened here: it says where sites lie (its weights are not used).
        ids: Token ids.
        repo_id: The model's hub id on the server.
        revision: Its revision.
        capture: (site, layer) pairs that are returned, with the logits.
        cell: Patches.

    Raises:
        InputError: A site that takes more than one module's value (`resid_mid`, fused projections).
    """
    from nnsight.modeling.transformers import TransformersModel
    from nnsight.schema.request import RequestModel

    keep = _keeper()
    model = TransformersModel(twin(handle.model), tokenizer=copy.deepcopy(handle.tokenizer))
    run_block(model, ids, plan_of(handle, capture, cell), keep)
    kind = f"{TransformersModel.__module__}.{TransformersModel.__qualname__}"
    key = f"{kind}:{json.dumps({'repo_id': repo_id, 'revision': revision})}"
    return RemoteRequest(RequestModel(model_key=key).metadata(), keep.payload)


def plan_of(handle: ModelHandle, capture: Iterable[SiteKey], cell: Cell) -> list[_Step]:
    """Sites as plain data: path of the module, input or output, place in a tuple, columns, replacements."""
    paths = {id(module): path for path, module in handle.model.named_modules()}
    order = ("resid_pre", "q", "k", "v", "z", "attn_out", "mlp_out", "resid_post")
    patches: dict[SiteKey, list[tuple[list[int], int | None, Tensor]]] = {}
    for patch in cell:
        patches.setdefault((patch.site, patch.layer), []).append((list(patch.positions), patch.head, patch.given))
    plan: list[_Step] = []
    wanted = set(capture) | set(patches)
    for key in sorted(wanted, key=lambda key: (key[1], order.index(key[0]) if key[0] in order else -1)):
        access = handle.arch.site(*key)
        if access.on_residual or access.layout.kind in ("flat", "interleaved") or key[0] not in order:
            raise InputError(f"site {key[0]!r} cannot be requested from a remote model", expected=", ".join(order))
        layout = access.layout
        columns = (layout.start, layout.heads, layout.d_head) if layout.kind == "heads" else None
        plan.append((paths[id(access.module)], access.kind, access.index, columns, patches.get(key, [])))
    return plan


def run_block(model: Any, ids: Tensor, plan: Sequence[_Step], backend: Any) -> Any:
    """The traced block. It uses torch and nnsight only: nothing of this library is on the server."""
    import nnsight

    result = None
    with torch.no_grad(), model.trace(ids, use_cache=False, backend=backend):
        kept = []
        for path, kind, index, columns, replacements in plan:
            envoy = model.get(path)
            whole = envoy.input if kind == "input" else envoy.output
            raw = whole[index] if isinstance(whole, tuple) else whole
            value = raw.clone()
            shaped = value
            if columns is not None:
                start, heads, width = columns
                shaped = value[..., start : start + heads * width].unflatten(-1, (heads, width))
            for positions, head, new in replacements:
                if head is None:
                    shaped[:, positions] = new.to(shaped)
                else:
                    shaped[:, positions, head] = new.to(shaped)
            if replacements:
                if kind == "input":
                    envoy.input = value
                elif isinstance(whole, tuple):
                    envoy.output = (*whole[:index], value, *whole[index + 1 :])
                else:
                    envoy.output = value
            kept.append(shaped)
        result = nnsight.save((kept, model.output.logits))
    return result


def _keeper() -> Any:
    """A backend that keeps the serialised block instead of running or sending it."""
    from nnsight.schema.request import RequestModel
    from nnsight.tracing.backend import Backend

    class Keeper(Backend):
        payload = b""

        def __call__(self, tracer: Any) -> None:
            self.payload = RequestModel.serialize(tracer, False)

    return Keeper()
