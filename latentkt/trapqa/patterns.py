"""The pattern files of item sets: one for each set, and several together.

What a pattern file may hold is the contract of `latentkt.corpus.patterns`, which counts with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from latentkt.corpus.patterns import Form, Patterns
from latentkt.errors import DataError

__all__ = ["union"]


def union(parts: Iterable[Patterns]) -> Patterns:
    """The patterns of several sets together, in the order of the sets.

    Raises:
        DataError: A name stands in two of them with unequal forms.

    Example:
        >>> one, two = (Patterns.from_dict({"keys": {name: [name]}}) for name in ("Bohr", "Curie"))
        >>> sorted(union([one, two]).keys)
        ['Bohr', 'Curie']
    """
    keys: dict[str, tuple[Form, ...]] = {}
    tasks: dict[str, tuple[Form, ...]] = {}
    exclude: dict[str, tuple[Form, ...]] = {}
    pairs: list[tuple[str, str]] = []
    for part in parts:
        for merged, added in ((keys, part.keys), (tasks, part.tasks), (exclude, part.exclude)):
            _add(merged, added)
        pairs += part.pairs
    return Patterns(keys, tasks, exclude, tuple(dict.fromkeys(pairs)))


def _add(merged: dict[str, tuple[Form, ...]], added: Mapping[str, tuple[Form, ...]]) -> None:
    for name, forms in added.items():
        if set(merged.setdefault(name, forms)) != set(forms):
            raise DataError(f"two pattern files disagree on {name!r}", expected=merged[name], found=forms)
