"""Log-probabilities of whole answers, in batches.

A prompt is run once: its keys and values serve both answers. Prompts of a batch are padded on the left, so that
answers follow their prompts without a gap and sliding windows stay what they are; answers are padded on the right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from latentkt.errors import InputError
from latentkt.models.answers import AnswerSet
from latentkt.models.tokens import Encoded

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.models.handle import ModelHandle

__all__ = ["AnswerScores", "neutral_corrected", "score_answers"]

_ROWS_AT_ONCE = 256


@dataclass(frozen=True, slots=True, eq=False)
class AnswerScores:
    """Scores of two answers after each prompt, one entry a prompt, in nats.

    Attributes:
        logp_correct: log P(y* and terminator), summed over its tokens.
        logp_shortcut: log P(y_s and terminator).
        logp_correct_open: log P(y*) without its terminator.
        logp_shortcut_open: log P(y_s) without its terminator.
        first_token_log_odds: log P of y*'s token − log P of y_s's token where the two first differ.
        n_correct: Tokens of y* with its terminator.
        n_shortcut: Tokens of y_s with its terminator.
    """

    logp_correct: Float[np.ndarray, " prompt"]
    logp_shortcut: Float[np.ndarray, " prompt"]
    logp_correct_open: Float[np.ndarray, " prompt"]
    logp_shortcut_open: Float[np.ndarray, " prompt"]
    first_token_log_odds: Float[np.ndarray, " prompt"]
    n_correct: Float[np.ndarray, " prompt"]
    n_shortcut: Float[np.ndarray, " prompt"]

    @property
    def log_odds(self) -> Float[np.ndarray, " prompt"]:
        """Answer log-odds: log P(y*) − log P(y_s), terminators included."""
        return self.logp_correct - self.logp_shortcut

    @property
    def log_odds_open(self) -> Float[np.ndarray, " prompt"]:
        """The same without terminators."""
        return self.logp_correct_open - self.logp_shortcut_open

    @property
    def mean_log_odds(self) -> Float[np.ndarray, " prompt"]:
        """Difference of the means per token, terminators included."""
        return self.logp_correct / self.n_correct - self.logp_shortcut / self.n_shortcut

    def to_frame(self) -> pd.DataFrame:
        """A table with one row a prompt: every attribute and every log-odds."""
        import pandas as pd

        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        columns |= {name: getattr(self, name) for name in ("log_odds", "log_odds_open", "mean_log_odds")}
        return pd.DataFrame(columns)


def neutral_corrected(scores: AnswerScores, neutral: AnswerScores) -> Float[np.ndarray, " prompt"]:
    """Log-odds after the prompt minus log-odds of the same strings after the neutral prompt, in nats.

    Raises:
        InputError: The two hold another number of prompts, or answers of other lengths.
    """
    same = len(scores.n_correct) == len(neutral.n_correct) and bool(
        (scores.n_correct == neutral.n_correct).all() and (scores.n_shortcut == neutral.n_shortcut).all()
    )
    if not same:
        raise InputError(
            "the neutral scores do not belong to the same answers",
            expected="the same strings after both prompts, in the same order",
            found=f"{len(scores.n_correct)} and {len(neutral.n_correct)} prompts",
        )
    return scores.log_odds - neutral.log_odds


def score_answers(
    handle: ModelHandle,
    prompts: Sequence[Encoded],
    answers: Sequence[AnswerSet],
    *,
    batch_tokens: int = 4096,
) -> AnswerScores:
    """Score both answers of each prompt.

    The result does not depend on what else is in the batch beyond rounding (≤ 1e-4 nat, tested).

    Args:
        handle: The model.
        prompts: Encoded prompts.
        answers: Their answers, one set a prompt.
        batch_tokens: At most so many prompt tokens, padding included, are run at once; a longer prompt runs alone.

    Raises:
        InputError: There are more prompts than answers, or fewer, or `batch_tokens` is not positive.
    """
    if len(prompts) != len(answers):
        raise InputError("prompts and answers do not match", expected=f"{len(prompts)} answer sets", found=len(answers))
    if batch_tokens < 1:
        raise InputError("batch_tokens must be positive", expected=">= 1", found=batch_tokens)
    table = np.full((len(prompts), len(fields(AnswerScores))), np.nan)
    for batch in _batches(prompts, batch_tokens):
        with torch.no_grad():
            table[batch] = _score_batch(handle, [prompts[n] for n in batch], [answers[n] for n in batch])
    return AnswerScores(*table.T.copy())


def _batches(prompts: Sequence[Encoded], budget: int) -> Iterator[list[int]]:
    """Indices in batches of like length, longest first: the first batch shows whether memory suffices."""
    batch: list[int] = []
    width = 1
    for number in sorted(range(len(prompts)), key=lambda n: (-len(prompts[n]), n)):
        if batch and (len(batch) + 1) * width > budget:
            yield batch
            batch = []
        if not batch:
            width = len(prompts[number])
        batch.append(number)
    if batch:
        yield batch


def _padded(rows: Sequence[Sequence[int]], *, left: bool, handle: ModelHandle) -> tuple[Tensor, Tensor]:
    """Rows as one tensor, with its mask. What stands in the padding does not matter; it is a valid id."""
    width = max(map(len, rows))
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for n, row in enumerate(rows):
        place = slice(width - len(row), width) if left else slice(0, len(row))
        ids[n, place], mask[n, place] = torch.tensor(row, dtype=torch.long), 1
    return ids.to(handle.device), mask.to(handle.device)


def _score_batch(handle: ModelHandle, prompts: list[Encoded], answers: list[AnswerSet]) -> Float[np.ndarray, "row 7"]:
    from transformers import DynamicCache

    cache = DynamicCache(config=handle.config)
    ids, prompt_mask = _padded([prompt.ids for prompt in prompts], left=True, handle=handle)
    first = handle.run_blocks(ids, prompt_mask, cache=cache)[:, -1:]
    rows = [ids for answer in answers for ids in (answer.correct_ids, answer.shortcut_ids)]
    cache.batch_repeat_interleave(2)
    ids, mask = _padded([row[:-1] for row in rows], left=False, handle=handle)
    rest = handle.run_blocks(ids, torch.cat([prompt_mask.repeat_interleave(2, 0), mask], 1), cache=cache)
    resid = torch.cat([first.repeat_interleave(2, 0), rest], 1)
    logp = _token_logp(handle, resid, rows)
    return np.array([_summary(logp[2 * n], logp[2 * n + 1], answer) for n, answer in enumerate(answers)])


def _token_logp(
    handle: ModelHandle, resid: Float[Tensor, "row pos d_model"], rows: Sequence[Sequence[int]]
) -> list[Float[np.ndarray, " token"]]:
    """Log-probability of each token of each row; the vocabulary is spread out for these positions only."""
    lengths = [len(row) for row in rows]
    chosen = torch.cat([resid[n, :length] for n, length in enumerate(lengths)])
    targets = torch.tensor([token for row in rows for token in row], device=resid.device)
    parts = []
    for vectors, wanted in zip(chosen.split(_ROWS_AT_ONCE), targets.split(_ROWS_AT_ONCE), strict=True):
        logits = handle.unembed(vectors)
        parts.append(logits.gather(1, wanted[:, None])[:, 0] - logits.logsumexp(1))
    flat = torch.cat(parts).double().cpu().numpy()
    return np.split(flat, np.cumsum(lengths)[:-1])


def _summary(
    correct: Float[np.ndarray, " n"], shortcut: Float[np.ndarray, " m"], answer: AnswerSet
) -> tuple[float, ...]:
    at = answer.first_difference
    return (
        correct.sum(),
        shortcut.sum(),
        correct[:-1].sum(),
        shortcut[:-1].sum(),
        correct[at] - shortcut[at],
        float(len(correct)),
        float(len(shortcut)),
    )
