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
from latentkt.internals.generation import generate
from latentkt.internals.patching import patch
from latentkt.internals.places import Place, role_positions
from latentkt.internals.sources import Fetched, Source

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

    from latentkt.internals.engines.base import Edit, Engine, SiteKey
    from latentkt.models import Encoded, ModelHandle, Pair

__all__ = ["STRENGTHS", "edit_along", "steer", "steer_text"]

STRENGTHS = (-1.0, 1.0)


@dataclass(frozen=True, eq=False)
class _Along(Source):
    """The base run's own values, changed along a direction.

    Attributes:
        direction: The direction.
        how: `add`, `remove` or `interchange`.
        strength: See `Direction.change`.
        matched: Another direction, to whose change this one's is made equal in length.
        part: A projection that the change goes through; None for all of it.
    """

    direction: Direction
    how: str
    strength: float
    matched: Direction | None = None
    part: Tensor | None = None
    kind = "along a direction"

    def fetch(self, engine: Engine, pair: Pair, keys: Sequence[SiteKey]) -> Fetched:
        """See `Source`."""
        base = engine.values(pair.base.ids, keys)
        source = engine.values(pair.source.ids, keys) if self.how == "interchange" else None

        def at(key: SiteKey, place: Place) -> Tensor | None:
            value = base[key][list(place.base)]
            other = None if source is None else source[key][list(place.source)]
            change = self.delta(value, other)
            return None if change is None else value + change

        return at

    def delta(self, value: Tensor, other: Tensor | None) -> Tensor | None:
        """What is added; None where a control changes nothing and so cannot be given a length."""
        options: dict[str, Any] = {"strength": self.strength, "source": other}
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
    seed: int = 0,
    metric: Any = None,
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
        seed: Seed of the random directions.
        metric: As in `patch`.

    Returns:
        The columns of `patch` (`effect` in nats of log P(y*) − log P(y_s), changed − base), and `direction`, `how`,
        `strength`, `control`: empty for the direction itself; `random 0`, …; the controls' names; `read` and `unread`
        for the parts; `delta_norm`: mean length of the change over the tokens. A control that changes nothing (both
        runs have the same coordinates on it) cannot be given a length: NaN.

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
    both = read_and_unread(engine.handle, direction) if parts else ()
    tables = []
    for pair in pairs:
        for way in how:
            for strength in strengths if way == "add" else (1.0,):
                sources = {"": _Along(direction, way, strength)}
                sources |= {one.name: _Along(one, way, strength, matched=direction) for one in others}
                for name, part in zip(("read", "unread"), both, strict=False):
                    sources[name] = _Along(direction, way, strength, part=part)
                for control, source in sources.items():
                    table = _patched(engine, pair, source, where, metric)
                    tables.append(table.assign(how=way, strength=strength, control=control))
    made = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()
    return made.assign(direction=direction.name)


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


def _patched(engine: Engine, pair: Pair, source: _Along, where: Sequence[str], metric: Any) -> pd.DataFrame:
    direction = source.direction
    key = (direction.site, direction.layer)
    lengths: dict[str, float] = {}
    fetched = source.fetch(engine, pair, [key])
    for role in where:
        place = role_positions(pair, role)
        changed = fetched(key, place) if place.base else None
        if changed is not None:
            base = engine.values(pair.base.ids, [key])[key][list(place.base)]
            lengths[role] = float((changed - base).norm(dim=-1).mean())
    table = patch(
        engine,
        [pair],
        sites=(direction.site,),
        layers=(direction.layer,),
        where=where,
        source=source,
        metric=metric,
        check=False,
        skip_unchanged=False,
    )
    return table.assign(delta_norm=table["role"].map(lengths).astype("float64"))


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
            for one in (direction, *random_directions(direction, n_random, seed=seed)):
                changes.append((way, strength, "" if one is direction else one.name, one))
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
