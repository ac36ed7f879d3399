"""Events from Wikidata: the query, and its results sorted into categories by the words of their types."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from latentkt.errors import DataError, InputError
from latentkt.phantom.seeds.files import load_json
from latentkt.phantom.seeds.seeds import Row, Skip

__all__ = ["EVENT_CLASSES", "EVENT_KEYWORDS", "event_query", "group_type", "read_wikidata"]

EVENT_CLASSES = {
    "event": "Q1656682",
    "natural disaster": "Q8065",
    "accident": "Q171558",
    "historical event": "Q13418847",
}

EVENT_KEYWORDS: Mapping[str, tuple[str, ...]] = {
    "election": ("election", "by-election", "referendum", "primary", "ballot", "vote"),
    "festival": ("festival", "carnival", "fête", "biennale"),
    "conference": ("conference", "congress", "symposium", "convention", "summit", "workshop", "colloquium", "meeting"),
    "holiday": ("holiday", "feast", "observance", "celebration", "commemoration"),
    "sport event": (
        "sport", "sports", "sporting", "championship", "championships", "olympic", "olympics", "tournament", "cup",
        "race", "match", "league", "marathon", "season", "games", "prix", "regatta",
    ),
    "competition": ("competition", "contest", "award", "awards", "prize", "pageant", "quiz"),
    "show or exhibition": (
        "exhibition", "exposition", "expo", "show", "fair", "concert", "tour", "performance", "parade",
    ),
    "social issue": (
        "crisis", "strike", "protest", "protests", "scandal", "riot", "riots", "demonstration", "conflict",
        "controversy", "movement", "boycott", "unrest",
    ),
}  # fmt: skip
"""Category -> words, one of which the label of a type holds; the first category that fits counts."""

_UNLABELLED = re.compile(r"Q\d+")


def event_query(event: str = "event", *, language: str = "en", limit: int = 300_000) -> str:
    """The SPARQL query whose JSON result `read_wikidata` reads.

    Args:
        event: A name of `EVENT_CLASSES`, or a Q-id.
        language: Of the labels.
        limit: Most rows.

    Raises:
        InputError: The class is neither.

    Example:
        >>> print(event_query("accident", limit=10))
        SELECT ?item ?itemLabel ?type ?typeLabel WHERE {
          ?type wdt:P279* wd:Q171558 .
          ?item wdt:P31 ?type .
          SERVICE wikibase:label { bd:serviceParam wikibase:language "en". }
        } LIMIT 10
    """
    identity = EVENT_CLASSES.get(event, event)
    if not _UNLABELLED.fullmatch(identity):
        raise InputError("no class of events", expected=f"{', '.join(EVENT_CLASSES)} or a Q-id", found=repr(event))
    return (
        "SELECT ?item ?itemLabel ?type ?typeLabel WHERE {\n"
        f"  ?type wdt:P279* wd:{identity} .\n"
        "  ?item wdt:P31 ?type .\n"
        f'  SERVICE wikibase:label {{ bd:serviceParam wikibase:language "{language}". }}\n'
        f"}} LIMIT {limit}"
    )


def group_type(labels: Sequence[str], keywords: Mapping[str, Sequence[str]] = EVENT_KEYWORDS) -> str | None:
    """The category of an event with these types; None where no keyword fits.

    Example:
        >>> group_type(["recurring event", "film festival"]), group_type(["explosion"])
        ('festival', None)
    """
    words = {word for label in labels for word in re.findall(r"[\w\-]+", label.lower())}
    return next((category for category, own in keywords.items() if words & set(own)), None)


def read_wikidata(path: Path, skip: Skip, keywords: Mapping[str, Sequence[str]] = EVENT_KEYWORDS) -> Iterator[Row]:
    """The items of a SPARQL result (JSON), each once; unlabelled ones (their label is their id) are passed over.

    The item is the variable `item`, else the first variable; its types are `type`, `class` or `instance`. Without types
    the category is the file's name.

    Raises:
        DataError: The file is no such result.
    """
    bindings = _bindings(load_json(path), path)
    if not bindings:
        return
    item, kind = _variables(bindings[0], path)
    labels: dict[str, str] = {}
    types: dict[str, list[str]] = {}
    for row in bindings:
        identity = row.get(item) or row.get(f"{item}Label")
        label = row.get(f"{item}Label")
        if not label or _UNLABELLED.fullmatch(label):
            skip("no label")
            continue
        labels.setdefault(identity or label, label)
        types.setdefault(identity or label, []).append(row.get(f"{kind}Label", "") if kind else "")
    for identity, label in labels.items():
        category = group_type(types[identity], keywords) if kind else None
        if kind and category is None:
            skip("type without a keyword")
        else:
            yield category, label


def _bindings(data: Any, path: Path) -> list[dict[str, str]]:
    rows = data.get("results", {}).get("bindings") if isinstance(data, dict) else data
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DataError(f"{path}: no SPARQL result", expected='{"results": {"bindings": […]}}', found=repr(data)[:80])
    return [
        {name: str(cell["value"] if isinstance(cell, dict) else cell) for name, cell in row.items()} for row in rows
    ]


def _variables(row: Mapping[str, str], path: Path) -> tuple[str, str | None]:
    labelled = [name.removesuffix("Label") for name in row if name.endswith("Label")]
    if not labelled:
        raise DataError(f"{path}: no labels", expected="a variable such as itemLabel", found=", ".join(row))
    item = "item" if "item" in labelled else labelled[0]
    return item, next((name for name in ("type", "class", "instance") if name in labelled), None)
