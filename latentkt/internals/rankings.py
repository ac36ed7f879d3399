"""In which order parts of the network are kept or exchanged: by predicted size, by given scores, or at random."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from latentkt.errors import DataError
from latentkt.internals.attribution_patching import atp
from latentkt.internals.edges import edge_attribution
from latentkt.internals.linear import MIN_STEPS
from latentkt.internals.paths import LOGITS, Node
from latentkt.internals.sources import Source, SourceRun
from latentkt.internals.verifying import Choice

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.internals.engines.base import Engine
    from latentkt.internals.metrics import Metric
    from latentkt.models import Pair

__all__ = ["RANKINGS", "Part", "Ranker", "Ranking"]

RANKINGS = {"nodes": ("atp", "ig"), "edges": ("eap", "eap_ig")}
Part = Node | tuple[Node, Node]


@dataclass(frozen=True)
class Ranking:
    """An order of parts.

    Attributes:
        order: Numbers of the parts, first to last.
        name: What it is called in tables.
        ranked_on: `pair` (this very one), `pairs with it`, `other pairs` or `nothing`.
    """

    order: list[int]
    name: str
    ranked_on: str


@dataclass(frozen=True)
class Ranker:
    """Makes rankings for pairs.

    Attributes:
        of: `nodes` or `edges`.
        scores: What `given` takes.
        steps: Steps of `ig` and `eap_ig`.
        seed: Of `random`.
        metric: What is predicted.
        source: What stands in for a node.
    """

    of: str
    scores: pd.DataFrame | None = None
    steps: int = MIN_STEPS
    seed: int = 0
    metric: str | Metric | None = None
    source: Source | None = None

    def rank(self, engine: Engine, pair: Pair, parts: Sequence[Part], ranking: str) -> Ranking:
        """The parts from the first to the last.

        Args:
            engine: Runs what must be predicted.
            pair: The pair.
            parts: All parts.
            ranking: `random`, `given`, or a method of `RANKINGS`.

        Raises:
            DataError: Given scores that are not of such parts.
        """
        if ranking == "random":
            digest = hashlib.sha256(f"{self.seed}:{pair.name}".encode()).digest()
            order = np.random.default_rng(int.from_bytes(digest[:8], "big")).permutation(len(parts))
            return Ranking(order.tolist(), ranking, "nothing")
        if ranking == "given":
            assert self.scores is not None
            table = self.scores
            methods, pairs = (set(table.get(column, ())) for column in ("method", "pair"))
            own = ("pair" if len(pairs) == 1 else "pairs with it") if pair.name in pairs else "other pairs"
            return Ranking(self._sorted(table, parts), f"given {'/'.join(sorted(methods))}".strip(), own)
        return Ranking(self._sorted(self._predict(engine, pair, ranking), parts), ranking, "pair")

    def _predict(self, engine: Engine, pair: Pair, method: str) -> pd.DataFrame:
        none = Choice(top=0, sample=0)
        options: dict[str, Any] = {"steps": self.steps, "metric": self.metric, "choice": none, "method": method}
        if self.of == "edges":
            return edge_attribution(engine, [pair], **options)
        options["source"] = None if isinstance(self.source, SourceRun) else self.source
        return atp(engine, [pair], sites=("z", "mlp_out"), where=("all",), heads=True, **options)

    def _sorted(self, table: pd.DataFrame, parts: Sequence[Part]) -> list[int]:
        """By mean size of the predictions; parts without one come last."""
        columns = ["site", "layer", "head"] if self.of == "nodes" else ["sender", "receiver"]
        missing = [name for name in (*columns, "predicted") if name not in table.columns]
        if missing:
            wanted = ", ".join((*columns, "predicted"))
            raise DataError(f"scores of {self.of}", expected=wanted, found=f"no {missing[0]}")
        means = table.assign(size=table["predicted"].abs()).groupby(columns)["size"].mean().dropna()
        size = dict(zip(means.index, means.tolist(), strict=True))
        return np.argsort([-size.get(_key(part), -1.0) for part in parts], kind="stable").tolist()


def _key(part: Part) -> object:
    if isinstance(part, Node):
        return (part.site, part.layer, -1 if part.head is None else part.head)
    return (part[0].name, "logits" if part[1] == LOGITS else part[1].name)
