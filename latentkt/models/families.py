"""What differs between families of decoders: the names of their parts, and what their modules really give.

A family is recognised by the structure of its block, never by the model's name, and what is written here is only a
claim: `latentkt.models.opening` proves it on every model that is opened.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from latentkt.errors import ModelRefusedError

if TYPE_CHECKING:
    from torch import nn

__all__ = ["FAMILIES", "Family", "find_layers", "match_family", "submodule"]


@dataclass(frozen=True, slots=True)
class Family:
    """Names of the parts of one decoder block, as dotted paths inside the block.

    Attributes:
        name: The family, after its best-known member.
        attention: The attention module; its second output holds the pattern where attention is eager.
        out_proj: The output projection; its input is the heads' `z`.
        qkv: The projections of q, k and v, or the one fused projection.
        fused: Layout of a fused projection: `concat` is [q | k | v], `interleaved` is [head, (q, k, v), d_head].
        attn_added: The module whose output is what attention adds to the residual stream (after a post-norm).
        mlp_in: The module that takes the normed input of the MLP.
        mlp_added: The module whose output is what the MLP adds to the residual stream (after a post-norm).
        attn_norm: The norm before attention; None where the block has none.
        mlp_norm: The norm before the MLP; None where the block has none.
        absent: Names that the block must not have, or it is another family.
        parallel: Attention and MLP read the same residual. None: the block says so in `use_parallel_residual`.
        post_norms: What attention and MLP give is normed before it is added; `attn_added` and `mlp_added` are norms.
        flat_mlp: The MLP sees tokens as rows, `[batch * pos, d]`.
        note: What else a reader of sites should know.
    """

    name: str
    attention: str
    out_proj: str
    qkv: tuple[str, ...]
    attn_added: str
    mlp_in: str
    mlp_added: str
    attn_norm: str | None
    mlp_norm: str | None
    fused: Literal["concat", "interleaved"] | None = None
    absent: tuple[str, ...] = ()
    parallel: bool | None = False
    post_norms: bool = False
    flat_mlp: bool = False
    note: str = ""

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path that must exist in a block of this family."""
        named = (*self.qkv, self.attention, self.out_proj, self.attn_added, self.mlp_in, self.mlp_added)
        return (*named, *(norm for norm in (self.attn_norm, self.mlp_norm) if norm))


_POST_NORMS = ("pre_feedforward_layernorm", "post_feedforward_layernorm")

_LLAMA = Family(
    name="llama",
    attention="self_attn",
    out_proj="self_attn.o_proj",
    qkv=("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    attn_added="self_attn",
    mlp_in="mlp",
    mlp_added="mlp",
    attn_norm="input_layernorm",
    mlp_norm="post_attention_layernorm",
    absent=_POST_NORMS,
)
_GEMMA2 = replace(
    _LLAMA,
    name="gemma2",
    attn_added="post_attention_layernorm",
    mlp_added="post_feedforward_layernorm",
    mlp_norm="pre_feedforward_layernorm",
    absent=(),
    post_norms=True,
    note="attn_out and mlp_out are read after the post-norms: they are what is added",
)
_OLMO2 = replace(
    _GEMMA2,
    name="olmo2",
    attn_norm=None,
    mlp_norm=None,
    absent=("input_layernorm", "pre_feedforward_layernorm"),
    note="attention and MLP read the residual stream as it is; their outputs are normed before they are added",
)
_PHI3 = replace(_LLAMA, name="phi3", qkv=("self_attn.qkv_proj",), fused="concat")
_PHI = replace(
    _LLAMA,
    name="phi",
    out_proj="self_attn.dense",
    mlp_norm="input_layernorm",
    absent=("post_attention_layernorm",),
    parallel=True,
)
_OPT = replace(
    _LLAMA,
    name="opt",
    out_proj="self_attn.out_proj",
    mlp_in="fc1",
    mlp_added="fc2",
    attn_norm="self_attn_layer_norm",
    mlp_norm="final_layer_norm",
    absent=(),
    flat_mlp=True,
    note="q is read before it is scaled by d_head ** -0.5; the MLP has no module of its own (fc1, fc2)",
)
_GPT2 = replace(
    _LLAMA,
    name="gpt2",
    attention="attn",
    out_proj="attn.c_proj",
    qkv=("attn.c_attn",),
    fused="concat",
    attn_added="attn",
    attn_norm="ln_1",
    mlp_norm="ln_2",
    absent=("crossattention",),
)
_GPTJ = replace(
    _GPT2,
    name="gptj",
    out_proj="attn.out_proj",
    qkv=("attn.q_proj", "attn.k_proj", "attn.v_proj"),
    fused=None,
    mlp_norm="ln_1",
    absent=("ln_2",),
    parallel=True,
)
_NEOX = replace(
    _LLAMA,
    name="gpt_neox",
    attention="attention",
    out_proj="attention.dense",
    qkv=("attention.query_key_value",),
    fused="interleaved",
    attn_added="attention",
    absent=(),
    parallel=None,
)
_BLOOM = replace(
    _NEOX,
    name="bloom",
    attention="self_attention",
    out_proj="self_attention.dense",
    qkv=("self_attention.query_key_value",),
    attn_added="self_attention.dense",
    mlp_added="mlp.dense_4h_to_h",
    parallel=False,
    note="the attention and MLP modules return the residual with their output added; attn_out and mlp_out are "
    "therefore read at the last linear map of each, before the addition",
)

# The first family that fits is taken.
FAMILIES: tuple[Family, ...] = (_GEMMA2, _OLMO2, _LLAMA, _PHI3, _PHI, _GPT2, _GPTJ, _NEOX, _BLOOM, _OPT)


def submodule(block: nn.Module, path: str) -> nn.Module | None:
    """The submodule at a dotted path, or None."""
    here: nn.Module | None = block
    for part in path.split("."):
        here = getattr(here, part, None)
        if here is None:
            return None
    return here


def match_family(block: nn.Module, *, name: str) -> Family:
    """The family whose structure `block` has.

    Raises:
        ModelRefusedError: No family fits; the message lists the block's parts.
    """
    for family in FAMILIES:
        present = all(submodule(block, path) is not None for path in family.paths)
        if present and not any(submodule(block, path) is not None for path in family.absent):
            return family
    raise ModelRefusedError(
        f"the blocks of model {name!r} have a structure that is not known",
        expected="a block built like one of " + ", ".join(family.name for family in FAMILIES),
        found=f"{type(block).__name__} with {', '.join(child for child, _ in block.named_children())}",
        fix="open another model, or add the family to latentkt/models/families.py",
    )


def find_layers(model: nn.Module, *, name: str) -> tuple[str, tuple[nn.Module, ...]]:
    """The module list of the decoder's blocks: its dotted path in the model and the blocks in order.

    Raises:
        ModelRefusedError: There is none, or more than one.
    """
    from torch import nn as torch_nn

    n_layers = getattr(model.config, "num_hidden_layers", None)
    found = [
        (path, module)
        for path, module in model.named_modules()
        if isinstance(module, torch_nn.ModuleList) and len(module) == n_layers and "." in path
    ]
    if len(found) != 1:
        raise ModelRefusedError(
            f"the decoder of model {name!r} was not found",
            expected=f"one list of {n_layers} blocks (config.num_hidden_layers)",
            found=", ".join(path for path, _ in found) or "none",
            fix="open a decoder-only causal language model",
        )
    path, layers = found[0]
    return path, tuple(layers)
