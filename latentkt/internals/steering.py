"""Steering: change a run along a direction, and hold what becomes of the answer against controls.

Each control puts a change of the same length at the same places, so that it differs in where it points and in nothing
else: random directions, a direction found on arbitrary labels, or another one of the user's. The parts of the change
that the next weights read strongly and hardly at all stand beside it: a change that acts through the part that is
hardly read is a sign of a path that the model does not use by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from latentkt.errors import InputError
from latentkt.internals.directions import HOW, Direction, random_directions, read_and_unread
from latentkt.internals.engines import engine_of
from latentkt.internals.engines.base import Cell, Patch
from latentkt.internals.generation import generate
from latentkt.internals.metrics import Metric, metric_name, scorer_of
from latentkt.internals.places import role_positions

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

    from latentkt.internals.engines.base import Edit, Engine, SiteKey
    from latentkt.internals.metrics import AnswerScore
    from latentkt.models import Encoded, ModelHandle, Pair

__all__ = ["STRENGTHS", "edit_along", "steer", "steer_text"]

STRENGTHS = (-1.0, 1.0)


@dataclass(frozen=True, eq=False)
class _Change:
    """One change along a direction.

    Attributes:
        direction: The direction.
        how: `add`, `remove` or `interchange`.
        strength: See `Direction.change`.
        control: Written to the table; empty for the direction itself.
        matched: Another direction, to whose change this one's is made equal in length.
        part: A projection that the change goes through; None for all of it.
    """

    direction: Direction
    how: str
    strength: float
    control: str = ""
    matched: Direction | None = None
    part: Tensor | None = None

    def delta(self, value: Tensor, source: Tensor) -> Tensor | None:
        """What is added; None where a control changes nothing and so cannot be given a length."""
        options: dict[str, Any] = {"strength": self.strength, "source": source}
        change = self.direction.change(value, self.how, **options)
        if self.matched is not None:
            wanted = self.matched.change(value, self.how, **options).norm(dim=-1, keepdim=True)
            length = change.norm(dim=-1, keepdim=True)
            if (length <= 1e-9 * value.norm(dim=-1, keepdim=True)).any():
                return None
            change = change * (wanted / length)
        return change if self.part is None else change @ self.part.to(change)


def steer(
    model: ModelHandle | Engine,
    pairs: Iterable[Pair],
    direction: Direction,
    *,
    how: Sequence[str] = HOW,
    strengths: Sequence[float] = STRENGTHS,
    where: Sequence[str] = ("last",),
    n_random: int = 5,
    controls: Mapping[str, Direction] | None = None,
    parts: bool = True,
    share: float = 0.9,
    seed: int = 0,
    metric: str | Metric | None = None,
) -> pd.DataFrame:
    """Change base runs along a direction and measure what becomes of the answer, beside controls of equal length.

    Args:
        model: An opened model, or an engine; the direction must be its own.
        pairs: The runs; `interchange` takes the coordinates of the source run at the aligned token.
        direction: What is changed.
        how: `add`, `remove`, `interchange`.
        strengths: Steps of `add`; the others are done once, whole.
        where: Roles of the tokens that are changed, each on its own.
        n_random: Random directions.
        controls: Further directions of the same site and layer, by name, such as one of arbitrary labels.
        parts: Also put in the parts of the change that the next weights read strongly, and the rest.
        share: See `read_and_unread`; 1 for the exact row space and null space.
        seed: Seed of the random directions.
        metric: As in `patch`.

    Returns:
        One row a pair, role and change: `pair` and the pair's meta, `engine`, `metric`, `axis` (the direction's name),
        `site`, `layer`, `role`, `n_positions`, `how`, `strength`, `control`: empty for the direction itself; `random
        0`, …; the controls' names; `read` and `unread` for the parts; `delta_norm`: mean length of the change over the
        tokens; `base_value`, `changed_value`, `effect` (nats of log P(y*) − log P(y_s), changed − base),
        `first_token_effect`. A control that changes nothing (both runs have the same coordinates on it) cannot be
        given a length: NaN.

    Raises:
        InputError: An unknown way, controls of another place, a shifted pair.
        DataError: A direction of another model.

    Example:
        >>> from latentkt.internals import steer  # doctest: +SKIP
        >>> table = steer(handle, pairs, direction, how=["add"], strengths=[-2, -1, 1, 2])  # doctest: +SKIP
    """
    import pandas as pd

    engine = engine_of(model)
    others = [*random_directions(direction, n_random, seed=seed), *_named(controls or {}, direction)]
    for one in (direction, *others):
        one.check_model(engine.handle)
    if not how or not set(how) <= set(HOW):
        raise InputError("ways to steer", expected=", ".join(HOW), found=list(how))
    both = read_and_unread(engine.handle, direction, share=share) if parts else ()
    changes = []
    for way in how:
        for strength in strengths if way == "add" else (1.0,):
            changes.append(_Change(direction, way, strength))
            changes += [_Change(one, way, strength, one.name, matched=direction) for one in others]
            for name, part in zip(("read", "unread"), both, strict=False):
                changes.append(_Change(direction, way, strength, name, part=part))
    rows: list[dict[str, object]] = []
    for pair in pairs:
        if pair.alignment.shifted and "interchange" in how and set(where) != {"last"}:
            raise InputError(
                f"pair {pair.name!r} is shifted: coordinates can be interchanged at the last token only",
                fix="leave it out, or pass where=('last',)",
            )
        rows += _steered(engine, pair, changes, where, metric)
    return pd.DataFrame(rows)


def _named(controls: Mapping[str, Direction], direction: Direction) -> list[Direction]:
    from dataclasses import replace

    for name, one in controls.items():
        if (one.site, one.layer) != (direction.site, direction.layer):
            raise InputError(
                f"control {name!r} lives elsewhere",
                expected=f"{direction.site}.{direction.layer}",
                found=f"{one.site}.{one.layer}",
            )
    return [replace(one, name=name) for name, one in controls.items()]


def _steered(
    engine: Engine, pair: Pair, changes: Sequence[_Change], where: Sequence[str], metric: str | Metric | None
) -> list[dict[str, object]]:
    """All changes of one pair in one sweep."""
    direction = changes[0].direction
    key = (direction.site, direction.layer)
    scorer = scorer_of(pair, pair.base.ids, metric)
    base = engine.score(scorer)
    values, sources = (engine.values(run.ids, [key])[key] for run in (pair.base, pair.source))
    cells: list[Cell] = []
    rows: list[dict[str, object]] = []
    for role in where:
        place = role_positions(pair, role)
        own, other = values[list(place.base)], sources[list(place.source)]
        for change in changes:
            delta = change.delta(own, other) if place.base else None
            row = {"role": role, "n_positions": len(place.base), "how": change.how, "strength": change.strength}
            length = float("nan") if delta is None else float(delta.norm(dim=-1).mean())
            rows.append({**row, "control": change.control, "delta_norm": length, "cell": delta is not None})
            if delta is not None:
                cells.append((Patch(*key, place.base, own + delta),))
    scores = iter(engine.sweep(scorer, cells))
    about = {"pair": pair.name, **pair.meta, "engine": engine.name, "metric": metric_name(scorer.metric)}
    about |= {"axis": direction.name, "site": direction.site, "layer": direction.layer, "base_value": base.value}
    return [{**about, **row, **_effect(next(scores) if row.pop("cell") else None, base)} for row in rows]


def _effect(changed: AnswerScore | None, base: AnswerScore) -> dict[str, float]:
    nan = float("nan")
    value = changed.value if changed else nan
    first = changed.first_token_log_odds if changed else nan
    return {
        "changed_value": value,
        "effect": value - base.value,
        "first_token_effect": first - base.first_token_log_odds,
    }


def edit_along(direction: Direction, how: str, *, strength: float = 1.0) -> dict[SiteKey, Edit]:
    """The change as an edit for `Engine.run` or `generate`: every token that the edit is given is changed.

    Args:
        direction: What is changed.
        how: `add` or `remove`; an interchange needs a source run, which a text that is being written does not have.
        strength: See `Direction.change`.

    Raises:
        InputError: Another `how`.
    """
    if how not in ("add", "remove"):
        raise InputError("a change while text is written", expected="add or remove", found=how)
    return {(direction.site, direction.layer): lambda value: value + direction.change(value, how, strength=strength)}


def steer_text(
    handle: ModelHandle,
    prompts: Mapping[str, Encoded],
    direction: Direction,
    *,
    how: Sequence[str] = ("add",),
    strengths: Sequence[float] = STRENGTHS,
    steps: str = "all",
    at: int | None = None,
    n_random: int = 1,
    seed: int = 0,
    max_new_tokens: int = 24,
) -> pd.DataFrame:
    """Let the model write while it is steered, beside the plain text and random directions of equal length.

    Args:
        handle: The model; the direction must be its own.
        prompts: By name.
        direction: What is changed.
        how: `add`, `remove`.
        strengths: Steps of `add`; `remove` is done whole.
        steps: What is changed, as in `generate`: `prefix` (all prompt tokens), `one` (the token that new token number
            `at` is read from; 0 is the last prompt token), `all` (prompt and what is written).
        at: The step of `one`.
        n_random: Random directions.
        seed: Seed of the random directions.
        max_new_tokens: Longest text.

    Returns:
        One row a prompt and change: `prompt`, `direction`, `how` (`none` for the plain text), `strength`, `control`,
        `steps`, `text`, `same_as_plain`, `mean_logp` (nats a token, in the run that wrote it), `finished`, `n_edited`.

    Raises:
        DataError: A direction of another model.
        InputError: As in `generate`.
    """
    import pandas as pd

    direction.check_model(handle)
    changes: list[tuple[str, float, str, Direction | None]] = [("none", 0.0, "", None)]
    for way in how:
        for strength in strengths if way == "add" else (1.0,):
            for each in (direction, *random_directions(direction, n_random, seed=seed)):
                changes.append((way, strength, "" if each is direction else each.name, each))
    rows: list[dict[str, object]] = []
    plain: dict[str, str] = {}
    for way, strength, control, one in changes:
        edits = None if one is None else edit_along(one, way, strength=strength)
        options: dict[str, Any] = {"edits": edits, "steps": steps if edits else "all", "at": at if edits else None}
        written = generate(handle, list(prompts.values()), max_new_tokens=max_new_tokens, **options)
        for name, found in zip(prompts, written, strict=True):
            text = {"text": found.text, "same_as_plain": found.text == plain.setdefault(name, found.text)}
            about = {"prompt": name, "direction": direction.name, "how": way, "strength": strength, "control": control}
            mean = float(torch.tensor(found.logp).mean()) if found.logp else float("nan")
            ended = {"mean_logp": mean, "finished": found.finished, "n_edited": found.n_edited}
            rows.append({**about, "steps": steps, **text, **ended})
    return pd.DataFrame(rows)
