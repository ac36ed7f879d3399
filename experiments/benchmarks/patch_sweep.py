"""How fast are exact patch sweeps, next to TransformerLens, nnsight and plain hooks? One run, one thread.

    python experiments/benchmarks/patch_sweep.py --model smollm2 --out patch_sweep.json

Peers are timed on 30 seeded cells a pair and scaled to the whole sweep, their source run counted once; own sweeps run
whole, their plain runs included, three times, in turn with the peers; the long pair once. A sweep of less than a second
is run five times each time, and the median taken. All are checked to give the same numbers. The metric is the logit
difference of the two answers' tokens at the last position. The first difference of the early pairs lies at token 4, 5
and 6. `bound` is the arithmetic that no exact method can leave out, at the speed of this machine's matrix product: the
faster of two, before and after each of our sweeps. With `--device cuda`
the clock is wall time after synchronising. The last thing printed is the table in Markdown; `patch_table.py` prints it
again from the file.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from patch_peers import PROMPTS, NNsight, Plain, TransformerLens, make
from patch_table import EVERY, HOOKS, NN, SKIPPED, TL, machine, markdown

from latentkt.internals import engine_of, patch
from latentkt.internals.places import places_of
from latentkt.models import ModelHandle, Pair, encode, make_pair, open_model

PEER_CELLS, REPEATS = 30, 3
SHORT = 1.0  # seconds


@dataclass
class Clock:
    """CPU time of this process, or wall time where the work is done elsewhere."""

    device: str

    def __call__(self, work: Callable[[], Any]) -> tuple[float, Any]:
        """Seconds that the work took, and its result."""
        if self.device != "cpu":
            torch.cuda.synchronize()
        read = time.process_time if self.device == "cpu" else time.perf_counter
        start = read()
        result = work()
        if self.device != "cpu":
            torch.cuda.synchronize()
        return read() - start, result


def peak_gflops(device: str) -> float:
    """Speed of a large matrix product."""
    n = 2048 if device == "cpu" else 8192
    a, b = torch.randn(n, n, device=device), torch.randn(n, n, device=device)
    clock = Clock(device)
    return 2 * n**3 / min(clock(lambda: a @ b)[0] for _ in range(3)) / 1e9


@dataclass(frozen=True)
class Timed:
    """Own sweeps of one repeat: seconds of each, and the speed of the matrix product around it."""

    seconds: list[float]
    peaks: list[float]


def beside_products(clock: Clock, work: Callable[[], Any]) -> tuple[Timed, Any]:
    """Times of some work, five where it is short (a matter of the moment), and its result.

    A product is timed before and after each. The faster one counts: a slow moment is no peak.
    """
    seconds: list[float] = []
    around = [peak_gflops(clock.device)]
    while not seconds or (seconds[0] < SHORT and len(seconds) < 5):
        taken, result = clock(work)
        seconds.append(taken)
        around.append(peak_gflops(clock.device))
    return Timed(seconds, [max(both) for both in itertools.pairwise(around)]), result


def bound_flops(handle: ModelHandle, pair: Pair, cells: list[tuple[int, int]]) -> float:
    """Matrix products that no exact method can leave out.

    The base run; the source run from the first difference on; and for each cell the layers behind it on the tokens
    behind it, without what the two runs hold already: q, k and v where a cell enters its first layer, and the token of
    the first difference, which follows the source run for ever. The last layer's output is needed at the last token.
    """
    d, heads = handle.d_model, handle.n_heads * handle.d_head
    q, kv, last = 2 * d * heads, 4 * d * handle.n_kv_heads * handle.d_head, handle.n_layers - 1
    weights = [weight.numel() for weight in handle.arch.layers[0].parameters() if weight.ndim == 2]
    behind = 2 * sum(weights) - q - kv  # the output projection and the MLP
    length, first = len(pair.base.ids), pair.alignment.first_difference

    def climb(start: int, layer: int, known: int) -> float:
        """Layers from `layer` on, on the tokens from `start` on; `known`: q, k and v of the first are there."""
        n, seen = length - start, sum(range(start + 1, length + 1))
        if not n:
            return 0.0
        whole = max(0, last - layer)
        products = whole * (n * (q + kv + behind) + 4 * heads * seen) + n * kv + q + behind + 4 * heads * length
        return products - known * (n * (q + kv) if whole else n * kv + q)

    total = climb(0, 0, 0) + climb(first, 0, 0)
    for layer, position in cells:
        if layer < last:
            total += climb(position + (position == first), layer + 1, 1)
        total += 4 * d  # two columns of the unembedding
    return total


def seeded_cells(handle: ModelHandle, pair: Pair, first: int) -> list[tuple[int, int]]:
    """(layer, position) cells for the peers, drawn from all cells from position `first` on."""
    rng = np.random.default_rng(0)
    every = [(layer, p) for layer in range(handle.n_layers) for p in range(first, len(pair.base.ids))]
    return [every[i] for i in sorted(rng.permutation(len(every))[:PEER_CELLS])]


def own(
    handle: ModelHandle,
    pair: Pair,
    *,
    skip: bool,
    site: str = "resid_post",
    heads: bool = False,
    where: Any = "positions",
) -> pd.DataFrame:
    """A whole sweep of the library, its plain runs included."""
    options = {"skip_unchanged": skip, "check": False, "metric": "first_token", "heads": heads}
    return patch(engine_of(handle), [pair], sites=(site,), where=where, **options)


def values_at(table: pd.DataFrame, cells: list[tuple[int, int]]) -> np.ndarray:
    """The library's values at the peers' cells."""
    found = table.set_index(["layer", "position"])["patched_value"]
    return np.array([found[layer, float(position)] for layer, position in cells])


def sweep_rows(handle: ModelHandle, name: str, peers: dict[str, Any], clock: Clock) -> list[dict[str, Any]]:
    """resid_post, all layers × positions."""
    pair = make(handle, name)
    length, first = len(pair.base.ids), pair.alignment.first_difference
    cells = seeded_cells(handle, pair, 0)
    n_cells = handle.n_layers * length
    every = [(layer, p) for layer in range(handle.n_layers) for p in range(length)]
    live = [cell for cell in every if cell[1] >= first]
    repeats = 1 if name == "long" else REPEATS
    times: dict[str, list[float]] = {}
    sweeps: dict[str, list[Timed]] = {}
    worst = 0.0
    for _ in range(repeats):
        for skip in (True,) if name == "long" else (True, False):
            timed, table = beside_products(clock, lambda skip=skip: own(handle, pair, skip=skip))
            what = SKIPPED if skip else EVERY
            times.setdefault(what, []).append(float(np.median(timed.seconds)))
            sweeps.setdefault(what, []).append(timed)
            truth = values_at(table, cells)
        for peer, tool in peers.items():
            once, prepared = clock(lambda tool=tool: tool.prepare(pair))
            seconds, found = clock(lambda tool=tool, prepared=prepared: tool.cells(pair, prepared, cells))
            times.setdefault(peer, []).append(once + seconds * n_cells / len(cells))
            worst = max(worst, float(np.abs(np.array(found) - truth).max()))
    rows = []
    for what, seconds in times.items():
        fixed = {"sweep": "resid_post, layer x position", "pair": name, "tokens": length, "first_difference": first}
        row = {**fixed, "cells": n_cells, **row_times(what, seconds, len(cells)), "largest_difference": worst}
        if row["own"]:
            row |= shares(bound_flops(handle, pair, live if what == SKIPPED else every), sweeps[what])
        rows.append(row)
    return rows


def shares(flops: float, repeats: list[Timed]) -> dict[str, Any]:
    """How near all own sweeps came to the arithmetic bound."""
    peaks = np.concatenate([timed.peaks for timed in repeats])
    seconds = np.concatenate([timed.seconds for timed in repeats])
    found = flops / 1e9 / peaks / seconds
    return {
        "peaks_gflops": peaks.tolist(),
        "bound_seconds": float(np.median(flops / 1e9 / peaks)),
        "shares_of_bound": found.tolist(),
        "share_of_bound": float(np.median(found)),
    }


def row_times(what: str, seconds: list[float], n_cells: int) -> dict[str, Any]:
    """What a row says about its repeats; a peer's are scaled from `n_cells`."""
    own = what in (SKIPPED, EVERY)
    spread = {"seconds": float(np.median(seconds)), "low": min(seconds), "high": max(seconds), "repeats": seconds}
    return {"what": what, "own": own, **spread, "scaled_from": None if own else n_cells}


