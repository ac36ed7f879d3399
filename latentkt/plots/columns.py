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

`probe`: one row a target, layer and fold.
    `target`, `layer`, `fold`, `score` (held-out accuracy), `bag_score` (a bag of tokens on the same fold),
    `majority_score` (always the more frequent class of the training fold), `n_test`.

`skipped`: one row a thing left out.
    `item`, `stage`, `reason`.
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
    "probe": ("target", "layer", "fold", "score", "bag_score", "majority_score", "n_test"),
    "skipped": ("item", "stage", "reason"),
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
