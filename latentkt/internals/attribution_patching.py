"""Attribution patching: what every patch would do, predicted from gradients, and some of the patches run as a check.

predicted = (source value − base value) · gradient of the metric, both at the same tensor of the base run. With `ig` the
gradient is the mean over steps from the base run's embeddings to the source run's; with `qk_fix` queries and keys go
through the softmax exactly. The largest predictions and a sample of all are run by exact patching (`verification`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from latentkt.errors import InputError
from latentkt.internals.engines import engine_of
from latentkt.internals.linear import MIN_STEPS, Linear, check_method, linearise
from latentkt.internals.metrics import Metric, scorer_of
from latentkt.internals.plans import Plan, Sweep, fixed_columns, place_columns, plans_of, refuse_sweep
from latentkt.internals.softmax_fix import fixed_predictions
from latentkt.internals.sources import Source, SourceRun
from latentkt.internals.verifying import Choice, choose
from latentkt.models.devices import naming_out_of_memory

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

    from latentkt.internals.engines.base import Engine, SiteKey
    from latentkt.internals.places import Place
    from latentkt.models import ModelHandle, Pair

__all__ = ["ATP_COLUMNS", "atp"]

ATP_COLUMNS = (
    "method", "steps", "qk_fix", "engine", "dtype", "source_kind", "metric", "shifted", "base_value", "source_value",
    "frame", "completeness_error", "site", "layer", "role", "position", "token", "head", "n_positions", "unchanged",
    "predicted", "exact", "is_top", "is_sampled",
)  # fmt: skip
"""Columns behind `pair` and the pair's meta."""
_HEADED = ("z", "q", "k", "v")


@dataclass(frozen=True)
class _Task:
    """What is asked of every pair."""

    sweeps: tuple[Sweep, ...]
    method: str
    steps: int
    qk_fix: bool
    metric: str | Metric | None
    source: Source
    choice: Choice
    keys: list[SiteKey] = field(default_factory=list)


@naming_out_of_memory(
    "attribution patching", fix="shorten the prompts, take fewer layers or sites at once, or a smaller model or dtype"
)
def atp(
    model: ModelHandle | Engine,
    pairs: Iterable[Pair],
    *,
    sites: Sequence[str] = ("resid_post",),
    where: Sequence[str] | str = "positions",
    layers: Sequence[int] | None = None,
    heads: bool = False,
    method: str = "atp",
    steps: int = MIN_STEPS,
    qk_fix: bool = False,
    metric: str | Metric | None = None,
    source: Source | None = None,
    choice: Choice | None = None,
    batch: int = 1,
    engine: str = "fast",
    allow_shifted: bool = False,
) -> pd.DataFrame:
    """Predict the effect of every patch from one backward pass, and run some of the patches.

    Predictions and exact effects are changes of the metric of the base run, in nats; y* and y_s are the item's own
    strings in every run. Use predictions to rank; their sizes can be off by a factor of three and their signs may be
    wrong, and what `verification` says of this very table decides how far they are used.

    Args:
        model: An opened model, or an engine.
        pairs: Base and source runs.
        sites: `resid_pre`, `resid_mid`, `resid_post`, `attn_out`, `mlp_out`, `z`, `q`, `k`, `v`.
        where: `positions` (every prompt token on its own), or roles as in `patch`.
        layers: Layers; default all.
        heads: Head by head at z, q, k, v; the other sites stay whole.
        method: `atp`: the gradient at the base run. `ig`: the mean gradient at the midpoints of `steps` steps from the
            base run's embeddings to the source run's.
        steps: Steps of `ig`, 5 or more.
        qk_fix: Let patched q and k go through the softmax exactly; one more pass for all q, one for each place of k.
        metric: `log_odds` (default), `first_token`, or a function of the logits `[batch, vocab]`; as in `patch`.
        source: Where activations come from; default the pair's source run. `ig` and `qk_fix` need that.
        choice: How many predictions are run by exact patching; `Choice(top=0, sample=0)` for none.
        batch: Pairs that are run together; changes no number beyond rounding.
        engine: Which engine runs the model.
        allow_shifted: As in `patch`.

    Returns:
        One row a pair, site, layer, place and head: the columns of `patch` up to `unchanged`, and `method`, `steps`,
        `qk_fix`, `completeness_error` (nats by which the embeddings' predictions together miss source − base: what the
        method gets wrong over the whole way), `predicted` (nats), `exact` (nats; NaN where the patch was not run),
        `is_top`, `is_sampled`. What does not exist is NaN; where both runs are the same the prediction is exactly 0.

    Raises:
        InputError: Unknown site, layer, method or engine; too few steps; a shifted pair; a metric without a gradient.

    Example:
        >>> from latentkt.internals import atp, verification  # doctest: +SKIP
        >>> table = atp(handle, pairs, sites=("z", "mlp_out"), where=("last",), heads=True)  # doctest: +SKIP
        >>> verification(table)[["n_cells", "rank_correlation", "slope", "misses"]]  # doctest: +SKIP
    """
    import pandas as pd

    runner = engine_of(model, engine)
    chosen = tuple(range(runner.handle.n_layers) if layers is None else layers)
    own = source or SourceRun()
    sweeps = _sweeps(sites, chosen, where, heads, own, metric)
    task = _Task(sweeps, method, steps, qk_fix, metric, own, choice or Choice())
    _refuse(runner, task)
    task.keys.extend(_keys(task))
    rows: list[dict[str, object]] = []
    for group in _batches(pairs, batch, allow_shifted=allow_shifted):
        for linear in linearise(runner, group, task.keys, method=method, steps=steps, metric=metric):
            rows.extend(_measure(runner, linear, task))
    return pd.DataFrame(rows)


