"""The table of the patch sweep benchmark: ratios repeat by repeat, and what is missed is said."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np


def _table():
    path = Path(__file__).parents[2] / "experiments" / "benchmarks" / "patch_table.py"
    spec = importlib.util.spec_from_file_location("patch_table", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_ratios_are_those_of_one_repeat_and_a_missed_target_is_said():
    table = _table()
    fixed = {"sweep": "resid_post, layer x position", "tokens": 18, "first_difference": 4, "cells": 540}

    def row(pair, what, repeats, **more):
        own, middle = what == table.SKIPPED, float(np.median(repeats))
        times = {"seconds": middle, "repeats": repeats, "scaled_from": None if own else 30}
        return {**fixed, "pair": pair, "what": what, "own": own, **times, "largest_difference": 1e-5, **more}

    rows = [
        row("early 1", table.SKIPPED, [2.0, 4.0, 3.0], share_of_bound=0.59, shares_of_bound=[0.55, 0.59, 0.62]),
        row("early 1", table.TL, [52.0, 80.0, 78.0]),  # 26, 20 and 26 times; of the medians 26
        row("early 1", table.NN, [20.0, 76.0, 57.0]),  # 10, 19, 19; of the medians 19
        row("early 2", table.SKIPPED, [2.0], share_of_bound=0.61, shares_of_bound=[0.61]),
        row("early 2", table.TL, [40.0]),
    ]
    model = {"model": "smollm2", "dtype": "float32", "attn_implementation": "eager", "device": "cpu"}
    about = {"machine": table.machine("cpu"), "model": model, "peaks_gflops": [140.0, 150.0], "peak_memory_mb": 1218.0}
    _, _, first, second, *below = table.markdown({**about, "rows": rows}).splitlines()
    first, second = ([cell.strip() for cell in line.split("|")[1:-1]] for line in (first, second))
    assert first[1:4] == ["early 1", "18 (4)", "540"] and first[4] == "3.00 (2.00–4.00)"
    assert first[5:] == [
        "0.59 (0.55–0.62), missed: 0.6",
        "26.0× (20.0–26.0), ≥ 25",
        "19.0× (10.0–19.0), missed: 20",
        "",
    ]
    assert second[4:] == ["2.00", "0.61", "20.0×, missed: 25", "", ""]
    text = " ".join(below)
    assert "early 3" in text and "140–150 GFLOP/s" in text and "30 seeded cells" in text and "1.0e-05 nat" in text
