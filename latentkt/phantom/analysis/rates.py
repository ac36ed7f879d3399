"""How often models answer, and how often they come to an answer at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from latentkt.phantom.analysis.frame import CONVENTIONS, counted, percent, share_row

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["EVERY", "completion", "rates"]

EVERY = "all"
"""Stands where a table does not tell values of a column apart."""

GROUPINGS: tuple[tuple[str, ...], ...] = (
    (),
    ("property",),
    ("concept_kind",),
    ("category",),
    ("method",),
    ("concept_kind", "property"),
    ("method", "property"),
    ("concept_kind", "category"),
    ("concept_kind", "category", "property"),
)
_TOLD = ("concept_kind", "category", "method", "property")


def rates(frame: pd.DataFrame) -> pd.DataFrame:
    """Share of replies that do not abstain, by setting and existence of the concept.

    Of concepts that do not exist this is the hallucination rate. Rows tell properties, kinds, categories and methods
    apart as `by` says; where one is not told apart its column holds `all`.

    Args:
        frame: See `judged_frame`.

    Returns:
        One row a setting, existence, convention and group: `n`, `concepts`, `unparsable`, `rate_pct` with its 95 %
        interval (clusters are seeds), `rate_pct_min`, `rate_pct_max`.
    """
    rows = []
    for convention in CONVENTIONS:
        replies = counted(frame, convention)
        for grouping in GROUPINGS:
            for key, mine in _groups(replies, ("setting", "judge", "existence", *grouping)):
                told = dict(zip(("setting", "judge", "existence", *grouping), key, strict=True))
                blank = {name: EVERY for name in _TOLD if name not in told}
                by = " × ".join(grouping) or EVERY
                rows.append({"convention": convention, "by": by, **told, **blank, **share_row(mine)})
    order = ["setting", "judge", "existence", "convention", "by", *_TOLD]
    table = pd.DataFrame(rows)
    return table[[*order, *(name for name in table.columns if name not in order)]]


def completion(frame: pd.DataFrame) -> pd.DataFrame:
    """How many replies came to their end, to an answer, or to nothing.

    Returns:
        One row a setting, and one a setting and property: `asked`, `failed`, `finished`, `cut_answer`, `cut_thinking`,
        `untold` (the provider does not say), `completion_pct` (came to an answer, of all replies), `finished_pct` (of
        the replies of which it is known), the rate of not abstaining on concepts that do not exist under both
        conventions and, of the second, among finished and among cut answers alone; median thinking tokens.
    """
    rows = []
    for grouping in ((), ("property",)):
        for key, mine in _groups(frame, ("setting", *grouping)):
            told = dict(zip(("setting", *grouping), key, strict=True))
            rows.append({**told, **({} if grouping else {"property": EVERY}), **_completed(mine)})
    return pd.DataFrame(rows)


def _completed(mine: pd.DataFrame) -> dict[str, object]:
    replies = mine[~mine["failed"]]
    came = (replies["judgement"] != "no_answer").astype(float)
    known = replies[replies["finished"].notna()]
    made = replies[replies["existence"] == "phantom"]
    answered = counted(made, "answered")
    row: dict[str, object] = {
        "asked": len(mine),
        "failed": int(mine["failed"].sum()),
        "finished": int((replies["finished"] == True).sum()),  # noqa: E712  (a nullable column)
        "cut_answer": int((replies["truncated"] == "answer").sum()),
        "cut_thinking": int((replies["truncated"] == "thinking").sum()),
        "untold": int(replies["finished"].isna().sum()),
        "thinking_budget": _only(replies["thinking_budget"]),
        "thinking_tokens_median": float(replies["thinking_tokens"].median()),
        **percent(came.to_numpy(), replies["group"].tolist(), "completion"),
        **percent(known["finished"].astype(float).to_numpy(), known["group"].tolist(), "finished"),
    }
    for name, rows in (
        ("rate_all", made),
        ("rate_answered", answered),
        ("rate_finished", answered[answered["finished"].fillna(False).astype(bool)]),
        ("rate_cut", answered[answered["truncated"] == "answer"]),
    ):
        found = share_row(rows, name)
        row |= {f"n_{name}": found["n"], **{k: v for k, v in found.items() if k.startswith(f"{name}_pct")}}
    return row


def _only(values: pd.Series) -> str:
    found = sorted({str(value) for value in values.dropna()})
    return found[0] if len(found) == 1 else ", ".join(found)


def _groups(frame: pd.DataFrame, by: Sequence[str]) -> Iterator[tuple[tuple[object, ...], pd.DataFrame]]:
    """Groups in the order in which they come."""
    for key, mine in frame.groupby(list(by), sort=False, observed=True):
        yield (key if isinstance(key, tuple) else (key,)), mine
