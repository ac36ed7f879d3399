"""Exact patching by layer and role, layer and position, and head, at any site, in both directions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latentkt.errors import InputError
from latentkt.internals.checks import Identities
from latentkt.internals.engines import engine_of
from latentkt.internals.engines.base import Cell, Engine, Patch
from latentkt.internals.metrics import AnswerScore, Metric, Scorer, metric_name, scorer_of
from latentkt.internals.pattern import pattern_as_z
from latentkt.internals.places import Place, places_of, role_positions
from latentkt.internals.sources import Fetched, Source, SourceRun
from latentkt.models.devices import naming_out_of_memory

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

    from latentkt.models import ModelHandle, Pair

__all__ = ["MIN_GAP", "patch", "patch_positions", "patch_roles", "role_positions"]

MIN_GAP = 0.5
"""Nats between the two runs below which a recovery would divide by noise and is NaN."""

ROLES = ("shortcut", "constraint", "last")
COLUMNS = (
    "engine", "dtype", "window", "source_kind", "metric", "shifted", "base_value", "source_value", "frame",
    "self_patch_error", "full_patch_error", "site", "layer", "role", "position", "token", "head", "n_positions",
    "unchanged", "patched_value", "effect", "recovery", "first_token_effect", "patched_logp_correct",
    "patched_logp_shortcut",
)  # fmt: skip
"""Columns behind `pair` and the pair's meta."""


@dataclass(frozen=True)
class _Plan:
    """One row of the result before it is measured; `cell` is None where there is nothing to patch."""

    site: str
    layer: int
    place: Place
    head: int | None
    cell: Cell | None
    unchanged: bool = False  # both runs are the same there: the effect is 0 without a run


@dataclass(frozen=True)
class _Sweep:
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


@naming_out_of_memory("patching", fix="lower memory_mb of the engine, or patch fewer sites at once")
def patch(
    model: ModelHandle | Engine,
    pairs: Iterable[Pair],
    *,
    sites: Sequence[str] = ("resid_post",),
    where: Sequence[str] | str = ROLES,
    layers: Sequence[int] | None = None,
    heads: bool = False,
    window: int = 1,
    source: Source | None = None,
    metric: str | Metric | None = None,
    engine: str = "fast",
    skip_unchanged: bool = True,
    check: bool = True,
    allow_shifted: bool = False,
) -> pd.DataFrame:
    """Put activations into the base run of each pair and measure what becomes of the answer.

    Effect = metric of the patched run − metric of the base run, in nats; y* and y_s are the item's own strings in
    every run. Recovery = effect / (source − base), NaN where that gap is under 0.5 nat. Only prompt positions are
    patched, never the answers'. Every pair's run is held to two identities: a patch from the run itself changes
    nothing, and a patch of all embeddings reproduces the source run.

    Args:
        model: An opened model, or an engine.
        pairs: Base and source runs of equal answers.
        sites: Which sites are patched, each on its own.
        where: Roles of the base run's tokens, with `last` for the last prompt token and `all` for every token; or
            `positions`, every prompt token on its own.
        layers: Layers; default all.
        heads: Patch head by head (z, q, k, v, pattern). k and v have n_kv heads; their rows beyond are NaN.
        window: Patch so many consecutive layers at once, from `layer` on; cells that would leave the model are NaN.
        source: Where activations come from; default the pair's source run. See `latentkt.internals.sources`.
        metric: `log_odds` (default), `first_token`, or a function of the logits `[batch, vocab]` at the last prompt
            token; a pair's own metric is the default where it has one.
        engine: `fast` (staircase), `reference`, `transformer_lens` or `nnsight`; the numbers agree to 1e-4 nat.
        skip_unchanged: Leave out forward passes of cells at which both runs are the same; their effect is exactly 0.
        check: Hold each pair's run to the two identities.
        allow_shifted: Also measure pairs whose tokens stand at other positions after the first difference.

    Returns:
        One row a pair, site, layer, place and head: `pair` and the pair's `meta`, `engine`, `dtype`, `site`, `window`,
        `layer`, `role`, `position`, `token`, `head` (−1: all), `source_kind`, `metric`, `n_positions`,
        `unchanged` (both runs are the same there), `shifted`,
        `base_value`, `source_value`, `patched_value`, `effect`, `recovery`, `first_token_effect`,
        `patched_logp_correct`, `patched_logp_shortcut`, `frame` (`denoise` or `noise` where exactly one of the two
        runs has its own right answer on top), `self_patch_error` and `full_patch_error` (nats). What does not exist is
        NaN.

    Raises:
        InputError: Unknown site, layer or engine; a site that the model lacks; a shifted pair.
        RunError: An identity does not hold, or a hook never ran.

    Example:
        >>> from latentkt.internals import pairs_of_item, patch
        >>> from latentkt.models import open_model
        >>> from latentkt.trapqa import builtin_items
        >>> handle, item = open_model("smollm2", check=False), builtin_items("scientist").items[0]
        >>> control_to_item, item_to_control = pairs_of_item(handle, item)
        >>> table = patch(handle, [control_to_item], where=("constraint", "last"), layers=[0, 29])
        >>> table.pivot(index="layer", columns="role", values="effect").round(1).abs().to_dict("index")
        {0: {'constraint': 0.2, 'last': 0.0}, 29: {'constraint': 0.0, 'last': 0.3}}
    """
    import pandas as pd

    runner = engine_of(model, engine)
    handle = runner.handle
    chosen = tuple(range(handle.n_layers) if layers is None else layers)
    sweep = _Sweep(tuple(sites), chosen, where, heads, window, source or SourceRun(), metric, skip_unchanged, check)
    _refuse(handle, sweep)
    rows: list[dict[str, object]] = []
    for pair in pairs:
        if pair.alignment.shifted and not allow_shifted:
            raise InputError(
                f"pair {pair.name!r} is shifted: after the first difference its runs stand at other positions",
                fix="leave it out and count it, write runs of equal token length, or pass allow_shifted=True",
            )
        rows.extend(_measure(runner, pair, sweep))
    return pd.DataFrame(rows)


