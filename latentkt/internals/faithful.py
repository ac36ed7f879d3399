"""Faithfulness: how much of the answer a small part of the network keeps, and how much is lost without it.

`keep`: the top n nodes (or edges) are the base run's, all others have the source run's values. `remove`: the top n
have the source run's values. Both are traced from none to all; what the curve says depends on what stands in for the
rest, on nodes or edges, and on how they were ranked, so all of that is in the table, with a random ranking beside it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from latentkt.errors import DataError, InputError, RunError
from latentkt.internals.attribution_patching import atp
from latentkt.internals.circuits import CutEdges, all_edges, all_nodes, node_edits
from latentkt.internals.edges import edge_attribution
from latentkt.internals.engines import engine_of
from latentkt.internals.gradient import slopes
from latentkt.internals.linear import MIN_STEPS
from latentkt.internals.metrics import Metric, Scorer, metric_name, scorer_of
from latentkt.internals.paths import LOGITS, Node
from latentkt.internals.places import Place, role_positions
from latentkt.internals.plans import MIN_GAP
from latentkt.internals.sources import Source, SourceRun
from latentkt.internals.verifying import Choice
from latentkt.models.devices import naming_out_of_memory

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

    from latentkt.internals.engines.base import Edit, Engine, SiteKey
    from latentkt.models import ModelHandle, Pair

__all__ = ["FAITHFULNESS_COLUMNS", "SHARES", "check_options", "faithfulness"]

SHARES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
RANKINGS = {"nodes": ("atp", "ig"), "edges": ("eap", "eap_ig")}
CURVES = ("keep", "remove")
FAITHFULNESS_COLUMNS = (
    "engine", "dtype", "metric", "of", "ranking", "ranked_on", "ablation", "curve", "n_all", "n", "share", "n_kept",
    "base_value", "source_value", "none_value", "none_error", "value", "faithfulness", "area", "distance",
)  # fmt: skip
"""Columns behind `pair` and the pair's meta."""
Part = Node | tuple[Node, Node]