def component_rows(handle: ModelHandle, clock: Clock) -> list[dict[str, Any]]:
    """attn_out, mlp_out at all positions, and z head by head at the changed token, against plain hooks."""
    pair, plain, rows = make(handle, "early 1"), Plain(handle), []
    first, length = pair.alignment.first_difference, len(pair.base.ids)
    for site in ("attn_out", "mlp_out", "z"):
        heads = site == "z"
        where = ("shortcut",) if heads else "positions"
        places = [place for place in places_of(pair, where) if place.base and place.base[0] >= first]
        every = [
            (layer, place, head)
            for layer in range(handle.n_layers)
            for place in places
            for head in (range(handle.n_heads) if heads else [None])
        ]
        rng = np.random.default_rng(1)
        cells = [every[i] for i in sorted(rng.permutation(len(every))[:PEER_CELLS])]
        mine, theirs, worst = [], [], 0.0
        for _ in range(REPEATS):
            seconds, table = clock(
                lambda site=site, heads=heads, where=where: own(
                    handle, pair, skip=True, site=site, heads=heads, where=where
                )
            )
            mine.append(seconds)
            once, values = clock(lambda site=site: plain.prepare(pair, site))
            seconds, found = clock(
                lambda cells=cells, site=site, values=values: [
                    plain.cell(pair, site, layer, list(place.base), values[layer], head) for layer, place, head in cells
                ]
            )
            theirs.append(once + seconds * len(every) / len(cells))
            for (layer, place, head), value in zip(cells, found, strict=True):
                row = table[(table["layer"] == layer) & (table["head"] == (-1 if head is None else head))]
                row = row[row["position"] == place.position] if place.position is not None else row
                worst = max(worst, abs(float(row["patched_value"].item()) - value))
        fixed = {"sweep": f"{site}, layer x {'head' if heads else 'position'}", "pair": "early 1", "tokens": length}
        fixed |= {"first_difference": first, "cells": len(every), "largest_difference": worst}
        rows += [{**fixed, **row_times(SKIPPED, mine, 0)}, {**fixed, **row_times(HOOKS, theirs, len(cells))}]
    return rows


