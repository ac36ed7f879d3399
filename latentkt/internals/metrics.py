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
        first_token_log_odds: Log-odds of the first tokens in which the two answers differ, each after its own answer's
            beginning.
    """

    logp_correct: float
    logp_shortcut: float
    first_token_log_odds: float

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
    differ = branches.first_difference
    n_readers = resid.shape[1]
    scores: list[AnswerScore] = []
    for part in resid.split(max(1, rows // n_readers)):
        logp = handle.unembed(part).float().log_softmax(-1)  # [variant, reader, vocab]
        correct, shortcut = (logp[:, pick[:, 0], pick[:, 1]].double() for pick in picks)
        first = correct[:, differ] - shortcut[:, differ]
        rows_of = torch.stack([correct.sum(-1), shortcut.sum(-1), first], -1).tolist()
        scores.extend(AnswerScore(*row) for row in rows_of)
    return scores
