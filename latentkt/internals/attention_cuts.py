"""Attention knockout: what the answer loses when the tokens of one role can no longer be read by those of another.

An edge goes from the role that is read (keys) to the role that reads (queries). Its scores are masked before the
softmax: the probabilities that are left sum to 1 again, which is the same as dividing them by their sum. A query's
probabilities reach the rest of the model through its heads' outputs z alone, so a cut is a patch of z with what the
remaining probabilities make of the run's own values: exact, and the same through every engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from latentkt.errors import InputError, RunError
from latentkt.internals.engines import engine_of
from latentkt.internals.engines.base import Cell, Edit, Engine, Patch, Replace, SiteKey, edits_of
from latentkt.internals.masking import cut_pattern, sink_positions
from latentkt.internals.metrics import AnswerScore, Metric, metric_name, scorer_for
from latentkt.internals.pattern import weighted_values
from latentkt.models.devices import naming_out_of_memory

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

    from latentkt.internals.lens import LensRun
    from latentkt.models import ModelHandle

__all__ = ["EDGES", "KNOCKOUT_COLUMNS", "knockout"]

_READ = ("constraint", "shortcut", "option_correct", "option_shortcut")
EDGES = (
    *((role, "last") for role in _READ),
    *((role, option) for role in _READ[:2] for option in _READ[2:]),
    ("shortcut", "constraint"),
    ("constraint", "shortcut"),
)
"""Edges (read role, reading role) that are cut by default."""
KNOCKOUT_COLUMNS = (
    "engine", "dtype", "metric", "base_value", "no_cut_error", "from_role", "to_role", "layer", "window", "head",
    "sinks", "n_keys", "n_queries", "n_sinks_left_out", "attention", "cut_value", "effect", "first_token_effect",
)  # fmt: skip
"""Columns behind the run's meta."""


@dataclass(frozen=True)
class _Edge:
    """Token positions of one edge.

    Attributes:
        names: The read role and the reading role.
        keys: Positions that can no longer be read.
        queries: Positions that would read them: those with one of the keys in front of them.
        left_out: Sinks among the read role's tokens, which stay readable.
    """

    names: tuple[str, str]
    keys: tuple[int, ...]
    queries: tuple[int, ...]
    left_out: int


@naming_out_of_memory(
    "attention knockout", fix="shorten the prompts, take fewer layers or sites at once, or a smaller model or dtype"
)
def knockout(
    model: ModelHandle | Engine,
    runs: Iterable[LensRun],
    *,
    edges: Sequence[tuple[str, str]] = EDGES,
    layers: Sequence[int] | None = None,
    window: int = 1,
    heads: bool = False,
    sinks: bool = False,
    metric: str | Metric | None = None,
    engine: str = "fast",
) -> pd.DataFrame:
    """Cut attention from role to role, layer by layer, and measure what becomes of the answer.

    Effect = metric of the cut run − metric of the plain run, in nats: negative where the edge carried something in
    favour of y*. Only prompt tokens are cut; the tokens of a longer answer still read everything, so with such answers
    `first_token_effect` is the cleaner number for edges into `last`.

    Args:
        model: An opened model with eager attention, or an engine.
        runs: Prompts with their answers.
        edges: (read role, reading role); `last` is the last prompt token, `all` every token.
        layers: First layer of each window; default all.
        window: Edges are cut in so many consecutive layers at once, from `layer` on.
        heads: Head by head.
        sinks: Also cut sinks: position 0, special tokens, and tokens that get over 30 % of the later tokens' attention
            in a third of all heads. Cutting them breaks the model whatever they say, so they stay readable otherwise.
        metric: As in `patch`.
        engine: Which engine runs the model.

    Returns:
        One row a run, edge, layer and head: the run's `meta`, `engine`, `dtype`, `metric`, `base_value`,
        `no_cut_error` (nats; what rewriting z without a cut does), `from_role`, `to_role`, `layer`, `window`, `head`
        (−1: all), `sinks`, `n_keys`, `n_queries`, `n_sinks_left_out`, `attention` (share of the queries' attention that
        is cut, mean over heads), `cut_value`, `effect`, `first_token_effect` (nats). An edge that does not exist (no
        such tokens, or none in front of the others) is NaN, and so is a window that would leave the model.

    Raises:
        InputError: No pattern, an unknown layer, a window that does not fit.
        RunError: Rewriting z without a cut moves the answer.

    Example:
        >>> from latentkt.internals import knockout  # doctest: +SKIP
        >>> table = knockout(handle, runs, edges=[("constraint", "last"), ("shortcut", "last")])  # doctest: +SKIP
        >>> table.pivot_table(index="layer", columns=["from_role", "to_role"], values="effect")  # doctest: +SKIP
    """
    import pandas as pd

    runner = engine_of(model, engine)
    handle = runner.handle
    chosen = tuple(range(handle.n_layers) if layers is None else layers)
    handle.arch.site("pattern", 0)
    if not chosen or not set(chosen) <= set(range(handle.n_layers)):
        raise InputError("unknown layer", expected=f"0 to {handle.n_layers - 1}", found=list(chosen))
    if not 1 <= window <= handle.n_layers:
        raise InputError("window of layers", expected=f"1 to {handle.n_layers}", found=window)
    task = _Task(tuple(edges), chosen, window, heads, sinks, metric)
    rows: list[dict[str, object]] = []
    with torch.no_grad():
        for run in runs:
            rows.extend(_Cutter(runner, run, task).rows())
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class _Task:
    edges: tuple[tuple[str, str], ...]
    layers: tuple[int, ...]
    window: int
    heads: bool
    sinks: bool
    metric: str | Metric | None


