"""Edge attribution patching: what every path from a part to the input of a later part would do, from gradients.

predicted = (what the sender writes in the source run − in the base run) · gradient through the receiver's input
alone, summed over tokens. `eap` takes the gradient at the base run, `eap_ig` its mean at the midpoints of so many
steps between the embeddings of both runs (Syed et al. 2023; Hanna et al. 2024). With grouped queries a key/value head
is one receiver. The edges of a sender add up to its node attribution.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from latentkt.errors import InputError
from latentkt.internals.engines import engine_of
from latentkt.internals.gradient import Slope, slopes
from latentkt.internals.linear import EMBEDDING, MIN_STEPS, along_the_path, check_method
from latentkt.internals.metrics import Metric, Scorer, metric_name, scorer_of
from latentkt.internals.paths import LOGITS, Node, Wires
from latentkt.internals.places import role_positions
from latentkt.internals.receivers import needed_sites, reads, receiver_gradients, sender_changes
from latentkt.internals.verifying import Choice, choose
from latentkt.models.devices import naming_out_of_memory

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from latentkt.internals.engines.base import Cell, Engine
    from latentkt.internals.places import Place
    from latentkt.models import ModelHandle, Pair

__all__ = ["EDGE_COLUMNS", "edge_attribution"]

METHODS = {"eap": "atp", "eap_ig": "ig"}
EDGE_COLUMNS = (
    "method", "steps", "engine", "dtype", "metric", "role", "base_value", "source_value", "completeness_error",
    "n_edges", "kept_share", "sender", "receiver", "sender_site", "sender_layer", "sender_head", "receiver_site",
    "receiver_layer", "receiver_head", "predicted", "exact", "is_top", "is_sampled",
)  # fmt: skip
"""Columns behind `pair` and the pair's meta."""


@naming_out_of_memory(
    "edge attribution", fix="shorten the prompts, take fewer layers or sites at once, or a smaller model or dtype"
)
def edge_attribution(
    model: ModelHandle | Engine,
    pairs: Iterable[Pair],
    *,
    method: str = "eap",
    steps: int = MIN_STEPS,
    role: str = "all",
    keep: int | None = None,
    metric: str | Metric | None = None,
    choice: Choice | None = None,
    engine: str = "fast",
) -> pd.DataFrame:
    """Predict the effect of every edge, and run some of them by path patching.

    Senders are the embedding, each head and each MLP; receivers the queries, keys and values of each head, each MLP and
    the logits. An exact effect is that of `path_patch` with everything between sender and receiver held at the base run
    and everything behind the receiver live. Nats of the metric, base run changed.

    Args:
        model: An opened model, or an engine.
        pairs: Base and source runs; not shifted.
        method: `eap` or `eap_ig`.
        steps: Steps of `eap_ig`, 5 or more.
        role: Tokens at which a sender has the source's value.
        keep: Keep the rows of so many edges with the largest predictions, and of all that were run; None keeps all.
        metric: As in `patch`.
        choice: How many edges are run.
        engine: Which engine runs the model.

    Returns:
        One row a pair and edge: `pair`, the pair's `meta`, `method`, `steps`, `engine`, `dtype`, `metric`, `role`,
        `base_value`, `source_value`, `completeness_error` (as in `atp`), `n_edges` (of the pair), `kept_share` (of the
        summed sizes of all predictions, what the rows hold), `sender`, `receiver` (names as in `path_patch`) and their
        `…_site`, `…_layer`, `…_head` (−1 where there is none), `predicted`, `exact` (NaN where not run), `is_top`,
        `is_sampled`. `verification` sums the agreement up (of all kept rows).

    Raises:
        InputError: Unknown method, a role without aligned tokens, too few steps, a shifted pair.
        RunError: The gradients through the receivers do not add up.

    Example:
        >>> from latentkt.internals import edge_attribution  # doctest: +SKIP
        >>> table = edge_attribution(handle, pairs, method="eap_ig", keep=200)  # doctest: +SKIP
        >>> table.nlargest(5, "predicted")[["sender", "receiver", "predicted", "exact"]]  # doctest: +SKIP
    """
    import pandas as pd

    if method not in METHODS:
        raise InputError("method of the edge attribution", expected=" or ".join(METHODS), found=method)
    check_method(METHODS[method], steps)
    if keep is not None and keep < 0:
        raise InputError("edges that are kept", expected="0 or more, None for all", found=keep)
    runner, chosen = engine_of(model, engine), choice or Choice()
    rows: list[dict[str, object]] = []
    for pair in pairs:
        if pair.alignment.shifted:
            raise InputError(f"pair {pair.name!r} is shifted", fix="leave it out and count it")
        whole = role_positions(pair, role)
        if not whole.base:  # sums over no tokens would be zeros, as if the edges did nothing
            raise InputError(f"pair {pair.name!r} has no aligned tokens of a role", expected="a role", found=role)
        place = whole.behind(pair.alignment.first_difference)
        scorer = scorer_of(pair, pair.base.ids, metric)
        scores = _Scores(runner, pair, place, scorer, steps if method == "eap_ig" else 0, metric)
        fixed = {
            "pair": pair.name,
            **pair.meta,
            "method": method,
            "steps": scores.steps,
            "engine": runner.name,
            "dtype": runner.handle.dtype_name,
            "metric": metric_name(scorer.metric),
            "role": role,
        }
        rows.extend(_rows(runner, pair, place, scorer, scores, fixed, chosen, keep))
    return pd.DataFrame(rows)