def two_span_rows(handle: ModelHandle, clock: Clock) -> list[dict[str, Any]]:
    """Eight items of about 100 tokens, two spans each, all layers."""
    plain, rng = Plain(handle), np.random.default_rng(2)
    pairs = []
    for number in range(8):
        text, base, source, correct, shortcut = PROMPTS["long"]
        text = text.replace("My brother", ["My brother", "Her sister", "Our uncle", "His friend"][number % 4])
        text = text.replace("{}.", "{}." if number < 4 else "{} too.")
        prompts = []
        for word in (base, source):
            start = text.index("{}")
            stop = start + len(word)
            week = text.format(word).index("the children")
            spans = {"shortcut": [(start, stop)], "constraint": [(week, week + len("the children go"))]}
            prompts.append(encode(handle, text.format(word), chat=False, spans=spans))
        pairs.append(make_pair(handle, *prompts, correct=correct, shortcut=shortcut, name=f"long {number}"))
    options = {"where": ("shortcut", "constraint"), "check": False, "metric": "first_token", "skip_unchanged": False}
    every = [(pair, role, layer) for pair in pairs for role in options["where"] for layer in range(handle.n_layers)]
    cells = [every[i] for i in sorted(rng.permutation(len(every))[:PEER_CELLS])]
    mine, theirs, worst = [], [], 0.0
    for _ in range(REPEATS):
        seconds, table = clock(lambda: patch(engine_of(handle), pairs, **options))
        mine.append(seconds)
        once, values = clock(lambda: {pair.name: plain.prepare(pair) for pair in pairs})
        seconds, found = clock(
            lambda values=values: [
                plain.cell(pair, "resid_post", layer, list(pair.base.positions(role)), values[pair.name][layer], None)
                for pair, role, layer in cells
            ]
        )
        theirs.append(once + seconds * len(every) / len(cells))
        index = table.set_index(["pair", "role", "layer"])["patched_value"]
        errors = [abs(index[p.name, role, n] - value) for (p, role, n), value in zip(cells, found, strict=True)]
        worst = max(worst, *errors)
    fixed = {"sweep": "resid_post, 8 items x 2 spans x layers", "pair": "8 long", "tokens": len(pairs[0].base.ids)}
    fixed |= {"first_difference": pairs[0].alignment.first_difference, "cells": len(every), "largest_difference": worst}
    return [{**fixed, **row_times(EVERY, mine, 0)}, {**fixed, **row_times(HOOKS, theirs, len(cells))}]


def report(rows: list[dict[str, Any]], handle: ModelHandle) -> dict[str, Any]:
    """Everything that was measured, and what on."""
    device = handle.device.type
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    peaks = sorted(peak for row in rows for peak in row.get("peaks_gflops", []))
    known = {
        "peaks_gflops": [peaks[0], peaks[-1]],
        "peak_memory_mb": memory,
        "model": handle.metadata(),
        "machine": machine(device),
    }
    return {**known, "rows": rows}


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--pairs", nargs="*", default=list(PROMPTS))
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    handle, clock = open_model(args.model, device=args.device), Clock(args.device)
    peers = {TL: TransformerLens(handle), NN: NNsight(handle), HOOKS: Plain(handle)}
    rows: list[dict[str, Any]] = []
    for name in args.pairs:
        rows += sweep_rows(handle, name, peers, clock)
        print(markdown(report(rows, handle)).split("\n\n")[0].splitlines()[-1], flush=True)
    del peers
    rows += component_rows(handle, clock) + two_span_rows(handle, clock)
    found = report(rows, handle)
    if args.out:
        args.out.write_text(json.dumps(found, indent=1, default=float) + "\n", encoding="utf-8")
    print("", markdown(found), sep="\n")


if __name__ == "__main__":
    main()
