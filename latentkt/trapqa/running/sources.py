"""Where the items of a run come from: the built-in set, a file of trap items, rows of TrapQA on disk or on the hub."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from latentkt.errors import DataError, InputError
from latentkt.trapqa.items import ItemSet
from latentkt.trapqa.loading import builtin_items, load_items
from latentkt.trapqa.running.questions import Given, check_conditions
from latentkt.trapqa.running.rows import load_rows

__all__ = ["HUB_FILES", "Source", "load_source"]

HUB_FILES: dict[str, tuple[str, str]] = {
    "names": ("scientistqa_prepend_names", "scientist_qa/prepend_names/test.jsonl"),
    "profiles": ("scientistqa_prepend_profiles", "scientist_qa/prepend_profiles/test.jsonl"),
    "probes": ("scientistqa_probes", "scientist_qa/probes/test.jsonl"),
    "real_life": ("real_life_constrained_qa", "real_life_constrained_qa/test.jsonl"),
}
"""Condition -> configuration of `NeoHugh/TrapQA` and its file. The neutral condition asks the candidates of `names`."""
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


@dataclass(frozen=True, slots=True)
class Source:
    """The items of a run.

    Attributes:
        given: Condition -> its items.
        name: What they were read from.
        sha256: Condition -> hash of the content of its items.
    """

    given: dict[str, list[Given]]
    name: str
    sha256: dict[str, str]


def load_source(
    source: str | Path | ItemSet | None, conditions: Sequence[str], *, fields: Mapping[str, str] | None = None
) -> Source:
    """Find the items for some conditions.

    Args:
        source: None: the built-in set. An `ItemSet`, or a file of trap items: the same for all conditions. A file of
            rows: one condition only. A folder, or a hub id such as `NeoHugh/TrapQA`: a data set laid out as TrapQA,
            with a file a condition; a hub id is fetched through `huggingface_hub` (only the files that are needed).
        conditions: The conditions that will be asked.
        fields: The field map of rows; see `load_rows`.

    Raises:
        InputError: There is no such file, folder or data set.
        DataError: An item or row is wrong.
    """
    check_conditions(conditions)
    if source is None or source == "builtin" or isinstance(source, ItemSet):
        items = source if isinstance(source, ItemSet) else builtin_items()
        return _of_items(items, conditions, str(items.path or "built-in items"))
    path = Path(source)
    if path.is_file():
        if fields is None and _is_item_file(path):
            return _of_items(load_items(path), conditions, str(path))
        if len(conditions) > 1:
            raise InputError(f"{path} holds the rows of one condition", expected="one condition", found=conditions)
        return _of_rows({conditions[0]: path}, str(path), fields)
    if path.is_dir():
        files = {condition: path / _hub_file(condition) for condition in conditions}
        return _of_rows(files, str(path), fields)
    if not _HUB_ID.fullmatch(str(source)):
        raise InputError(f"no items {source}", expected="a file, a folder or a hub id such as NeoHugh/TrapQA")
    files = {condition: _fetched(str(source), _hub_file(condition)) for condition in conditions}
    return _of_rows(files, str(source), fields)


def _hub_file(condition: str) -> str:
    return HUB_FILES["names" if condition == "neutral" else condition][1]


def _fetched(repo: str, name: str) -> Path:
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(repo, name, repo_type="dataset"))
    except Exception as error:  # the hub's errors have no common base but OSError and ValueError
        raise InputError(
            f"cannot fetch {name} of the data set {repo}",
            expected="a data set on the hub, laid out as TrapQA",
            found=f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}",
            fix="check the id and the network, or download the folder and name it",
        ) from error


def _is_item_file(path: Path) -> bool:
    """Trap items have spans and a control; rows do not."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            first = next((line for line in file if line.strip()), "{}")
        data = json.loads(first)
    except (ValueError, OSError):
        return True  # load_items says what is wrong with it
    return isinstance(data, dict) and bool({"spans", "control"} & data.keys())


def _of_items(items: ItemSet, conditions: Sequence[str], name: str) -> Source:
    given = {condition: [Given(item) for item in items] for condition in conditions}
    return Source(given, name, dict.fromkeys(conditions, items.sha256))


def _of_rows(files: Mapping[str, Path], name: str, fields: Mapping[str, str] | None) -> Source:
    given: dict[str, list[Given]] = {}
    for condition, path in files.items():
        given[condition] = [
            Given(each.item) if condition == "neutral" else each
            for each in load_rows(path, "names" if condition == "neutral" else condition, fields=fields)
        ]
        if not given[condition]:
            raise DataError(f"{path} holds no rows", expected="at least one line")
    return Source(given, name, {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()})
