"""Logit lens: what the model would answer if it stopped after a layer.

The norm's statistics are computed anew for every vector, biases and softcap are those of the model, and the last layer's
row is the model's own output. At the last prompt token the lens reads the answer's first token; the following tokens of
an answer are read at the answer's own positions, which makes whole answers of several tokens comparable layer by layer.
Read anywhere else, a lens says what the model would write next there, not what it will answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from latentkt.internals.branches import Branches
from latentkt.internals.recording import Recording, record

if TYPE_CHECKING:
    import pandas as pd
    from jaxtyping import Float
    from torch import Tensor

    from latentkt.models import AnswerSet, Encoded, ModelHandle

__all__ = ["LensRun", "answer_lens"]


@dataclass(frozen=True)
class LensRun:
    """A prompt, its answers, and what names it in the table (item, family, which, order, …)."""

    prompt: Encoded
    answers: AnswerSet
    meta: dict[str, object]


def answer_lens(
    handle: ModelHandle, runs: Iterable[LensRun]
) -> tuple[pd.DataFrame, list[Float[Tensor, "layer d_model"]]]:
    """Lens of both answers by layer, and the residual stream at the last prompt token.

    Args:
        handle: The model.
        runs: Prompts with their answers.

    Returns:
        A table with one row a run and layer, and for each run the last prompt token's residual stream (entry 0 is the
        embedding, entry l + 1 leaves layer l). Columns: the run's `meta`, `layer` (−1 = embedding), `position` (`last`),
        `log_odds` (whole answers, nats), `first_token_log_odds` (at the first token in which the answers differ),
        `logp_correct`, `logp_shortcut`, `rank_correct`, `rank_shortcut` (of the answers' first tokens at the last prompt
        token, 0 = top), `kl_to_final` (nats, at the last prompt token).
    """
    import pandas as pd

    rows: list[dict[str, object]] = []
    residuals: list[Tensor] = []
    for run in runs:
        answers = (tuple(run.answers.correct_ids), tuple(run.answers.shortcut_ids))
        recording = record(handle, Branches(tuple(run.prompt.ids), answers))
        residuals.append(recording.resid[:, len(run.prompt.ids) - 1].clone())
        rows.extend({**run.meta, "position": "last", **row} for row in _layer_rows(handle, recording))
    return pd.DataFrame(rows), residuals


def _layer_rows(handle: ModelHandle, recording: Recording) -> list[dict[str, object]]:
    branches = recording.branches
    picks = [torch.as_tensor(list(target)) for target in branches.targets()]
    differ = branches.first_difference
    with torch.inference_mode():
        final = _log_probabilities(handle, recording, handle.n_layers)
        rows: list[dict[str, object]] = []
        for entry in range(handle.n_layers + 1):
            logp = final if entry == handle.n_layers else _log_probabilities(handle, recording, entry)
            parts = [logp[pick[:, 0], pick[:, 1]].double() for pick in picks]
            correct, shortcut = (float(part.sum()) for part in parts)
            first_ids = [answer[0] for answer in branches.answers]
            ranks = [int((logp[0] > logp[0, token]).sum()) for token in first_ids]
            rows.append(
                {
                    "layer": entry - 1,
                    "logp_correct": correct,
                    "logp_shortcut": shortcut,
                    "log_odds": correct - shortcut,
                    "first_token_log_odds": float(parts[0][differ] - parts[1][differ]),
                    "rank_correct": ranks[0],
                    "rank_shortcut": ranks[1],
                    "kl_to_final": float((final[0].exp() * (final[0] - logp[0])).sum()),
                }
            )
    return rows


def _log_probabilities(handle: ModelHandle, recording: Recording, entry: int) -> Float[Tensor, "reader vocab"]:
    return handle.unembed(recording.resid[entry, recording.branches.readers]).float().log_softmax(-1)
