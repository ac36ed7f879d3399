"""What a worker makes of one batch: rows of results, and rows of what was skipped and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from latentkt.errors import LatentKTError

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.internals.lens import LensRun
    from latentkt.models import Pair
    from latentkt.study.context import Context

__all__ = ["answers", "lens", "patching", "probes"]

Cells = tuple[tuple[str, str], ...]
Tables = dict[str, "pd.DataFrame"]

RUN_COLUMNS = ["item", "kind", "family", "polarity", "which", "order", "template", "condition", "right"]
PROBE_COLUMNS = [
    "target",
    "layer",
    "position",
    "fold",
    "n_train",
    "n_test",
    "score",
    "bag_score",
    "majority_score",
    "C",
]
SKIPPED_COLUMNS = ["stage", "item", "which", "order", "reason"]


def _skipped(rows: list[dict[str, Any]]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows, columns=SKIPPED_COLUMNS).astype("str")


def _runs(
    context: Context, cells: Cells, whiches: tuple[str, ...], stage: str, skipped: list[dict[str, Any]]
) -> Iterator[LensRun]:
    """The prompts of a batch; those that this model refuses are listed and left out."""
    from latentkt.internals import item_run

    for item_id, order in cells:
        for which in whiches:
            try:
                yield item_run(
                    context.handle,
                    context.items[item_id],
                    which=which,
                    order=order,
                    template=context.template,
                    system=context.options.system,
                )
            except LatentKTError as error:
                skipped.append({"stage": stage, "item": item_id, "which": which, "order": order, "reason": error.what})


def answers(context: Context, cells: Cells) -> Tables:
    """Score both answers of items, controls and neutral prompts."""
    import pandas as pd

    from latentkt.models import score_answers

    skipped: list[dict[str, Any]] = []
    runs = list(_runs(context, cells, ("item", "control", "neutral"), "answers", skipped))
    scores = score_answers(context.handle, [run.prompt for run in runs], [run.answers for run in runs])
    frame = pd.concat([pd.DataFrame([run.meta for run in runs]), scores.to_frame()], axis=1)
    return {"answers": _with_neutral(frame), "answers_skipped": _skipped(skipped)}


def _with_neutral(frame: pd.DataFrame) -> pd.DataFrame:
    """Add the answer given, and the log-odds after the neutral prompt subtracted (same strings, so they cancel)."""
    neutral = frame[frame["which"] == "neutral"].set_index(["item", "order"])["log_odds"]
    keys = list(zip(frame["item"], frame["order"], strict=True))
    frame["neutral_log_odds"] = neutral.reindex(keys).to_numpy()
    frame["corrected_log_odds"] = frame["log_odds"] - frame["neutral_log_odds"]
    frame["answer"] = np.where(frame["log_odds"] > 0, "correct", "shortcut")
    is_right = (frame["right"] == frame["answer"]).astype("float64")
    frame["is_right"] = is_right.where(frame["right"].notna())
    frame["first_option_is_correct"] = frame["first_option_is_correct"].astype("float64")
    return frame


def lens(context: Context, cells: Cells) -> Tables:
    """Lens of items and controls by layer, and the residual stream at the last token for the probes."""
    import pandas as pd

    from latentkt.internals import answer_lens

    skipped: list[dict[str, Any]] = []
    runs = list(_runs(context, cells, ("item", "control"), "lens", skipped))
    table, residuals = answer_lens(context.handle, runs)
    kept = pd.DataFrame([{key: run.meta[key] for key in RUN_COLUMNS} for run in runs])
    kept["first_option_is_correct"] = [float(run.meta["first_option_is_correct"]) for run in runs]  # type: ignore[arg-type]
    kept["prompt_ids"] = [list(run.prompt.ids) for run in runs]
    kept["residual"] = [residual.float().numpy().ravel().tolist() for residual in residuals]
    return {"lens": table, "last_token": kept, "lens_skipped": _skipped(skipped)}


def patching(context: Context, cells: Cells) -> Tables:
    """Patch the residual stream between item and control, both directions, by layer and role."""
    import pandas as pd

    from latentkt.internals import pairs_of_item, patch_roles
    from latentkt.internals.pairs import PAIR_COLUMNS
    from latentkt.internals.patching import COLUMNS

    skipped: list[dict[str, Any]] = []
    pairs: list[Pair] = []
    for item_id, order in cells:
        reason = ""
        try:
            options = {"order": order, "template": context.template, "system": context.options.system}
            made = pairs_of_item(context.handle, context.items[item_id], **options)
            shifted = [pair for pair in made if pair.alignment.shifted]
            reason = (
                "item and control are of unequal length: after the first difference positions shift" if shifted else ""
            )
            pairs.extend([] if shifted else made)
        except LatentKTError as error:
            reason = error.what
        if reason:
            skipped.append({"stage": "patching", "item": item_id, "which": "pair", "order": order, "reason": reason})
    columns = ["pair", *PAIR_COLUMNS, *COLUMNS]
    table = patch_roles(context.handle, pairs) if pairs else pd.DataFrame({name: [] for name in columns})
    return {"patch": table, "patch_skipped": _skipped(skipped)}


def probes(context: Context, batch: tuple[None, Tables]) -> Tables:
    """Probe the last prompt token for the side of the right answer, layer by layer."""
    import pandas as pd

    from latentkt.internals import ProbeData, probe_layers

    rows = batch[1]["last_token"]
    rows = rows[rows["right"].notna()]
    width = context.handle.d_model
    data = ProbeData(
        features=np.stack([np.asarray(flat, dtype=np.float32).reshape(-1, width) for flat in rows["residual"]]),
        prompts=list(rows["prompt_ids"]),
        labels=(rows["right"] == "correct").to_numpy().astype(int),
        groups=list(rows["family"]),
    )
    try:
        table, skipped = probe_layers(data, target="answer_side", seed=context.options.seed), []
    except LatentKTError as error:
        table = pd.DataFrame({name: [] for name in PROBE_COLUMNS})
        skipped = [{"stage": "probes", "item": "all", "which": "", "order": "", "reason": error.what}]
    return {"probe": table, "probe_skipped": _skipped(skipped)}
