"""From the residual stream to the scores of the two answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from latentkt.internals.branches import Branches

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from latentkt.models import ModelHandle

__all__ = ["AnswerScore", "score_branches"]


@dataclass(frozen=True, slots=True)
class AnswerScore:
    """Log-probabilities (nats) of the two answers after one prompt.

    Attributes:
        logp_correct: log P(y*), summed over its tokens and its terminator.
        logp_shortcut: log P(y_s), likewise.
    """

    logp_correct: float
    logp_shortcut: float

    @property
    def log_odds(self) -> float:
        """log P(y*) − log P(y_s): positive where the item's right answer is preferred."""
        return self.logp_correct - self.logp_shortcut


def score_branches(
    handle: ModelHandle, branches: Branches, resid: Float[Tensor, "variant reader d_model"], *, rows: int = 256
) -> list[AnswerScore]:
    """Score both answers from the last layer's output at the tokens that read them.

    Args:
        handle: The model.
        branches: The layout; `resid` holds its `readers` in order.
        resid: Output of the last block.
        rows: Vocabulary-wide rows computed at once; bounds memory.
    """
    picks = [torch.as_tensor(list(target)) for target in branches.targets()]
    n_readers = resid.shape[1]
    scores: list[AnswerScore] = []
    for part in resid.split(max(1, rows // n_readers)):
        logp = handle.unembed(part).float().log_softmax(-1)  # [variant, reader, vocab]
        sums = [logp[:, pick[:, 0], pick[:, 1]].double().sum(-1).tolist() for pick in picks]
        scores.extend(AnswerScore(correct, shortcut) for correct, shortcut in zip(*sums, strict=True))
    return scores
