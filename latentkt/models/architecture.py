"""A decoder as latentkt sees it: its blocks, its norms, its read-out, and its named sites."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from latentkt.errors import InputError, ModelRefusedError
from latentkt.models.families import Family, find_layers, match_family, submodule
from latentkt.models.norms import NormReading, read_norm
from latentkt.models.sites import SITES, Layout, SiteAccess

__all__ = ["Architecture", "describe"]

_FINAL_NORMS = ("norm", "ln_f", "final_layer_norm", "final_layernorm")
_CACHE_KEYWORDS = ("cache", "layer_past", "past_key_values", "past_key_value")
_SELF_NORMS = {"q": ("q_norm", "q_layernorm"), "k": ("k_norm", "k_layernorm")}


@dataclass(frozen=True, slots=True, eq=False)
class Architecture:
    """The adapter of one model.

    Attributes:
        family: What is known of the block's structure.
        layers: The blocks, first to last.
        decoder: The module that holds the blocks, the final norm and (where it has one) `rotary_emb`.
        final_norm: The norm after the last block, or None.
        project_out: A linear map between final norm and unembedding (some OPT models), or None.
        unembedding: The module that gives logits.
        softcap: The cap of the final logits, or None.
        n_heads: Query heads of a layer.
        n_kv_heads: Key/value heads of a layer.
        d_head: Width of a head.
        parallel: Attention and MLP read the same residual stream, so there is no `resid_mid`.
        post_norms: What attention and MLP give is normed before it is added.
        eager: Attention is eager, so the pattern exists.
        cache_keyword: What the model's forward calls the key/value cache.
        layer_cache_keyword: What a block's forward calls it.
    """

    family: Family
    layers: tuple[nn.Module, ...]
    decoder: nn.Module
    final_norm: nn.Module | None
    project_out: nn.Module | None
    unembedding: nn.Module
    softcap: float | None
    n_heads: int
    n_kv_heads: int
    d_head: int
    parallel: bool
    post_norms: bool
    eager: bool
    cache_keyword: str | None
    layer_cache_keyword: str | None

    def part(self, layer: int, path: str) -> nn.Module:
        """The module at a dotted path of the block, as `Family` names it."""
        found = submodule(self.layers[layer], path)
        if found is None:
            raise ModelRefusedError(f"layer {layer} has no part {path!r}", expected="blocks of one structure")
        return found

    def attention(self, layer: int) -> nn.Module:
        """The attention module of a layer."""
        return self.part(layer, self.family.attention)

    def mlp(self, layer: int) -> nn.Module:
        """The module that takes the normed input of the MLP (OPT: its first linear map)."""
        return self.part(layer, self.family.mlp_in)

    def out_proj(self, layer: int) -> nn.Module:
        """The output projection of attention."""
        return self.part(layer, self.family.out_proj)

    def out_weight(self, layer: int) -> Float[Tensor, "n_heads d_head d_model"]:
        """W_O by head: `z[head] @ out_weight[head]`, summed over heads, is attention's output before its bias."""
        module = self.out_proj(layer)
        weight = module.weight if isinstance(module, nn.Linear) else module.weight.T  # GPT-2 stores [in, out]
        return weight.T.unflatten(0, (self.n_heads, self.d_head))

    def attn_norm(self, layer: int) -> NormReading | None:
        """The norm before attention in closed form; None where attention reads the bare residual stream."""
        path = self.family.attn_norm
        return read_norm(self.part(layer, path)) if path else None

    def mlp_norm(self, layer: int) -> NormReading | None:
        """The norm before the MLP in closed form; None where the MLP reads the bare residual stream."""
        path = self.family.mlp_norm
        return read_norm(self.part(layer, path)) if path else None

    @property
    def rotary(self) -> nn.Module | None:
        """The module that makes rotary position embeddings, where the decoder has one."""
        return getattr(self.decoder, "rotary_emb", None)

    @property
    def sites(self) -> tuple[str, ...]:
        """The sites that this model has, in the order of `SITES`."""
        missing = {"resid_mid"} if self.parallel else set()
        if not self.eager:
            missing.add("pattern")
        return tuple(site for site in SITES if site not in missing)

    def site(self, name: str, layer: int) -> SiteAccess:
        """Where a site of a layer is, and how it is read and replaced.

        Raises:
            InputError: The site's name is unknown, the layer is out of range, or this model lacks the site.
        """
        if name not in SITES:
            raise InputError(f"unknown site {name!r}", expected=", ".join(SITES), found=name)
        if not 0 <= layer < len(self.layers):
            raise InputError(f"layer {layer} does not exist", expected=f"0 to {len(self.layers) - 1}", found=layer)
        if name not in self.sites:
            why = (
                "attention and MLP of this model read the same residual stream (parallel blocks)"
                if name == "resid_mid"
                else "attention probabilities exist only with attn_implementation='eager'"
            )
            raise InputError(f"this model has no site {name!r}: {why}", expected=", ".join(self.sites), found=name)
        if name.startswith("resid"):
            return self._residual(name, layer)
        if name in {"q", "k", "v"}:
            return self._projection(name, layer)
        return self._inner(name, layer)

    def _residual(self, name: str, layer: int) -> SiteAccess:
        block = self.layers[layer]
        if name == "resid_pre":
            return SiteAccess(name, layer, "before the block and all its norms", block, "input", block)
        if name == "resid_post":
            return SiteAccess(name, layer, "after the block; no norm is applied yet", block, "output", block)
        added = self.part(layer, self.family.attn_added)
        place = "after attention is added, before the norm of the MLP"
        return SiteAccess(name, layer, place, added, "output", block, on_residual=True)

    def _inner(self, name: str, layer: int) -> SiteAccess:
        block, family = self.layers[layer], self.family
        if name == "z":
            layout = Layout("heads", self.n_heads, self.d_head)
            return SiteAccess(
                name, layer, "input of the output projection", self.out_proj(layer), "input", block, layout
            )
        if name == "pattern":
            place = "softmax of the scores; read only"
            module = self.attention(layer)
            return SiteAccess(name, layer, place, module, "output", block, index=1, writable=False)
        place = "after the post-norm: what is added" if self.post_norms else "what is added; no norm after it"
        path = family.attn_added if name == "attn_out" else family.mlp_added
        flat = name == "mlp_out" and family.flat_mlp
        return SiteAccess(
            name, layer, place, self.part(layer, path), "output", block, Layout("flat") if flat else Layout()
        )

    def _projection(self, name: str, layer: int) -> SiteAccess:
        block, number = self.layers[layer], "qkv".index(name)
        heads = self.n_heads if name == "q" else self.n_kv_heads
        place = "after the norm, the projection and its bias, before rotary"
        normed = any(hasattr(self.attention(layer), norm) for norm in _SELF_NORMS.get(name, ()))
        if normed:
            place += f" and before the {name}-norm"
        if self.family.fused is None:
            module = self.part(layer, self.family.qkv[number])
            return SiteAccess(name, layer, place, module, "output", block, Layout("heads", heads, self.d_head))
        module = self.part(layer, self.family.qkv[0])
        if self.family.fused == "interleaved":
            layout = Layout("interleaved", heads, self.d_head, number)
        else:
            start = (0, self.n_heads, self.n_heads + self.n_kv_heads)[number] * self.d_head
            layout = Layout("heads", heads, self.d_head, start)
        return SiteAccess(name, layer, place, module, "output", block, layout)

    def unembed(self, resid: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch vocab"]:
        """Final norm, unembedding, its bias and the softcap, on a residual stream; float32 logits."""
        if self.final_norm is not None:
            resid = self.final_norm(resid)
        if self.project_out is not None:
            resid = self.project_out(resid)
        logits = self.unembedding(resid)
        if self.softcap is not None:
            logits = self.softcap * torch.tanh(logits / self.softcap)
        return logits.float()


def describe(model: nn.Module, *, name: str) -> Architecture:
    """Find the parts of a Hugging Face causal language model by structure.

    Raises:
        ModelRefusedError: The model is no decoder-only language model, or its structure is not known.
    """
    config = model.config
    unembedding = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    if getattr(config, "is_encoder_decoder", False) or unembedding is None:
        raise ModelRefusedError(
            f"model {name!r} is no decoder-only language model",
            expected="a causal language model with an unembedding (…ForCausalLM)",
            found=type(model).__name__,
            fix="load it with transformers.AutoModelForCausalLM",
        )
    path, layers = find_layers(model, name=name)
    family = match_family(layers[0], name=name)
    _refuse_post_norm_blocks(layers[0], name)
    decoder = model.get_submodule(path.rpartition(".")[0])
    n_heads = config.num_attention_heads
    parallel = family.parallel if family.parallel is not None else bool(layers[0].use_parallel_residual)
    return Architecture(
        family=family,
        layers=layers,
        decoder=decoder,
        final_norm=next((m for n in _FINAL_NORMS if (m := getattr(decoder, n, None)) is not None), None),
        project_out=getattr(decoder, "project_out", None),
        unembedding=unembedding,
        softcap=getattr(config, "final_logit_softcapping", None),
        n_heads=n_heads,
        n_kv_heads=getattr(config, "num_key_value_heads", None) or n_heads,
        d_head=_head_width(layers[0], family, config),
        parallel=parallel,
        post_norms=family.post_norms,
        eager=getattr(config, "_attn_implementation", None) == "eager",
        cache_keyword=_cache_keyword(model),
        layer_cache_keyword=_cache_keyword(layers[0]),
    )


def _refuse_post_norm_blocks(block: nn.Module, name: str) -> None:
    """Some OPT models (350m) norm the sum, not the input: nothing that is added can be named there."""
    if getattr(block, "do_layer_norm_before", True) is False:
        raise ModelRefusedError(
            f"model {name!r} norms the residual stream itself, after attention and after the MLP",
            expected="norms that stand before attention and MLP, so that contributions add up",
            found="do_layer_norm_before=False",
            fix="open a model with pre-norm blocks",
        )


def _head_width(block: nn.Module, family: Family, config: Any) -> int:
    width = getattr(config, "head_dim", None)
    return int(width or config.hidden_size // config.num_attention_heads)


def _cache_keyword(module: nn.Module) -> str | None:
    names = inspect.signature(type(module).forward).parameters
    return next((keyword for keyword in _CACHE_KEYWORDS if keyword in names), None)
