"""Letting a model on this machine write: token by token, in batches, until it ends its turn or a limit cuts it off."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from latentkt.models import ModelHandle

__all__ = ["Decoding", "Written", "write_replies"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """How replies are written.

    Attributes:
        max_new_tokens: Longest reply, reasoning included.
        temperature: 0 takes the likeliest token each time, anything above samples.
        top_p: Nucleus of sampling.
        seed: Of sampling.
    """

    max_new_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Written:
    """What was written after one prompt.

    Attributes:
        raw: The text, reasoning included, without the tokens that end it.
        ids: Its tokens.
        ended: Whether it came to its end by itself.
    """

    raw: str
    ids: tuple[int, ...]
    ended: bool


def write_replies(
    handle: ModelHandle, prompts: Sequence[tuple[int, ...]], keys: Sequence[str], decoding: Decoding, *, chat: bool
) -> list[Written]:
    """What the model writes after each prompt, all prompts in one batch.

    Samples are drawn one prompt at a time, each from a seed of its own, so that they do not depend on what else is
    asked or where a run was stopped.

    Args:
        handle: The model.
        prompts: Token ids.
        keys: What tells the prompts apart, for their seeds.
        decoding: How to write.
        chat: Whether the prompts are conversations: a reply then ends with the turn, else with a newline.
    """
    everything = list(range(len(prompts)))
    groups = [[n] for n in everything] if decoding.temperature else [everything]
    found: dict[int, Written] = {}
    for group in groups:
        seed = hashlib.sha256(f"{decoding.seed} {keys[group[0]]}".encode()).digest()[:7]
        for n, row in zip(group, _tokens(handle, [prompts[n] for n in group], decoding, chat, seed), strict=True):
            found[n] = _until_end(handle, row, chat=chat)
    return [found[n] for n in range(len(prompts))]


def _stops(handle: ModelHandle, *, chat: bool) -> set[int]:
    """What ends a reply: the end of turn in chat, the newline in plain, and the end of text in both."""
    ends = {handle.end_of_turn if chat else handle.newline, handle.tokenizer.eos_token_id}
    return {int(end) for end in ends if end is not None}


def _tokens(
    handle: ModelHandle, prompts: Sequence[tuple[int, ...]], decoding: Decoding, chat: bool, seed: bytes
) -> list[list[int]]:
    """New tokens of each prompt, without padding; prompts of a batch are padded on the left."""
    import torch
    from transformers import GenerationConfig

    width = max(map(len, prompts))
    stops = sorted(_stops(handle, chat=chat))
    pad = stops[0] if stops else 0
    ids = torch.full((len(prompts), width), pad)
    mask = torch.zeros_like(ids)
    for n, row in enumerate(prompts):
        ids[n, width - len(row) :], mask[n, width - len(row) :] = torch.tensor(row), 1
    sampling = {"temperature": decoding.temperature, "top_p": decoding.top_p, "top_k": 0}
    config = GenerationConfig(
        max_new_tokens=decoding.max_new_tokens,
        do_sample=bool(decoding.temperature),
        num_beams=1,
        repetition_penalty=1.0,
        pad_token_id=pad,
        eos_token_id=stops or None,
        **(sampling if decoding.temperature else {}),
    )
    device = handle.device
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []), torch.no_grad():
        torch.manual_seed(int.from_bytes(seed, "big"))
        out = handle.model.generate(ids.to(device), attention_mask=mask.to(device), generation_config=config)
    return [row[width:].tolist() for row in out]


def _until_end(handle: ModelHandle, row: list[int], *, chat: bool) -> Written:
    stops = _stops(handle, chat=chat)
    end = next((n for n, token in enumerate(row) if token in stops), None)
    kept = row if end is None else row[:end]
    return Written(handle.tokenizer.decode(kept, skip_special_tokens=True), tuple(kept), end is not None)
