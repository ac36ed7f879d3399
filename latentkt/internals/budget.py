"""How much of a sweep is held in memory at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from latentkt.errors import InputError

if TYPE_CHECKING:
    from latentkt.models import ModelHandle

__all__ = ["Budget", "free_mb"]

_MB = 2**20
_DEFAULT_MB = 600.0
_CHUNK, _STACKED, _VOCABULARY = 0.3, 0.4, 0.3  # shares of the limit
_LEAST_CHUNK, _LEAST_STACKED = 16, 256
_PACK = 40  # a pack's tokens look at each other only to be masked: this many, and attention stays a small part
_MOST_CHUNK = 768  # rows beyond which a matrix product of a small model gets no faster


@dataclass(frozen=True, slots=True)
class Budget:
    """How much is held at once.

    Attributes:
        pack_tokens: Suffixes are packed up to so many tokens.
        chunk_tokens: Rows of a matrix product inside a layer.
        stacked_tokens: Tokens, summed over variants, that the staircase holds; more variants climb in turns.
        vocabulary_rows: Rows of logits.
    """

    pack_tokens: int = _PACK
    chunk_tokens: int = _MOST_CHUNK
    stacked_tokens: int = 60_000
    vocabulary_rows: int = 256

    @classmethod
    def of(cls, handle: ModelHandle, memory_mb: float | None = None) -> Budget:
        """The budget that keeps a sweep's working memory under `memory_mb`, weights and the plain runs not counted.

        None stands for 600, whatever is free: how runs are cut decides their last bits, which must not hang on the
        hour.

        Raises:
            InputError: So little that not even the smallest parts fit, or more than is free.
        """
        asked, memory_mb = memory_mb, _DEFAULT_MB if memory_mb is None else memory_mb
        chunk_bytes, stacked_bytes, row_bytes = _bytes_a_token(handle)
        parts = ((_CHUNK, _LEAST_CHUNK * chunk_bytes), (_STACKED, _LEAST_STACKED * stacked_bytes))
        least = max(size / share for share, size in (*parts, (_VOCABULARY, row_bytes))) / _MB
        if not memory_mb >= least:
            raise InputError(
                f"a sweep on model {handle.name!r} does not fit into memory_mb",
                expected=f"at least {least:.2g} MB",
                found=f"{memory_mb:g} MB",
            )
        free = None if asked is None else free_mb(handle.device)
        if free is not None and memory_mb > free:
            raise InputError(
                "memory_mb is more than is free", expected=f"at most {free:.0f} MB", found=f"{memory_mb:g} MB"
            )
        chunk = min(_MOST_CHUNK, int(_CHUNK * memory_mb * _MB / chunk_bytes))
        return cls(
            pack_tokens=min(_PACK, chunk),
            chunk_tokens=chunk,
            stacked_tokens=int(_STACKED * memory_mb * _MB / stacked_bytes),
            vocabulary_rows=min(256, int(_VOCABULARY * memory_mb * _MB / row_bytes)),
        )


def _bytes_a_token(handle: ModelHandle) -> tuple[int, int, int]:
    """Bytes of a token inside a layer, in the staircase, and spread over the vocabulary."""
    width = int(getattr(handle.config, "intermediate_size", None) or 4 * handle.d_model)
    itemsize = torch.finfo(handle.dtype).bits // 8
    inside = itemsize * (6 * width + 12 * handle.d_model)
    return inside, itemsize * 3 * handle.d_model, 4 * 3 * handle.vocab_size


def free_mb(device: torch.device) -> float | None:
    """Memory that is free on a device; None where the system does not say."""
    if device.type == "cuda":
        return float(torch.cuda.mem_get_info(device)[0]) / _MB
    try:
        told = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines())
        return float(told["MemAvailable"].split()[0]) / 1024
    except (OSError, KeyError, ValueError):
        return None
