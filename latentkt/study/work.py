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

__all__ = ["answers", "attribution", "components", "lens", "patching", "placebo", "probes", "tokens"]

SHIFTED = "item and control are of unequal length: after the first difference their tokens stand at other positions"

Cells = tuple[tuple[str, str], ...]
Tables = dict[str, "pd.DataFrame"]

RUN_COLUMNS = ["item", "kind", "family", "polarity", "which", "order", "template", "condition", "right"]
SKIPPED_COLUMNS = ["stage", "item", "which", "order", "reason"]


def _skipped(rows: list[dict[str, Any]]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows, columns=SKIPPED_COLUMNS).astype("str")


def _nothing() -> pd.DataFrame:
    """A part without rows; its columns are those of the parts that have some."""
    import pandas as pd

    return pd.DataFrame({"item": pd.Series(dtype="str")})


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


def _pairs(context: Context, cells: Cells, stage: str, skipped: list[dict[str, Any]]) -> list[Pair]:
    """Item and control in both directions; pairs that cannot be patched by position are listed and left out."""
    from latentkt.internals import pairs_of_item

    options = {"template": context.template, "system": context.options.system}
    pairs: list[Pair] = []
    for item_id, order in cells:
        try:
            made = pairs_of_item(context.handle, context.items[item_id], order=order, **options)
        except LatentKTError as error:
            skipped.append({"stage": stage, "item": item_id, "which": "pair", "order": order, "reason": error.what})
            continue
        if any(pair.alignment.shifted for pair in made):
            skipped.append({"stage": stage, "item": item_id, "which": "pair", "order": order, "reason": SHIFTED})
        else:
            pairs.extend(made)
    return pairs


def patching(context: Context, cells: Cells) -> Tables:
    """Patch the residual stream between item and control, both directions, by layer and role."""
    from latentkt.internals import patch_roles

    skipped: list[dict[str, Any]] = []
    pairs = _pairs(context, cells, "patching", skipped)
    table = patch_roles(context.handle, pairs) if pairs else _nothing()
    return {"patch": table, "patch_skipped": _skipped(skipped)}


def components(context: Context, cells: Cells) -> Tables:
    """The same patches of what attention and MLP add, and of single heads at the last token."""
    import pandas as pd

    from latentkt.internals import patch

    skipped: list[dict[str, Any]] = []
    pairs = _pairs(context, cells, "components", skipped)
    parts = [_nothing()]
    if pairs:
        parts = [patch(context.handle, pairs, sites=("attn_out", "mlp_out"))]
        parts.append(patch(context.handle, pairs, sites=("z",), where=("last",), heads=True))
    return {"components": pd.concat(parts, ignore_index=True), "components_skipped": _skipped(skipped)}


def placebo(context: Context, cells: Cells) -> Tables:
    """Patch the same cells from matched donors: other items of the family in which the same side is right."""
    from latentkt.internals import placebo_roles

    skipped: list[dict[str, Any]] = []
    pairs = _pairs(context, cells, "placebo", skipped)
    families = {(context.items[item_id].family, order) for item_id, order in cells}
    pool_cells = tuple((i.id, order) for family, order in sorted(families) for i in context.of_family(family))
    pool = list(_runs(context, pool_cells, ("item", "control"), "placebo", []))
    table = placebo_roles(context.handle, pairs, pool, seed=context.options.seed) if pairs else _nothing()
    return {"placebo": table, "placebo_skipped": _skipped(skipped)}


def attribution(context: Context, cells: Cells) -> Tables:
    """What each part of the network adds to the difference of the answers, and what each head reads."""
    from latentkt.internals import attribute, head_table

    skipped: list[dict[str, Any]] = []
    runs = list(_runs(context, cells, ("item", "control"), "attribution", skipped))
    return {
        "attribution": attribute(context.handle, runs) if runs else _nothing(),
        "heads": head_table(context.handle, runs) if runs else _nothing(),
        "attribution_skipped": _skipped(skipped),
    }


def tokens(context: Context, cells: Cells) -> Tables:
    """Token by token: the lens at every prompt token of the item, and the control patched into it there."""
    from latentkt.internals import patch_positions, token_lens

    skipped: list[dict[str, Any]] = []
    runs = list(_runs(context, cells, ("item",), "tokens", skipped))
    pairs = [pair for pair in _pairs(context, cells, "tokens", skipped) if pair.meta["base"] == "item"]
    return {
        "lens_tokens": token_lens(context.handle, runs) if runs else _nothing(),
        "patch_tokens": patch_positions(context.handle, pairs) if pairs else _nothing(),
        "tokens_skipped": _skipped(skipped),
    }


def probes(context: Context, batch: tuple[None, Tables]) -> Tables:
    """Probe the last prompt token for the side of the right answer, layer by layer."""
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
        table = _nothing()
        skipped = [{"stage": "probes", "item": "all", "which": "", "order": "", "reason": error.what}]
    return {"probe": table, "probe_skipped": _skipped(skipped)}