class _Cutter:
    """One run: its patterns and values, and the cells of its cuts."""

    def __init__(self, engine: Engine, run: LensRun, task: _Task) -> None:
        self._engine, self._run, self._task = engine, run, task
        n_layers = engine.handle.n_layers
        self._plain = self._read({}, range(n_layers))
        self._scorer = scorer_for(run.prompt.ids, run.answers, task.metric)
        self._sinks: set[int] = set()
        if not task.sinks:
            self._sinks = sink_positions(run.prompt, [self._plain["pattern", layer] for layer in range(n_layers)])

    def rows(self) -> Iterator[dict[str, object]]:
        """All rows of the run."""
        edges = [self._edge(*names) for names in self._task.edges]
        which: Sequence[int | None] = range(self._engine.handle.n_heads) if self._task.heads else [None]
        plans = [(edge, layer, head) for edge in edges for layer in self._task.layers for head in which]
        cells = list(self._cells(plans))
        live = [cell for cell in cells if cell is not None]
        scores = self._engine.sweep(self._scorer, [*live, self._no_cut()])
        base = self._engine.score(self._scorer)
        error = abs(scores[-1].value - base.value)
        if error > (1e-3 if self._engine.handle.dtype == torch.float32 else 0.5):
            raise RunError(
                "attention is not what its pattern and values make of it: rewriting z without a cut moves the answer",
                expected="at most 0.001 nat",
                found=f"{error:.3g} nat",
                fix="use patching of z, and report the model",
            )
        measured = iter(scores)
        for (edge, layer, head), cell in zip(plans, cells, strict=True):
            score = None if cell is None else next(measured)
            yield self._row(edge, layer, head, score, base, error)

    def _cells(self, plans: Iterable[tuple[_Edge, int, int | None]]) -> Iterator[Cell | None]:
        """In one layer heads do not meet, so all are cut at once; through a window each goes its own way."""
        alone = self._task.window == 1
        made: dict[tuple[object, ...], Cell | None] = {}
        for edge, layer, head in plans:
            key = (edge.names, layer, None if alone else head)
            if key not in made:
                made[key] = self._cell(edge, layer, None if alone else head)
            yield _of_head(made[key], head) if alone else made[key]

    def _read(self, changes: Mapping[SiteKey, Edit], layers: Iterable[int]) -> dict[SiteKey, Tensor]:
        keys = [(site, layer) for layer in layers for site in ("pattern", "v")]
        ids = torch.tensor([self._run.prompt.ids])
        found = self._engine.run(ids, capture=keys, edits=changes).activations
        return {key: value[0] for key, value in found.items()}

    def _edge(self, read: str, reading: str) -> _Edge:
        every = self._positions(read)
        keys = tuple(p for p in every if p not in self._sinks)
        queries = tuple(q for q in self._positions(reading) if any(k < q for k in keys))
        return _Edge((read, reading), keys if queries else (), queries, len(every) - len(keys))

    def _positions(self, role: str) -> tuple[int, ...]:
        prompt = self._run.prompt
        if role == "last":
            return (len(prompt) - 1,)
        return tuple(range(len(prompt))) if role == "all" else prompt.positions(role)

    def _cell(self, edge: _Edge, first: int, head: int | None) -> Cell | None:
        """Patches of z, one a layer of the window; a later layer's pattern is that of the run with the earlier cuts."""
        if not edge.queries or first + self._task.window > self._engine.handle.n_layers:
            return None
        cell: Cell = ()
        for layer in range(first, first + self._task.window):
            found = self._plain if not cell else self._read(edits_of(cell), [layer])
            left = self._left(found["pattern", layer], edge, layer, cell)
            if left is None:
                return None
            values = found["v", layer]
            z = weighted_values(left.to(values), values)
            cell = (*cell, Patch("z", layer, edge.queries, z if head is None else z[:, head], head))
        return cell

    def _left(self, pattern: Tensor, edge: _Edge, layer: int, before: Cell) -> Tensor | None:
        """The probabilities that are left; None where no run can hold them.

        A key that takes all attention leaves numbers too small to be divided. With that key's vector at 0 it competes
        no more, and the others stand to each other as before.
        """
        left = cut_pattern(pattern, edge.queries, edge.keys)
        if left.isnan().any():
            keys, width = edge.keys, self._plain["v", layer].shape[1:]
            gone = Replace(keys, torch.zeros(len(keys), *width))
            again = self._read({**edits_of(before), ("k", layer): gone}, [layer])
            left = cut_pattern(again["pattern", layer], edge.queries, edge.keys)
        return None if left.isnan().any() else left

    def _no_cut(self) -> Cell:
        """Z of the last token, written anew from pattern and values in the middle layer."""
        layer, last = self._engine.handle.n_layers // 2, len(self._run.prompt) - 1
        values = self._plain["v", layer]
        rows = cut_pattern(self._plain["pattern", layer], [last], [])
        return (Patch("z", layer, (last,), weighted_values(rows.to(values), values)),)

    def _row(
        self, edge: _Edge, layer: int, head: int | None, score: AnswerScore | None, base: AnswerScore, error: float
    ) -> dict[str, object]:
        engine, task = self._engine, self._task
        return {
            **self._run.meta,
            "engine": engine.name,
            "dtype": engine.handle.dtype_name,
            "metric": metric_name(self._scorer.metric),
            "base_value": base.value,
            "no_cut_error": error,
            "from_role": edge.names[0],
            "to_role": edge.names[1],
            "layer": layer,
            "window": task.window,
            "head": -1 if head is None else head,
            "sinks": task.sinks,
            "n_keys": len(edge.keys),
            "n_queries": len(edge.queries),
            "n_sinks_left_out": edge.left_out,
            "attention": self._attention(edge, layer, head),
            "cut_value": score.value if score else np.nan,
            "effect": score.value - base.value if score else np.nan,
            "first_token_effect": score.first_token_log_odds - base.first_token_log_odds if score else np.nan,
        }

    def _attention(self, edge: _Edge, layer: int, head: int | None) -> float:
        """Share of the queries' attention that goes to the cut keys in the plain run."""
        if not edge.queries:
            return np.nan
        at = list(edge.queries)
        rows = self._plain["pattern", layer][:, at].float()
        rows[:, range(len(at)), at] = 0.0
        share = rows[:, :, list(edge.keys)].sum(-1)
        return float(share.mean() if head is None else share[head].mean())


def _of_head(cell: Cell | None, head: int | None) -> Cell | None:
    if cell is None or head is None:
        return cell
    return tuple(Patch(p.site, p.layer, p.positions, p.given[:, head], head) for p in cell)
