"""Exact patching by layer and role, layer and position, and head, at any site, in both directions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from latentkt.errors import InputError
from latentkt.internals.checks import Identities
from latentkt.internals.engines import engine_of
from latentkt.internals.metrics import AnswerScore, Metric, scorer_of
from latentkt.internals.places import role_positions
from latentkt.internals.plans import MIN_GAP, Sweep, fixed_columns, plans_of, refuse_sweep, row_of
from latentkt.internals.sources import Source, SourceRun
from latentkt.models.devices import naming_out_of_memory

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.internals.engines.base import Engine
    from latentkt.models import ModelHandle, Pair

__all__ = ["MIN_GAP", "patch", "patch_positions", "patch_roles", "role_positions"]

ROLES = ("shortcut", "constraint", "last")
COLUMNS = (
    "engine", "dtype", "window", "source_kind", "metric", "shifted", "base_value", "source_value", "frame",
    "self_patch_error", "full_patch_error", "site", "layer", "role", "position", "token", "head", "n_positions",
    "unchanged", "patched_value", "effect", "recovery", "first_token_effect", "patched_logp_correct",
    "patched_logp_shortcut",
)  # fmt: skip
"""Columns behind `pair` and the pair's meta."""


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
        check: Hold each pair's run to the two identities, its plain runs made by the model's own modules. Without,
            `fast` may take the plain runs through the model beside the sweep, which is faster on short prompts.
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
    sweep = Sweep(tuple(sites), chosen, where, heads, window, source or SourceRun(), metric, skip_unchanged, check)
    refuse_sweep(handle, sweep)
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


def _measure(engine: Engine, pair: Pair, sweep: Sweep) -> list[dict[str, object]]:
    """All rows of one pair."""
    scorer = scorer_of(pair, pair.base.ids, sweep.metric)
    own = isinstance(sweep.source, SourceRun)
    plain = [scorer, scorer_of(pair, pair.source.ids, sweep.metric)] if own else [scorer]
    if sweep.check:
        engine.scores(plain)  # what is checked is held to the model's own runs; else they may go with the sweep
    plans = plans_of(engine, pair, sweep, named=True)
    identities = Identities.of(engine, pair, sweep.sites, sweep.layers, scorer) if sweep.check else Identities()
    live = [plan for plan in plans if plan.cell is not None and not plan.unchanged]
    scores = engine.sweep(scorer, [plan.cell for plan in live if plan.cell is not None] + identities.cells)
    scored = engine.scores(plain)
    base, source = scored[0], scored[1] if own else None
    errors = identities.errors(scores[len(live) :], base, source)
    patched: dict[int, AnswerScore] = {id(plan): score for plan, score in zip(live, scores, strict=False)}
    fixed = fixed_columns(engine, pair, sweep, scorer, base, source) | errors
    return [row_of(pair, plan, fixed, patched.get(id(plan), base if plan.unchanged else None), base) for plan in plans]
