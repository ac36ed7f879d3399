from __future__ import annotations

import pytest
import torch

from latentkt.synthetic import Network, NetworkConfig
from latentkt.synthetic.network import export, to_hugging_face


@pytest.fixture
def network(tiny_stream) -> Network:
    torch.manual_seed(0)
    network = Network(NetworkConfig(layers=3, width=32, heads=4), len(tiny_stream.vocabulary)).eval()
    for parameter in network.parameters():
        if parameter.ndim == 1:  # norms and biases that do something
            torch.nn.init.uniform_(parameter, 0.5, 1.5)
    return network


def test_the_saved_folder_is_the_network(tiny_stream, network, tmp_path):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    export(network, tiny_stream.vocabulary, tmp_path)
    model = AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    ids = torch.from_numpy(tiny_stream.epoch(0).choice_documents.ids)
    with torch.no_grad():
        assert torch.allclose(model(ids).logits, network(ids), atol=1e-5)
        assert torch.allclose(to_hugging_face(network)(ids).logits, network(ids), atol=1e-5)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    text = tiny_stream.vocabulary.text(ids[3].tolist())
    encoded = tokenizer(text + "\n", return_offsets_mapping=True)
    assert encoded["input_ids"] == ids[3].tolist()
    pieces = [text[start:stop] for start, stop in encoded["offset_mapping"][1:-1]]
    assert pieces == text.split()
    assert tokenizer(" " + text.split()[-1], add_special_tokens=False)["input_ids"] == [ids[3].tolist()[-2]]


def test_right_padding_does_no_harm(tiny_stream, network):
    ids = torch.from_numpy(tiny_stream.epoch(0).choice_documents.ids)
    padded = torch.nn.functional.pad(ids, (0, 3))
    with torch.no_grad():
        assert torch.allclose(network(padded)[:, : ids.shape[1]], network(ids), atol=1e-5)


def test_logits_at_some_places_are_the_same(tiny_stream, network):
    ids = torch.from_numpy(tiny_stream.epoch(0).choice_documents.ids)
    wanted = torch.rand(ids.shape, generator=torch.Generator().manual_seed(0)) < 0.3
    with torch.no_grad():
        assert torch.allclose(network.logits_at(ids, wanted), network(ids)[wanted], atol=1e-5)


def test_the_default_size_is_small():
    assert Network(NetworkConfig(), 95).parameter_count == 113_280
