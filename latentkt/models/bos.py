"""The BOS rule, checked on opening: one BOS at most in front, none added to a conversation, nothing after a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from latentkt.errors import LatentKTError, ModelRefusedError
from latentkt.models.tokens import encode

if TYPE_CHECKING:
    from latentkt.models.handle import ModelHandle

__all__ = ["check_tokens"]


def check_tokens(handle: ModelHandle, prompts: Sequence[str]) -> list[Tensor]:
    """Ids of the prompts, after the BOS rule has been checked: plain, and in chat where there is a template."""
    tokenizer, name = handle.tokenizer, handle.name
    bos, eos = tokenizer.bos_token_id, tokenizer.eos_token_id
    rows = []
    for prompt in prompts:
        try:
            ids = encode(handle, prompt, chat=False).ids
        except LatentKTError as error:
            raise ModelRefusedError(
                f"model {name!r} cannot be given a plain prompt: {error.what}",
                expected=error.expected,
                found=error.found,
                fix=error.fix,
            ) from error
        adds_bos = getattr(tokenizer, "add_bos_token", False) is True
        if adds_bos and (bos is None or ids[0] != bos):
            raise ModelRefusedError(
                f"the tokenizer of model {name!r} says that it adds a BOS token and does not",
                expected=f"id {bos} first",
                found=list(ids[:4]),
                fix="repair its post-processor, or set add_bos_token to false in tokenizer_config.json",
            )
        if eos is not None and len(ids) > 1 and ids[-1] == eos:
            raise ModelRefusedError(
                f"the tokenizer of model {name!r} closes every text with its EOS token",
                expected="a prompt that ends with its own last token",
                found=list(ids[-4:]),
                fix="set add_eos_token to false in tokenizer_config.json",
            )
        rows.append(torch.tensor([ids], device=handle.device))
    if handle.has_chat_template:
        _check_chat(handle, prompts[0])
    return rows


def _check_chat(handle: ModelHandle, prompt: str) -> None:
    messages = [{"role": "user", "content": prompt}]
    options: dict[str, Any] = {"add_generation_prompt": True}
    try:
        text = handle.tokenizer.apply_chat_template(messages, tokenize=False, **options)
        own = handle.tokenizer.apply_chat_template(messages, tokenize=True, return_dict=True, **options)["input_ids"]
        ids = encode(handle, text, chat=True).ids
    except LatentKTError as error:
        raise ModelRefusedError(
            f"the chat template of model {handle.name!r} breaks the BOS rule: {error.what}",
            expected=error.expected,
            found=error.found,
            fix="repair its chat template",
        ) from error
    except Exception as error:  # a template is a program: it can raise anything
        raise ModelRefusedError(
            f"the chat template of model {handle.name!r} does not render one user message",
            expected="a template for a user's message and a generation prompt",
            found=f"{type(error).__name__}: {error}",
            fix="repair its chat template, or remove it to use plain prompts",
        ) from error
    if list(own) != list(ids):
        raise ModelRefusedError(
            f"the chat template of model {handle.name!r} gives other ids than the text that it renders",
            expected=list(own)[:12],
            found=list(ids[:12]),
            fix="repair its chat template",
        )
