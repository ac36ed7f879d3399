"""Where a lean block stands in for the model's own, and where it stands aside.

It does so only where the block is that very block: classes are compared exactly, and so is where their functions were
written. Anybody's hook, adapter or replacement, a half precision or a GPU leads back to the module itself.
"""

from __future__ import annotations

import sys
from operator import itemgetter
from typing import TYPE_CHECKING

import torch
from torch.nn.modules import module as modules

if TYPE_CHECKING:
    from torch import nn

    from latentkt.internals.layer_calls import LayerCall

__all__ = ["is_lean", "is_lean_block", "is_lean_call", "is_lean_model"]

_FAMILY = "transformers.models.llama.modeling_llama"
_LINEAR = ("torch.nn.modules.linear", "Linear")
_PARTS = {  # what the block is made of: parts, and the classes that they have to be
    "self_attn": "LlamaAttention",
    "mlp": "LlamaMLP",
    "input_layernorm": "LlamaRMSNorm",
    "post_attention_layernorm": "LlamaRMSNorm",
}
_PROJECTIONS = {"self_attn": ("q_proj", "k_proj", "v_proj", "o_proj"), "mlp": ("gate_proj", "up_proj", "down_proj")}
_FUNCTIONS = ("apply_rotary_pos_emb", "rotate_half", "repeat_kv", "eager_attention_forward")
_ATTENTION = ("eager", "sdpa")
_ARGUMENTS = {"position_embeddings", "position_ids", "cache_position"}
_ANGLES = ("default", "linear", "llama3")  # others hang on how long a sequence is
_hooks = itemgetter("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def is_lean(layer: nn.Module, call: LayerCall) -> bool:
    """Whether a lean block does what this layer does when it is called like that, now."""
    return is_lean_call(call) and is_lean_block(layer)


def is_lean_call(call: LayerCall) -> bool:
    """Whether a layer is called with nothing that a lean block does not know."""
    return "position_embeddings" in call.by_token and set(call.by_token) <= _ARGUMENTS and call.alibi is None


def is_lean_block(layer: nn.Module) -> bool:
    """Whether a layer is the block that a lean one writes out, with nothing attached to it."""
    if not _is(layer, _FAMILY, "LlamaDecoderLayer") or modules._has_any_global_hook():
        return False
    parts = {name: getattr(layer, name) for name in _PARTS}
    if not all([_is(parts[name], _FAMILY, kind) for name, kind in _PARTS.items()]):
        return False
    linears = [getattr(parts[part], name) for part, names in _PROJECTIONS.items() for name in names]
    activation = parts["mlp"].act_fn
    return (
        all([_is(linear, *_LINEAR) for linear in linears])
        and (
            _is(activation, "torch.nn.modules.activation", "SiLU")
            or _is(activation, "transformers.activations", "SiLUActivation")
        )
        and parts["self_attn"].config._attn_implementation in _ATTENTION
        and all([_is_plain(one) for one in (layer, *parts.values(), activation, *linears)])
        and all([_written_in(getattr(sys.modules[_FAMILY], name, None), _FAMILY) for name in _FUNCTIONS])
    )


def is_lean_model(model: nn.Module, n_layers: int) -> bool:
    """Whether a model embeds tokens one by one and calls its blocks in turn, with nothing of anybody's in between."""
    return (
        _is(model, _FAMILY, "LlamaModel")
        and _is(model.embed_tokens, "torch.nn.modules.sparse", "Embedding")
        and _is(model.rotary_emb, _FAMILY, "LlamaRotaryEmbedding")
        and all([_is_plain(one) for one in (model, model.embed_tokens, model.rotary_emb)])
        and model.rotary_emb.rope_type in _ANGLES
        and model.config.num_hidden_layers == n_layers
    )


def _is(module: nn.Module, file: str, name: str) -> bool:
    """Whether a module is exactly of a class, whose `forward` is the one that it was written with."""
    kind = type(module)
    return (kind.__module__, kind.__name__) == (file, name) and _written_in(kind.forward, file)


def _written_in(function: object, file: str) -> bool:
    return getattr(function, "__module__", None) == file


def _is_plain(module: nn.Module) -> bool:
    """Nothing hangs on it, and its weights are fp32 on the CPU."""
    held = vars(module)
    if module.training or "forward" in held or any(_hooks(held)):  # adapters replace `forward`
        return False
    weights = [one for one in held["_parameters"].values() if one is not None]
    return all([type(one) is torch.nn.Parameter and one.dtype is torch.float32 and one.is_cpu for one in weights])
