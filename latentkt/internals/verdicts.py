"""A verdict for each item, from its measurements alone: what is answered, and what becomes of the constraint.

The answer is `solved`, `shortcut followed` or `undecided`. The constraint is `unread`, `read but outweighed`, `read and
decisive` or `not measurable`. It counts as read where patching its tokens between item and control moves the log-odds
toward the other run's right answer by more than 95 of 100 placebo patches do in the items of the family; it is decisive
where the patch takes the answer across zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from latentkt.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ANSWERS", "READINGS", "verdict_table"]

ANSWERS = ("solved", "shortcut followed", "undecided")
READINGS = ("not measurable", "unread", "read but outweighed", "read and decisive")
"""From the weakest claim to the strongest: a tie between combinations goes to the weaker."""

UNDECIDED = 0.5  # nats
QUANTILE = 0.95
FLOOR = 1e-3
"""Nats; where neither the constraint nor any placebo moves the answer by more, the measurement has nothing to see, and
no smaller effect is read, however small the placebos are."""
MAX_KL = 1.0
PER_DONOR, ALL_DONORS = 20, 8
"""Placebo effects that a percentile needs: of one donor a pair, else of all donors together."""
ORDERS = ("correct_first", "shortcut_first")
TOWARD = {"control_to_item": -1.0, "item_to_control": 1.0}
"""The sign of an effect that goes toward the source run's right answer."""
CELL = ["item", "family", "order", "direction"]


@dataclass(frozen=True, slots=True)
class _Combination:
    """The reading of one item in one option order and direction, against one donor."""

    reading: str
    effect: float
    threshold: float
    reason: str


