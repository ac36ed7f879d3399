"""A hand-weighted two-layer model in which one head copies from one role: everything that measures must find it.

Token embeddings carry three features: 0 is 1 for every token, 1 is 1 for the two marked tokens, 2 is +1 for the one
and −1 for the other. Head 2 of layer 1 asks for feature 1 and writes feature 2 into direction 3, which the unembedding
reads as y* against y_s. All other heads and both MLPs write nothing. Rotary angles are so slow that position plays no
part.
"""

from __future__ import annotations

import torch

from latentkt.models import encode, handle_from_hf, make_pair
from tests.models.tiny import tiny_model, tiny_tokenizer

LAYER, HEAD = 1, 2
WIDTH = 32


def planted_handle(*, works: bool = True, relay: bool = False):
    """The model. `works=False` zeroes the head; with `relay` the MLP of layer 0 writes feature 2, not the words."""
    tokenizer = tiny_tokenizer()
    model = tiny_model(
        "llama", num_hidden_layers=2, rope_theta=1e12, rope_parameters={"rope_type": "default", "rope_theta": 1e12}
    )
    ids = {word: tokenizer(word)["input_ids"] for word in (" not", " the", " is", " a")}
    assert all(len(found) == 1 for found in ids.values())
    plus, minus, correct, shortcut = (ids[word][0] for word in (" not", " the", " is", " a"))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        for name, parameter in model.named_parameters():
            if "norm" in name:
                parameter.uniform_(0.5, 1.5, generator=torch.Generator().manual_seed(len(name)))
        embed = model.model.embed_tokens.weight
        embed[:, 4:].normal_(0.0, 0.3, generator=torch.Generator().manual_seed(3))
        embed[:, 0] = 1.0
        embed[[plus, minus], 1] = 1.0
        embed[plus, 2], embed[minus, 2] = 1.0, -1.0
        attention = model.model.layers[LAYER].self_attn
        gain = model.model.layers[LAYER].input_layernorm.weight
        slow = 3  # of the pairs (i, i + 4) of a head's 8 numbers, the slowest to turn
        attention.q_proj.weight[HEAD * 8 + slow, 0] = 8.0 / gain[0]
        attention.k_proj.weight[(HEAD // 2) * 8 + slow, 1] = 8.0 / gain[1]
        attention.v_proj.weight[(HEAD // 2) * 8, 2] = 1.0 / gain[2]
        if works:
            attention.o_proj.weight[3, HEAD * 8] = 1.0
        if relay:
            _relay(model, plus, minus)
        model.lm_head.weight[correct, 3], model.lm_head.weight[shortcut, 3] = 2.0, -2.0
    return handle_from_hf(model, tokenizer, name="planted" if works else "zeroed")


def _relay(model, plus, minus):
    """Words carry features 4 and 5 instead; the MLP of layer 0 turns these into +1 and −1 of feature 2."""
    embed, layer = model.model.embed_tokens.weight, model.model.layers[0]
    embed[:, [2, 4, 5]] = 0.0
    embed[plus, 4], embed[minus, 5] = 3.0, 3.0
    gain = layer.post_attention_layernorm.weight
    for unit, feature in enumerate((4, 5)):
        layer.mlp.gate_proj.weight[unit, feature] = layer.mlp.up_proj.weight[unit, feature] = 1.0 / gain[feature]
    layer.mlp.down_proj.weight[2, 0], layer.mlp.down_proj.weight[2, 1] = 0.3, -0.3


def planted_pair(handle, *, item="planted", family="f", end="a:", base_right="correct", source_right="shortcut"):
    """The role `constraint` holds the marked token; `shortcut` holds one that plays no part."""

    def prompt(word):
        text = f"the chemist did{word} win\n{end}"
        start = text.index(word)
        return encode(
            handle, text, chat=False, spans={"shortcut": [(4, 11)], "constraint": [(start, start + len(word))]}
        )

    meta = {"item": item, "family": family, "direction": "control_to_item", "order": "correct_first"}
    meta |= {"polarity": "negated", "template": "plain", "base_right": base_right, "source_right": source_right}
    return make_pair(handle, prompt(" not"), prompt(" the"), correct=" is", shortcut=" a", name=item, meta=meta)