@naming_out_of_memory(
    "faithfulness", fix="shorten the prompts, take fewer layers or sites at once, or a smaller model or dtype"
)
def faithfulness(
    model: ModelHandle | Engine,
    pairs: Iterable[Pair],
    *,
    of: str = "nodes",
    rankings: Sequence[str] | None = None,
    scores: pd.DataFrame | None = None,
    shares: Sequence[float] = SHARES,
    curves: Sequence[str] = CURVES,
    steps: int = MIN_STEPS,
    seed: int = 0,
    metric: str | Metric | None = None,
    source: Source | None = None,
    engine: str = "fast",
) -> pd.DataFrame:
    """Keep or remove the top parts of the network and trace the metric.

    Faithfulness = (value − value with nothing kept) / (base value − value with nothing kept): 1 is the base run, 0 the
    run in which every part is replaced (with the pair's own source run, that run itself). It may leave 0 to 1. NaN
    where the two differ by less than half a nat. Of nodes the embedding is the input itself: it is the first that is
    kept and the last that goes.

    Args:
        model: An opened model, or an engine.
        pairs: Base and source runs; not shifted. Both directions of an item make two curves, never averaged here.
        of: `nodes` (embedding, heads, MLPs) or `edges` (of these into queries, keys, values, MLPs and the logits).
        rankings: By predicted size on the very pair: `atp`, `ig` for nodes, `eap`, `eap_ig` for edges; `random`; or
            `given`, by the mean size in `scores`. Default the gradient at the base run, and `random`; with `scores`,
            `given` and `random`.
        scores: A table of `atp` (sites resid_pre, z with heads, mlp_out, `where=("all",)`) or of `edge_attribution`, of
            other items: then what is traced was not chosen on this pair. Parts that it lacks come last.
        shares: Parts in the top set, as shares of all, rounded up; 0 and 1 are added.
        curves: `keep` and/or `remove`.
        steps: Steps of `ig` and `eap_ig`.
        seed: Of the random ranking; the pair's name goes into it.
        metric: As in `patch`.
        source: What stands in for a part that is not kept; default the pair's source run. Edges need that.
        engine: Which engine runs the model.

    Returns:
        One row a pair, ranking, curve and point: `pair`, the pair's `meta`, `engine`, `dtype`, `metric`, `of`,
        `ranking` (`given` with the method of the scores), `ranked_on` (`pair`: this very one; `pairs with it`, `other
        pairs`, `nothing`), `ablation` (what stands in), `curve`, `n_all` (parts), `n` (in the top set), `share` (n /
        n_all), `n_kept`, `base_value`, `source_value`, `none_value` (nothing kept), `none_error` (nats by which that
        misses the source run; NaN where it need not be it), `value`, `faithfulness`, and of the whole curve `area`
        (under faithfulness over share, trapezoid: for `keep` large is good, for `remove` small) and `distance` (area
        between faithfulness and 1).

    Raises:
        InputError: An unknown option, a shifted pair, `given` without scores.
        RunError: With nothing kept the run is not the source run.

    Example:
        >>> from latentkt.internals import faithfulness  # doctest: +SKIP
        >>> table = faithfulness(handle, pairs)  # doctest: +SKIP
        >>> table.pivot_table(index="share", columns=["curve", "ranking"], values="faithfulness")  # doctest: +SKIP
    """
    import pandas as pd

    runner = engine_of(model, engine)
    asked = tuple(rankings or (("given",) if scores is not None else RANKINGS.get(of, ())[:1]) + ("random",))
    check_options(of, asked, shares, curves, scores=scores is not None)
    if of == "edges" and source is not None and not isinstance(source, SourceRun):
        raise InputError("edges are cut to the source run only", expected="source=None", found=source.kind)
    task = _Task(of, asked, scores, tuple(shares), tuple(curves), steps, seed, metric, source or SourceRun())
    rows: list[dict[str, object]] = []
    for pair in pairs:
        if pair.alignment.shifted:
            raise InputError(f"pair {pair.name!r} is shifted", fix="leave it out and count it")
        rows.extend(_Tracer(runner, pair, task).rows())
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class _Task:
    of: str
    rankings: tuple[str, ...]
    scores: pd.DataFrame | None
    shares: tuple[float, ...]
    curves: tuple[str, ...]
    steps: int
    seed: int
    metric: str | Metric | None
    source: Source


def check_options(
    of: str, rankings: Sequence[str], shares: Sequence[float], curves: Sequence[str], *, scores: bool = False
) -> None:
    """Refuse options before anything is run.

    Raises:
        InputError: One that is unknown, `given` without scores, or a share outside 0 to 1.
    """
    if of not in RANKINGS:
        raise InputError("faithfulness of what", expected="nodes or edges", found=of)
    known = (*RANKINGS[of], "random", "given")
    if not set(rankings) <= set(known):
        raise InputError(f"ranking of {of}", expected=", ".join(known), found=list(rankings))
    if "given" in rankings and not scores:
        raise InputError("ranking 'given' needs scores", expected="a table of atp or edge_attribution")
    if not curves or not set(curves) <= set(CURVES):
        raise InputError("curves", expected="keep and/or remove", found=list(curves))
    if not all(0 <= share <= 1 for share in shares):
        raise InputError("shares of parts", expected="numbers from 0 to 1", found=list(shares))


