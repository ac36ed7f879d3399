"""Works and places of PopQA: subjects and objects of its facts, without those that are persons."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from latentkt.phantom.seeds.files import table
from latentkt.phantom.seeds.seeds import Row, Skip

__all__ = ["PERSON_OBJECTS", "PERSON_SUBJECTS", "read_popqa"]

# A person is told by the relation alone: who has a place of birth is one, and so is whoever is an author.
PERSON_SUBJECTS = frozenset({"occupation", "place of birth", "father", "mother", "religion", "sport"})
PERSON_OBJECTS = frozenset({"father", "mother", "producer", "director", "screenwriter", "composer", "author"})
# What neither names a work nor a place.
_COMMON_OBJECTS = frozenset({"occupation", "genre", "color", "religion", "sport"})


def read_popqa(path: Path, skip: Skip) -> Iterator[Row]:
    """Names of the table `popQA.tsv`; objects that are no names (a genre, a colour) are passed over.

    Raises:
        DataError: A column lacks.
    """
    for row in table(path, columns=("subj", "prop", "obj")):
        relation = row["prop"].strip().lower()
        if relation in PERSON_SUBJECTS:
            skip("a person")
        else:
            yield "work or place", row["subj"]
        if relation in PERSON_OBJECTS:
            skip("a person")
        elif relation in _COMMON_OBJECTS:
            skip("no name")
        else:
            yield "work or place", row["obj"]
