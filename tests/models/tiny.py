"""Tiny random models of each family, and a tiny tokenizer with offsets and a chat template.

Norm weights are never 1, biases never 0, and weights are large enough for logits to vary: a reading that leaves one of
them out is seen. Import it as `tests.models.tiny`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

from latentkt.models import ModelHandle, handle_from_hf

VOCAB = 97
CONTEXT = 512

_SPECIAL = ["<pad>", "<bos>", "<eos>", "<unk>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>"]
_CHARACTERS = [*"abcdefghijklmnopqrstuvwxyz0123456789", " ", "\n", *".,;:?!'\"()-/%&+=*#[]{}_~"]
_PIECES = "th he in er an re on at en nd is or it of to ar no di the did not and"
_MERGES = [*_PIECES.split(), " the", " did", " not", " a", " is", " of"]

_CHAT = (
    "{% for m in messages %}{{ '<|' + m['role'] + '|>\n' + m['content'] + '<|end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}"
)

_SHARED: dict[str, Any] = {
    "vocab_size": VOCAB,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
_ROPE = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": CONTEXT,
}
_CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("gpt2", {"n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": CONTEXT}),
    "llama": ("llama", {**_ROPE, "attention_bias": True, "mlp_bias": True}),
    "qwen2": ("qwen2", _ROPE),
    "mistral": ("mistral", {**_ROPE, "sliding_window": 4}),
    "gemma2": (
        "gemma2",
        {
            **_ROPE,
            "head_dim": 8,
            "sliding_window": 4,
            "attn_logit_softcapping": 2.0,
            "final_logit_softcapping": 5.0,
            "query_pre_attn_scalar": 8,
            "attention_bias": True,
        },
    ),
    "neox_parallel": ("gpt_neox", {**_ROPE, "use_parallel_residual": True, "num_key_value_heads": None}),
    "neox_sequential": ("gpt_neox", {**_ROPE, "use_parallel_residual": False, "num_key_value_heads": None}),
    "opt": (
        "opt",
        {
            "hidden_size": 32,
            "ffn_dim": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "max_position_embeddings": CONTEXT,
            "word_embed_proj_dim": 32,
        },
    ),
    "bloom": ("bloom", {"hidden_size": 32, "n_layer": 2, "n_head": 4}),
}

FAMILIES = tuple(_CONFIGS)

# Opened as well, but tested less.
_MORE: dict[str, tuple[str, dict[str, Any]]] = {
    "qwen3": ("qwen3", {**_ROPE, "head_dim": 8}),
    "gemma": ("gemma", {**_ROPE, "head_dim": 8}),
    "gemma3": ("gemma3_text", {**_ROPE, "head_dim": 8, "sliding_window": 4, "query_pre_attn_scalar": 8}),
    "olmo2": ("olmo2", _ROPE),
    "phi": ("phi", _ROPE),
    "phi3": ("phi3", _ROPE),
    "gptj": ("gptj", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": CONTEXT, "rotary_dim": 4}),
}
MORE_FAMILIES = tuple(_MORE)


def _merge_table() -> tuple[dict[str, int], list[tuple[str, str]]]:
    vocab = {token: n for n, token in enumerate([*_SPECIAL, *_CHARACTERS])}
    merges: list[tuple[str, str]] = []
    for word in _MERGES:
        for cut in range(len(word) - 1, 0, -1):  # the longest head that is a token already
            head, tail = word[:cut], word[cut:]
            if head in vocab and tail in vocab and len(vocab) < VOCAB:
                merges.append((head, tail))
                vocab[word] = len(vocab)
                break
    while len(vocab) < VOCAB:
        vocab[f"<unused{len(vocab)}>"] = len(vocab)
    return vocab, merges


def tiny_tokenizer(*, bos: bool = False) -> PreTrainedTokenizerFast:
    """Letters and a few merges, case and accents folded; anything else is <unk>.

    Args:
        bos: Plain texts get <bos> in front, and so does the chat template's text: the trap of the doubled BOS.
    """
    vocab, merges = _merge_table()
    tokenizer = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split("\n", "isolated"), pre_tokenizers.Split(" ", "merged_with_next")]
    )
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in _SPECIAL])
    if bos:
        tokenizer.post_processor = processors.TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", 1)])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        bos_token="<bos>",
        eos_token="<eos>",
        unk_token="<unk>",
        extra_special_tokens=_SPECIAL[4:],
    )
    fast.chat_template = ("{{ bos_token }}" if bos else "") + _CHAT
    return fast


def tiny_model(family: str, *, seed: int = 0, attn_implementation: str = "eager", **changes: Any) -> Any:
    """A random model of a family; `changes` go into its configuration."""
    model_type, options = {**_CONFIGS, **_MORE}[family]
    options = {key: value for key, value in {**_SHARED, **options, **changes}.items() if value is not None}
    config = AutoConfig.for_model(model_type, **options)
    model = AutoModelForCausalLM.from_config(config, attn_implementation=attn_implementation)
    randomise(model, seed=seed)
    return model.eval()


def randomise(model: torch.nn.Module, *, seed: int) -> None:
    """Draw every parameter: norm gains uniform in .5–1.5, biases and matrices normal, nothing 0 or 1."""
    generator = torch.Generator().manual_seed(seed)
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            data = torch.empty_like(parameter)
            if "Norm" in type(module).__name__ and name == "weight":
                data.uniform_(0.5, 1.5, generator=generator)
                if type(module).__name__.startswith("Gemma"):
                    data -= 1.0  # applied as 1 + weight
            elif name == "bias":
                data.normal_(0.0, 0.2, generator=generator)
            elif isinstance(module, torch.nn.Embedding):
                data.normal_(0.0, 0.7, generator=generator)
            else:
                data.normal_(0.0, 1.3 / parameter.shape[-1] ** 0.5, generator=generator)
            parameter.data.copy_(data)


@cache
def tiny_handle(family: str = "llama", *, seed: int = 0, bos: bool = False, attn: str = "eager") -> ModelHandle:
    """An opened tiny model; shared by all tests of a process, so do not change it."""
    model = tiny_model(family, seed=seed, attn_implementation=attn)
    return handle_from_hf(model, tiny_tokenizer(bos=bos), name=f"tiny/{family}")