def patch_roles(
    model: ModelHandle | Engine, pairs: Iterable[Pair], *, roles: Sequence[str] = ROLES, **options: object
) -> pd.DataFrame:
    """Patch the tokens of roles, layer by layer: `patch` with `where=roles`."""
    return patch(model, pairs, where=roles, **options)  # type: ignore[arg-type]


def patch_positions(model: ModelHandle | Engine, pairs: Iterable[Pair], **options: object) -> pd.DataFrame:
    """Patch every prompt token on its own, layer by layer: `patch` with `where="positions"`."""
    return patch(model, pairs, where="positions", **options)  # type: ignore[arg-type]


def _refuse(handle: ModelHandle, sweep: _Sweep) -> None:
    """What can be known before any work starts."""
    if not sweep.layers or not set(sweep.layers) <= set(range(handle.n_layers)):
        raise InputError("unknown layer", expected=f"0 to {handle.n_layers - 1}", found=list(sweep.layers))
    for site in sweep.sites:
        handle.arch.site(site, sweep.layers[0])
        if sweep.heads and site not in ("z", "q", "k", "v", "pattern"):
            raise InputError(f"site {site!r} has no heads", expected="z, q, k, v or pattern", found=site)
    if sweep.window < 1 or sweep.window > handle.n_layers:
        raise InputError("window of layers", expected=f"1 to {handle.n_layers}", found=sweep.window)


def _measure(engine: Engine, pair: Pair, sweep: _Sweep) -> list[dict[str, object]]:
    """All rows of one pair."""
    scorer = scorer_of(pair, pair.base.ids, sweep.metric)
    own = isinstance(sweep.source, SourceRun)
    plain = [scorer, scorer_of(pair, pair.source.ids, sweep.metric)] if own else [scorer]
    scored = engine.scores(plain)
    base, source = scored[0], scored[1] if own else None
    plans = _plans(engine, pair, sweep)
    identities = Identities.of(engine, pair, sweep.sites, sweep.layers, scorer) if sweep.check else Identities()
    live = [plan for plan in plans if plan.cell is not None and not plan.unchanged]
    scores = engine.sweep(scorer, [plan.cell for plan in live if plan.cell is not None] + identities.cells)
    errors = identities.errors(scores[len(live) :], base, source)
    patched: dict[int, AnswerScore] = {id(plan): score for plan, score in zip(live, scores, strict=False)}
    fixed = _fixed(engine, pair, sweep, scorer, base, source) | errors
    return [_row(pair, plan, fixed, patched.get(id(plan), base if plan.unchanged else None), base) for plan in plans]


def _plans(engine: Engine, pair: Pair, sweep: _Sweep) -> list[_Plan]:
    inside = [layer + k for layer in sweep.layers for k in range(sweep.window) if layer + k < engine.handle.n_layers]
    keys = [(site, layer) for site in sweep.sites for layer in dict.fromkeys(inside)]
    fetched = pattern_as_z(engine, pair, sweep.source.fetch(engine, pair, keys), keys)
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
                    plans.append(_Plan(site, layer, place, head, cell, unchanged and exists))
    return plans


def _heads(engine: Engine, site: str, sweep: _Sweep) -> Sequence[int | None]:
    return range(engine.handle.n_heads) if sweep.heads else [None]


def _exists(engine: Engine, sweep: _Sweep, site: str, layer: int, head: int | None) -> bool:
    """Whether the head and the whole window are in the model."""
    handle = engine.handle
    n_heads = handle.n_kv_heads if site in ("k", "v") else handle.n_heads
    return layer + sweep.window <= handle.n_layers and (head is None or head < n_heads)


def _cell(
    engine: Engine, sweep: _Sweep, fetched: Fetched, site: str, layer: int, place: Place, head: int | None
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


def _of_head(values: Tensor, head: int | None) -> Tensor:
    return values if head is None else values[:, head]


def _fixed(
    engine: Engine, pair: Pair, sweep: _Sweep, scorer: Scorer, base: AnswerScore, source: AnswerScore | None
) -> dict[str, object]:
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


def _row(
    pair: Pair, plan: _Plan, fixed: dict[str, object], patched: AnswerScore | None, base: AnswerScore
) -> dict[str, object]:
    place = plan.place
    value = patched.value if patched else np.nan
    effect = value - base.value
    gap = float(fixed["source_value"]) - base.value  # type: ignore[arg-type]
    token = None if place.position is None else _token(pair, place.position)
    return {
        "pair": pair.name,
        **pair.meta,
        **fixed,
        "site": plan.site,
        "layer": plan.layer,
        "role": place.role,
        "position": np.nan if place.position is None else float(place.position),
        "token": token,
        "head": -1 if plan.head is None else plan.head,
        "n_positions": len(place.base),
        "unchanged": plan.unchanged,
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
