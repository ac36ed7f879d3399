"""Effects held against placebo effects: means over items by family, tested together.

The unit is the item (its option orders are averaged), the cluster is the family. The tested quantity is effect −
placebo effect. Cells of one direction and site are tested together by flipping the signs of whole families against the
largest |t|; Benjamini and Hochberg's adjusted p stands beside it. A cell at which both runs are the same has effect 0
whatever the model
does: it is described, not tested.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from latentkt.errors import DataError
from latentkt.stats import benjamini_hochberg, cluster_interval, sign_flip_max_t

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LEVEL", "effects_against_placebo"]

LEVEL = 0.05
ORDERS = ("correct_first", "shortcut_first")
CELL = ("direction", "site", "window", "layer", "role", "head")
_TOGETHER = ["direction", "site", "window"]
_UNIT = ("item", "family", "order")


def effects_against_placebo(effects: pd.DataFrame, placebo: pd.DataFrame, *, level: float = LEVEL) -> pd.DataFrame:
    """Mean effect, mean placebo effect and their difference for every cell, with intervals and adjusted p values.

    Args:
        effects: The table of `patch_roles` on pairs of items.
        placebo: The table of `placebo_roles` on the same pairs.
        level: A cell is named where its adjusted p is at most this.

    Returns:
        One row a direction, site, window, layer, role and head: `effect`, `placebo`, `difference` (nats, means over
        families), `low`, `high` and `method` (95 % interval of the difference: Student t on family means under 20
        families, cluster bootstrap-t from 20 on), `conditional_low`, `conditional_high` (over items, conditional on
        these families), `n_items`, `n_families`, `without_placebo` (items that have an effect and no placebo),
        `unchanged` (items whose runs are the same there), `t`, `p`, `p_max_t`, `q` (Benjamini–Hochberg), `orders`
        (option orders measured), `verdict`: `differs`, `not distinguishable`, `one order only` (no verdict is given
        from one option order), or `not tested` (fewer than two families). Last, for every direction, a row with role
        `option position`: what being listed first is worth in the base runs, half the difference between the orders.

    Raises:
        DataError: A table lacks a column, or holds a cell twice.
    """
    import pandas as pd

    joined = _joined(effects, placebo)
    tables = []
    for _, group in joined.groupby(_TOGETHER, sort=True, observed=True):
        tables.append(_tested(group, level))
    table = pd.concat([*tables, _position_bias(effects)], ignore_index=True)
    return table


def _joined(effects: pd.DataFrame, placebo: pd.DataFrame) -> pd.DataFrame:
    keys = [*_UNIT, *CELL]
    for name, table in (("effects", effects), ("placebo", placebo)):
        missing = [column for column in [*keys, "effect"] if column not in table.columns]
        if missing:
            raise DataError(
                f"table {name!r} lacks columns: {', '.join(missing)}", expected=", ".join([*keys, "effect"])
            )
        if table.duplicated(keys).any():
            twice = table.loc[table.duplicated(keys), keys].iloc[0].to_dict()
            raise DataError(
                f"table {name!r} holds a cell twice", expected="one row an item, order and cell", found=twice
            )
    right = placebo[[*keys, "effect"]].rename(columns={"effect": "placebo"})
    joined = effects.merge(right, on=keys, how="left", validate="one_to_one")
    joined["unchanged"] = joined.get("unchanged", False)
    joined["difference"] = np.where(joined["unchanged"], np.nan, joined["effect"] - joined["placebo"])
    return joined


def _tested(group: pd.DataFrame, level: float) -> pd.DataFrame:
    import pandas as pd

    cell = [name for name in CELL if name not in _TOGETHER]
    columns = ["effect", "placebo", "difference"]
    units = group.groupby(["family", "item", *cell], sort=True, observed=True)[columns].mean().reset_index()
    wide = units.pivot(index=["family", "item"], columns=cell, values="difference")
    families = wide.index.get_level_values("family").tolist()
    test = sign_flip_max_t(wide.to_numpy(dtype=float), families)
    adjusted = benjamini_hochberg(test.p)
    counts = group.groupby(cell, observed=True)
    orders = counts["order"].nunique()
    unchanged = group[group["unchanged"]].groupby(cell, observed=True)["item"].nunique()
    alone = group[group["effect"].notna() & group["placebo"].isna()].groupby(cell, observed=True)["item"].nunique()
    by_cell: dict[Any, pd.DataFrame] = {key: one for key, one in units.groupby(cell, observed=True)}
    rows = []
    for number, key in enumerate(wide.columns):
        one = by_cell[key]
        both = cluster_interval(wide[key].to_numpy(dtype=float), families)
        means = {name: _mean(one, name) for name in ("effect", "placebo")}
        row = {
            **{name: group[name].iloc[0] for name in _TOGETHER},
            **dict(zip(cell, key, strict=True)),
            **means,
            "difference": both.interval.value,
            "low": both.interval.low,
            "high": both.interval.high,
            "method": both.interval.method,
            "conditional_low": both.conditional.low,
            "conditional_high": both.conditional.high,
            "n_items": both.interval.n,
            "n_families": both.interval.clusters or 0,
            "without_placebo": int(alone.get(key, 0)),
            "unchanged": int(unchanged.get(key, 0)),
            "t": test.t[number],
            "p": test.p[number],
            "p_max_t": test.p_max_t[number],
            "q": adjusted[number],
            "orders": int(orders[key]),
        }
        rows.append({**row, "verdict": _verdict(row, level)})
    return pd.DataFrame(rows)


def _mean(units: pd.DataFrame, column: str) -> float:
    """Mean of family means."""
    return float(units.groupby("family", observed=True)[column].mean().mean())


def _verdict(row: dict[str, object], level: float) -> str:
    p = float(row["p_max_t"])  # type: ignore[arg-type]
    if np.isnan(p):
        return "not tested"
    if row["orders"] != len(ORDERS):
        return "one order only"
    return "differs" if p <= level else "not distinguishable"


def _position_bias(effects: pd.DataFrame) -> pd.DataFrame:
    """Half the difference of the base runs' values between the option orders, by direction."""
    import pandas as pd

    rows = []
    for direction, group in effects.groupby("direction", sort=True, observed=True):
        base = group.groupby(["family", "item", "order"], observed=True)["base_value"].first().unstack("order")
        both = base.reindex(columns=list(ORDERS)).dropna()
        bias = (both["correct_first"] - both["shortcut_first"]) / 2
        interval = cluster_interval(bias.to_numpy(dtype=float), bias.index.get_level_values("family").tolist())
        rows.append(
            {
                "direction": direction,
                "site": "",
                "window": 1,
                "layer": -1,
                "role": "option position",
                "head": -1,
                "effect": interval.interval.value,
                "low": interval.interval.low,
                "high": interval.interval.high,
                "method": interval.interval.method,
                "conditional_low": interval.conditional.low,
                "conditional_high": interval.conditional.high,
                "n_items": interval.interval.n,
                "n_families": interval.interval.clusters or 0,
                "orders": int(base.notna().any().sum()),
                "verdict": "described",
            }
        )
    return pd.DataFrame(rows)
