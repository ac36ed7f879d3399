"""What was left out, and where and why: nothing leaves a table in silence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Ledger", "Line"]

IDS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Line:
    """One reason for which questions are missing from a table.

    Attributes:
        table: The table, or `records` for what was set to missing before any table.
        setting: The setting, or "" where the reason is the same in all.
        reason: Why.
        questions: Their ids; empty where the whole table could not be made.
    """

    table: str
    setting: str
    reason: str
    questions: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = f"{self.table} ({self.setting})" if self.setting else self.table
        if not self.questions:
            return f"{where}: not available: {self.reason}"
        shown = ", ".join(self.questions[:IDS_SHOWN]) + (", …" if len(self.questions) > IDS_SHOWN else "")
        return f"{where}: {len(self.questions)} left out: {self.reason} ({shown})"


@dataclass
class Ledger:
    """Lines in the order in which they were noted."""

    lines: list[Line] = field(default_factory=list)

    def leave_out(self, table: str, setting: str, reason: str, questions: Iterable[object]) -> None:
        """Note questions that a table does not hold; nothing is noted for none."""
        ids = tuple(dict.fromkeys(str(question) for question in questions))
        if ids:
            self.lines.append(Line(table, setting, reason, ids))

    def unavailable(self, table: str, setting: str, reason: str) -> None:
        """Note a table that could not be made."""
        self.lines.append(Line(table, setting, reason))

    def reason(self, table: str, setting: str) -> str | None:
        """Why a table is not available in a setting, or None where it is."""
        for line in self.lines:
            if line.table == table and line.setting in ("", setting) and not line.questions:
                return line.reason
        return None

    def texts(self) -> list[str]:
        """One sentence a reason: tables and settings that share it, and its questions, are named together."""
        by_settings: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
        for line in self.lines:
            by_settings.setdefault((line.table, line.reason, line.questions), []).append(line.setting)
        by_tables: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
        for (table, reason, questions), settings in by_settings.items():
            names = ", ".join(setting for setting in settings if setting)
            by_tables.setdefault((names, reason, questions), []).append(table)
        return [str(Line(", ".join(tables), *key)) for key, tables in by_tables.items()]

    def frame(self) -> pd.DataFrame:
        """One row a question and reason: `table`, `setting`, `question_id` (empty: the whole table), `reason`."""
        import pandas as pd

        rows = [
            (line.table, line.setting, question, line.reason)
            for line in self.lines
            for question in line.questions or ("",)
        ]
        return pd.DataFrame(rows, columns=["table", "setting", "question_id", "reason"], dtype="str")
