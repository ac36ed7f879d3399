"""What the question adds to the names of its options: neutral minus full dominance, item by item."""

from __future__ import annotations

from typing import TYPE_CHECKING

from latentkt.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["evidence"]


def evidence(records: pd.DataFrame) -> pd.DataFrame:
    """Evidence of each question, in nats.

    Dominance is log P(y_s) − log P(y*). What the options alone bring about is measured after the neutral prompt, and it
    is never assumed to be zero; evidence is neutral dominance minus full dominance, so it is positive where the
    question moves the model towards y*. Both are taken in the same order of the options, then averaged over the orders.

    Args:
        records: From `records_frame`; those with log-odds are used.

    Returns:
        One row an item (`item`, its question id), setting and condition: `neutral_dominance`, `dominance`, `evidence`,
        `n_orders`, and the item's `family` and `kind`. A question without a neutral record in the same order has NaN.

    Raises:
        DataError: No record has log-odds.

    Example:
        >>> from latentkt.trapqa.running import Record, records_frame
        >>> asked = [Record("q", "m", "neutral", "correct_first", log_odds=-1.0),
        ...          Record("q", "m", "names", "correct_first", log_odds=0.5)]
        >>> evidence(records_frame(asked))[["neutral_dominance", "dominance", "evidence"]].values.tolist()
        [[1.0, -0.5, 1.5]]
    """
    scored = records[records["log_odds"].notna()]
    if scored.empty:
        raise DataError("no record has log-odds", expected="records of mode 'logprob'", fix="ask with --mode logprob")
    neutral = scored[scored["condition"] == "neutral"].set_index(["question_id", "setting", "order"])["log_odds"]
    full = scored[scored["condition"] != "neutral"].copy()
    keys = list(full[["question_id", "setting", "order"]].itertuples(index=False, name=None))
    full["neutral_dominance"] = -neutral.reindex(keys).to_numpy()
    full["dominance"] = -full["log_odds"]
    full["evidence"] = full["neutral_dominance"] - full["dominance"]
    full = full.assign(kind=full.get("kind"))  # records of other sources lack it
    groups = full.groupby(["setting", "condition", "question_id"], sort=False)
    table = groups[["neutral_dominance", "dominance", "evidence"]].mean()
    table["n_orders"] = groups.size()
    return table.join(groups[["family", "kind"]].first()).reset_index().rename(columns={"question_id": "item"})
