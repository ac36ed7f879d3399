"""Logit lens: what the model would answer if it stopped after a layer.

The norm's statistics are computed anew for every vector, biases and softcap are those of the model, and the last
layer's row is the model's own output. At the last prompt token the lens reads the answer's first token; the following
tokens of an answer are read at the answer's own positions, which makes whole answers of several tokens comparable
layer by layer. Read anywhere else, a lens says what the model would write next there, not what it will answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import torch

from latentkt.errors import InputError
from latentkt.internals.branches import Branches
from latentkt.internals.engines import engine_of
from latentkt.internals.metrics import Scorer
from latentkt.models.devices import naming_out_of_memory

if TYPE_CHECKING:
    import pandas as pd
    from jaxtyping import Float
    from torch import Tensor

    from latentkt.internals.engines.base import Engine
    from latentkt.internals.metrics import AnswerScore
    from latentkt.models import AnswerSet, Encoded, ModelHandle

__all__ = ["LensRun", "Translate", "answer_lens", "token_lens"]

_ENTRIES_AT_ONCE = 8


@dataclass(frozen=True)
class LensRun:
    """A prompt, its answers, and what names it in the table (item, family, which, order, …)."""

    prompt: Encoded
    answers: AnswerSet
    meta: dict[str, object]


class Translate(Protocol):
    """Maps a residual stream to what it would be after the last layer; see `latentkt.internals.tuned`."""

    kind: str

    def __call__(self, entry: int, resid: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Entry 0 is the embedding, entry l + 1 leaves layer l."""


class _Identity:
    """The plain logit lens."""

    kind = "logit"

    def __call__(self, entry: int, resid: Tensor) -> Tensor:
        return resid


@naming_out_of_memory("reading a lens", fix="shorten the prompts, or use a smaller model or dtype")
def answer_lens(
    model: ModelHandle | Engine,
    runs: Iterable[LensRun],
    *,
    translate: Translate | None = None,
    engine: str = "fast",
) -> tuple[pd.DataFrame, list[Float[Tensor, "layer d_model"]]]:
    """Lens of both answers by layer, and the residual stream at the last prompt token.

    Args:
        model: An opened model, or an engine.
        runs: Prompts with their answers.
        translate: A tuned lens; the plain logit lens where it is None.
        engine: Which engine reads the residual stream.

    Returns:
        A table with one row a run and layer, and for each run the last prompt token's residual stream (entry 0 is the
        embedding, entry l + 1 leaves layer l). Columns: the run's `meta`, `lens` (`logit`, `tuned`), `layer` (−1 =
        embedding), `position` (`last`), `log_odds` (whole answers, nats), `first_token_log_odds` (at the first token in
        which the answers differ), `logp_correct`, `logp_shortcut` (nats), `p_correct`, `p_shortcut` (probabilities of
        the whole strings), `rank_correct`, `rank_shortcut` (of the answers' first tokens at the last prompt token, 0 =
        top), `kl_to_final` (nats, at the last prompt token).
    """
    import pandas as pd

    runner, translate = engine_of(model, engine), translate or _Identity()
    rows: list[dict[str, object]] = []
    residuals: list[Tensor] = []
    for run in runs:
        answers = (tuple(run.answers.correct_ids), tuple(run.answers.shortcut_ids))
        scorer = Scorer(Branches(tuple(run.prompt.ids), answers))
        readers = runner.readers(scorer)
        residuals.append(readers[:, 0].clone())
        found = _answer_rows(runner.handle, scorer, readers, translate)
        fixed = {"lens": translate.kind, "dtype": runner.handle.dtype_name, "position": "last"}
        rows.extend({**run.meta, **fixed, **row} for row in found)
    return pd.DataFrame(rows), residuals


def _answer_rows(
    handle: ModelHandle, scorer: Scorer, readers: Float[Tensor, "entry reader d_model"], translate: Translate
) -> Iterator[dict[str, object]]:
    first_ids = [answer[0] for answer in scorer.branches.answers]
    with torch.inference_mode():
        final = handle.unembed(readers[-1, :1]).log_softmax(-1)[0]
        for entry, logits, score in _entries(handle, scorer, readers, translate):
            last = entry == handle.n_layers
            logp = logits[0].log_softmax(-1)
            ranks = [int((logp > logp[token]).sum()) for token in first_ids]
            yield {
                "layer": entry - 1,
                "logp_correct": score.logp_correct,
                "logp_shortcut": score.logp_shortcut,
                "log_odds": score.log_odds,
                "first_token_log_odds": score.first_token_log_odds,
                "p_correct": float(torch.tensor(score.logp_correct).exp()),
                "p_shortcut": float(torch.tensor(score.logp_shortcut).exp()),
                "rank_correct": ranks[0],
                "rank_shortcut": ranks[1],
                "kl_to_final": 0.0 if last else float((final.exp() * (final - logp)).sum()),
            }


