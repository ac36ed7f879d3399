"""The network that is trained: GPT-2's architecture in plain torch, and its way into a Hugging Face folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn import functional

from latentkt.errors import InputError
from latentkt.synthetic.vocabulary import BOS, NEWLINE, PAD, UNKNOWN

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor

    from latentkt.synthetic.vocabulary import Vocabulary

__all__ = ["Network", "NetworkConfig", "export", "to_hugging_face"]


# Tools probe a model with prompts longer than any document of a world. Places past the trained ones hold zeros: the
# network takes them, and has learned nothing about them.
EXPORTED_CONTEXT = 128


@dataclass(frozen=True, slots=True)
class NetworkConfig:
    """Size of the network: layers, width, heads, longest document."""

    layers: int = 2
    width: int = 64
    heads: int = 4
    context: int = 16

    def __post_init__(self) -> None:
        if min(self.layers, self.width, self.heads, self.context) < 1:
            raise InputError("a size of the network is under 1", expected="positive sizes", found=self)
        if self.width % self.heads or (self.width // self.heads) % 2:
            raise InputError(
                "odd head size",
                expected="heads that divide the width into even parts",
                found=f"width {self.width}, heads {self.heads}: {self.width / self.heads:g} a head",
                fix=f"for example width {self.heads * 16}",
            )


class Block(nn.Module):
    """Pre-norm attention and feed-forward, as in GPT-2."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        width = config.width
        self.heads = config.heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def mix(self, x: Float[Tensor, "batch pos d_model"]) -> Float[Tensor, "batch pos d_model"]:
        """The heads' outputs side by side, before the output projection."""
        batch, length, width = x.shape
        split = self.qkv(self.norm_1(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        z = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return z.transpose(1, 2).reshape(batch, length, width)

    def finish(
        self, x: Float[Tensor, "*place d_model"], z: Float[Tensor, "*place d_model"]
    ) -> Float[Tensor, "*place d_model"]:
        """The rest of the block, place by place."""
        x = x + self.out(z)
        return x + self.down(functional.gelu(self.up(self.norm_2(x)), approximate="tanh"))

    def forward(self, x: Float[Tensor, "batch pos d_model"]) -> Float[Tensor, "batch pos d_model"]:
        """One block of the residual stream."""
        return self.finish(x, self.mix(x))


class Network(nn.Module):
    """A decoder-only transformer; embedding and unembedding are not tied.

    Parameters begin as torch's own layers do (embeddings of variance 1), not at GPT-2's .02: from so small a start this
    network reads the constraint into the cluster that never needed it (docs/decisions/0061).
    """

    def __init__(self, config: NetworkConfig, vocabulary: int) -> None:
        super().__init__()
        self.config, self.vocabulary = config, vocabulary
        self.embed = nn.Embedding(vocabulary, config.width)
        self.place = nn.Embedding(config.context, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.unembed = nn.Linear(config.width, vocabulary, bias=False)

    def forward(self, ids: Int[Tensor, "batch pos"]) -> Float[Tensor, "batch pos vocab"]:
        """Logits at every position; right padding does no harm (attention is causal)."""
        return self.logits_at(ids, torch.ones_like(ids, dtype=torch.bool)).view(*ids.shape, -1)

    def logits_at(
        self, ids: Int[Tensor, "batch pos"], wanted: Bool[Tensor, "batch pos"]
    ) -> Float[Tensor, "place vocab"]:
        """Logits at some places only: the last block works on no others, which spares a quarter of a training step."""
        x = self.embed(ids) + self.place.weight[: ids.shape[1]]
        for block in self.blocks[:-1]:
            x = block(x)
        last = self.blocks[-1]
        z = last.mix(x)
        return self.unembed(self.norm(last.finish(x[wanted], z[wanted])))

    @property
    def parameter_count(self) -> int:
        """How many numbers are trained."""
        return sum(parameter.numel() for parameter in self.parameters())


def to_hugging_face(network: Network) -> Any:
    """The same network as a `GPT2LMHeadModel`: equal logits (tested)."""
    from transformers import GPT2LMHeadModel

    model = GPT2LMHeadModel(_config_of(network))
    model.load_state_dict(_renamed(network))
    return model.eval()


def _config_of(network: Network) -> Any:
    from transformers import GPT2Config

    size = network.config
    return GPT2Config(
        vocab_size=network.vocabulary,
        n_positions=max(size.context, EXPORTED_CONTEXT),
        n_embd=size.width,
        n_layer=size.layers,
        n_head=size.heads,
        attn_pdrop=0.0,
        embd_pdrop=0.0,
        resid_pdrop=0.0,
        bos_token_id=BOS,
        eos_token_id=NEWLINE,
        pad_token_id=PAD,
        tie_word_embeddings=False,
        architectures=["GPT2LMHeadModel"],
        dtype="float32",
    )


def _renamed(network: Network) -> dict[str, Tensor]:
    longer = max(EXPORTED_CONTEXT - network.config.context, 0)
    state = {
        "transformer.wte.weight": network.embed.weight,
        "transformer.wpe.weight": functional.pad(network.place.weight, (0, 0, 0, longer)),
        "transformer.ln_f.weight": network.norm.weight,
        "transformer.ln_f.bias": network.norm.bias,
        "lm_head.weight": network.unembed.weight,
    }
    names = {
        "ln_1": "norm_1", "ln_2": "norm_2", "attn.c_attn": "qkv", "attn.c_proj": "out", "mlp.c_fc": "up",
        "mlp.c_proj": "down",
    }  # fmt: skip
    for layer, block in enumerate(network.blocks):
        for theirs, ours in names.items():
            part = getattr(block, ours)
            # GPT-2 keeps the weights of its projections the other way round.
            weight = part.weight.T if isinstance(part, nn.Linear) else part.weight
            state[f"transformer.h.{layer}.{theirs}.weight"] = weight
            state[f"transformer.h.{layer}.{theirs}.bias"] = part.bias
    return {name: tensor.detach().clone() for name, tensor in state.items()}


def tokenizer_of(vocabulary: Vocabulary) -> Any:
    """A fast word-level tokenizer with offsets: start token first, newline a token of its own."""
    from tokenizers import AddedToken, Tokenizer, pre_tokenizers, processors
    from tokenizers.models import WordLevel
    from transformers import PreTrainedTokenizerFast

    words = vocabulary.words
    tokenizer = Tokenizer(WordLevel({word: index for index, word in enumerate(words)}, unk_token=words[UNKNOWN]))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{words[BOS]} $A", special_tokens=[(words[BOS], BOS)]
    )
    tokenizer.add_tokens([AddedToken(words[NEWLINE], normalized=False, special=False)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=words[BOS],
        pad_token=words[PAD],
        unk_token=words[UNKNOWN],
        eos_token=None,
        clean_up_tokenization_spaces=False,
    )


def export(network: Network, vocabulary: Vocabulary, folder: Path) -> None:
    """Write an ordinary Hugging Face folder: safetensors, config, tokenizer."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    _config_of(network).save_pretrained(folder)
    state = {name: tensor.contiguous() for name, tensor in _renamed(network).items()}
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    tokenizer_of(vocabulary).save_pretrained(folder)
