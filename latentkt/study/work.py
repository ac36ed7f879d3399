"""What a worker makes of one batch: rows of results, and rows of what was skipped and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from latentkt.study.batches import Cells, Tables, nothing, pairs_of, runs_of, skipped_table
from latentkt.study.reading import RANDOM_LAYERS

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.study.context import Context

__all__ = ["answers", "lens", "patching"]


def answers(context: Context, cells: Cells) -> Tables:
    """Score both answers of items, controls and neutral prompts."""
    import pandas as pd

    from latentkt.models import score_answers

    skipped: list[dict[str, Any]] = []
    runs = list(runs_of(context, cells, ("item", "control", "neutral"), "answers", skipped))
    if not runs:
        return {"answers": nothing(), "answers_skipped": skipped_table(skipped)}
    scores = score_answers(context.handle, [run.prompt for run in runs], [run.answers for run in runs])
    frame = pd.concat([pd.DataFrame([run.meta for run in runs]), scores.to_frame()], axis=1)
    return {"answers": _with_neutral(frame), "answers_skipped": skipped_table(skipped)}


def _with_neutral(frame: pd.DataFrame) -> pd.DataFrame:
    """Add the answer given, and the log-odds after the neutral prompt subtracted (same strings, so they cancel)."""
    neutral = frame[frame["which"] == "neutral"].set_index(["item", "order"])["log_odds"]
    keys = list(zip(frame["item"], frame["order"], strict=True))
    frame["neutral_log_odds"] = neutral.reindex(keys).to_numpy()
    frame["corrected_log_odds"] = frame["log_odds"] - frame["neutral_log_odds"]
    side = np.sign(frame["log_odds"])
    frame["answer"] = side.map({1.0: "correct", -1.0: "shortcut"})  # neither where they are equal or do not exist
    is_right = (frame["right"] == frame["answer"]).astype("float64")
    frame["is_right"] = is_right.where(frame["right"].notna() & side.notna())
    frame["first_option_is_correct"] = frame["first_option_is_correct"].astype("float64")
    return frame


def lens(context: Context, cells: Cells) -> Tables:
    """Lens of items and controls by layer, and the residual stream at the last token for probes and steering."""
    import pandas as pd

    from latentkt.internals import answer_lens, engine_of, probe_rows

    skipped: list[dict[str, Any]] = []
    engine, seed = engine_of(context.handle), context.options.seed
    layers = min(RANDOM_LAYERS, context.handle.n_layers)
    tables, rows = [nothing()], [nothing()]
    for run in runs_of(context, cells, ("item", "control"), "lens", skipped):
        tables.append(answer_lens(engine, [run])[0])
        rows.append(probe_rows(engine, [run], random_layers=layers, seed=seed))  # while its run is at hand
    kept = {"lens": tables[1:] or tables, "activations": rows[1:] or rows}
    joined = {name: pd.concat(parts, ignore_index=True) for name, parts in kept.items()}
    return {**joined, "lens_skipped": skipped_table(skipped)}


def patching(context: Context, cells: Cells) -> Tables:
    """Patch the residual stream between item and control, both directions, by layer and role."""
    from latentkt.internals import patch_roles

    skipped: list[dict[str, Any]] = []
    pairs = pairs_of(context, cells, "patching", skipped)
    table = patch_roles(context.handle, pairs) if pairs else nothing()
    return {"patch": table, "patch_skipped": skipped_table(skipped)}
