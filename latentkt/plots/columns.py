"""Which columns the figures and the report need of each table.

A table may hold more columns; they are not looked at. Numbers that do not exist are NaN. Signs and units are those of
every table of the library: `log_odds` is log P(y*) − log P(y_s) in nats, y* and y_s being the item's own two answers in
every run of that item, its control included.

`answers`: one row a prompt.
    `item`, `kind` (scientist, action), `family`, `which` (item, control, neutral), `order` (correct_first,
    shortcut_first: whose answer is listed first), `log_odds`. Optional: `right` (correct, shortcut, or none: the side
    that is right in this prompt; without it y* is right in items, y_s in controls).

`lens`: one row a prompt and layer.
    `item`, `family`, `kind`, `which`, `order`, `layer` (−1 the embedding), `position`,
    `first_token_log_odds` (of the first token in which the two answers differ).

`patch`: one row a pair, direction, site, layer and role.
    `item`, `family`, `kind`, `order`, `direction` (control_to_item, item_to_control), `site`, `layer`, `role`, `effect`
    (nats; patched − base).

`probe_layers`: one row a target, kind of probe, split, role and layer; from `latentkt.internals.probe_table`.
    `target`, `kind`, `split`, `role`, `layer`, `score` (held-out accuracy) with `low` and `high`, and under the same
    names with `bag_` (a bag of tokens), `random_init_` (random weights) and `control_` (the control task);
    `embedding_score`, `majority_score`, `gain` (probe − bag) with `gain_low` and `gain_high`, `selectivity` likewise,
    `evidence`, `n_rows`, `n_groups`, `reason`.

`trapqa`: one row a question, setting, condition and order; the fields of `latentkt.trapqa.running.Record`.
    `question_id`, `setting`, `condition`, `order`, `answer`, `family`, `log_odds` (NaN where the model wrote),
    `probe_eliminative_correct`, `probe_compatibility_correct`. Optional: `kind`, `truncated`.

`evidence`: one row an item, setting and condition, from `latentkt.trapqa.running.evidence`.
    `item`, `family`, `condition`, `neutral_dominance`, `dominance`, `evidence` (nats).

`phantom_…`: the tables of `latentkt.phantom.analysis` and `latentkt.phantom.inside`; rates in percent with `…_low` and
    `…_high`. `phantom_probe` holds shares from 0 to 1, one row a contrast and layer; `phantom_steering` one row a
    concept, direction and dose, `change` in nats.

`predictions`: one row a cell or edge; tables `atp` and `edges`.
    `item`, `family`, `method` (atp, ig, eap, eap_ig), `predicted`, `exact` (nats; NaN where not run), `is_top`.

`atp_check`: one row a pair and method, from `latentkt.internals.verification`.
    `item`, `family`, `method`, `n_cells`, `n_sampled`, `rank_correlation`, `slope`, `misses`, `missed_share_high`.

`knockout`: one row a prompt, edge, layer and head.
    `item`, `family`, `which`, `from_role` (is read), `to_role` (reads), `layer`, `window`, `head` (−1: all), `effect`
    (nats; cut − plain).

`faithfulness`: one row a pair, ranking, curve and point.
    `item`, `family`, `direction`, `of`, `ranking`, `ablation`, `curve`, `n_all`, `share`, `faithfulness`, `area`.

`skipped`: one row a thing left out.
    `item`, `stage`, `reason`.

`trapqa_…`: the tables of `latentkt.trapqa.analysis`, one row a setting or as the name says; each rate is in percent,
    with its interval in the columns `…_low` and `…_high`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from latentkt.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COLUMNS", "require"]

COLUMNS: dict[str, tuple[str, ...]] = {
    "answers": ("item", "kind", "family", "which", "order", "log_odds"),
    "lens": ("item", "family", "kind", "which", "order", "layer", "position", "first_token_log_odds"),
    "patch": ("item", "family", "kind", "order", "direction", "site", "layer", "role", "effect"),
    "probe_layers": (
        *("target", "kind", "split", "role", "layer", "score", "low", "high", "bag_score", "bag_low", "bag_high"),
        *("embedding_score", "majority_score", "random_init_score", "control_score", "gain", "gain_low", "gain_high"),
        *("selectivity", "evidence", "n_rows", "n_groups", "reason"),
    ),
    "trapqa": (
        *("question_id", "setting", "condition", "order", "answer", "family", "log_odds"),
        *("probe_eliminative_correct", "probe_compatibility_correct"),
    ),
    "evidence": ("item", "family", "condition", "neutral_dominance", "dominance", "evidence"),
    "phantom_rates": ("setting", "existence", "convention", "by", "property", "n", "rate_pct"),
    "phantom_completion": ("setting", "property", "asked", "finished", "cut_answer", "cut_thinking", "failed"),
    "phantom_selectivity": ("setting", "concept_kind", "convention", "phantom_pct", "common_pct", "rare_pct"),
    "phantom_kinds": ("setting", "existence", "kind", "n", "share_pct"),
    "phantom_correlation": ("with", "r", "p", "cells", "settings", "r_low", "r_high", "reason"),
    "phantom_probe": (
        *("target", "layer", "score", "low", "high", "bag_score", "bag_low", "bag_high", "embedding_score"),
        *("gain", "gain_low", "gain_high", "evidence", "n_rows", "n_groups"),
    ),
    "phantom_balance": ("contrast", "covariate", "difference", "difference_matched", "pairs"),
    "phantom_abstention": ("layer", "property", "scope", "n", "n_abstained", "auc", "auc_low", "auc_high"),
    "phantom_denial": ("measure", "scope", "layer", "value", "low", "high", "n"),
    "phantom_steering": ("concept_id", "direction", "layer", "dose", "change"),
    "phantom_steering_summary": ("direction", "layer", "slope", "slope_low", "slope_high", "n", "placebo_largest"),
    "predictions": ("item", "family", "method", "predicted", "exact", "is_top"),
    "atp_check": (
        *("item", "family", "method", "n_cells", "n_sampled", "rank_correlation", "slope", "misses"),
        "missed_share_high",
    ),
    "knockout": ("item", "family", "which", "from_role", "to_role", "layer", "window", "head", "effect"),
    "faithfulness": (
        *("item", "family", "direction", "of", "ranking", "ablation", "curve", "n_all", "share", "faithfulness"),
        "area",
    ),
    "skipped": ("item", "stage", "reason"),
    "trapqa_table1": ("setting", "names_rate_pct", "names_n", "profiles_rate_pct", "profiles_n"),
    "trapqa_table4": ("setting", "both_wrong_rate_pct", "one_wrong_rate_pct", "neither_wrong_rate_pct"),
    "trapqa_table9": ("setting", "n", "hall_wrong_more_famous_pct", "hall_wrong_not_more_famous_pct"),
    "trapqa_calibration": ("setting", "n", "confidence", "accuracy_pct"),
    "trapqa_consensus": ("settings_wrong", "observed", "expected_independent", "expected_one_difficulty"),
    "trapqa_everyday": ("setting", "by", "value", "n", "rate_pct"),
}


def require(table: pd.DataFrame, name: str) -> None:
    """Refuse a table that lacks a column or has no rows.

    Args:
        table: The table.
        name: Which of `COLUMNS` it should satisfy.

    Raises:
        DataError: Names the columns that are missing.

    Example:
        >>> import pandas as pd
        >>> require(pd.DataFrame({"item": ["a"], "stage": ["lens"]}), "skipped")
        Traceback (most recent call last):
        ...
        latentkt.errors.DataError: table 'skipped' lacks columns: reason
          expected: item, stage, reason
          found:    item, stage
    """
    missing = [column for column in COLUMNS[name] if column not in table.columns]
    if missing:
        raise DataError(
            f"table {name!r} lacks columns: {', '.join(missing)}",
            expected=", ".join(COLUMNS[name]),
            found=", ".join(map(str, table.columns)),
        )
    if table.empty:
        raise DataError(f"table {name!r} has no rows", expected="at least one measurement", found="none")
