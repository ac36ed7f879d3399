"""A request for NDIF runs, unpacked with latentkt hidden, as the local engine does; building it opens no connection."""

from __future__ import annotations

import copy
import json
import socket

import pytest
import torch

from latentkt.errors import InputError
from latentkt.internals import engine_of
from latentkt.internals.engines.base import Patch
from latentkt.internals.engines.remote import ndif_request, plan_of, run_block
from latentkt.internals.engines.twin import twin
from tests.internals.making import tiny_pair
from tests.models.tiny import tiny_handle

CAPTURE = [("resid_post", 1), ("z", 2), ("attn_out", 0)]


def cell_of(handle, pair):
    values = engine_of(handle).values(pair.source.ids, [("resid_post", 0), ("v", 1)])
    return (
        Patch("resid_post", 0, (4, 5), values["resid_post", 0][[4, 5]]),
        Patch("v", 1, (6,), values["v", 1][[6], 1], 1),
    )


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_the_block_runs_as_the_local_engine_does_where_latentkt_is_not_installed(family, no_network):
    from nnsight.intervention.backends.local import LocalSimulationBackend
    from nnsight.modeling.transformers import TransformersModel

    handle = tiny_handle(family)
    pair = tiny_pair(handle)
    ids = torch.tensor([pair.base.ids])
    cell = cell_of(handle, pair)
    model = TransformersModel(twin(handle.model), tokenizer=copy.deepcopy(handle.tokenizer))
    kept, logits = run_block(model, ids, plan_of(handle, CAPTURE, cell), LocalSimulationBackend(model))
    edits = {(patch.site, patch.layer): patch.edit for patch in cell}
    truth = engine_of(handle, "reference").run(ids, capture=CAPTURE, edits=edits)
    torch.testing.assert_close(logits.float(), truth.logits, atol=1e-4, rtol=0)
    by_name = dict(zip([("attn_out", 0), ("resid_post", 0), ("v", 1), ("resid_post", 1), ("z", 2)], kept, strict=True))
    for key in CAPTURE:
        torch.testing.assert_close(by_name[key], truth.activations[key], atol=1e-4, rtol=0)


def test_a_request_names_the_model_and_carries_no_weights(no_network):
    handle = tiny_handle("llama")
    side = handle.tokenizer.padding_side
    pair = tiny_pair(handle)
    request = ndif_request(
        handle, torch.tensor([pair.base.ids]), repo_id="org/model", capture=CAPTURE, cell=cell_of(handle, pair)
    )
    header = json.loads(request.header)
    assert header["model_key"].endswith('{"repo_id": "org/model", "revision": "main"}')
    weights = sum(parameter.numel() * 4 for parameter in handle.model.parameters())
    assert b"model.layers.0" in request.payload and len(request.payload) < weights / 2
    assert handle.tokenizer.padding_side == side


def test_sites_of_several_modules_are_refused():
    with pytest.raises(InputError, match="cannot be requested"):
        plan_of(tiny_handle("llama"), [("resid_mid", 0)], ())
    with pytest.raises(InputError, match="cannot be requested"):
        plan_of(tiny_handle("neox_parallel"), [("q", 0)], ())
