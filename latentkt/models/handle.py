"""The handle: one opened model with its tokenizer, its named sites and the proof that it is read rightly."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from latentkt.errors import InputError
from latentkt.models.answers import find_end_of_turn, find_newline
from latentkt.models.architecture import Architecture
from latentkt.models.sites import Edit, attached, record

if TYPE_CHECKING:
    from latentkt.models.opening import OpeningReport

__all__ = ["ModelHandle", "positions_from_mask"]

_NO_LIMIT = 10**9


def positions_from_mask(mask: Int[Tensor, "batch pos"]) -> Int[Tensor, "batch pos"]:
    """Position of each token among the real tokens of its row: padding on either side moves nothing.

    Example:
        >>> positions_from_mask(torch.tensor([[0, 0, 1, 1], [1, 1, 1, 0]])).tolist()
        [[0, 0, 0, 1], [0, 1, 2, 2]]
    """
    return (mask.long().cumsum(-1) - 1).clamp(min=0)


@dataclass(frozen=True, eq=False)
class ModelHandle:
    """An opened model; everything in latentkt that runs a model takes one.

    Attributes:
        name: What was opened: `smollm2`, a folder, a hub id, or the name given to an in-memory model.
        model: The Hugging Face model in eval mode; no parameter requires a gradient.
        tokenizer: Its fast tokenizer.
        arch: Its parts and sites.
        report: The numbers of the opening checks; None where `check=False`.
    """

    name: str
    model: Any
    tokenizer: Any
    arch: Architecture
    report: OpeningReport | None = None

    @property
    def config(self) -> Any:
        """The model's Hugging Face configuration."""
        return self.model.config

    @property
    def n_layers(self) -> int:
        """Number of blocks."""
        return len(self.arch.layers)

    @property
    def n_heads(self) -> int:
        """Query heads of a layer."""
        return self.arch.n_heads

    @property
    def n_kv_heads(self) -> int:
        """Key/value heads of a layer."""
        return self.arch.n_kv_heads

    @property
    def d_model(self) -> int:
        """Width of the residual stream."""
        return int(self.config.hidden_size)

    @property
    def d_head(self) -> int:
        """Width of a head."""
        return self.arch.d_head

    @property
    def vocab_size(self) -> int:
        """Number of logits (it may exceed the tokenizer's vocabulary)."""
        return int(self.config.vocab_size)

    @property
    def n_ctx(self) -> int | None:
        """The longest input in tokens; None where neither model nor tokenizer sets one (ALiBi models)."""
        for source, names in (
            (self.config, ("max_position_embeddings", "n_positions")),
            (self.tokenizer, ("model_max_length",)),
        ):
            for name in names:
                value = getattr(source, name, None)
                if isinstance(value, int) and 0 < value < _NO_LIMIT:
                    return value
        return None

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return next(self.model.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        """The parameters' dtype; logits and metrics are float32 whatever it is."""
        return next(self.model.parameters()).dtype

    @property
    def dtype_name(self) -> str:
        """The dtype as tables name it: `float32`, say."""
        return str(self.dtype).removeprefix("torch.")

    @property
    def attn_implementation(self) -> str:
        """`eager` or `sdpa`."""
        return str(self.config._attn_implementation)

    @property
    def has_chat_template(self) -> bool:
        """Whether the tokenizer has a chat template."""
        return bool(getattr(self.tokenizer, "chat_template", None))

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """Ids of special tokens: the tokenizer's own and every added token marked special."""
        added = getattr(self.tokenizer, "added_tokens_decoder", {})
        marked = {int(number) for number, token in added.items() if token.special}
        return frozenset(marked | set(self.tokenizer.all_special_ids))

    @cached_property
    def weight_hash(self) -> str:
        """SHA-256 over names, shapes, dtypes and bytes of all weights, in the order of their names."""
        digest = hashlib.sha256()
        for key, value in sorted(self.model.state_dict().items()):
            digest.update(f"{key} {tuple(value.shape)} {value.dtype}".encode())
            flat = value.detach().cpu().contiguous().reshape(-1)
            digest.update(flat.view(torch.uint8).numpy().data if flat.numel() else b"")
        return digest.hexdigest()

    @cached_property
    def end_of_turn(self) -> int | None:
        """The id that ends an assistant's turn in this tokenizer's chat template; None without a template."""
        return find_end_of_turn(self)

    @cached_property
    def newline(self) -> int | None:
        """The id of a newline after a word; None where the tokenizer has no single token for it."""
        return find_newline(self)

    @cached_property
    def _takes_positions(self) -> bool:
        return "position_ids" in inspect.signature(type(self.model).forward).parameters

    def inputs(
        self,
        ids: Int[Tensor, "batch pos"],
        mask: Int[Tensor, "batch whole"] | None = None,
        *,
        positions: Int[Tensor, "batch pos"] | None = None,
    ) -> dict[str, Any]:
        """The keyword arguments of a plain forward pass: ids, mask, positions from the mask, no cache.

        With a cache, `mask` also covers the tokens in it and `ids` are the last columns.
        """
        ids = ids.to(self.device)
        mask = torch.ones_like(ids) if mask is None else mask.to(self.device).long()
        found: dict[str, Any] = {"input_ids": ids, "attention_mask": mask, "use_cache": False}
        if self._takes_positions:
            along_mask = positions_from_mask(mask)[:, -ids.shape[1] :]
            found["position_ids"] = along_mask if positions is None else positions.to(self.device)
        elif positions is not None:
            raise InputError(
                f"model {self.name!r} takes no positions", expected="positions=None (they follow from the mask)"
            )
        return found

    def logits(
        self,
        ids: Int[Tensor, "batch pos"],
        mask: Int[Tensor, "batch pos"] | None = None,
        *,
        positions: Int[Tensor, "batch pos"] | None = None,
    ) -> Float[Tensor, "batch pos vocab"]:
        """Logits of the plain model, in float32; gradients are kept where the caller wants them.

        Args:
            ids: Token ids.
            mask: 1 where a token is real, 0 where it is padding; all real where it is None.
            positions: Positions of the tokens; by default counted along the mask.
        """
        return self.model(**self.inputs(ids, mask, positions=positions)).logits.float()

    def run_blocks(
        self, ids: Int[Tensor, "batch pos"], mask: Int[Tensor, "batch whole"] | None = None, *, cache: Any = None
    ) -> Float[Tensor, "batch pos d_model"]:
        """The residual stream that leaves the last block, without spreading out the vocabulary.

        Args:
            ids: Token ids.
            mask: As in `logits`; with a cache, it covers the cached tokens as well.
            cache: A Hugging Face cache that is read and extended.
        """
        inputs = self.inputs(ids, mask)
        if cache is not None:
            if self.arch.cache_keyword is None:
                raise InputError(f"model {self.name!r} takes no key/value cache", expected="cache=None")
            inputs |= {self.arch.cache_keyword: cache, "use_cache": True}
        last = self.arch.site("resid_post", self.n_layers - 1)
        with record([last]) as seen:
            self.model.base_model(**inputs)
        return seen[last.name, last.layer]

    def unembed(self, resid: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch vocab"]:
        """Final norm, unembedding, bias and softcap of a residual stream, in float32.

        On the last block's output this is the model's own logits (proved on opening); on an earlier layer's it is the
        logit lens, with the norm's scale taken from that very vector.
        """
        return self.arch.unembed(resid)

    def record(
        self,
        ids: Int[Tensor, "batch pos"],
        mask: Int[Tensor, "batch pos"] | None,
        sites: Iterable[tuple[str, int]],
    ) -> dict[tuple[str, int], Tensor]:
        """Values of (site, layer) pairs in a plain run, without gradients. Shapes: see `latentkt.models.sites`."""
        accesses = [self.arch.site(name, layer) for name, layer in sites]
        with torch.no_grad(), record(accesses) as values:
            self.model(**self.inputs(ids, mask))
        return values

    def edited_logits(
        self,
        ids: Int[Tensor, "batch pos"],
        mask: Int[Tensor, "batch pos"] | None,
        edits: Mapping[tuple[str, int], Edit],
    ) -> Float[Tensor, "batch pos vocab"]:
        """Logits of a run in which each (site, layer) is replaced by what its edit returns: the slow reference."""
        wanted = [(self.arch.site(name, layer), edit) for (name, layer), edit in edits.items()]
        with attached(wanted):
            return self.logits(ids, mask)

    def metadata(self) -> dict[str, Any]:
        """What a run's `metadata.json` says about the model."""
        libraries = ("latentkt", "torch", "transformers", "tokenizers")
        return {
            "model": self.name,
            "architecture": type(self.model).__name__,
            "weight_hash": self.weight_hash,
            "dtype": self.dtype_name,
            "attn_implementation": self.attn_implementation,
            "device": str(self.device),
            "n_layers": self.n_layers,
            "libraries": {name: _version(name) for name in libraries},
        }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