class _Tracer:
    """All curves of one pair; runs that two curves share are made once."""

    def __init__(self, engine: Engine, pair: Pair, task: _Task) -> None:
        self._engine, self._pair, self._task = engine, pair, task
        self._scorer: Scorer = scorer_of(pair, pair.base.ids, task.metric)
        self._parts: list[Part] = list((all_nodes if task.of == "nodes" else all_edges)(engine.handle))
        self._place = _place(pair, exact=task.source.exact)
        self._source: float = np.nan
        self._values = self._fetch()
        self._known = {frozenset[int](): engine.score(self._scorer).value}

    def rows(self) -> Iterator[dict[str, object]]:
        """All rows of the pair."""
        everything = range(len(self._parts))
        base, none = self._value([]), self._value(everything)
        error = self._check(none)
        fixed = {
            "pair": self._pair.name,
            **self._pair.meta,
            "engine": self._engine.name,
            "dtype": self._engine.handle.dtype_name,
            "metric": metric_name(self._scorer.metric),
            "of": self._task.of,
        }
        ends = {"base_value": base, "source_value": self._source, "none_value": none, "none_error": error}
        for ranking in self._task.rankings:
            order, name, ranked_on = self._order(ranking)
            about = {"ranking": name, "ranked_on": ranked_on, "ablation": self._ablation}
            for curve in self._task.curves:
                points = [(n, self._value(self._replaced(order, curve, n))) for n in self._counts()]
                yield from self._curve(points, {**fixed, **about, "curve": curve}, ends)

    def _replaced(self, order: list[int], curve: str, n: int) -> list[int]:
        """Parts that are not the base run's. Of nodes the embedding, the input, is kept first and goes last."""
        if self._task.of == "nodes":
            rest = [number for number in order if number]
            order = [0, *rest] if curve == "keep" else [*rest, 0]
        return order[n:] if curve == "keep" else order[:n]

    def _curve(
        self, points: list[tuple[int, float]], fixed: dict[str, object], ends: dict[str, float]
    ) -> Iterator[dict[str, object]]:
        n_all, gap = len(self._parts), ends["base_value"] - ends["none_value"]
        share = np.array([n / n_all for n, _ in points])
        kept = np.array([value for _, value in points]) - ends["none_value"]
        faithful = kept / gap if abs(gap) >= MIN_GAP else np.full(len(points), np.nan)
        whole = {
            "area": float(np.trapezoid(faithful, share)),
            "distance": float(np.trapezoid(np.abs(1 - faithful), share)),
        }
        for number, (n, value) in enumerate(points):
            yield {
                **fixed,
                "n_all": n_all,
                "n": n,
                "share": float(share[number]),
                "n_kept": n if fixed["curve"] == "keep" else n_all - n,
                **ends,
                "value": value,
                "faithfulness": float(faithful[number]),
                **whole,
            }

    @property
    def _ablation(self) -> str:
        kind = str(getattr(self._task.source, "kind_name", self._task.source.kind))
        over = getattr(self._task.source, "over", None)
        return f"{kind} over {over}, other families" if over else kind

    def _counts(self) -> list[int]:
        n_all = len(self._parts)
        return sorted({0, n_all, *(int(np.ceil(share * n_all - 1e-9)) for share in self._task.shares)})

    def _fetch(self) -> dict[SiteKey, Tensor]:
        """What stands in for each part that is not kept, at the prompt's tokens; the source run is scored with it."""
        layers = range(self._engine.handle.n_layers)
        sites = ("z", "mlp_out") if self._task.of == "nodes" else ("z", "attn_out", "mlp_out")
        keys = [("resid_pre", 0), *((site, layer) for layer in layers for site in sites)]
        if isinstance(self._task.source, SourceRun):
            scorer = scorer_of(self._pair, self._pair.source.ids, self._task.metric)
            (run,) = slopes(self._engine, [scorer], keys, gradient=False)
            self._source = run.score.value
            return {key: run.value(key)[list(self._place.source)] for key in keys}
        fetched = self._task.source.fetch(self._engine, self._pair, keys)
        found = {key: fetched(key, self._place) for key in keys}
        missing = [f"{site}.{layer}" for (site, layer), value in found.items() if value is None]
        if missing:
            raise InputError(f"pair {self._pair.name!r} has nothing to stand in for", found=missing[:3])
        return {key: value for key, value in found.items() if value is not None}

    def _value(self, replaced: Sequence[int] | range) -> float:
        """The metric when these parts are not the base run's."""
        chosen = frozenset(replaced)
        if chosen not in self._known:
            parts = [self._parts[number] for number in sorted(chosen)]
            edits = self._edits(parts) if parts else {}
            (found,) = slopes(self._engine, [self._scorer], [], edits=edits, gradient=False)
            self._known[chosen] = found.score.value
        return self._known[chosen]

    def _edits(self, parts: list[Part]) -> dict[SiteKey, Edit]:
        at = self._place.base
        if self._task.of == "nodes":
            return node_edits([part for part in parts if isinstance(part, Node)], at, self._values.__getitem__)
        edges = [part for part in parts if not isinstance(part, Node)]
        return CutEdges(self._engine.handle, at, self._values, edges).edits()

    def _check(self, none: float) -> float:
        """How far the run with nothing kept is from the source run, where it should be it."""
        if np.isnan(self._source) or self._pair.alignment.unmapped:
            return np.nan
        error = abs(none - self._source)
        if error > (1e-3 if self._engine.handle.dtype.itemsize == 4 else 0.5):
            raise RunError(
                f"pair {self._pair.name!r}: with every part replaced the run is not the source run",
                expected=f"{self._source:.4f} nat",
                found=f"{none:.4f} nat",
                fix="use engine='reference', and report the model",
            )
        return error

    def _order(self, ranking: str) -> tuple[list[int], str, str]:
        """Parts from the first to the last of a ranking, its name in the table, and what it was made on."""
        n_all = len(self._parts)
        if ranking == "random":
            digest = hashlib.sha256(f"{self._task.seed}:{self._pair.name}".encode()).digest()
            order = np.random.default_rng(int.from_bytes(digest[:8], "big")).permutation(n_all)
            return order.tolist(), ranking, "nothing"
        table, name, ranked_on = self._task.scores, ranking, "pair"
        if ranking != "given":
            table = self._predict(ranking)
        assert table is not None
        if ranking == "given":
            methods, pairs = (set(table.get(column, ())) for column in ("method", "pair"))
            name = f"given {'/'.join(sorted(methods))}".strip()
            own = self._pair.name in pairs
            ranked_on = ("pair" if len(pairs) == 1 else "pairs with it") if own else "other pairs"
        size = _sizes(table, self._task.of)
        values = np.array([size.get(_key(part), -1.0) for part in self._parts])
        return np.argsort(-values, kind="stable").tolist(), name, ranked_on

    def _predict(self, ranking: str) -> pd.DataFrame:
        steps, none = self._task.steps, Choice(top=0, sample=0)
        options: dict[str, Any] = {"steps": steps, "metric": self._task.metric, "choice": none, "method": ranking}
        if self._task.of == "edges":
            return edge_attribution(self._engine, [self._pair], **options)
        options["source"] = None if isinstance(self._task.source, SourceRun) else self._task.source
        sites = ("z", "mlp_out")
        return atp(self._engine, [self._pair], sites=sites, where=("all",), heads=True, **options)


def _place(pair: Pair, *, exact: bool) -> Place:
    """Tokens whose parts are exchanged: those that can differ, or, from other prompts, all but special ones."""
    place = role_positions(pair, "all")
    if exact:
        return place.behind(pair.alignment.first_difference)
    kept = [(p, q) for p, q in zip(place.base, place.source, strict=True) if not pair.base.is_special[p]]
    return Place(place.role, tuple(p for p, _ in kept), tuple(q for _, q in kept))


def _key(part: Part) -> object:
    if isinstance(part, Node):
        return (part.site, part.layer, -1 if part.head is None else part.head)
    return (part[0].name, "logits" if part[1] == LOGITS else part[1].name)


def _sizes(table: pd.DataFrame, of: str) -> dict[object, float]:
    """Mean size of the predictions of each part."""
    columns = ["site", "layer", "head"] if of == "nodes" else ["sender", "receiver"]
    missing = [name for name in (*columns, "predicted") if name not in table.columns]
    if missing:
        raise DataError(f"scores of {of}", expected=", ".join((*columns, "predicted")), found=f"no {missing[0]}")
    means = table.assign(size=table["predicted"].abs()).groupby(columns)["size"].mean().dropna()
    return dict(zip(means.index, means.tolist(), strict=True))