def _sweeps(
    sites: Sequence[str],
    layers: tuple[int, ...],
    where: Sequence[str] | str,
    heads: bool,
    source: Source,
    metric: str | Metric | None,
) -> tuple[Sweep, ...]:
    """Sites with heads and sites without are swept apart, in the order in which they were named."""
    return tuple(
        Sweep((site,), layers, where, heads and site in _HEADED, 1, source, metric, skip_unchanged=True, check=False)
        for site in dict.fromkeys(sites)
    )


def _refuse(engine: Engine, task: _Task) -> None:
    check_method(task.method, task.steps)
    for sweep in task.sweeps:
        if sweep.sites == ("pattern",):
            raise InputError("site 'pattern' has no attribution", expected="q and k with qk_fix=True, or z")
        refuse_sweep(engine.handle, sweep)
    if (task.method == "ig" or task.qk_fix) and not isinstance(task.source, SourceRun):
        raise InputError(
            "the path of integrated gradients and the QK fix lead to the source run", expected="source=None"
        )


def _keys(task: _Task) -> Iterator[SiteKey]:
    """What must be differentiated: the sites themselves, and for the QK fix what stands around the softmax."""
    for sweep in task.sweeps:
        for layer in sweep.layers:
            yield sweep.sites[0], layer
            if task.qk_fix and sweep.sites[0] in ("q", "k"):
                yield from (("z", layer), ("resid_pre", layer))


def _batches(pairs: Iterable[Pair], size: int, *, allow_shifted: bool) -> Iterator[list[Pair]]:
    group: list[Pair] = []
    for pair in pairs:
        if pair.alignment.shifted and not allow_shifted:
            raise InputError(
                f"pair {pair.name!r} is shifted: after the first difference its runs stand at other positions",
                fix="leave it out and count it, write runs of equal token length, or pass allow_shifted=True",
            )
        group.append(pair)
        if len(group) >= size:
            yield group
            group = []
    if group:
        yield group


def _measure(engine: Engine, linear: Linear, task: _Task) -> Iterator[dict[str, object]]:
    """All rows of one pair."""
    pair, own = linear.pair, isinstance(task.source, SourceRun)

    def fetched(key: SiteKey, place: Place) -> Tensor:
        first, last = place.source[0], place.source[-1]
        whole = linear.source.value(key)
        if last - first == len(place.source) - 1:  # a view costs nothing
            return whole[first : last + 1]
        return whole[list(place.source)]

    plans = [plan for sweep in task.sweeps for plan in plans_of(engine, pair, sweep, fetched if own else None)]
    predicted = [_predicted(linear, plan, own=own) for plan in plans]
    scorer = scorer_of(pair, pair.base.ids, task.metric)
    if task.qk_fix:
        for number, value in fixed_predictions(engine, scorer, linear.base, plans).items():
            predicted[number] = value
    live = [np.nan if plan.unchanged else value for plan, value in zip(plans, predicted, strict=True)]
    top, sampled = choose(live, task.choice, pair.name)
    exact = dict.fromkeys(range(len(plans)), np.nan)
    run = [number for number in range(len(plans)) if top[number] or sampled[number]]
    if run:
        base = engine.score(scorer)
        scores = engine.sweep(scorer, [plans[number].cell or () for number in run])
        exact |= {number: score.value - base.value for number, score in zip(run, scores, strict=True)}
    source = linear.source.score if own else None
    fixed = fixed_columns(engine, pair, task.sweeps[0], scorer, linear.base.score, source)
    fixed = {name: value for name, value in fixed.items() if name != "window"}
    about = {"method": task.method, "steps": linear.steps, "qk_fix": task.qk_fix}
    missed = linear.completeness_error if own else np.nan
    for number, plan in enumerate(plans):
        yield {
            "pair": pair.name,
            **pair.meta,
            **about,
            **fixed,
            "completeness_error": missed,
            **place_columns(pair, plan),
            "predicted": predicted[number],
            "exact": exact[number],
            "is_top": bool(top[number]),
            "is_sampled": bool(sampled[number]),
        }


def _predicted(linear: Linear, plan: Plan, *, own: bool) -> float:
    if plan.unchanged:
        return 0.0
    if plan.cell is None:
        return np.nan
    patch = plan.cell[0]
    if not own:
        return linear.predict(patch)
    product = linear.by_token((patch.site, patch.layer))
    if len(patch.positions) == 1 and (patch.head is not None or product.shape[1] == 1):
        return float(product[patch.positions[0], patch.head or 0])
    found = product[list(patch.positions)]
    return float(found.sum() if patch.head is None else found[:, patch.head].sum())
