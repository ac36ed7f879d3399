"""From logits, or from the last residual stream, to the scores of the two answers.

Three metrics: `log_odds` (whole answers, the default), `first_token` (the first tokens in which the answers differ:
needs two columns of the unembedding and no more), or a user's function of the logits at the last prompt token.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from latentkt.errors import InputError
from latentkt.internals.branches import Branches

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from latentkt.models import AnswerSet, ModelHandle, Pair

__all__ = ["AnswerScore", "Scorer", "metric_name", "scorer_for", "scorer_of"]

Metric = Callable[["Tensor"], "Tensor"]


@dataclass(frozen=True, slots=True)
class AnswerScore:
    """Scores (nats) of the two answers after one prompt.

    Attributes:
        value: What is measured: log-odds of y* over y_s, unless another metric was asked for.
        logp_correct: log P(y*), summed over its tokens and its terminator; NaN where the metric does not need it.
        logp_shortcut: log P(y_s), likewise.
        first_token_log_odds: Log-odds of the first tokens in which the two answers differ, each after its own answer's
            beginning.
    """

    value: float
    logp_correct: float
    logp_shortcut: float
    first_token_log_odds: float

    @property
    def log_odds(self) -> float:
        """Log P(y*) − log P(y_s): positive where the item's right answer is preferred."""
        return self.logp_correct - self.logp_shortcut


def metric_name(metric: str | Metric) -> str:
    """The name of a metric in tables."""
    return metric if isinstance(metric, str) else getattr(metric, "__name__", type(metric).__name__)


@dataclass(frozen=True, eq=False)
class Scorer:
    """Scores answers from the logits at the tokens that read them.

    Attributes:
        branches: The layout; with `first_token` the answers end at the token in which they differ.
        metric: `log_odds`, `first_token` or a function of the logits `[batch, vocab]` at the last prompt token.
        rows: Vocabulary-wide rows computed at once; bounds memory.
    """

    branches: Branches
    metric: str | Metric = "log_odds"
    rows: int = 256

    def from_logits(self, logits: Float[Tensor, "variant reader vocab"]) -> list[AnswerScore]:
        """Scores from the logits of the readers of `branches`."""
        return [AnswerScore(*row) for row in self.numbers(logits).tolist()]

    def numbers(self, logits: Float[Tensor, "variant reader vocab"]) -> Float[Tensor, "variant 4"]:
        """The fields of `AnswerScore` as a tensor; gradients pass through."""
        logp = logits.float().log_softmax(-1)
        picks = [torch.as_tensor(list(target), device=logp.device) for target in self.branches.targets()]
        differ = self.branches.first_difference
        correct, shortcut = (logp[:, pick[:, 0], pick[:, 1]].double() for pick in picks)
        first = correct[:, differ] - shortcut[:, differ]
        sums = [correct.sum(-1), shortcut.sum(-1)]
        if self.metric == "log_odds":
            value = sums[0] - sums[1]
        elif self.metric == "first_token":
            value = first
            sums = [torch.full_like(first, torch.nan)] * 2
        else:
            assert callable(self.metric)
            value = self.metric(logits[:, 0].float()).double()
            if value.shape != first.shape:
                raise InputError(
                    f"metric {metric_name(self.metric)!r} gave a wrong shape",
                    expected=f"[{len(first)}]: one number for each row of logits [batch, vocab]",
                    found=list(value.shape),
                )
            if logits.requires_grad and not value.requires_grad:
                raise InputError(
                    f"metric {metric_name(self.metric)!r} has no gradient",
                    expected="a function of the logits made of torch operations that can be differentiated",
                )
        return torch.stack([value, *sums, first], -1)

    def from_resid(self, handle: ModelHandle, resid: Float[Tensor, "variant reader d_model"]) -> list[AnswerScore]:
        """Scores from the last block's output at the readers."""
        if self.metric == "first_token":
            return self._two_columns(handle, resid)
        scores: list[AnswerScore] = []
        for part in resid.split(max(1, self.rows // max(1, resid.shape[1]))):
            scores.extend(self.from_logits(handle.unembed(part)))
        return scores

    def _two_columns(self, handle: ModelHandle, resid: Tensor) -> list[AnswerScore]:
        differ = self.branches.first_difference
        picks = [target[differ] for target in self.branches.targets()]
        rows = torch.stack([resid[:, reader] for reader, _ in picks], 1)
        logits = unembed_columns(handle, rows, [token for _, token in picks])
        first = (logits[:, 0, 0] - logits[:, 1, 1]).double()  # both stand behind the same tokens: one normaliser
        return [AnswerScore(value, float("nan"), float("nan"), value) for value in first.tolist()]


def unembed_columns(
    handle: ModelHandle, resid: Float[Tensor, "*batch d_model"], tokens: list[int]
) -> Float[Tensor, "*batch token"]:
    """The logits of a few tokens, with norm, bias and softcap, without spreading out the vocabulary."""
    arch = handle.arch
    if arch.final_norm is not None:
        resid = arch.final_norm(resid)
    if arch.project_out is not None:
        resid = arch.project_out(resid)
    logits = resid @ arch.unembedding.weight[tokens].T
    bias = getattr(arch.unembedding, "bias", None)
    if bias is not None:
        logits = logits + bias[tokens]
    if arch.softcap is not None:
        logits = arch.softcap * torch.tanh(logits / arch.softcap)
    return logits.float()


def scorer_of(pair: Pair, prompt: tuple[int, ...], metric: str | Metric | None = None) -> Scorer:
    """The scorer of a pair's answers after one of its prompts.

    Args:
        pair: The pair; its own metric is taken where `metric` is None, and the answer log-odds where it has none.
        prompt: Token ids of the run that is scored.
        metric: `log_odds`, `first_token` or a function of the logits `[batch, vocab]` at the last prompt token.

    Raises:
        InputError: The metric's name is unknown.
    """
    return scorer_for(prompt, pair.answers, metric or pair.metric)


def scorer_for(prompt: Sequence[int], answers: AnswerSet, metric: str | Metric | None = None) -> Scorer:
    """The scorer of two answers after a prompt.

    Args:
        prompt: Token ids.
        answers: The answers.
        metric: As in `scorer_of`; the answer log-odds where it is None.

    Raises:
        InputError: The metric's name is unknown.
    """
    chosen = metric or "log_odds"
    both = (tuple(answers.correct_ids), tuple(answers.shortcut_ids))
    if isinstance(chosen, str) and chosen not in ("log_odds", "first_token"):
        raise InputError("unknown metric", expected="log_odds, first_token or a function of logits", found=chosen)
    if chosen == "first_token" or callable(chosen):  # neither reads anything behind the first difference
        stop = answers.first_difference + 1
        both = (both[0][:stop], both[1][:stop])
    return Scorer(Branches(tuple(prompt), both), chosen)
