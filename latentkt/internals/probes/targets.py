"""What a probe looks for, by name: the label of each row, NaN where a row has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from latentkt.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from jaxtyping import Float

__all__ = ["TARGETS", "labels_of"]

NAN = float("nan")


def _answer_side(rows: pd.DataFrame) -> pd.Series:
    return rows["right"].map({"correct": 1.0, "shortcut": 0.0})


def _polarity(rows: pd.DataFrame) -> pd.Series:
    """A control in which the other answer is right says the opposite of its item."""
    own = rows["polarity"].map({"negated": 1.0, "affirmed": 0.0})
    turned = (rows["which"] == "control") & (rows["right"] == "shortcut")
    unclear = (rows["which"] == "control") & (rows["right"] != "shortcut")
    return own.where(~turned, 1.0 - own).mask(unclear)


def _first_option_is_correct(rows: pd.DataFrame) -> pd.Series:
    return rows["first_option_is_correct"].astype("float64")


def _fact_known(rows: pd.DataFrame) -> pd.Series:
    return rows["fact_known"].astype("float64")


def _shortcut_favoured(rows: pd.DataFrame) -> pd.Series:
    return (rows["log_odds"] < 0).astype("float64").mask(rows["log_odds"].isna() | (rows["log_odds"] == 0))


TARGETS: dict[str, tuple[str, Callable[[pd.DataFrame], pd.Series]]] = {
    "answer_side": ("the item's y* is right in this prompt (0: its y_s is, as in a flip control)", _answer_side),
    "polarity": ("the constraint of this prompt negates (0: it affirms)", _polarity),
    "first_option_is_correct": ("the option shown first is the right one", _first_option_is_correct),
    "fact_known": ("the model answers both probe questions of the item rightly", _fact_known),
    "shortcut_favoured": ("the model itself prefers y_s to y* after this prompt", _shortcut_favoured),
}
"""Name -> what label 1 means, and how it is read from the rows."""


def labels_of(rows: pd.DataFrame, target: str) -> Float[np.ndarray, " row"]:
    """Labels of a named target: 0, 1, or NaN where a row has none.

    Args:
        rows: Rows with the columns of `item_run`'s meta, and `fact_known` and `log_odds` for the targets that need
            them.
        target: One of `TARGETS`.

    Raises:
        InputError: Unknown target.

    Example:
        >>> import pandas as pd
        >>> rows = pd.DataFrame({"which": ["item", "control"], "right": ["correct", "shortcut"],
        ...                      "polarity": ["negated", "negated"]})
        >>> labels_of(rows, "answer_side").tolist(), labels_of(rows, "polarity").tolist()
        ([1.0, 0.0], [1.0, 0.0])
    """
    if target not in TARGETS:
        raise InputError("unknown target of a probe", expected=", ".join(TARGETS), found=target)
    return TARGETS[target][1](rows).to_numpy(dtype=float)
