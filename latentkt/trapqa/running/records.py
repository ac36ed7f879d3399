"""Records: what a model answered, one JSON object a question, setting, condition and order."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentkt.errors import DataError, InputError
from latentkt.results import atomic_write

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "ANSWERS",
    "CONDITIONS",
    "Key",
    "Record",
    "check_unique",
    "join_probes",
    "read_records",
    "record_line",
    "records_frame",
    "write_records",
]

Key = tuple[str, str, str, str | None]
ANSWERS = ("correct", "shortcut", "off")
CONDITIONS = ("names", "profiles", "neutral", "probes", "real_life")
_ORDERS = ("correct_first", "shortcut_first", None)
_SYNONYMS = {"distractor": "shortcut"}
_PROBES = ("eliminative", "compatibility")


@dataclass(frozen=True, slots=True)
class Record:
    """One answer. Fields that do not exist for it are None.

    Attributes:
        question_id: The item.
        setting: Who answered: a model with its settings, such as `smollm2` or `gpt-5.2 low`.
        condition: `names`, `profiles`, `neutral`, `probes` or `real_life`. A record of `probes` holds the two probe
            answers of a question and no `answer`.
        order: `correct_first` or `shortcut_first`, as it was asked; None for probe questions.
        answer: `correct`, `shortcut` or `off` (neither, or not to be told). After a neutral prompt none is right:
            there it says which of the two strings was given.
        probe_eliminative_correct: Whether the question that rules the shortcut out was answered rightly.
        probe_compatibility_correct: Whether the question that fits the correct candidate was.
        probe_eliminative_predicted: What was answered to it: yes is True.
        probe_compatibility_predicted: The same.
        confidence: 0 to 100, as the model said in a second turn.
        correct_fame: Fame of the correct candidate.
        shortcut_fame: Fame of the shortcut candidate.
        family: The item's family.
        aspect: The item's aspect.
        constraint_kind: The item's kind of constraint.
        log_odds: log P(y*) − log P(y_s) of the whole answers, in nats.
        raw: What the model wrote, reasoning included.
        meta: More about the answer: `mode`, `rule` of the match, `truncated`, `kind`, `polarity` and the like.
    """

    question_id: str
    setting: str
    condition: str
    order: str | None = None
    answer: str | None = None
    probe_eliminative_correct: bool | None = None
    probe_compatibility_correct: bool | None = None
    probe_eliminative_predicted: bool | None = None
    probe_compatibility_predicted: bool | None = None
    confidence: float | None = None
    correct_fame: float | None = None
    shortcut_fame: float | None = None
    family: str | None = None
    aspect: str | None = None
    constraint_kind: str | None = None
    log_odds: float | None = None
    raw: str | None = None
    meta: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        """What no two records share."""
        return self.question_id, self.setting, self.condition, self.order


_NAMES = tuple(each.name for each in fields(Record))
_NUMBERS = ("confidence", "correct_fame", "shortcut_fame", "log_odds")
_TRUTHS = tuple(f"probe_{role}_{what}" for role in _PROBES for what in ("correct", "predicted"))
_TEXTS = ("family", "aspect", "constraint_kind", "raw")


def record_line(record: Record) -> str:
    """A record as one line of JSON, fields in their order."""
    return json.dumps(asdict(record), ensure_ascii=False, allow_nan=False)


def write_records(records: Iterable[Record], path: str | Path) -> None:
    """Write records as JSON lines, whole or not at all.

    Raises:
        DataError: Two records have the same key.
        RunError: The disk is full or the folder cannot be written to.
    """
    records = list(records)
    check_unique([(record, "the records to be written") for record in records])
    with atomic_write(path) as file:
        file.write("".join(record_line(record) + "\n" for record in records).encode())


def read_records(path: str | Path, *, settings: Collection[str] | None = None) -> list[Record]:
    """Read and check a file of records.

    Args:
        path: JSON lines. Absent fields are None; `distractor` is read as `shortcut`.
        settings: The settings that may occur; None allows any.

    Raises:
        InputError: There is no such file.
        DataError: A line is no record (half-written, say), a value is wrong, a setting is unknown, or two records have
            the same key; the message names file, line and id.
    """
    path = Path(path)
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise InputError(f"cannot read the records {path}: {error.strerror}", expected="a file of JSON lines") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8", expected="JSON lines, one record a line", found=error.reason) from error
    found = [
        (parse_record(line, f"{path}, line {number}"), f"{path}, line {number}")
        for number, line in enumerate(lines, start=1)
        if line.strip()
    ]
    for record, where in found:
        if settings is not None and record.setting not in settings:
            raise _wrong(record.question_id, where, "setting", f"one of {', '.join(sorted(settings))}", record.setting)
    check_unique(found)
    return [record for record, _ in found]


def parse_record(line: str, where: str) -> Record:
    """One line as a record.

    Raises:
        DataError: It is not one.
    """
    try:
        data = json.loads(line)
    except ValueError as error:
        raise DataError(
            f"{where}: not JSON",
            expected="one record",
            found=f"{line[:60]!r} … ({error})",
            fix="a half-written last line is left by a run that was stopped: go on with it with --resume",
        ) from error
    if not isinstance(data, dict):
        raise DataError(f"{where}: no record", expected="a JSON object", found=line[:60])
    identity = data.get("question_id")
    unknown = [name for name in data if name not in _NAMES]
    if unknown:
        raise _wrong(
            identity, where, unknown[0], f"a field of {', '.join(_NAMES)}", "a field of that name", "move it into meta"
        )
    answer = data.get("answer")
    record = Record(**{"question_id": "", "setting": "", "condition": "", **data})
    record = replace(record, answer=_SYNONYMS.get(answer, answer) if isinstance(answer, str) else answer)
    _check(record, where)
    return record


def _check(record: Record, where: str) -> None:
    for name, (expected, fits) in _FITS.items():
        if not fits(getattr(record, name)):
            raise _wrong(record.question_id, where, name, expected, getattr(record, name))


def _is_named(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value))


def _is_percent(value: object) -> bool:
    return value is None or (_is_number(value) and 0 <= float(value) <= 100)  # type: ignore[arg-type]


_Fits = tuple[str, Callable[[Any], bool]]
_FITS: dict[str, _Fits] = {
    "question_id": ("text that is not blank", _is_named),
    "setting": ("text that is not blank", _is_named),
    "condition": (f"one of {', '.join(CONDITIONS)}", CONDITIONS.__contains__),
    "order": ("correct_first, shortcut_first or null", _ORDERS.__contains__),
    "answer": (f"one of {', '.join(ANSWERS)}, or null", (*ANSWERS, None).__contains__),
    **dict.fromkeys(_TRUTHS, ("true, false or null", lambda value: value is None or isinstance(value, bool))),
    **dict.fromkeys(_NUMBERS, ("a number or null", _is_number)),
    "confidence": ("a number from 0 to 100, or null", _is_percent),
    **dict.fromkeys(_TEXTS, ("text or null", lambda value: isinstance(value, str | None))),
    "meta": ("an object", lambda value: isinstance(value, dict)),
}


def _wrong(identity: object, where: str, name: str, expected: str, found: object, fix: str | None = None) -> DataError:
    return DataError(
        f"{where}, question {identity!r}: {name} is wrong",
        expected=expected,
        found=repr(found)[:120],
        fix=fix,
    )


def check_unique(found: Sequence[tuple[Record, str]]) -> None:
    """Refuse two records of one key; each comes with where it stands, for the message.

    Raises:
        DataError: Two answers to one question.
    """
    seen: dict[Key, str] = {}
    for record, where in found:
        if record.key in seen:
            raise DataError(
                f"{where}: a second record of question {record.question_id!r}",
                expected="one record a question, setting, condition and order",
                found=f"{', '.join(map(repr, record.key))}; the other is in {seen[record.key]}",
                fix="keep one of the two, or give them different settings",
            )
        seen[record.key] = where


def join_probes(records: Iterable[Record]) -> list[Record]:
    """Copy the answers to the probe questions into the other records of the same question and setting.

    Fields that a record holds already are kept, and so are the records of `probes`.
    """
    records = list(records)
    probes = {(r.question_id, r.setting): r for r in records if r.condition == "probes"}
    return [_joined(record, probes.get((record.question_id, record.setting))) for record in records]


def _joined(record: Record, probe: Record | None) -> Record:
    if probe is None or record is probe or record.condition == "neutral":
        return record
    missing = {name: getattr(probe, name) for name in _TRUTHS if getattr(record, name) is None}
    return replace(record, **missing) if missing else record


def records_frame(records: Iterable[Record]) -> pd.DataFrame:
    """Records as a table: one column a field, and one for each number, text and truth value of `meta`."""
    import pandas as pd

    rows = []
    for record in records:
        row = asdict(record)
        meta = row.pop("meta")
        rows.append(
            {**row, **{k: v for k, v in meta.items() if k not in row and isinstance(v, (str, int, float, bool))}}
        )
    frame = pd.DataFrame(rows, columns=None if rows else [name for name in _NAMES if name != "meta"])
    for name in _NUMBERS:
        frame[name] = frame[name].astype("float64")
    for name in _TRUTHS:
        frame[name] = frame[name].astype("boolean")
    return frame
