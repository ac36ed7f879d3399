"""Claims made inside abstentions (Section 5.6): an answer may abstain and still state things about something else.

No judge here decides that: a sheet goes to a person, who says whether the answer makes a claim that is worth checking,
and whether the claim is false.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from latentkt.errors import DataError, InputError, RunError
from latentkt.phantom.answers import Answer
from latentkt.phantom.judging.labels import sheet_rows
from latentkt.results import atomic_write
from latentkt.stats import wilson

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COLUMNS", "claims_table", "read_claims", "write_claims_sheet"]

COLUMNS = (
    *("prompt_id", "setting", "judge", "existence", "property", "concept", "question", "answer"),
    *("makes_claim", "claim", "claim_is_false", "source", "checked_by"),
)
_WORDS = {"yes": True, "no": False, "": None}


def write_claims_sheet(answers: Iterable[Answer], path: str | Path, *, n: int = 64, seed: int = 0) -> int:
    """Write a CSV of abstentions on concepts that do not exist, to be filled in by a person.

    Answers are drawn by seed, in turn from each setting and property, so that none of these fills the sheet: shares of
    the sheet weigh settings and properties alike, however often each abstains. A person
    fills in `makes_claim` (yes, no), the `claim`, `claim_is_false` (yes, no; blank where it could not be decided) and
    `source`.

    Args:
        answers: Judged answers.
        path: The sheet, new.
        n: Rows, at most.
        seed: Of the draw.

    Returns:
        The number of rows.

    Raises:
        InputError: No answer about a concept that does not exist abstains.
        RunError: The file exists: it may hold somebody's work.
    """
    path = Path(path)
    if path.exists():
        raise RunError(f"{path} exists", expected="a new file", fix="choose another name")
    strata: dict[tuple[str, str], list[Answer]] = {}
    for answer in answers:
        if answer.judgement == "abstained" and answer.existence == "phantom":
            strata.setdefault((answer.setting, answer.property), []).append(answer)
    if not strata:
        raise InputError(
            "there is no abstention to check", expected="judged answers, one of which abstains on a made concept"
        )
    queues = [sorted(mine, key=lambda a: _place(seed, a)) for _, mine in sorted(strata.items())]
    drawn = [queue[turn] for turn in range(max(map(len, queues))) for queue in queues if turn < len(queue)][:n]
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(COLUMNS)
    for answer in drawn:
        writer.writerow([*(getattr(answer, name) for name in COLUMNS[:8]), *[""] * 5])
    with atomic_write(path) as file:
        file.write(buffer.getvalue().encode())
    return len(drawn)


def _place(seed: int, answer: Answer) -> bytes:
    return hashlib.sha256("\0".join((str(seed), *answer.asked)).encode()).digest()


def read_claims(path: str | Path) -> list[dict[str, object]]:
    """Read a sheet that was filled in; rows without an entry under `makes_claim` are not there yet and left out.

    Raises:
        InputError: There is no such file, or nothing is filled in.
        DataError: A column is missing, an entry is not yes, no or blank, or a claim is false that is not made.
    """
    rows: list[dict[str, object]] = []
    needed = ("prompt_id", "setting", "existence", "property", "makes_claim", "claim_is_false")
    for number, row in enumerate(sheet_rows(path, needed), start=2):
        entries = {name: row[name].lower() for name in ("makes_claim", "claim_is_false")}
        if not set(entries.values()) <= _WORDS.keys() or (
            entries["claim_is_false"] and entries["makes_claim"] != "yes"
        ):
            raise DataError(
                f"{path}, line {number}: a wrong entry",
                expected="makes_claim yes or no; claim_is_false yes, no or blank, and only where a claim is made",
                found=entries,
            )
        if entries["makes_claim"]:
            rows.append({**row, **{name: _WORDS[word] for name, word in entries.items()}})
    if not rows:
        raise InputError(f"nothing is filled in in {path}", expected="yes or no under makes_claim")
    return rows


def claims_table(rows: Sequence[dict[str, object]]) -> pd.DataFrame:
    """The three shares of Section 5.6, each with Wilson's interval.

    Returns:
        One row a share: abstentions that make a claim; claims that are false, of those that were decided; abstentions
        with a false claim, of all whose claims were decided.

    Example:
        >>> sheet = [{"makes_claim": True, "claim_is_false": True}, {"makes_claim": False, "claim_is_false": None}]
        >>> claims_table(sheet)[["share", "pct", "n"]].values.tolist()[0]
        ['makes a claim', 50.0, 2]
    """
    import pandas as pd

    claims = [row for row in rows if row["makes_claim"]]
    decided = [row for row in claims if row["claim_is_false"] is not None]
    false = sum(row["claim_is_false"] is True for row in decided)
    whole = len(rows) - (len(claims) - len(decided))
    found = []
    for name, count, n in (
        ("makes a claim", len(claims), len(rows)),
        ("claims that are false", false, len(decided)),
        ("abstains with a false claim", false, whole),
    ):
        interval = wilson(count, n)
        ends = {"pct": 100 * interval.value, "pct_low": 100 * interval.low, "pct_high": 100 * interval.high}
        found.append({"share": name, "count": count, "n": n, **ends, "undecided": len(claims) - len(decided)})
    return pd.DataFrame(found)
