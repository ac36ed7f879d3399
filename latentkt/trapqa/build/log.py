"""What was removed on the way to the items, and why: every removal by name and rule, and what each stage left.

A log lies beside the file that a stage wrote (`NAME.removed.jsonl`), and the next stage goes on with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from latentkt.errors import DataError
from latentkt.results import read_json_lines, write_json_lines

__all__ = ["Removal", "StageLog", "lines_of", "log_beside"]


@dataclass(frozen=True, slots=True)
class Removal:
    """One thing that was removed.

    Attributes:
        stage: The stage that removed it.
        name: The thing: a profile's or an item's id, a pair as `A | B`, a cue.
        rule: The rule that it broke, a short name that counts are made by.
        detail: What was found, for a reader; may be empty.
    """

    stage: str
    name: str
    rule: str
    detail: str = ""


class StageLog:
    """Removals in order, and the number of things that each stage left.

    Example:
        >>> log = StageLog()
        >>> log.remove("profiles", "Q1", "no attributes")
        >>> log.count("profiles", kept=9)
        >>> log.table()
        [{'stage': 'profiles', 'given': 10, 'removed': 1, 'kept': 9, 'rules': {'no attributes': 1}}]
    """

    def __init__(self) -> None:
        self._removals: list[Removal] = []
        self._kept: dict[str, int] = {}
        self._bulk: Counter[tuple[str, str]] = Counter()

    def __iter__(self) -> Iterator[Removal]:
        return iter(self._removals)

    def __len__(self) -> int:
        return len(self._removals)

    def remove(self, stage: str, name: str, rule: str, detail: str = "") -> None:
        """Note that `stage` removed `name` because it broke `rule`."""
        self._kept.setdefault(stage, 0)
        self._removals.append(Removal(stage, name, rule, " ".join(detail.split())))

    def remove_many(self, stage: str, rule: str, n: int) -> None:
        """Note that `stage` removed `n` things by one rule, where a list would say nothing (pairs below a cut)."""
        self._kept.setdefault(stage, 0)
        self._bulk[stage, rule] += n

    def count(self, stage: str, *, kept: int) -> None:
        """Note that `stage` left `kept` things; a later call replaces an earlier one."""
        self._kept[stage] = kept

    def table(self) -> list[dict[str, Any]]:
        """One row a stage, in the order of the stages: given, removed, kept, and removals by rule (most first)."""
        rules: dict[str, Counter[str]] = {stage: Counter() for stage in self._kept}
        for removal in self._removals:
            rules[removal.stage][removal.rule] += 1
        for (stage, rule), n in self._bulk.items():
            rules[stage][rule] += n
        return [
            {
                "stage": stage,
                "given": kept + rules[stage].total(),
                "removed": rules[stage].total(),
                "kept": kept,
                "rules": dict(sorted(rules[stage].items(), key=lambda entry: (-entry[1], entry[0]))),
            }
            for stage, kept in self._kept.items()
        ]

    def lines(self) -> list[str]:
        """One line a stage: what was kept, and what was removed by which rule."""
        return [
            f"{row['stage']}: {row['kept']} of {row['given']} kept"
            + "".join(f"; {rule} {n}" for rule, n in row["rules"].items())
            for row in self.table()
        ]

    def save(self, path: str | Path) -> None:
        """Write the log as JSON lines: for each stage what it left, removals in bulk, then each removal."""
        lines: list[dict[str, Any]] = [{"stage": stage, "kept": kept} for stage, kept in self._kept.items()]
        lines += [{"stage": stage, "rule": rule, "n": n} for (stage, rule), n in self._bulk.items()]
        lines += [asdict(removal) for removal in self._removals]
        write_json_lines(lines, path)

    @classmethod
    def load(cls, path: str | Path) -> StageLog:
        """Read what `save` wrote.

        Raises:
            InputError: There is no such file.
            DataError: The file is no such log; the message names the line.
        """
        log = cls()
        for _ in read_json_lines(path, log._take):
            pass
        return log

    def _take(self, record: dict[str, Any], where: str) -> None:
        try:
            if "kept" in record:
                self.count(record["stage"], kept=int(record["kept"]))
            elif "n" in record:
                self.remove_many(record["stage"], record["rule"], int(record["n"]))
            else:
                self.remove(**record)
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"{where}: not a log of removals",
                expected="lines with stage and kept; stage, rule and n; or stage, name, rule and detail",
                found=repr(record)[:80],
            ) from error


def lines_of(text: str) -> list[str]:
    r"""The lines of a text: they end in line feeds alone. Other separators (U+2028, U+0085) may stand inside JSON.

    Example:
        >>> lines_of('{"name": "one\u2028two"}\r\n')
        ['{"name": "one\u2028two"}']
    """
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] if text else []


def log_beside(path: str | Path) -> Path:
    """Where the log of a stage's file lies.

    Example:
        >>> log_beside("run/pairs.jsonl").name
        'pairs.removed.jsonl'
    """
    return Path(path).with_suffix(".removed.jsonl")
