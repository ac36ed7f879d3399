"""Every table from checked records: what each needs, what it leaves out, and why one is not there."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from latentkt.stats import holm
from latentkt.trapqa.analysis import answer_tables, biases, comparisons, fame_tables, priors, probe_tables
from latentkt.trapqa.analysis.consensus import consensus
from latentkt.trapqa.analysis.ledger import Ledger

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.trapqa.analysis.records import Records

__all__ = ["PAPER_TABLES", "Analysis", "PaperTable", "analyse"]

ANSWER = ("no answer is recorded", ("wrong",))
PROBES = ("an answer to one of the two probes is missing", ("probe_eliminative_correct", "probe_compatibility_correct"))
PREDICTED = (
    "what the probes were answered is missing",
    ("probe_eliminative_predicted", "probe_compatibility_predicted"),
)
FAME = ("fame of the candidates is missing", ("correct_fame", "shortcut_fame"))
CONFIDENCE = ("confidence is missing", ("confidence",))
ORDER = ("the order of the options is missing", ("order",))
COOCCURRENCE = ("co-occurrence of the candidates is missing", ("cooccurrence",))
PRIOR = ("the prior ratio is missing", ("log_prior_ratio",))
Need = tuple[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class PaperTable:
    """How a table is made of the rows of one setting.

    Attributes:
        conditions: Conditions whose rows it takes.
        needs: Columns that a row must have, with the reason that is given for leaving it out.
        make: From complete rows to one row of the table, or to several.
    """

    conditions: tuple[str, ...]
    needs: tuple[Need, ...]
    make: Callable[[pd.DataFrame], Mapping[str, Any] | Sequence[Mapping[str, Any]]]


NAMES = ("names",)
# Tables with one row a setting, named as in the paper.
PAPER_TABLES: dict[str, PaperTable] = {
    "table1": PaperTable(("names", "profiles"), (ANSWER,), answer_tables.table1),
    "table2": PaperTable(NAMES, (ANSWER, PROBES), probe_tables.table2),
    "table4": PaperTable(NAMES, (ANSWER, PROBES), probe_tables.table4),
    "table5": PaperTable(NAMES, (ANSWER, PROBES), probe_tables.table5),
    "table7": PaperTable(NAMES, (ANSWER, PROBES), probe_tables.table7),
    "table8": PaperTable(NAMES, (ANSWER, PROBES, FAME), fame_tables.table8),
    "table9": PaperTable(NAMES, (ANSWER, FAME), fame_tables.table9),
    "fame": PaperTable(NAMES, (ANSWER, FAME), fame_tables.fame),
    "h6": PaperTable(NAMES, (ANSWER, PROBES), probe_tables.h6),
    "table10": PaperTable(NAMES, (ANSWER, CONFIDENCE), answer_tables.table10),
    "table11": PaperTable(("real_life",), (ANSWER,), answer_tables.table11),
}
# What the paper lacks, by setting too.
MORE_TABLES: dict[str, PaperTable] = {
    "probe_bias": PaperTable(NAMES, (ANSWER, PROBES, PREDICTED), biases.probe_bias),
    "polarity": PaperTable(NAMES, (ANSWER, PROBES, PREDICTED), biases.polarity),
    "calibration": PaperTable(NAMES, (ANSWER, CONFIDENCE), answer_tables.calibration),
    "everyday": PaperTable(("real_life",), (ANSWER,), answer_tables.errors_by_label),
    "cooccurrence": PaperTable(NAMES, (ANSWER, COOCCURRENCE), priors.errors_by_cooccurrence),
    "ranking_of_errors": PaperTable(NAMES, (ANSWER,), priors.ranking_of_errors),
    "fame_beside_priors": PaperTable(NAMES, (ANSWER, FAME, PRIOR), priors.fame_beside_priors),
}
SCORED = ("names", "profiles", "real_life")


@dataclass(frozen=True)
class Analysis:
    """All tables of a set of records.

    Attributes:
        settings: The settings, in the order of the records.
        tables: Long tables by name, one row a setting unless the name says otherwise; rates are in percent.
        ledger: What each table leaves out, by setting and question, and which tables cannot be made.
        summary: Figures over all settings: `consensus`, `off_option`.
        sources: Files and their sha256.
    """

    settings: tuple[str, ...]
    tables: Mapping[str, pd.DataFrame]
    ledger: Ledger
    summary: Mapping[str, Any]
    sources: tuple[tuple[str, str], ...] = ()

    def to_json(self) -> dict[str, dict[str, Any]]:
        """`{setting: {table: {key: number}}}`; a table that cannot be made is `{"not_available": why}`."""
        found: dict[str, dict[str, Any]] = {setting: {} for setting in self.settings}
        for name in PAPER_TABLES:
            rows = {str(row.pop("setting")): row for row in _records(self.tables.get(name))}
            for setting in self.settings:
                reason = self.ledger.reason(name, setting) or "no record of this setting has what it needs"
                found[setting][name] = _nested(rows[setting]) if setting in rows else {"not_available": reason}
        return found


def analyse(records: Records, *, only: Sequence[str] | None = None) -> Analysis:
    """Compute every table that the records allow.

    Args:
        records: Checked records, with fame and priors joined where there are some.
        only: Names of tables with one row a setting; the rest, and all comparisons, are then not computed.

    Returns:
        The tables, with a ledger of what each leaves out.

    Example:
        >>> import pandas as pd
        >>> from latentkt.trapqa.analysis import records_from_frame
        >>> rows = {"question_id": ["a", "b"], "setting": "m", "condition": "names", "answer": ["correct", "shortcut"]}
        >>> analysis = analyse(records_from_frame(pd.DataFrame(rows)))
        >>> analysis.to_json()["m"]["table1"]["names_rate_pct"]
        50
        >>> analysis.to_json()["m"]["table2"]
        {'not_available': 'an answer to one of the two probes is missing'}
    """
    import pandas as pd

    ledger = Ledger(list(records.ledger.lines))
    frame, settings = records.frame, records.settings
    if frame["top_fame"].isna().all():
        frame = frame.assign(top_fame=fame_tables.top_fame(frame))
    specs = {**PAPER_TABLES, **MORE_TABLES}
    if only is not None:
        specs = {name: spec for name, spec in specs.items() if name in only}
    complete: dict[str, dict[str, pd.DataFrame]] = {}
    tables: dict[str, pd.DataFrame] = {}
    parts = _parts(frame, settings, {spec.conditions for spec in specs.values()})
    for name, spec in specs.items():
        complete[name] = _complete(name, spec, parts[spec.conditions], ledger)
        rows = [row for setting, own in complete[name].items() for row in _rows(spec, setting, own)]
        if rows:
            tables[name] = pd.DataFrame(rows)
    summary: dict[str, Any] = {"off_option": _off_option(frame)}
    if only is None:
        tables |= _comparisons(frame, complete, ledger)
        summary["consensus"] = _consensus(frame, settings, tables, ledger)
    return Analysis(tuple(settings), tables, ledger, summary, records.sources)


def _parts(
    frame: pd.DataFrame, settings: Sequence[str], wanted: set[tuple[str, ...]]
) -> dict[tuple[str, ...], dict[str, pd.DataFrame]]:
    """The rows of some conditions, by setting."""
    found = {}
    for conditions in wanted:
        own = frame[frame["condition"].isin(conditions)]
        groups = {str(setting): rows for setting, rows in own.groupby("setting", observed=True, sort=False)}
        found[conditions] = {setting: groups.get(setting, own.head(0)) for setting in settings}
    return found


def _rows(spec: PaperTable, setting: str, own: pd.DataFrame) -> list[dict[str, Any]]:
    made = spec.make(own)
    return [{"setting": setting, **row} for row in ([made] if isinstance(made, Mapping) else made)]


def _complete(
    table: str, spec: PaperTable, by_setting: Mapping[str, pd.DataFrame], ledger: Ledger
) -> dict[str, pd.DataFrame]:
    """Rows of each setting that a table can use; what it cannot use is noted."""
    found = {}
    for setting, rows in by_setting.items():
        if rows.empty:
            ledger.unavailable(table, setting, f"no record of condition {' or '.join(spec.conditions)}")
            continue
        lacking = []
        for reason, columns in spec.needs:
            there = np.logical_and.reduce([rows[column].notna().to_numpy() for column in columns])
            lacking.append((reason, rows["question_id"][~there]))
            rows = rows if there.all() else rows[there]
            if rows.empty:
                break
        if rows.empty:
            ledger.unavailable(table, setting, lacking[-1][0])
            continue
        for reason, questions in lacking:
            ledger.leave_out(table, setting, reason, questions)
        found[setting] = rows
    return found


def _comparisons(
    frame: pd.DataFrame, complete: Mapping[str, Mapping[str, pd.DataFrame]], ledger: Ledger
) -> dict[str, pd.DataFrame]:
    """Tests between settings and between groups of questions, and the bias to the first option."""
    import pandas as pd

    answered = frame[frame["wrong"].notna()]
    pairs, orders = [], []
    for condition in SCORED:
        own = answered[answered["condition"] == condition]
        groups = {str(setting): rows for setting, rows in own.groupby("setting", observed=True, sort=False)}
        pairs.append(comparisons.settings_compared(groups, condition))
        for setting, rows in groups.items():
            orders += _first_option(setting, condition, rows, ledger)
    tables = {
        "settings_compared": pd.concat([pair for pair in pairs if len(pair)] or pairs[:1], ignore_index=True),
        "first_option": _adjusted(pd.DataFrame(orders)),
        "associations": pd.concat(
            [
                comparisons.association(name, complete[name])
                for name in comparisons.ASSOCIATIONS
                if _usable(name, complete)
            ]
            or [pd.DataFrame()],
            ignore_index=True,
        ),
    }
    if complete["table9"]:
        tables["fame_base_rate"] = comparisons.fame_base_rate(complete["table9"])
    return {name: table for name, table in tables.items() if len(table)}


def _adjusted(orders: pd.DataFrame) -> pd.DataFrame:
    """Tests of the first option, Holm-adjusted within each condition."""
    if len(orders):
        orders["p_holm"] = orders.groupby("condition")["p"].transform(lambda own: holm(own.to_numpy()))
    return orders


def _usable(name: str, complete: Mapping[str, Mapping[str, pd.DataFrame]]) -> bool:
    """Whether there are rows, and for the top 1 % a bar that marks some."""
    return bool(complete[name]) and not (
        name == "fame" and all(rows["top_fame"].isna().all() for rows in complete[name].values())
    )


def _first_option(setting: str, condition: str, rows: pd.DataFrame, ledger: Ledger) -> list[dict[str, Any]]:
    name = f"first_option ({condition})"
    known = rows["order"].notna()
    if not known.any():
        ledger.unavailable(name, setting, ORDER[0])
        return []
    off = known & (rows["answer"] == "off")
    ledger.leave_out(name, setting, ORDER[0], rows.loc[~known, "question_id"])
    ledger.leave_out(name, setting, "the answer is off the options", rows.loc[off, "question_id"])
    kept = rows[known & ~off]
    return [{"setting": setting, "condition": condition, **biases.first_option(kept)}] if len(kept) else []


def _consensus(
    frame: pd.DataFrame, settings: list[str], tables: dict[str, pd.DataFrame], ledger: Ledger
) -> dict[str, Any] | None:
    rows = frame[(frame["condition"] == "names") & frame["wrong"].notna()]
    found = consensus(rows, settings)
    if found is None:
        ledger.unavailable("table6", "", "it takes two settings or more that were asked the same questions by names")
        return None
    ledger.leave_out("table6", "", "a setting has no answer to the question", found.incomplete)
    ledger.leave_out("consensus_families", "", "the question has no family", found.without_family)
    tables |= found.tables
    return found.summary()


def _off_option(frame: pd.DataFrame) -> dict[str, Any]:
    """Answers that match neither candidate, by condition and setting."""
    off = frame[(frame["answer"] == "off") & frame["condition"].isin(SCORED)]
    counts = off.groupby(["condition", "setting"], observed=True).size().reset_index().itertuples(index=False)
    return {"total": len(off), "by": {f"{condition}, {setting}": int(n) for condition, setting, n in counts}}


def _records(table: pd.DataFrame | None) -> list[dict[Any, Any]]:
    return [] if table is None else table.to_dict("records")


def _nested(row: Mapping[str, Any]) -> dict[str, Any]:
    """Dots in names become levels, numbers plain, NaN null."""
    found: dict[str, Any] = {}
    for key, value in row.items():
        *levels, last = key.split(".")
        place = found
        for level in levels:
            place = place.setdefault(level, {})
        place[last] = _number(value)
    return found


def _number(value: Any) -> Any:
    if not isinstance(value, int | float) and not hasattr(value, "item"):
        return value
    plain = value.item() if hasattr(value, "item") else value
    if isinstance(plain, float):
        if not math.isfinite(plain):
            return None
        return int(plain) if plain.is_integer() and abs(plain) < 2**53 else plain
    return plain
