"""What a worker makes of one batch: rows of results, and rows of what was skipped and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from latentkt.errors import InputError, LatentKTError
from latentkt.study.batches import Cells, Tables, nothing, pairs_of, runs_of, skipped_table

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.study.context import Context

__all__ = ["answers", "lens", "patching", "probes"]


RUN_COLUMNS = ["item", "kind", "family", "polarity", "which", "order", "template", "condition", "right"]


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
    """Lens of items and controls by layer, and the residual stream at the last token for the probes."""
    import pandas as pd

    from latentkt.internals import answer_lens

    skipped: list[dict[str, Any]] = []
    runs = list(runs_of(context, cells, ("item", "control"), "lens", skipped))
    if not runs:
        return {"lens": nothing(), "last_token": nothing(), "lens_skipped": skipped_table(skipped)}
    table, residuals = answer_lens(context.handle, runs)
    kept = pd.DataFrame([{key: run.meta[key] for key in RUN_COLUMNS} for run in runs])
    kept["first_option_is_correct"] = [float(run.meta["first_option_is_correct"]) for run in runs]  # type: ignore[arg-type]
    kept["prompt_ids"] = [list(run.prompt.ids) for run in runs]
    kept["residual"] = [residual.float().numpy().ravel().tolist() for residual in residuals]
    return {"lens": table, "last_token": kept, "lens_skipped": skipped_table(skipped)}


def patching(context: Context, cells: Cells) -> Tables:
    """Patch the residual stream between item and control, both directions, by layer and role."""
    from latentkt.internals import patch_roles

    skipped: list[dict[str, Any]] = []
    pairs = pairs_of(context, cells, "patching", skipped)
    table = patch_roles(context.handle, pairs) if pairs else nothing()
    return {"patch": table, "patch_skipped": skipped_table(skipped)}


def probes(context: Context, batch: tuple[None, Tables]) -> Tables:
    """Probe the last prompt token by layer for the target `answer_side`: 1 where y* is right, 0 where y_s is."""
    from latentkt.internals import probe_table

    rows = batch[1]["last_token"]
    try:
        if not len(rows):
            raise InputError("no prompt of the preset could be run")
        rows = rows[rows["right"].notna()]
        width = context.handle.d_model
        found = probe_table(
            np.stack([np.asarray(flat, dtype=np.float32).reshape(-1, width) for flat in rows["residual"]]),
            (rows["right"] == "correct").to_numpy().astype(int),
            list(rows["family"]),
            entities=list(rows["item"]),
            prompts=list(rows["prompt_ids"]),
            target="answer_side",
            seed=context.options.seed,
        )
        table, skipped = found.folds, []
    except LatentKTError as error:
        table = nothing()
        skipped = [{"stage": "probes", "item": "all", "which": "", "order": "", "reason": error.what}]
    return {"probe": table, "probe_skipped": skipped_table(skipped)}
