"""The two answers as two branches of one sequence.

A prompt and its two answers are three pieces: the prompt, the answer y*, the answer y_s. Both answers continue the same
prompt, so a run that scores both needs the prompt once. `Branches` lays the pieces out in one packed sequence

    p_0 … p_{P-1}   a_0 … a_{m-1}   b_0 … b_{n-1}

in which an answer's token sees the prompt and its own branch, never the other. Its true position (`position`) is that
of the plain sequence prompt + answer, and every number that depends on position is taken from there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Bool, Int

__all__ = ["Branches"]


@dataclass(frozen=True)
class Branches:
    """Layout of a prompt and its two answers; row 0 is prompt + y*, row 1 is prompt + y_s.

    An answer's last token is predicted but never read, so it is not an input: a branch holds the answer but its last
    token.

    Attributes:
        prompt: Token ids of the prompt.
        answers: Token ids of y* and of y_s, each with its terminator where one is scored.
    """

    prompt: tuple[int, ...]
    answers: tuple[tuple[int, ...], tuple[int, ...]]

    @property
    def n_prompt(self) -> int:
        """Number of prompt tokens P."""
        return len(self.prompt)

    @property
    def first_difference(self) -> int:
        """Index of the first token in which the answers differ."""
        return next(i for i, (a, b) in enumerate(zip(*self.answers, strict=False)) if a != b)

    @property
    def row(self) -> Int[np.ndarray, "token"]:
        """Which plain sequence a packed token belongs to; the prompt's belong to both and are counted to row 0."""
        lengths = [len(answer) - 1 for answer in self.answers]
        return np.repeat([0, 0, 1], [self.n_prompt, *lengths])

    @property
    def position(self) -> Int[np.ndarray, "token"]:
        """Position of each packed token in its plain sequence."""
        branches = [np.arange(len(answer) - 1) + self.n_prompt for answer in self.answers]
        return np.concatenate([np.arange(self.n_prompt), *branches])

    @property
    def sequences(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The two plain sequences, without the answers' last tokens."""
        return (self.prompt + self.answers[0][:-1], self.prompt + self.answers[1][:-1])

    @property
    def packed(self) -> tuple[int, ...]:
        """Token id of each packed token."""
        return self.prompt + self.answers[0][:-1] + self.answers[1][:-1]

    @property
    def sees(self) -> Bool[np.ndarray, "query key"]:
        """Whether a packed token may attend to another: earlier, and in the prompt or its own branch."""
        row, position = self.row, self.position
        in_prompt = np.arange(len(row)) < self.n_prompt
        same = in_prompt[None, :] | (~in_prompt[:, None] & (row[:, None] == row[None, :]))
        return same & (position[None, :] <= position[:, None])

    @property
    def readers(self) -> Int[np.ndarray, "reader"]:
        """Packed tokens whose logits score an answer: the last prompt token, then both branches."""
        return np.arange(self.n_prompt - 1, len(self.row))

    def targets(self) -> tuple[Sequence[tuple[int, int]], Sequence[tuple[int, int]]]:
        """For each answer the (index into `readers`, token id) pairs whose log-probabilities sum to its score."""
        first, second = self.answers
        start = len(first)  # reader 0 is the last prompt token, then len(first) - 1 of branch 0
        return (
            list(zip(range(len(first)), first, strict=True)),
            list(zip([0, *range(start, start + len(second) - 1)], second, strict=True)),
        )
