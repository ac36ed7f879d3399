"""The rows of a sweep before they are measured: which site, layer, place and head of a pair gets which values.

Exact patching runs them; gradient attribution predicts them, and has some of them run to be held against.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latentkt.errors import InputError
from latentkt.internals.engines.base import STREAM, Cell, Engine, FromRun, Patch
from latentkt.internals.metrics import AnswerScore, Metric, Scorer, metric_name
from latentkt.internals.pattern import pattern_as_z
from latentkt.internals.places import Place, places_of
from latentkt.internals.sources import Fetched, Source, named_values

if TYPE_CHECKING:
    from torch import Tensor

    from latentkt.models import ModelHandle, Pair

__all__ = ["MIN_GAP", "Plan", "Sweep", "fixed_columns", "frame", "place_columns", "plans_of", "refuse_sweep", "row_of"]

MIN_GAP = 0.5
"""Nats between the two runs below which a recovery would divide by noise and is NaN."""


@dataclass(frozen=True)
class Plan:
    """One row of the result before it is measured; `cell` is None where there is nothing to patch."""

    site: str
    layer: int
    place: Place
    head: int | None
    cell: Cell | None
    unchanged: bool = False  # both runs are the same there: the effect is 0 without a run


@dataclass(frozen=True)
class Sweep:
    """What is patched in every pair."""

    sites: tuple[str, ...]
    layers: tuple[int, ...]
    where: Sequence[str] | str
    heads: bool
    window: int
    source: Source
    metric: str | Metric | None
    skip_unchanged: bool
    check: bool


def refuse_sweep(handle: ModelHandle, sweep: Sweep) -> None:
    """What can be known before any work starts."""
    if not sweep.layers or not set(sweep.layers) <= set(range(handle.n_layers)):
        raise InputError("unknown layer", expected=f"0 to {handle.n_layers - 1}", found=list(sweep.layers))
    for site in sweep.sites:
        handle.arch.site(site, sweep.layers[0])
        if sweep.heads and site not in ("z", "q", "k", "v", "pattern"):
            raise InputError(f"site {site!r} has no heads", expected="z, q, k, v or pattern", found=site)
    if sweep.window < 1 or sweep.window > handle.n_layers:
        raise InputError("window of layers", expected=f"1 to {handle.n_layers}", found=sweep.window)


def plans_of(
    engine: Engine, pair: Pair, sweep: Sweep, fetched: Fetched | None = None, *, named: bool = False
) -> list[Plan]:
    """The rows of a sweep over one pair.

    Args:
        engine: Runs what the source needs.
        pair: The pair.
        sweep: What is patched.
        fetched: The source's values, where they are there already.
        named: Leave values of another run that the engine can look up itself to the engine, by their name.
    """
    inside = [layer + k for layer in sweep.layers for k in range(sweep.window) if layer + k < engine.handle.n_layers]
    keys = [(site, layer) for site in sweep.sites for layer in dict.fromkeys(inside)]
    known = named_values(sweep.source, pair) if named and set(sweep.sites) <= STREAM else None
    fetched = pattern_as_z(engine, pair, fetched or known or sweep.source.fetch(engine, pair, keys), keys)
    plans = []
    for place in places_of(pair, sweep.where):
        exact = sweep.source.exact and sweep.skip_unchanged
        live = place.behind(pair.alignment.first_difference) if exact else place
        unchanged = bool(place.base) and not live.base
        for site in sweep.sites:
            for layer in sweep.layers:
                for head in _heads(engine, site, sweep):
                    cell = None if unchanged else _cell(engine, sweep, fetched, site, layer, live, head)
                    exists = _exists(engine, sweep, site, layer, head)
                    plans.append(Plan(site, layer, place, head, cell, unchanged and exists))
    return plans


def _heads(engine: Engine, site: str, sweep: Sweep) -> Sequence[int | None]:
    return range(engine.handle.n_heads) if sweep.heads else [None]


def _exists(engine: Engine, sweep: Sweep, site: str, layer: int, head: int | None) -> bool:
    """Whether the head and the whole window are in the model."""
    handle = engine.handle
    n_heads = handle.n_kv_heads if site in ("k", "v") else handle.n_heads
    return layer + sweep.window <= handle.n_layers and (head is None or head < n_heads)


def _cell(
    engine: Engine, sweep: Sweep, fetched: Fetched, site: str, layer: int, place: Place, head: int | None
) -> Cell | None:
    if not place.base or not _exists(engine, sweep, site, layer, head):
        return None
    patches = []
    for at in range(layer, layer + sweep.window):
        values = fetched((site, at), place)
        if values is None:
            return None
        where = "z" if site == "pattern" else site
        patches.append(Patch(where, at, place.base, _of_head(values, head), head))
    return tuple(patches)


def _of_head(values: Tensor | FromRun, head: int | None) -> Tensor | FromRun:
    if head is None:
        return values
    assert not isinstance(values, FromRun)  # only the stream is named, which has no heads
    return values[:, head]


def fixed_columns(
    engine: Engine, pair: Pair, sweep: Sweep, scorer: Scorer, base: AnswerScore, source: AnswerScore | None
) -> dict[str, object]:
    """Columns that all rows of a pair share."""
    handle = engine.handle
    kind = getattr(sweep.source, "kind_name", sweep.source.kind)
    over = getattr(sweep.source, "over", None)
    return {
        "engine": engine.name,
        "dtype": handle.dtype_name,
        "window": sweep.window,
        "source_kind": f"{kind} over {over}, other families" if over else kind,
        "metric": metric_name(scorer.metric),
        "shifted": pair.alignment.shifted,
        "base_value": base.value,
        "source_value": source.value if source else np.nan,
        "frame": frame(pair, base, source),
    }


def frame(pair: Pair, base: AnswerScore, source: AnswerScore | None) -> str | None:
    """`denoise` or `noise` where exactly one of the two runs has its own right answer on top, else None."""
    sides = (pair.meta.get("base_right"), pair.meta.get("source_right"))
    if source is None or None in sides or base.log_odds != base.log_odds:
        return None
    tops = [(score.log_odds > 0) == (side == "correct") for score, side in zip((base, source), sides, strict=True)]
    if tops[0] == tops[1]:
        return None
    return "denoise" if tops[1] else "noise"


def place_columns(pair: Pair, plan: Plan) -> dict[str, object]:
    """Columns that say what is changed."""
    place = plan.place
    return {
        "site": plan.site,
        "layer": plan.layer,
        "role": place.role,
        "position": np.nan if place.position is None else float(place.position),
        "token": None if place.position is None else _token(pair, place.position),
        "head": -1 if plan.head is None else plan.head,
        "n_positions": len(place.base),
        "unchanged": plan.unchanged,
    }


def row_of(
    pair: Pair, plan: Plan, fixed: dict[str, object], patched: AnswerScore | None, base: AnswerScore
) -> dict[str, object]:
    """A measured row; numbers are NaN where nothing was patched."""
    value = patched.value if patched else np.nan
    effect = value - base.value
    gap = float(fixed["source_value"]) - base.value  # type: ignore[arg-type]
    return {
        "pair": pair.name,
        **pair.meta,
        **fixed,
        **place_columns(pair, plan),
        "patched_value": value,
        "effect": effect,
        "recovery": effect / gap if abs(gap) >= MIN_GAP else np.nan,
        "first_token_effect": (patched.first_token_log_odds if patched else np.nan) - base.first_token_log_odds,
        "patched_logp_correct": patched.logp_correct if patched else np.nan,
        "patched_logp_shortcut": patched.logp_shortcut if patched else np.nan,
    }


def _token(pair: Pair, position: int) -> str:
    start, stop = pair.base.offsets[position]
    return pair.base.text[start:stop]
