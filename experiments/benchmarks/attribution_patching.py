"""What does attribution patching of all resid_post cells cost, next to the passes that it cannot do without?

    python experiments/benchmarks/attribution_patching.py --model smollm2 --out attribution_patching.json

Bound: two forward passes and one backward pass of the same prompts through the plain Hugging Face model, parameters
without gradients, nothing kept. It is run with logits of every token, as the model gives them, and of the last token
only (`logits_to_keep=1`), which an engine whose `run` returns all logits does not get. Bound and library take turns;
the clock is CPU time of this process on one thread, or wall time after synchronising with `--device cuda`.
Predictions are checked against gradients taken by hand.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from latentkt.internals import Choice, atp, engine_of
from latentkt.models import ModelHandle, Pair, encode, make_pair, open_model

REPEATS = 7
FILLER = (
    " They like to read books, to walk along the river in the evening, and to cook for their friends. The days are"
    " long in summer and short in winter, and the children go to school in the morning. On Sundays the families meet"
    " in the park, sit in the shade of the trees, and talk about the week that has passed and the week that is to come."
)
PROMPTS = {
    "19 tokens": "Here is a short question for you, my friend: what is the capital of {}? It is",
    "100 tokens": "My brother and his wife moved last year to a small house in {}." + FILLER + " Their capital is",
}


def make(handle: ModelHandle, text: str) -> Pair:
    """The pair of one text."""
    prompts = []
    for word in ("France", "Italy"):
        start = text.index("{}")
        prompts.append(encode(handle, text.format(word), chat=False, spans={"shortcut": [(start, start + len(word))]}))
    return make_pair(handle, *prompts, correct=" Paris", shortcut=" Rome", name=text[:12])


def seconds(work: Callable[[], Any], device: str) -> tuple[float, Any]:
    """Time of one call, and what it gave."""
    read = time.process_time if device == "cpu" else time.perf_counter
    if device != "cpu":
        torch.cuda.synchronize()
    start = read()
    found = work()
    if device != "cpu":
        torch.cuda.synchronize()
    return read() - start, found


def passes(handle: ModelHandle, pair: Pair, *, lean: bool) -> torch.Tensor:
    """Two forward passes and one backward pass; gives the gradient at the embeddings."""
    keep = {"logits_to_keep": 1} if lean else {}
    correct, shortcut = pair.answers.correct_ids[0], pair.answers.shortcut_ids[0]
    device = handle.device
    with torch.no_grad():
        handle.model(torch.tensor([pair.source.ids], device=device), use_cache=False, **keep)
    embed = handle.model.get_input_embeddings()(torch.tensor([pair.base.ids], device=device)).detach()
    embed.requires_grad_()
    logits = handle.model(inputs_embeds=embed, use_cache=False, **keep).logits[0, -1].float()
    (grad,) = torch.autograd.grad(logits[correct] - logits[shortcut], embed)
    return grad[0]


def ours(handle: ModelHandle, pair: Pair, site: str = "resid_post") -> Any:
    """Predictions of all cells, with their table."""
    none = Choice(top=0, sample=0)
    return atp(engine_of(handle), [pair], sites=(site,), metric="first_token", choice=none)


def check(handle: ModelHandle, pair: Pair) -> float:
    """Largest difference (nats) between predictions at the embedding and the product by hand."""
    grad = passes(handle, pair, lean=False)
    embed = handle.model.get_input_embeddings()
    base, source = (embed(torch.tensor(run.ids, device=handle.device)) for run in (pair.base, pair.source))
    by_hand = ((source - base) * grad).sum(-1).detach().cpu().numpy()
    table = ours(handle, pair, "resid_pre")
    return float(np.abs(table.loc[table["layer"] == 0, "predicted"].to_numpy() - by_hand).max())


def measure(handle: ModelHandle, name: str) -> dict[str, Any]:
    """Bound and library in turn."""
    pair = make(handle, PROMPTS[name])
    device = handle.device.type
    ways: dict[str, Callable[[], Any]] = {
        "bound": lambda: passes(handle, pair, lean=False),
        "bound, last logits only": lambda: passes(handle, pair, lean=True),
        "latentkt": lambda: ours(handle, pair),
    }
    for work in ways.values():
        work()
    times: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(REPEATS):
        for way, work in ways.items():
            times[way].append(seconds(work, device)[0])
    ratios = {way: np.array(times["latentkt"]) / np.array(times[way]) for way in ("bound", "bound, last logits only")}
    return {
        "pair": name,
        "tokens": len(pair.base.ids),
        "cells": handle.n_layers * len(pair.base.ids),
        "seconds": {way: float(np.median(found)) for way, found in times.items()},
        "ratio": {way: [float(np.median(x)), float(x.min()), float(x.max())] for way, x in ratios.items()},
        "largest_difference": check(handle, pair),
    }


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    handle = open_model(args.model, device=args.device)
    rows = [measure(handle, name) for name in PROMPTS]
    for row in rows:
        for way, (median, low, high) in row["ratio"].items():
            print(
                f"{row['pair']:<11} {row['cells']:>5} cells: {row['seconds']['latentkt']:.3f} s, {median:.2f} x "
                f"[{low:.2f}, {high:.2f}] of {way} ({row['seconds'][way]:.3f} s); "
                f"off by {row['largest_difference']:.1e}"
            )
    if args.out:
        args.out.write_text(json.dumps({"model": handle.metadata(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