class _Scores:
    """Predictions of all edges of a pair.

    Attributes:
        edges: Sender and receiver.
        predicted: Nats, one an edge.
        steps: Gradients that were averaged.
    """

    def __init__(
        self, engine: Engine, pair: Pair, place: Place, scorer: Scorer, steps: int, metric: str | Metric | None
    ) -> None:
        handle, keys = engine.handle, needed_sites(engine.handle)
        other = scorer_of(pair, pair.source.ids, metric)
        (self.source,) = slopes(engine, [other], keys, gradient=False)
        (self.base,) = slopes(engine, [scorer], keys, gradient=not steps)
        points: Iterable[Slope] = [self.base]
        if steps:
            points = along_the_path(engine, pair, scorer, self.base, self.source, keys, steps=steps)
        self.steps = max(1, steps)
        everywhere = role_positions(pair, "all").behind(pair.alignment.first_difference)
        total: NDArray[np.float64] = np.zeros(1)
        whole = 0.0
        for point in points:
            senders, receivers, table = self._at(handle, point, place)
            total = total + table / self.steps
            way = (
                self.source.value(EMBEDDING)[list(everywhere.source)]
                - self.base.value(EMBEDDING)[list(everywhere.base)]
            )
            whole += float((way * point.grad(EMBEDDING)[list(everywhere.base)]).sum()) / self.steps
        gap = self.source.score.value - self.base.score.value
        self.completeness_error = np.nan if pair.alignment.unmapped else whole - gap
        pairs = [(i, j) for i, s in enumerate(senders) for j, r in enumerate(receivers) if reads(handle, s, r)]
        self.edges = [(senders[i], receivers[j]) for i, j in pairs]
        self.predicted: NDArray[np.float64] = np.array([float(total[i, j]) for i, j in pairs])

    def _at(
        self, handle: ModelHandle, point: Slope, place: Place
    ) -> tuple[list[Node], list[Node], NDArray[np.float64]]:
        """The product of all changes and all gradients at one point of the path: [sender, receiver]."""
        at = (list(place.base), list(place.source))
        senders, changes = sender_changes(handle, point, self.base, self.source, at)
        receivers, gradients = receiver_gradients(handle, point, at[0])
        found = changes.flatten(1) @ gradients.flatten(1).T.to(changes)
        return senders, receivers, found.double().cpu().numpy()


def _rows(
    engine: Engine,
    pair: Pair,
    place: Place,
    scorer: Scorer,
    scores: _Scores,
    fixed: Mapping[str, object],
    choice: Choice,
    keep: int | None,
) -> Iterator[dict[str, object]]:
    predicted, edges = scores.predicted, scores.edges
    top, sampled = choose(predicted, choice, pair.name)
    run = [number for number in range(len(edges)) if top[number] or sampled[number]]
    known = (scores.base, scores.source)
    effects = exact_effects(engine, pair, place, scorer, [edges[n] for n in run], known=known)
    exact = dict(zip(run, effects, strict=True))
    order = np.argsort(-np.abs(predicted), kind="stable")
    kept = sorted({*order[: len(edges) if keep is None else keep].tolist(), *run})
    size = float(np.abs(predicted).sum())
    about = {
        "base_value": scores.base.score.value,
        "source_value": scores.source.score.value,
        "completeness_error": scores.completeness_error,
        "n_edges": len(edges),
        "kept_share": float(np.abs(predicted[kept]).sum()) / size if size else np.nan,
    }
    for number in kept:
        sender, receiver = edges[number]
        names = {"sender": sender.name, "receiver": "logits" if receiver == LOGITS else receiver.name}
        yield {
            **fixed,
            **about,
            **names,
            **_parts("sender", sender),
            **_parts("receiver", receiver),
            "predicted": float(predicted[number]),
            "exact": exact.get(number, np.nan),
            "is_top": bool(top[number]),
            "is_sampled": bool(sampled[number]),
        }


def _parts(name: str, node: Node) -> dict[str, object]:
    head = -1 if node.head is None else node.head
    return {f"{name}_site": node.site, f"{name}_layer": node.layer, f"{name}_head": head}


def exact_effects(
    engine: Engine,
    pair: Pair,
    place: Place,
    scorer: Scorer,
    edges: Sequence[tuple[Node, Node]],
    *,
    known: tuple[Slope, Slope] | None = None,
) -> list[float]:
    """Effects of single edges by path patching, in nats; a sender's edges share the run that sends.

    Args:
        engine: What runs the model.
        pair: The pair.
        place: Tokens at which senders have the source's values.
        scorer: The base run's.
        edges: Senders and receivers.
        known: Base and source run with the values of `needed_sites`, where they have been run already.
    """
    if not edges:
        return []
    senders = list(dict.fromkeys(sender for sender, _ in edges))
    receivers = list(dict.fromkeys(receiver for _, receiver in edges))
    values = [{key: run.value(key) for key in run.values} for run in known or ()]
    wires = Wires(engine, pair, place, senders, receivers, known=(values[0], values[1]) if values else None)
    base = engine.score(scorer).value
    found: dict[int, float] = {}
    cells: dict[int, Cell] = {}
    with torch.no_grad():
        for sender in senders:
            kept = wires.send(sender, norm="recomputed", others="frozen")
            for number, (one, receiver) in enumerate(edges):
                if one == sender and receiver == LOGITS:
                    found[number] = wires.direct(scorer, kept, "recomputed").value - base
                elif one == sender:
                    cells[number] = wires.cell(kept, [receiver])
    scores = engine.sweep(scorer, list(cells.values()))
    found |= {number: score.value - base for number, score in zip(cells, scores, strict=True)}
    return [found[number] for number in range(len(edges))]
