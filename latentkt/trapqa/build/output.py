"""The last stage: items, their pattern file, the log of what was removed, and the data card, side by side."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from latentkt.corpus.patterns import Patterns
from latentkt.errors import InputError
from latentkt.results import atomic_write
from latentkt.trapqa.build.log import StageLog, log_beside
from latentkt.trapqa.check import check_items
from latentkt.trapqa.check_text import report_lines
from latentkt.trapqa.items import ItemSet, TrapItem
from latentkt.trapqa.loading import load_items, save_items

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

    from latentkt.trapqa.check import CheckReport

__all__ = ["Made", "Source", "Written", "card_beside", "construction_tables", "write_items"]

TABLES = ("construction_stages", "construction_balance", "construction_tests")
"""The tables of a run that say how its items were made."""
BESIDE = (
    ".patterns.json", ".card.md", ".removed.jsonl", ".construction.json", ".generated.jsonl", ".checked.jsonl"
)  # fmt: skip
"""Endings of the files that lie beside an item file."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where something in the items comes from.

    Attributes:
        name: File, data set or model.
        licence: Its licence, or "not stated".
        used_for: What was taken from it.
        sha256: Hash of the file, or None.
    """

    name: str
    licence: str
    used_for: str
    sha256: str | None = None


class Tests(Protocol):
    """What `artefact_tests` returns, as far as a card needs it."""

    @property
    def passed(self) -> bool:
        """Whether no test gave the answer away."""
        ...

    @property
    def table(self) -> Sequence[Mapping[str, Any]]:
        """One row a test."""
        ...

    @property
    def reasons(self) -> Sequence[str]:
        """What gives the answer away."""
        ...


@dataclass(frozen=True, slots=True)
class Written:
    """The files of a finished set.

    Attributes:
        items: The item file.
        patterns: The pattern file, or None where no item names a path.
        card: The data card.
        removed: The log of what was removed.
        n_items: Number of items.
    """

    items: Path
    patterns: Path | None
    card: Path
    removed: Path
    n_items: int


@dataclass(frozen=True)
class Made:
    """A finished set, as a stage gives it back.

    Attributes:
        written: Its files.
        tests: Its artefact tests.
        log: What every stage left and removed.
    """

    written: Written
    tests: Tests
    log: StageLog

    @property
    def lines(self) -> tuple[str, ...]:
        """What was done, stage by stage, and where it lies."""
        verdict = "passed" if self.tests.passed else f"refused as a benchmark: {'; '.join(self.tests.reasons)}"
        written = self.written
        files = f"card: {written.card}", f"items: {written.items} ({written.n_items})"
        return (*self.log.lines(), f"artefact tests: {verdict}", *files)


def write_items(
    items: Sequence[TrapItem],
    log: StageLog,
    *,
    out: str | Path,
    sources: Sequence[Source],
    patterns: Patterns | None = None,
    title: str = "Trap items",
    how: Sequence[str] = (),
    tests: Tests | None = None,
) -> Written:
    """Write a set with all that belongs to it, and read it back, so that what lies there is known to load.

    Args:
        items: The items; at least one.
        log: The log of all stages.
        out: The item file, ending in `.jsonl`; the other files take its name: `.patterns.json`, `.card.md`,
            `.removed.jsonl`, and `.construction.json`, the card's tables for reports.
        sources: Where facts and words come from, with licences.
        patterns: The patterns that the items' paths name.
        title: The heading of the card.
        how: Paragraphs for the card: how the items were made, with which options and seed.
        tests: The artefact tests; where they did not pass, the card says that the set is no benchmark, and why.

    Raises:
        InputError: There are no items, or the name ends otherwise.
        DataError: The items break a clause together (ids, paths without patterns).
    """
    path = Path(out)
    if not items:
        found = "; ".join(log.lines()) or "no stage"
        raise InputError("no item is left to write", expected="at least one", found=found, fix="loosen the bounds")
    path.parent.mkdir(parents=True, exist_ok=True)
    log.save(log_beside(path))
    save_items(ItemSet(tuple(items), patterns), path)
    card = card_beside(path)
    _write_tables(path, log, tests)
    text = "\n".join(_card(load_items(path), log, sources=sources, title=title, how=how, tests=tests)) + "\n"
    with atomic_write(card) as file:
        file.write(text.encode())
    beside = path.with_suffix(".patterns.json") if patterns is not None else None
    return Written(path, beside, card, log_beside(path), len(items))


def card_beside(path: str | Path) -> Path:
    """Where the data card of an item file lies."""
    return Path(path).with_suffix(".card.md")


def construction_tables(path: str | Path, sha256: str) -> dict[str, pd.DataFrame]:
    """How the items of a file were made, as tables for a run.

    Args:
        path: The item file.
        sha256: Content hash of the items that are used.

    Returns:
        The tables of `TABLES` that exist; none where the file was not written by a construction, or was changed since.
    """
    import pandas as pd

    beside = Path(path).with_suffix(".construction.json")
    if not beside.is_file():
        return {}
    kept = json.loads(beside.read_text(encoding="utf-8"))
    if kept["items_sha256"] != sha256:
        return {}
    return {name: pd.DataFrame(kept[name]) for name in TABLES if kept[name]}


def _write_tables(path: Path, log: StageLog, tests: Tests | None) -> None:
    item_set = load_items(path)
    kept = {
        "items_sha256": item_set.sha256,
        "construction_stages": [{**row, "rules": _rules(row)} for row in log.table()],
        "construction_balance": list(_balance(check_items(item_set))),
        "construction_tests": [dict(row) for row in tests.table] if tests else [],
    }
    with atomic_write(path.with_suffix(".construction.json")) as file:
        file.write(json.dumps(kept, ensure_ascii=False, indent=1).encode() + b"\n")


def _rules(row: Mapping[str, Any]) -> str:
    return "; ".join(f"{rule} {n}" for rule, n in row["rules"].items())


def _balance(report: CheckReport) -> Iterable[dict[str, Any]]:
    """What a balanced set has in halves, and how many items each family has."""
    for field in ("family", "polarity"):
        for value, n in report.counts[field].items():
            yield {"field": field, "value": value, "n": n, "total": report.n_items}
    for (role, polarity), share in report.probe_golds.items():
        yield {
            "field": f"{role} probe questions answered by yes",
            "value": polarity,
            "n": share.count,
            "total": share.total,
        }
    for field, share in (
        ("the constraint begins after the cue", report.constraint_after_shortcut),
        ("the correct answer is longer", report.correct_longer),
        ("the correct answer is first in the alphabet", report.first_by_alphabet),
    ):
        yield {"field": field, "value": "", "n": share.count, "total": share.total}


def _card(
    item_set: ItemSet,
    log: StageLog,
    *,
    sources: Sequence[Source],
    title: str,
    how: Sequence[str],
    tests: Tests | None,
) -> Iterable[str]:
    yield from (f"# {title}", "", f"{len(item_set)} items; content hash {item_set.sha256}.", "")
    yield from _paragraphs(how)
    yield from ("## Counts by stage", "")
    yield from markdown([{**row, "rules": _rules(row)} for row in log.table()])
    yield from ("", "## Balance", "", "```", *report_lines(check_items(item_set)), "```", "", "## Artefact tests", "")
    yield from _tests(tests)
    yield from ("", "## Sources and licences", "")
    yield from markdown(
        [
            {"source": s.name, "licence": s.licence, "used for": s.used_for, "sha256": (s.sha256 or "")[:16]}
            for s in sources
        ]
    )


def _paragraphs(texts: Sequence[str]) -> Iterable[str]:
    for text in texts:
        yield from (text, "")


def _tests(tests: Tests | None) -> Iterable[str]:
    if tests is None:
        yield "Not run: nothing is said about what the wording gives away."
        return
    if tests.passed:
        yield "Passed: no test gave the answer away."
    else:
        yield "**Refused as a benchmark.** What gives the answer away:"
        yield from ("", *(f"- {reason}" for reason in tests.reasons))
    yield ""
    yield from markdown(tests.table)


def markdown(rows: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    """Rows as a Markdown table; columns are those of the first row."""
    if not rows:
        yield "none"
        return
    names = list(rows[0])
    yield "| " + " | ".join(names) + " |"
    yield "|" + "---|" * len(names)
    for row in rows:
        yield "| " + " | ".join(_cell(row.get(name)) for name in names) + " |"


def _cell(value: Any) -> str:
    shown = f"{value:.3g}" if isinstance(value, float) else "" if value is None else str(value)
    return shown.replace("|", "\\|").replace("\n", " ")
