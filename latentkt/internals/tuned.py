"""Tuned lens: one affine map a layer, trained so that its reading comes near to the model's own (Belrose et al. 2023).

A plain logit lens is biased in early layers, which write in another basis than the last. A translator h + A h + b is
trained a layer, on the user's text or on items, by the KL divergence from the model's own distribution. It belongs to
the weights it was trained on and is refused on others.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from latentkt.errors import DataError, InputError
from latentkt.internals.engines import engine_of
from latentkt.models.devices import naming_out_of_memory

if TYPE_CHECKING:
    import pandas as pd
    from jaxtyping import Float
    from torch import Tensor

    from latentkt.internals.engines.base import Engine
    from latentkt.models import Encoded, ModelHandle

__all__ = ["TunedLens", "load_tuned_lens", "train_tuned_lens"]


@dataclass(frozen=True, eq=False)
class TunedLens:
    """Translators of one model; give it as `translate` to `answer_lens` or `token_lens`.

    Attributes:
        matrix: [entry, d_model, d_model]: A of each entry (0 the embedding, l + 1 behind layer l; the last is not
            there).
        bias: [entry, d_model].
        metadata: The model's identity, what it was trained on, the curve.
    """

    matrix: Float[Tensor, "entry d_model d_model"]
    bias: Float[Tensor, "entry d_model"]
    metadata: dict[str, Any]
    kind: str = "tuned"

    def __call__(self, entry: int, resid: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """`resid` in the basis of the last layer; the last entry is left as it is."""
        if entry == len(self.matrix):
            return resid
        moved = resid.float() @ self.matrix[entry].T + self.bias[entry]
        return resid + moved.to(resid.dtype)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write `FILE.safetensors`; an existing file is replaced."""
        from safetensors.torch import save_file

        file = Path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_name(f".{file.name}.{os.getpid()}")
        tensors = {"matrix": self.matrix.contiguous(), "bias": self.bias.contiguous()}
        save_file(tensors, partial, metadata={"latentkt": json.dumps(self.metadata)})
        partial.rename(file)
        return file


def load_tuned_lens(path: str | os.PathLike[str], handle: ModelHandle) -> TunedLens:
    """Read translators, for the model that they were trained on.

    Raises:
        DataError: The file holds no tuned lens, or one of another model.
    """
    from safetensors import safe_open

    if not Path(path).is_file():
        raise DataError(f"there is no tuned lens {path}", expected="a file written by TunedLens.save")
    with safe_open(str(path), framework="pt") as file:
        metadata = json.loads((file.metadata() or {}).get("latentkt", "null"))
        if metadata is None:
            raise DataError(f"{path} holds no tuned lens", expected="a file written by TunedLens.save")
        if metadata["model"]["weight_hash"] != handle.weight_hash:
            raise DataError(
                f"the tuned lens {path} belongs to another model",
                expected=f"weights {handle.weight_hash[:16]}… ({handle.name})",
                found=f"weights {metadata['model']['weight_hash'][:16]}… ({metadata['model']['model']})",
                fix="train it on this model",
            )
        return TunedLens(file.get_tensor("matrix"), file.get_tensor("bias"), metadata)


@naming_out_of_memory("training a tuned lens", fix="lower tokens_at_once, or train on fewer prompts")
def train_tuned_lens(
    model: ModelHandle | Engine,
    prompts: Sequence[Encoded],
    *,
    steps: int = 250,
    learning_rate: float = 1e-3,
    tokens_at_once: int = 64,
    held_out: float = 0.2,
    seed: int = 0,
    engine: str = "fast",
) -> tuple[TunedLens, pd.DataFrame]:
    """Train one affine translator a layer on the tokens of prompts; special tokens are left out.

    Args:
        model: An opened model, or an engine.
        prompts: The user's texts or items, encoded.
        steps: Steps of Adam; each draws `tokens_at_once` tokens.
        learning_rate: Its rate.
        tokens_at_once: Tokens a step; bounds memory with the vocabulary.
        held_out: Share of prompts that are kept for measuring, at least one.
        seed: Seed of the split and of the draws.
        engine: Which engine reads the residual stream.

    Returns:
        The lens, and one row a layer (−1 = embedding): `kl_logit` and `kl_tuned`, the mean KL divergence (nats) from
        the model's own distribution on held-out prompts, without and with the translator.

    Raises:
        InputError: Fewer than two prompts.
    """
    import pandas as pd

    if len(prompts) < 2:
        raise InputError(
            "a tuned lens needs prompts to train on and one to measure", expected="2 or more", found=len(prompts)
        )
    runner = engine_of(model, engine)
    handle, generator = runner.handle, torch.Generator().manual_seed(seed)
    order = torch.randperm(len(prompts), generator=generator).tolist()
    n_held = max(1, round(held_out * len(prompts)))
    test = _stream(runner, [prompts[n] for n in order[:n_held]])
    train = _stream(runner, [prompts[n] for n in order[n_held:]])
    n_entries, width = handle.n_layers, handle.d_model
    matrix = torch.zeros(n_entries, width, width, device=handle.device, requires_grad=True)
    bias = torch.zeros(n_entries, width, device=handle.device, requires_grad=True)
    optimiser = torch.optim.Adam([matrix, bias], lr=learning_rate)
    with torch.enable_grad():
        for step in range(steps):
            for group in optimiser.param_groups:
                group["lr"] = learning_rate * (1 - step / steps)
            drawn = torch.randint(train.shape[1], (min(tokens_at_once, train.shape[1]),), generator=generator)
            optimiser.zero_grad()
            batch = train[:, drawn]
            with torch.no_grad():
                truth = handle.unembed(batch[-1]).log_softmax(-1)
            for entry in range(n_entries):  # one layer's logits at a time
                resid = batch[entry]
                moved = resid + resid @ matrix[entry].T + bias[entry]
                _kl(truth, handle.unembed(moved).log_softmax(-1)).mean().backward()
            optimiser.step()
    metadata = {"model": handle.metadata(), "n_prompts": len(prompts), "steps": steps, "seed": seed}
    lens = TunedLens(matrix.detach().cpu(), bias.detach().cpu(), metadata)
    rows = []
    with torch.inference_mode():
        for entry in range(n_entries):
            plain, tuned = (_measure(handle, test, entry, one) for one in (None, lens))
            rows.append({"layer": entry - 1, "kl_logit": plain, "kl_tuned": tuned, "n_tokens": test.shape[1]})
    return lens, pd.DataFrame(rows)


def _stream(engine: Engine, prompts: Sequence[Encoded]) -> Float[Tensor, "entry token d_model"]:
    keys = [("resid_pre", 0), *(("resid_post", layer) for layer in range(engine.handle.n_layers))]
    parts = []
    for prompt in prompts:
        kept = [p for p, special in enumerate(prompt.is_special) if not special]
        values = engine.values(prompt.ids, keys)
        parts.append(torch.stack([values[key][kept] for key in keys]).float())
    return torch.cat(parts, 1).clone()


def _measure(handle: ModelHandle, stream: Tensor, entry: int, lens: TunedLens | None, rows: int = 64) -> float:
    total = 0.0
    for resid, last in zip(stream[entry].split(rows), stream[-1].split(rows), strict=True):
        truth = handle.unembed(last).log_softmax(-1)
        moved = resid if lens is None else lens(entry, resid)
        total += float(_kl(truth, handle.unembed(moved).log_softmax(-1)).sum())
    return total / stream.shape[1]


def _kl(truth: Tensor, read: Tensor) -> Tensor:
    return (truth.exp() * (truth - read)).sum(-1)
