"""Readers of profiles: Wikidata's SPARQL JSON, JSON lines, CSV and TSV, with a field map where names are unusual.

In the two table formats the fields of `ROLES` are found under usual names. Every other field of text is an attribute;
an object `attributes` holds attributes by name. Rows of one id are one person with several values.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from latentkt.errors import DataError, InputError
from latentkt.results import read_json_lines
from latentkt.trapqa.build.profiles import Profile, bare, day, latin

__all__ = ["ROLES", "read_profiles"]

ROLES: dict[str, tuple[str, ...]] = {
    "id": ("qid", "item", "person", "id", "wn_offset", "laureate_id"),
    "name": ("label", "itemLabel", "personLabel", "name", "known_name", "title"),
    "aliases": ("aliases", "altLabel", "itemAltLabel", "full_name", "also_known_as"),
    "born": ("birth_date", "born", "birthDate", "dateOfBirth", "dob"),
    "died": ("death_date", "died", "deathDate", "dateOfDeath", "dod"),
    "text": ("abstract", "text", "gloss", "description", "itemDescription", "summary"),
    "fame": ("fame", "n_inlinks", "page_views", "sitelinks"),
    "attributes": ("attributes",),
}
"""Part of a profile -> field names that are looked for, in order."""
_ENTITY = "http://www.wikidata.org/entity/"


def read_profiles(path: str | Path, fields: Mapping[str, str] | None = None) -> list[Profile]:
    r"""Read profiles of one file.

    Args:
        path: `.json` (SPARQL results), `.jsonl`, `.csv` or `.tsv`.
        fields: Part of a profile -> field of the file, for parts that have another name there; `attributes` may be a
            comma-separated list of fields, which are then the only attributes.

    Raises:
        InputError: The file is absent, of another kind, or the map names a part that profiles do not have.
        DataError: A line cannot be read, or a needed field is not there (the message lists those that are).

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "people.csv")
        ...     _ = file.write_text("qid,name,award\nQ1,Ann,Medal\nQ1,Ann,Prize\n")
        ...     read_profiles(file)[0].attributes
        {'award': ('Medal', 'Prize')}
    """
    path = Path(path)
    unknown = set(fields or {}) - set(ROLES)
    if unknown:
        raise InputError(
            "the field map names unknown parts", expected=f"any of {', '.join(ROLES)}", found=", ".join(sorted(unknown))
        )
    readers = {".json": _sparql, ".jsonl": _lines, ".csv": _table, ".tsv": _table}
    if path.suffix not in readers:
        raise InputError(f"cannot read profiles of {path}", expected=f"a file ending in {', '.join(readers)}")
    try:
        rows = list(readers[path.suffix](path))
    except OSError as error:
        raise InputError(f"no profiles {path}: {error.strerror}", expected="an existing file") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8", found=error.reason) from error
    if not rows:
        raise DataError(f"{path} holds no profiles", expected="at least one row")
    return _profiles(rows, _found(rows, dict(fields or {}), path), path)


def _sparql(path: Path) -> Iterator[dict[str, Any]]:
    """One row a solution. A label that only repeats the entity's number is no label."""
    try:
        solutions = json.loads(path.read_text(encoding="utf-8"))["results"]["bindings"]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path}: no SPARQL results", expected="{head, results: {bindings: […]}}") from error
    for solution in solutions:
        row = {name: bound["value"].removeprefix(_ENTITY) for name, bound in solution.items()}
        yield {name: value for name, value in (_labelled(name, row) for name in row) if value is not None}


def _labelled(name: str, row: Mapping[str, str]) -> tuple[str, str | None]:
    """A variable and its value: labels stand for their entities, except for the person's."""
    base = name.removesuffix("Label")
    if base in ("item", "person"):
        return name, None if name != base and row[name] == row.get(base) else row[name]
    if base != name:
        return base, None if row[name] == row.get(base) else row[name]
    return name, None if f"{name}Label" in row else row[name]


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    return read_json_lines(path, lambda row, where: row)