def _entries(
    handle: ModelHandle, scorer: Scorer, readers: Float[Tensor, "entry reader d_model"], translate: Translate
) -> Iterator[tuple[int, Float[Tensor, "reader vocab"], AnswerScore]]:
    """Logits and scores of every entry; a few entries share a pass over the unembedding, which is most of the time."""
    last = handle.n_layers
    for start in range(0, last + 1, _ENTRIES_AT_ONCE):
        numbers = range(start, min(start + _ENTRIES_AT_ONCE, last + 1))
        seen = [readers[entry] if entry == last else translate(entry, readers[entry]) for entry in numbers]
        logits = handle.unembed(torch.stack(seen))
        yield from zip(numbers, logits, scorer.from_logits(logits), strict=True)


@naming_out_of_memory("reading a lens", fix="lower rows_at_once, or shorten the prompts")
def token_lens(
    model: ModelHandle | Engine,
    runs: Iterable[LensRun],
    *,
    positions: Sequence[int] | None = None,
    translate: Translate | None = None,
    engine: str = "fast",
    rows_at_once: int = 64,
) -> pd.DataFrame:
    """Lens at every layer and prompt token: what would be written next there, and how the answers' first tokens stand.

    The vocabulary is spread out for `rows_at_once` vectors at a time, never for all layers and positions.

    Args:
        model: An opened model, or an engine.
        runs: Prompts with their answers.
        positions: Prompt positions (negative ones count from the end); default all.
        translate: A tuned lens; the plain logit lens where it is None.
        engine: Which engine reads the residual stream.
        rows_at_once: Vectors whose logits are held at once.

    Returns:
        One row a run, layer and position: the run's `meta`, `lens`, `dtype` (the weights'), `layer` (−1 = embedding),
        `position`, `token`, `role`, `first_token_log_odds` (of the first tokens in which the answers differ),
        `p_correct`, `p_shortcut`, `rank_correct`, `rank_shortcut` (of those two tokens), `top_token`, `p_top`,
        `kl_to_final` (nats, to the last layer at the same position).

    Raises:
        InputError: A position lies outside a prompt.

    Example:
        >>> from latentkt.internals import item_run, token_lens
        >>> from latentkt.models import open_model
        >>> from latentkt.trapqa import builtin_items
        >>> handle, item = open_model("smollm2", check=False), builtin_items("scientist").items[0]
        >>> table = token_lens(handle, [item_run(handle, item)], positions=[-1])
        >>> int(table.set_index("layer")["rank_correct"][29])
        7
    """
    import pandas as pd

    runner, translate = engine_of(model, engine), translate or _Identity()
    fixed = {"lens": translate.kind, "dtype": runner.handle.dtype_name}
    rows: list[dict[str, object]] = []
    for run in runs:
        chosen = _positions(run, positions)
        stream = _stream(runner, run.prompt.ids, chosen)
        read = _reader(runner.handle, run, rows_at_once)
        final = stream[-1]
        for entry in range(len(stream)):
            last = entry == len(stream) - 1
            found = read(stream[entry] if last else translate(entry, stream[entry]), final)
            for position, row in zip(chosen, found, strict=True):
                start, stop = run.prompt.offsets[position]
                named = {"token": run.prompt.text[start:stop], "role": run.prompt.roles[position]}
                place = {"layer": entry - 1, "position": position, **named}
                rows.append({**run.meta, **fixed, **place, **row})
    return pd.DataFrame(rows)


def _positions(run: LensRun, positions: Sequence[int] | None) -> list[int]:
    length = len(run.prompt.ids)
    chosen = list(range(length)) if positions is None else [p + length if p < 0 else p for p in positions]
    if not all(0 <= position < length for position in chosen):
        raise InputError("position of a lens", expected=f"-{length} to {length - 1}", found=list(positions or ()))
    return chosen


def _stream(engine: Engine, prompt: Sequence[int], positions: list[int]) -> Float[Tensor, "entry position d_model"]:
    n_layers = engine.handle.n_layers
    keys = [("resid_pre", 0), *(("resid_post", layer) for layer in range(n_layers))]
    values = engine.values(prompt, keys)
    return torch.stack([values[key][positions] for key in keys])


def _reader(
    handle: ModelHandle, run: LensRun, rows_at_once: int
) -> Callable[[Tensor, Tensor], list[dict[str, object]]]:
    at = run.answers.first_difference
    tokens = torch.tensor([run.answers.correct_ids[at], run.answers.shortcut_ids[at]], device=handle.device)

    def read(resid: Tensor, final: Tensor) -> list[dict[str, object]]:
        found: list[dict[str, object]] = []
        with torch.inference_mode():
            for part, end in zip(resid.split(rows_at_once), final.split(rows_at_once), strict=True):
                logp, truth = (handle.unembed(x).log_softmax(-1) for x in (part, end))
                kl = (truth.exp() * (truth - logp)).sum(-1)
                ours = logp[:, tokens]
                ranks = (logp[:, None] > ours[..., None]).sum(-1)
                top = logp.max(-1)
                for n in range(len(part)):
                    found.append(
                        {
                            "first_token_log_odds": float(ours[n, 0] - ours[n, 1]),
                            "p_correct": float(ours[n, 0].exp()),
                            "p_shortcut": float(ours[n, 1].exp()),
                            "rank_correct": int(ranks[n, 0]),
                            "rank_shortcut": int(ranks[n, 1]),
                            "top_token": handle.tokenizer.decode([int(top.indices[n])]),
                            "p_top": float(top.values[n].exp()),
                            "kl_to_final": float(kl[n]),
                        }
                    )
        return found

    return read
