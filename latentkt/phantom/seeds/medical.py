"""Medical terms: the NCBI disease corpus, MeDAL, UMNSRS, and MedINST's rows of term pairs."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

from latentkt.errors import DataError
from latentkt.phantom.seeds.files import lines, open_text, table
from latentkt.phantom.seeds.seeds import Row, Skip

__all__ = ["read_medal", "read_ncbi", "read_umnsrs"]

_ANNOTATION = re.compile(r"\d+\t\d+\t\d+\t(?P<mention>[^\t]*)\t[^\t]*\t[^\t]+")
_TEXT_LINE = re.compile(r"Text [12]:\s*(?P<term>.+)")
_UMNSRS_COLUMNS = (("term1", "term2"), ("term 1", "term 2"), ("term_1", "term_2"))


def read_ncbi(path: Path, skip: Skip) -> Iterator[Row]:
    """Mentions of the annotations of a PubTator file (`NCBItrainset_corpus.txt`).

    Raises:
        DataError: No line is an annotation.
    """
    found = False
    for _, line in lines(path):
        match = _ANNOTATION.fullmatch(line)
        if match:
            found = True
            yield "NCBI disease", match["mention"]
        elif line.strip():
            skip("title or abstract")
    if not found:
        raise DataError(f"{path}: no annotations", expected="lines of PMID, start, end, mention, type, id")


def read_medal(path: Path, skip: Skip) -> Iterator[Row]:
    """Full forms (`LABEL`) of the abbreviations of MeDAL.

    Raises:
        DataError: The column lacks.
    """
    for row in table(path, columns=("label",)):
        yield "MeDAL", row.get("label", "")


def read_umnsrs(path: Path, skip: Skip) -> Iterator[Row]:
    """Both terms of each pair: columns `Term1`, `Term2` (or the third and fourth), or lines `Text 1:`, `Text 2:`.

    Raises:
        DataError: The file holds neither.
    """
    with open_text(path) as file:
        head = file.readline()
        if _TEXT_LINE.search(head) or "," not in head:
            yield from _text_lines(path, skip)
            return
        names = [name.strip().lower() for name in next(csv.reader([head]))]
        pair = next((pair for pair in _UMNSRS_COLUMNS if set(pair) <= set(names)), None)
        columns = [names.index(name) for name in pair] if pair else [2, 3]
        if len(names) <= max(columns):
            raise DataError(f"{path}: no pairs of terms", expected="columns Term1, Term2", found=", ".join(names))
        for row in csv.reader(file):
            for column in columns:
                if column < len(row):
                    yield "UMNSRS", row[column]
                else:
                    skip("short row")


def _text_lines(path: Path, skip: Skip) -> Iterator[Row]:
    found = False
    for _, line in lines(path):
        match = _TEXT_LINE.search(line)
        if match:
            found = True
            yield "UMNSRS", match["term"]
        elif line.strip():
            skip("no term")
    if not found:
        raise DataError(f"{path}: no pairs of terms", expected="columns Term1, Term2, or lines 'Text 1: …'")
