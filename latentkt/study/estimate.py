"""How long a study will take: forward passes × tokens × the measured time a token, said before it starts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from latentkt.models import Encoded, ModelHandle
    from latentkt.study.stages import Stage

__all__ = ["Estimate", "estimate"]

SAMPLE = 4


@dataclass(frozen=True, slots=True)
class Estimate:
    """Work that is planned and the speed it was measured at.

    Attributes:
        forwards: Forward passes of a whole prompt that the work amounts to (patched runs count by their share).
        tokens: Tokens of a typical prompt.
        ms_per_token: Process time a token, measured on a few prompts on one thread.
        workers: Processes that share the work.
    """

    forwards: float
    tokens: float
    ms_per_token: float
    workers: int

    @property
    def seconds(self) -> float:
        """Expected wall time where every process has a core."""
        return self.forwards * self.tokens * self.ms_per_token / 1000 / self.workers

    def __str__(self) -> str:
        """One sentence with the numbers that it is made of."""
        minutes = self.seconds / 60
        shown = f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"
        if self.seconds < 90:
            shown = f"{self.seconds:.0f} s"
        return (
            f"about {shown}: {self.forwards:,.0f} forward passes of {self.tokens:.0f} tokens "
            f"at {self.ms_per_token:.2f} ms a token, {self.workers} process{'es' if self.workers > 1 else ''}"
        )


def estimate(handle: ModelHandle, stages: Sequence[Stage], prompts: Sequence[Encoded], *, workers: int) -> Estimate:
    """Time a few of the study's own prompts and multiply.

    Args:
        handle: The model.
        stages: What is planned; each knows its forward passes.
        prompts: Prompts of the study; the first few are timed.
        workers: Processes that will share the work.
    """
    import torch

    sample = prompts[:SAMPLE]
    with torch.inference_mode():
        handle.logits(torch.tensor([sample[0].ids]))  # the first pass also pays for what is made once
        begin = time.process_time()
        for prompt in sample:
            handle.logits(torch.tensor([prompt.ids]))
        spent = time.process_time() - begin
    tokens = sum(len(prompt) for prompt in sample)
    forwards = sum(stage.forwards(handle.n_layers) for stage in stages)
    return Estimate(forwards, tokens / len(sample), 1000 * spent / tokens, workers)