def verdict_table(
    answers: pd.DataFrame,
    lens: pd.DataFrame,
    patches: pd.DataFrame,
    placebos: pd.DataFrame,
    *,
    unpaired: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """One verdict an item, with its sureness and the numbers that it rests on.

    The effect of one item, order and direction is the largest over layers of the effect of patching the constraint's
    tokens (resid_post), counted toward the source run's right answer; a placebo's is the same of the same layers.

    Args:
        answers: `log_odds` (nats) by `item`, `family`, `which` (item, control) and `order`; `kind`, `group` and
            `level` are kept where they are there.
        lens: Table of `answer_lens`; of the rows, `which` == item is read.
        patches: Table of `patch` on pairs of items; of the rows, role `constraint` at resid_post is read.
        placebos: Table of `placebo_draws` on the same pairs and layers.
        unpaired: `item`, `order`, `reason` of pairs that could not be patched.

    Returns:
        One row an item: `item`, `family`, `answer`, `constraint` (the reading), `log_odds` (mean of the orders),
        `log_odds_correct_first`, `log_odds_shortcut_first`, `constraint_effect` (log-odds of the item − those of its
        control, mean of the orders), `effect` (mean over orders and directions), `threshold` (mean), `null` (`by
        donor`: percentile of each donor's placebos; `all donors`: of all together, the same for every donor),
        `n_placebo` (values in it),
        `decision_layer`: the first layer from which the lens log-odds keep their final sign, in the later of the
        orders, NaN where the lens lies more than 1 nat (KL) from the final output there; `sureness`: share of {2 orders
        × donors × 2 directions} that give this reading, where a combination that was not measured does not give it;
        `n_combinations`: those that were measured; `reason` where it is not measurable.

    Raises:
        DataError: A table lacks a column.
    """
    import pandas as pd

    _require(answers, "answers", ["item", "family", "which", "order", "log_odds"])
    effects = _largest(patches, "patches", [])
    nulls = _largest(placebos, "placebos", ["draw"])
    reasons = {} if unpaired is None else dict(zip(unpaired["item"], unpaired["reason"], strict=True))
    rows = []
    for (item, family), mine in answers.groupby(["item", "family"], sort=True, observed=True):
        pool = nulls[nulls["family"] == family]
        combinations = list(_combinations(effects[effects["item"] == item], pool))
        kept = {name: mine[name].iloc[0] for name in ("kind", "group", "level") if name in mine.columns}
        row = {"item": item, "family": family, **kept, **_answered(mine), **_read(combinations, pool)}
        if row["constraint"] == "not measurable" and item in reasons:
            row["reason"] = reasons[item]
        rows.append({**row, "decision_layer": _decision_layer(lens, str(item))})
    return pd.DataFrame(rows)


def _require(table: pd.DataFrame, name: str, columns: Sequence[str]) -> None:
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise DataError(f"table {name!r} lacks columns: {', '.join(missing)}", expected=", ".join(columns))


def _largest(table: pd.DataFrame, name: str, extra: list[str]) -> pd.DataFrame:
    """Of every item, order, direction (and draw): the largest effect over layers toward the source run's answer."""
    import pandas as pd

    keys = [*CELL, *extra]
    columns = [*keys, "value", "base_value", "layer"]
    if not len(table):
        return pd.DataFrame(columns=columns)
    _require(table, name, [*keys, "role", "site", "layer", "effect", "base_value"])
    here = table[(table["role"] == "constraint") & (table["site"] == "resid_post")]
    here = here[here["effect"].notna()] if "head" not in here else here[here["effect"].notna() & (here["head"] == -1)]
    # Tables put together from several may repeat their index; rows are found again by it.
    here = here.assign(value=here["effect"] * here["direction"].map(TOWARD)).reset_index(drop=True)
    best = here.groupby(keys, sort=True, observed=True)["value"].idxmax()
    return here.loc[best, columns].reset_index(drop=True)


def _combinations(effects: pd.DataFrame, pool: pd.DataFrame) -> Iterator[_Combination]:
    """Every order and direction against every donor; against all donors together where one has too few values."""
    values = pool["value"].to_numpy(dtype=float)
    by_draw = {draw: part["value"].to_numpy(dtype=float) for draw, part in pool.groupby("draw", observed=True)}
    for row in effects.itertuples():
        if not by_draw:
            yield _combination(row, values)
        for mine in by_draw.values():
            yield _combination(row, mine if len(mine) >= PER_DONOR else values)


def _combination(row: object, null: np.ndarray) -> _Combination:
    effect, base = float(row.value), float(row.base_value)  # type: ignore[attr-defined]
    if len(null) < ALL_DONORS:
        few = f"{len(null)} placebo effects in the family, fewer than {ALL_DONORS}"
        return _Combination("not measurable", effect, float("nan"), few)
    threshold = float(np.quantile(null, QUANTILE))
    if max(abs(effect), float(np.abs(null).max())) < FLOOR:
        return _Combination("not measurable", effect, threshold, "nothing put at the constraint moves the answer")
    if not effect > max(threshold, FLOOR):  # placebos of a few layers may all go the other way
        return _Combination("unread", effect, threshold, "")
    patched = base + effect * TOWARD[row.direction]  # type: ignore[attr-defined]
    crossed = np.sign(patched) != np.sign(base)
    return _Combination("read and decisive" if crossed else "read but outweighed", effect, threshold, "")


def _read(combinations: list[_Combination], pool: pd.DataFrame) -> dict[str, object]:
    """The reading that most combinations give."""
    counts = Counter(one.reading for one in combinations)
    reading = max(READINGS, key=lambda name: (counts[name], -READINGS.index(name))) if counts else READINGS[0]
    reasons = [one.reason for one in combinations if one.reason]
    least = pool.groupby("draw", observed=True).size().min() if len(pool) else 0
    by_donor = bool(least >= PER_DONOR)
    possible = len(ORDERS) * len(TOWARD) * max(1, pool["draw"].nunique() if len(pool) else 0)
    return {
        "constraint": reading,
        "effect": _mean([one.effect for one in combinations]),
        "threshold": _mean([one.threshold for one in combinations]),
        "null": "by donor" if by_donor else "all donors",
        "n_placebo": int(least) if by_donor else len(pool),
        "sureness": counts[reading] / possible if combinations else float("nan"),
        "n_combinations": len(combinations),
        "reason": reasons[0] if reasons and reading == READINGS[0] else "" if combinations else "no patch was measured",
    }


def _mean(values: list[float]) -> float:
    known = [value for value in values if value == value]
    return float(np.mean(known)) if known else float("nan")


def _answered(mine: pd.DataFrame) -> dict[str, object]:
    """The answer over both orders."""
    odds = mine.groupby(["which", "order"], observed=True)["log_odds"].mean()
    item = [float(odds.get(("item", order), np.nan)) for order in ORDERS]
    control = [float(odds.get(("control", order), np.nan)) for order in ORDERS]
    gaps = [a - b for a, b in zip(item, control, strict=True)]
    mean = _mean(item)
    agree = item[0] * item[1] > 0  # false, too, where one order is missing: no answer is given from one order
    answer = "undecided" if not agree or abs(mean) < UNDECIDED else "solved" if mean > 0 else "shortcut followed"
    named = {f"log_odds_{order}": value for order, value in zip(ORDERS, item, strict=True)}
    return {"answer": answer, "log_odds": mean, **named, "constraint_effect": _mean(gaps)}


def _decision_layer(lens: pd.DataFrame, item: str) -> float:
    """The first layer from which the sign stays, in the later of the orders; NaN where the lens says little there."""
    if not len(lens):
        return float("nan")
    _require(lens, "lens", ["item", "which", "order", "layer", "log_odds", "kl_to_final"])
    found = []
    for _, rows in lens[(lens["item"] == item) & (lens["which"] == "item")].groupby("order", observed=True):
        ordered = rows.sort_values("layer")
        signs = np.sign(ordered["log_odds"].to_numpy(dtype=float))
        other = np.flatnonzero(signs != signs[-1])
        first = int(other[-1]) + 1 if len(other) else 0
        trusted = float(ordered["kl_to_final"].iloc[first]) <= MAX_KL
        found.append(float(ordered["layer"].iloc[first]) if trusted else float("nan"))
    return max(found) if found and not np.isnan(found).any() else float("nan")
