"""The metric of runs and its gradient at sites: one forward and one backward pass, through any engine.

A metric of whole answers reads two sequences, prompt + y* and prompt + y_s, which hold the same prompt; they are two
rows of one padded batch. A change of a prompt's activation is a change in both rows, so its gradient is the sum of
theirs. Rows of several runs lie in one batch without meeting each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from latentkt.internals.metrics import AnswerScore, Scorer

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from latentkt.internals.engines.base import Edit, Engine, SiteKey

__all__ = ["Rows", "Slope", "slopes"]


@dataclass(frozen=True, eq=False)
class Slope:
    """One run's metric, and values and gradients at sites.

    Attributes:
        score: The scores of the two answers.
        n_prompt: Number of prompt tokens.
        values: By (site, layer): [row, position, …] on the run's own sequences.
        grads: The gradient of `score.value`, likewise; empty where none was asked for.
    """

    score: AnswerScore
    n_prompt: int
    values: Mapping[SiteKey, Tensor]
    grads: Mapping[SiteKey, Tensor] = field(default_factory=dict)

    def value(self, key: SiteKey) -> Float[Tensor, "position *site"]:
        """The value at the prompt's tokens."""
        return self.values[key][0, : self.n_prompt]

    def grad(self, key: SiteKey) -> Float[Tensor, "position *site"]:
        """The gradient at the prompt's tokens, of a change in every row."""
        return self.grads[key][:, : self.n_prompt].sum(0)


@dataclass(frozen=True, eq=False)
class Rows:
    """The sequences of several runs as one padded batch.

    Attributes:
        scorers: One a run.
        ids: [row, position], padded on the right with a valid id.
        mask: 1 where a token is real.
        spans: For each run its first row and the row behind its last.
    """

    scorers: tuple[Scorer, ...]
    ids: Int[Tensor, "row position"]
    mask: Int[Tensor, "row position"]
    spans: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, scorers: Sequence[Scorer]) -> Rows:
        """Lay the runs out."""
        sequences: list[tuple[int, ...]] = []
        spans = []
        for scorer in scorers:
            start = len(sequences)
            sequences.extend(dict.fromkeys(scorer.branches.sequences))
            spans.append((start, len(sequences)))
        ids = torch.zeros(len(sequences), max(map(len, sequences)), dtype=torch.long)
        mask = torch.zeros_like(ids)
        for row, sequence in enumerate(sequences):
            ids[row, : len(sequence)] = torch.tensor(sequence)
            mask[row, : len(sequence)] = 1
        return cls(tuple(scorers), ids, mask, tuple(spans))

    def numbers(self, logits: Float[Tensor, "row position vocab"]) -> Float[Tensor, "run 4"]:
        """The fields of each run's score; gradients pass through."""
        return torch.cat(
            [
                scorer.numbers(_readers(scorer, logits[start:stop])[None])
                for scorer, (start, stop) in zip(self.scorers, self.spans, strict=True)
            ]
        )


def _readers(scorer: Scorer, logits: Float[Tensor, "row position vocab"]) -> Float[Tensor, "reader vocab"]:
    """The logits at the tokens that read the answers; one row serves both answers where they are one sequence."""
    n_prompt = scorer.branches.n_prompt
    lengths = [len(sequence) for sequence in scorer.branches.sequences]
    first, second = logits[0], logits[-1]
    return torch.cat([first[n_prompt - 1 : lengths[0]], second[n_prompt : lengths[1]]])


@torch.inference_mode(False)
def slopes(
    engine: Engine,
    scorers: Sequence[Scorer],
    keys: Iterable[SiteKey],
    *,
    edits: Mapping[SiteKey, Edit] | None = None,
    gradient: bool = True,
) -> list[Slope]:
    """Run several prompts with their answers at once, and differentiate each one's metric.

    Args:
        engine: What runs the model.
        scorers: The runs.
        keys: (site, layer) pairs whose values and gradients are kept.
        edits: Functions of a site's value in all rows, [row, position, …], as `Rows.of(scorers)` lays them out.
        gradient: False leaves out the backward pass.

    Raises:
        InputError: The metric has no gradient, or does not depend on a site.
    """
    rows, wanted = Rows.of(scorers), list(dict.fromkeys(keys))

    def total(logits: Tensor) -> Tensor:
        return rows.numbers(logits)[:, 0].sum()

    found = engine.run(rows.ids, rows.mask, capture=wanted, edits=edits, grad_of=total if gradient else None)
    with torch.no_grad():
        numbers = rows.numbers(found.logits).tolist()
    return [
        Slope(
            AnswerScore(*number),
            scorer.branches.n_prompt,
            {key: value[start:stop] for key, value in found.activations.items()},
            {key: grad[start:stop] for key, grad in found.grads.items()},
        )
        for number, scorer, (start, stop) in zip(numbers, rows.scorers, rows.spans, strict=True)
    ]