def _table(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        head = file.readline()
        file.seek(0)
        rows = csv.DictReader(file, delimiter="\t" if head.count("\t") > head.count(",") else ",")
        for number, row in enumerate(rows, start=2):
            if None in row or None in row.values():
                found = f"{sum(value is not None for value in row.values())} cells"
                raise DataError(f"{path}, row {number}: wrong number of cells", expected=len(row), found=found)
            yield dict(row)


def _found(rows: list[dict[str, Any]], fields: dict[str, str], path: Path) -> dict[str, str]:
    """Part -> field, by the map and by usual names."""
    seen = dict.fromkeys(name for row in rows for name in row)
    for part, names in ROLES.items():
        known = next((name for name in names if name in seen), None)
        if part not in fields and known is not None:
            fields[part] = known
    wanted = [n for part, name in fields.items() for n in (name.split(",") if part == "attributes" else [name])]
    lacking = [name for name in wanted if name not in seen]
    lacking += [f"a field for the {part}" for part in ("id", "name") if part not in fields]
    if lacking:
        raise DataError(
            f"{path} lacks {', '.join(lacking)}",
            expected="an id and a name for each person",
            found=f"the fields {', '.join(seen)}",
            fix="name the field: --field name=FIELD",
        )
    return fields


def _profiles(rows: list[dict[str, Any]], fields: dict[str, str], path: Path) -> list[Profile]:
    grouped: dict[str, list[dict[str, Any]]] = {}
    for number, row in enumerate(rows, start=1):
        key = str(row.get(fields["id"]) or "").strip()
        if not key:
            raise DataError(f"{path}, row {number}: no {fields['id']}", expected="an id for each person")
        grouped.setdefault(key, []).append(row)
    return [_profile(key, group, fields) for key, group in grouped.items()]


def _profile(key: str, rows: list[dict[str, Any]], fields: dict[str, str]) -> Profile:
    def first(part: str) -> Any:
        found = (row.get(fields[part]) for row in rows) if part in fields else ()
        return next((value for value in found if value not in (None, "")), None)

    written = [_text(row.get(name)) for row in rows for name in ROLES["name"] if name in row]
    mapped = [_text(first("name"))] + [value for row in rows for value in _values(row.get(fields.get("aliases", "")))]
    names = [name for name in (bare(name) for name in (*mapped, *written)) if any(c.isalpha() for c in name)]
    names.sort(key=lambda name: not latin(name))  # stable: Latin names first, in their order
    fame = first("fame")
    return Profile(
        id=key,
        name=names[0] if names else "",
        aliases=tuple(name for name in dict.fromkeys(names) if name != names[0]),
        attributes=_attributes(rows, fields),
        born=day(first("born")),
        died=day(first("died")),
        text=_text(first("text")) or None,
        fame=float(fame) if isinstance(fame, int | float) or str(fame or "").replace(".", "", 1).isdigit() else None,
    )


def _attributes(rows: Iterable[dict[str, Any]], fields: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    named = fields.get("attributes", "")
    taken = {*fields.values(), *ROLES["name"]}
    lists: dict[str, dict[str, None]] = {}
    for row in rows:
        held = row.get(named)
        if isinstance(held, dict):
            pairs = list(held.items())
        else:
            only = named.split(",") if named else [name for name in row if name not in taken]
            pairs = [(name, row.get(name)) for name in only]
        for name, raw in pairs:
            lists.setdefault(name, {}).update(dict.fromkeys(_values(raw)))
    return {name: tuple(values) for name, values in lists.items() if values}


def _values(raw: Any) -> list[str]:
    """The texts of a field; addresses, and entries without a letter or digit (a lone `*`), are none."""
    found = [_text(value) for value in (raw if isinstance(raw, list) else [raw])]
    return [value for value in found if any(c.isalnum() for c in value) and "://" not in value]


def _text(value: Any) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""
