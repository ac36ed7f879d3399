"""What a device must show before anything is measured on it, and what running out of memory looks like.

MPS has given silently wrong logits in more than one release of torch, so a model on it is held to the CPU's own logits
first. Out of memory is an error like any other: it says what to do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from latentkt.errors import ModelRefusedError, RunError
from latentkt.models.opening import CHECK_PROMPTS, compare_logits

if TYPE_CHECKING:
    from torch import Tensor

    from latentkt.models.handle import ModelHandle

__all__ = ["keep_freed_memory", "logits_of", "naming_out_of_memory", "prove_device", "refuse_other_logits"]

_EXACT, _HALF = 1e-3, 1e-2
_SIGNS = ("out of memory", "not enough memory", "can't allocate memory", "cannot allocate memory")


_KEPT = 31 << 20  # bytes; glibc follows freed blocks up to 32 MiB


def keep_freed_memory() -> None:
    """Let the C library keep the memory of freed tensors, instead of handing it back and having it cleared each time.

    glibc takes large blocks from the system one by one until it sees a large one freed; from then on blocks up to that
    size come from its own heap, of which it keeps up to twice as much. One block of 31 MiB that is taken and freed,
    untouched, teaches it that; otherwise large activations cost a patch sweep a hundred thousand page faults. Other C
    libraries are not affected.
    """
    torch.empty(_KEPT, dtype=torch.uint8)


def logits_of(handle: ModelHandle, prompts: Sequence[str] = CHECK_PROMPTS) -> list[Tensor]:
    """Logits of a few prompts, `[pos, vocab]` each, on the CPU."""
    rows = [torch.tensor([handle.tokenizer(prompt)["input_ids"]]) for prompt in prompts]
    with torch.no_grad():
        return [handle.logits(row)[0].float().cpu() for row in rows]


def prove_device(handle: ModelHandle) -> None:
    """Hold a model's logits where it is to those that it has on the CPU; afterwards it is where it was.

    Raises:
        ModelRefusedError: They differ.
    """
    device = handle.device
    there = logits_of(handle)
    try:
        handle.model.to("cpu")
        here = logits_of(handle)
    finally:
        handle.model.to(device)
    refuse_other_logits(handle, here, there, device=str(device))


def refuse_other_logits(handle: ModelHandle, here: Sequence[Tensor], there: Sequence[Tensor], *, device: str) -> None:
    """Refuse a device whose logits are not the CPU's.

    Args:
        handle: The model.
        here: Its logits on the CPU.
        there: Its logits on `device`, of the same prompts.
        device: What to call it.

    Raises:
        ModelRefusedError: They are further apart than rounding makes them, another token is on top, or one is not
            finite.
    """
    allowed = _EXACT if handle.dtype == torch.float32 else _HALF
    for number, (cpu, other) in enumerate(zip(here, there, strict=True), start=1):
        gap, same = compare_logits(other, cpu, relative=True)
        if not (gap <= allowed and same):
            raise ModelRefusedError(
                f"model {handle.name!r} gives other logits on {device} than on the CPU",
                expected=f"at most {allowed:g} of the largest logit apart, with the same largest logit",
                found=f"{gap:.2e} on prompt {number}",
                fix="open it with device='cpu'",
            )


@contextmanager
def naming_out_of_memory(what: str, *, fix: str) -> Iterator[None]:
    """Turn torch's ways to say that memory ran out into one clear error; also usable as a decorator.

    Args:
        what: What was being done.
        fix: What the reader can do.

    Raises:
        RunError: Memory ran out in the block.

    Example:
        >>> with naming_out_of_memory("a large tensor", fix="ask for less"):
        ...     torch.empty(2**60)
        Traceback (most recent call last):
        ...
        latentkt.errors.RunError: out of memory: a large tensor
        ...
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        told = str(error)
        known = isinstance(error, (torch.OutOfMemoryError, MemoryError))
        if not known and not any(sign in told.lower() for sign in _SIGNS):
            raise
        raise RunError(f"out of memory: {what}", found=told.partition("\n")[0][:200], fix=fix) from error
