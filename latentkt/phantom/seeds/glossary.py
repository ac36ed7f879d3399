"""Glossaries of Wikimedia projects: the wikitext of a page, or the members of a category as the API gives them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from latentkt.errors import DataError
from latentkt.phantom.seeds.files import open_text
from latentkt.phantom.seeds.seeds import Row, Skip

__all__ = ["read_glossary"]

_TEMPLATE = re.compile(r"\{\{\s*term\s*\|(?P<body>(?:[^{}]|\{\{[^{}]*\}\})*)\}\}", re.I)
_ITEM = re.compile(r"^;\s*(?P<term>[^\n:]+?)\s*(?::|$)", re.M)
_LINK = re.compile(r"\[\[(?:[^\[\]|]*\|)?(?P<shown>[^\[\]|]+)\]\]")
_NOISE = re.compile(r"'{2,}|<ref[^>]*/>|<ref[^>]*>.*?</ref>|<[^>]+>|\{\{[^{}]*\}\}", re.S)
_NAMESPACE = re.compile(r"^(?:Category|Appendix|Template|Wiktionary|Wikipedia|Thesaurus|Talk|User):")


def read_glossary(path: Path, skip: Skip) -> Iterator[Row]:
    """Terms of `{{term|…}}` templates and of `; term` items; titles of category members (`query.categorymembers`).

    Raises:
        DataError: The page has none.
    """
    with open_text(path) as file:
        text = file.read()
    terms = _members(text, path, skip) if text.lstrip().startswith(('{"', "{\n", "[")) else _terms(text)
    found = False
    for term in terms:
        found = True
        yield None, term
    if not found:
        raise DataError(f"{path}: no terms", expected="{{term|…}}, lines '; term', or query.categorymembers")


def _terms(text: str) -> Iterator[str]:
    for match in sorted([*_TEMPLATE.finditer(text), *_ITEM.finditer(text)], key=lambda match: match.start()):
        yield _plain(_first_argument(match["body"]) if match.re is _TEMPLATE else match["term"])


def _first_argument(body: str) -> str:
    # A pipe inside a link or a nested template belongs to it.
    parts = re.split(r"\|(?![^\[]*\]\])(?![^{]*\}\})", body)
    named = dict(part.split("=", 1) for part in parts if re.match(r"\s*\w+\s*=", part))
    shown = {name.strip(): value for name, value in named.items()}
    return shown.get("1", shown.get("term", parts[0]))


def _plain(text: str) -> str:
    return _NOISE.sub("", _LINK.sub(lambda match: match["shown"], text)).strip()


def _members(text: str, path: Path, skip: Skip) -> Iterator[str]:
    try:
        data = json.loads(text)
        pages = data if isinstance(data, list) else [data]
        titles = [member["title"] for page in pages for member in page["query"]["categorymembers"]]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path}: no category members", expected='{"query": {"categorymembers": […]}}') from error
    for title in titles:
        if _NAMESPACE.match(title):
            skip("a page of another namespace")
        else:
            yield title
