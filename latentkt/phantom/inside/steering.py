"""Pushing the state of a concept along the direction from real to made: does the model deny more that it exists?

The measure is the log-odds of "No" over "Yes" as the first word of the answer to a question about existence. Random
directions of the same length are the placebo: what they do is what any push of that size does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from latentkt.errors import InputError, ModelRefusedError
from latentkt.phantom.inside.activations import Frame
from latentkt.progress import progress
from latentkt.stats import Interval, cluster_interval

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from latentkt.internals.directions import Direction
    from latentkt.models import Encoded, ModelHandle
    from latentkt.phantom.concepts import Concept

__all__ = ["DOSES", "QUESTION", "denial_log_odds", "steer_existence", "steering_summary"]

QUESTION = 'Does "{concept}" exist? Answer with Yes or No.'
DOSES = (-4.0, -2.0, 2.0, 4.0)
"""In steps of the distance between the means of real and made concepts along the direction."""


def denial_log_odds(
    handle: ModelHandle,
    concepts: Sequence[Concept],
    *,
    question: str = QUESTION,
    template: str | None = None,
    system: str | None = None,
    batch_size: int = 32,
) -> list[float]:
    """Log-odds (nats) of "No" over "Yes" as the first word of the answer to whether a concept exists.

    For a model that never says that it does not know, this still tells where it leans.

    Raises:
        ModelRefusedError: The model has no single token for Yes and No.
    """
    frame = Frame.of(handle, question, template=template, system=system)
    encoded = [frame.encode(handle, concept) for concept in concepts]
    yes, no = (_first_token(handle, word, chat=frame.chat) for word in ("Yes", "No"))
    return _log_odds(handle, encoded, None, 0.0, (no, yes), batch_size)


def steer_existence(
    handle: ModelHandle,
    concepts: Sequence[Concept],
    directions: Sequence[Direction],
    *,
    doses: Sequence[float] = DOSES,
    question: str = QUESTION,
    template: str | None = None,
    system: str | None = None,
    batch_size: int = 32,
) -> pd.DataFrame:
    """Log-odds of "No" over "Yes" with the concept's tokens pushed along directions.

    Args:
        handle: The model.
        concepts: What is asked about.
        directions: Directions of this model, all of them at every dose; one named `made` and random ones, say.
        doses: Steps of a direction; 0 is always measured, once a concept.
        question: With `{concept}` once, to be answered with yes or no.
        template: `chat` or `plain`; None: chat where the tokenizer has a template.
        system: As in `render_question`.
        batch_size: Prompts that are run at once.

    Returns:
        One row a concept, direction and dose: `concept_id`, `concept`, `existence`, `group`, `direction`, `layer`,
        `dose`, `log_odds` (nats, No over Yes), `change` (against dose 0).

    Raises:
        InputError: There is nothing to do.
        DataError: A direction is of another model.
        ModelRefusedError: The model has no single token for Yes and No.
    """
    if not concepts or not directions or not doses:
        raise InputError("nothing to steer", expected="concepts, directions and doses", found="one of them is empty")
    for direction in directions:
        direction.check_model(handle)
    frame = Frame.of(handle, question, template=template, system=system)
    encoded = [frame.encode(handle, concept) for concept in concepts]
    yes, no = (_first_token(handle, word, chat=frame.chat) for word in ("Yes", "No"))
    rows = []
    with progress() as bar:
        stage = bar.stage("steering", total=len(concepts) * (1 + len(directions) * len(doses)))
        base = _log_odds(handle, encoded, None, 0.0, (no, yes), batch_size)
        stage.advance(len(concepts))
        for direction, dose in [(each, dose) for each in directions for dose in (0.0, *doses)]:
            pushed = base if dose == 0.0 else _log_odds(handle, encoded, direction, dose, (no, yes), batch_size)
            stage.advance(0 if dose == 0.0 else len(concepts))
            for concept, value, before in zip(concepts, pushed, base, strict=True):
                about = {"concept_id": concept.id, "concept": concept.concept, "existence": concept.existence}
                told = {"group": concept.group, "direction": direction.name, "layer": direction.layer, "dose": dose}
                rows.append({**about, **told, "log_odds": value, "change": value - before})
    return pd.DataFrame(rows)


def _first_token(handle: ModelHandle, word: str, *, chat: bool) -> int:
    """The one token of a word at the beginning of an answer; plain answers begin with a space."""
    ids = handle.tokenizer(word if chat else f" {word}", add_special_tokens=False)["input_ids"]
    if len(ids) != 1:
        raise ModelRefusedError(
            f"model {handle.name!r} has no single token for {word!r}",
            expected="one token each for Yes and No",
            found=f"{len(ids)} tokens",
            fix="steering by these words needs another model",
        )
    return int(ids[0])


def _log_odds(
    handle: ModelHandle,
    encoded: Sequence[Encoded],
    direction: Direction | None,
    dose: float,
    words: tuple[int, int],
    batch_size: int,
) -> list[float]:
    import torch

    found: list[float] = []
    for first in range(0, len(encoded), batch_size):
        batch = encoded[first : first + batch_size]
        width = max(map(len, batch))
        ids = torch.zeros((len(batch), width), dtype=torch.long)
        mask = torch.zeros_like(ids)
        on_concept = torch.zeros((len(batch), width, 1))
        for row, each in enumerate(batch):
            ids[row, : len(each)], mask[row, : len(each)] = torch.tensor(each.ids), 1
            on_concept[row, list(each.positions("concept"))] = 1.0
        last = mask.sum(1) - 1
        with torch.no_grad():
            if direction is None:
                logits = handle.logits(ids, mask)
            else:
                edit = _adding(direction, dose, on_concept)
                logits = handle.edited_logits(ids, mask, {(direction.site, direction.layer): edit})
        logp = logits[torch.arange(len(batch)), last.to(logits.device)].log_softmax(-1)
        found += (logp[:, words[0]] - logp[:, words[1]]).tolist()
    return found


def _adding(direction: Direction, dose: float, on_concept: Float[Tensor, "row pos 1"]) -> Callable[[Tensor], Tensor]:
    def edit(value: Tensor) -> Tensor:
        return value + on_concept.to(value) * direction.change(value, "add", strength=dose)

    return edit


def steering_summary(table: pd.DataFrame) -> pd.DataFrame:
    """Slope of the log-odds on the dose, by direction, over concepts.

    Returns:
        One row a direction: `slope` (nats a step; mean over concepts of each concept's least-squares slope) with its
        interval (concepts of one seed are one cluster), `n`; and, on the row `made`, `placebo_largest`: the largest
        absolute slope of a random direction, and `placebos`: their number.
    """
    rows = []
    for direction, mine in table.groupby("direction", sort=False):
        concepts = [part for _, part in mine.groupby("concept_id", sort=False)]
        slopes, groups = np.array([_slope(part) for part in concepts]), [part["group"].iloc[0] for part in concepts]
        interval: Interval = cluster_interval(slopes, groups).interval
        row = {"direction": direction, "layer": int(mine["layer"].iloc[0]), "slope": interval.value}
        rows.append({**row, "slope_low": interval.low, "slope_high": interval.high, "n": len(slopes)})
    found = pd.DataFrame(rows)
    placebo = found[found["direction"].str.startswith("random")]["slope"].abs()
    is_made = found["direction"] == "made"
    largest = float(placebo.max()) if len(placebo) else math.nan
    return found.assign(placebo_largest=np.where(is_made, largest, np.nan), placebos=np.where(is_made, len(placebo), 0))


def _slope(rows: pd.DataFrame) -> float:
    doses, values = rows["dose"].to_numpy(), rows["log_odds"].to_numpy()
    centred = doses - doses.mean()
    return float((centred * values).sum() / (centred**2).sum())
