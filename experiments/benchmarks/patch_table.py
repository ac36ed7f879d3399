"""The patch sweep benchmark as a table in Markdown, each ratio with its spread and its target.

    python experiments/benchmarks/patch_table.py patch_sweep.json

A ratio is the median over the repeats of peer ÷ own, both of the same repeat; behind it the lowest and the highest of
them, and the target. A share of the arithmetic bound below `SHARE` and a ratio below its target are marked.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

SKIPPED, EVERY = "unchanged cells skipped", "all cells run"
TL, NN, HOOKS = "TransformerLens", "nnsight", "plain hooks"
SHARE = 0.6
_POSITIONS, _TWO_SPANS = "resid_post, layer x position", "resid_post, 8 items x 2 spans x layers"
TARGETS: dict[tuple[str, str, str], dict[str, float]] = {  # (sweep, what is run, kind of pair) -> by peer
    (_POSITIONS, SKIPPED, "early"): {TL: 25, NN: 20},
    (_POSITIONS, SKIPPED, "late"): {TL: 100},
    (_POSITIONS, SKIPPED, "long"): {TL: 9},
    (_POSITIONS, EVERY, "early"): {TL: 12, NN: 10},
    (_POSITIONS, EVERY, "late"): {TL: 12},
    ("attn_out, layer x position", SKIPPED, "early"): {HOOKS: 8},
    ("mlp_out, layer x position", SKIPPED, "early"): {HOOKS: 8},
    ("z, layer x head", SKIPPED, "early"): {HOOKS: 6},
    (_TWO_SPANS, EVERY, "8"): {HOOKS: 4},
}
NOTE = (
    "`early 3` was reworded after its first result, so that its first difference lies at token 6; "
    "the other pairs are as they were first written."
)


def machine(device: str) -> dict[str, Any]:
    """What the benchmark ran on."""
    names = ("torch", "transformers", "transformer_lens", "nnsight")
    return {
        "processor": _processor() if device == "cpu" else torch.cuda.get_device_name(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in names},
    }


def _processor() -> str:
    try:
        told = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    fields = dict(line.replace("\t", "").split(":", 1) for line in told if ":" in line)
    return " ".join([fields.get("model name", platform.machine()).strip(), _kind(fields)]).strip()


def _kind(fields: dict[str, str]) -> str:
    known = [fields.get(name, "").strip() for name in ("cpu family", "model", "stepping")]
    return f"(family {known[0]}, model {known[1]}, stepping {known[2]})" if all(known) else ""


def ratio(peer: dict[str, Any], own: dict[str, Any]) -> tuple[float, float, float]:
    """Median, lowest and highest of peer ÷ own, repeat by repeat."""
    each = np.array(peer["repeats"]) / np.array(own["repeats"])
    return float(np.median(each)), float(each.min()), float(each.max())


def target(own: dict[str, Any], peer: str) -> float | None:
    """The ratio that should be reached; None where none is set."""
    return TARGETS.get((own["sweep"], own["what"], own["pair"].split()[0]), {}).get(peer)


def markdown(report: dict[str, Any]) -> str:
    """The report as a table, with what it ran on and what it was held against below it."""
    rows = report["rows"]
    lines = [
        f"| sweep | pair | tokens (first difference) | cells | latentkt, s | share of bound | {TL} | {NN} | {HOOKS} |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for own in (row for row in rows if row["own"]):
        peers = {r["what"]: r for r in rows if not r["own"] and (r["sweep"], r["pair"]) == (own["sweep"], own["pair"])}
        what = f"{own['sweep']}; {own['what']}".replace(" x ", " × ")
        cells = [what, own["pair"], f"{own['tokens']} ({own['first_difference']})", str(own["cells"])]
        cells += [_seconds(own), _share(own), *(_cell(own, peers.get(name)) for name in (TL, NN, HOOKS))]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", *_below(report)])


def _seconds(row: dict[str, Any]) -> str:
    low, high = min(row["repeats"]), max(row["repeats"])
    spread = f" ({_round(low)}–{_round(high)})" if len(row["repeats"]) > 1 else ""
    return f"{_round(row['seconds'])}{spread}"


def _share(row: dict[str, Any]) -> str:
    share = row.get("share_of_bound")
    if share is None:
        return ""
    each = row["shares_of_bound"]
    spread = f" ({min(each):.2f}–{max(each):.2f})" if len(each) > 1 else ""
    return f"{share:.2f}{spread}" + ("" if share >= SHARE or row["what"] != SKIPPED else f", missed: {SHARE}")


def _cell(own: dict[str, Any], peer: dict[str, Any] | None) -> str:
    if peer is None:
        return ""
    found, low, high = ratio(peer, own)
    spread = f" ({_round(low)}–{_round(high)})" if len(own["repeats"]) > 1 else ""
    wanted = target(own, peer["what"])
    held = "" if wanted is None else f", ≥ {wanted:g}" if found >= wanted else f", missed: {wanted:g}"
    return f"{_round(found)}×{spread}{held}"


def _round(x: float) -> str:
    return f"{x:.0f}" if x >= 100 else f"{x:.1f}" if x >= 10 else f"{x:.2f}"


def _below(report: dict[str, Any]) -> list[str]:
    about, rows, model = report["machine"], report["rows"], report["model"]
    low, high = report["peaks_gflops"]
    worst = max(row["largest_difference"] for row in rows)
    libraries = ", ".join(f"{name} {number}" for name, number in about["libraries"].items())
    peers = next(row["scaled_from"] for row in rows if not row["own"])
    clock = "CPU time" if model["device"] == "cpu" else "Wall time"
    return [
        f"{about['processor']}, {about['cores']} cores, {about['threads']} thread; matrix product "
        f"{low:.0f}–{high:.0f} GFLOP/s, peak memory {report['peak_memory_mb']:,.0f} MB; Python {about['python']}, "
        f"{libraries}; {model['model']}, {model['dtype']}, attention {model['attn_implementation']}.",
        "",
        f"{clock}. Ratios: median (lowest–highest) over the repeats of peer ÷ latentkt in the same repeat, then the "
        f"target. Peers are timed on {peers} seeded cells and scaled; own sweeps run whole, their plain runs included "
        f"(of those under a second, the median of five in each repeat). Shares of the bound: median (lowest–highest) "
        f"over all own sweeps, each held against the faster of the matrix products before and after it. "
        f"Largest difference from a peer's number: {worst:.1e} nat. {NOTE}",
    ]


if __name__ == "__main__":
    print(markdown(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
