"""The cells that are counted: one number for each, whatever its kind, so that everything merges alike.

Cells are, in this order: occurrences of every name; documents of every name; then for each scope the units with a key
and a task, and the units with both keys of a named pair; for ``sentence`` also the sentences of every name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from latentkt.corpus.patterns import Patterns
from latentkt.errors import InputError

__all__ = ["Layout", "parse_scopes"]


def parse_scopes(*, windows: Sequence[int] = (), sentence: bool = False) -> tuple[str, ...]:
    """Names of the scopes of a run: ``document`` always, then ``sentence``, then the windows by size.

    Raises:
        InputError: A window is not a positive whole number.

    Example:
        >>> parse_scopes(windows=[50, 10], sentence=True)
        ('document', 'sentence', 'window:10', 'window:50')
    """
    for size in windows:
        if size != int(size) or size < 1:
            raise InputError("bad window", expected="a whole number of word tokens, at least 1", found=size)
    return ("document", *(["sentence"] if sentence else []), *(f"window:{size}" for size in sorted(set(windows))))


@dataclass(frozen=True, slots=True)
class Layout:
    """Where each cell lies.

    Attributes:
        keys: Names of the keys.
        tasks: Names of the tasks.
        pairs: Key pairs whose joint occurrence is counted.
        scopes: Names of the scopes.

    Example:
        >>> layout = Layout(("darwin", "euclid"), ("geometry",), (), ("document",))
        >>> layout.size, layout.pair("document", "euclid", "geometry")
        (8, 7)
    """

    keys: tuple[str, ...]
    tasks: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    scopes: tuple[str, ...]

    @classmethod
    def of(cls, patterns: Patterns, scopes: Sequence[str]) -> Layout:
        """The layout of a pattern set."""
        return cls(tuple(patterns.keys), tuple(patterns.tasks), patterns.pairs, tuple(scopes))

    @property
    def n_names(self) -> int:
        """Keys and tasks together; keys come first."""
        return len(self.keys) + len(self.tasks)

    @property
    def size(self) -> int:
        """Number of cells."""
        return self.scope_offset(None)

    def scope_offset(self, scope: str | None) -> int:
        """First cell of a scope; that behind the last scope for None."""
        at = 2 * self.n_names
        for name in self.scopes:
            if name == scope:
                return at
            at += len(self.keys) * len(self.tasks) + len(self.pairs) + (self.n_names if name == "sentence" else 0)
        if scope is not None:
            raise InputError(f"scope {scope!r} was not counted", expected=" | ".join(self.scopes), found=scope)
        return at

    def name(self, name: str, kind: str) -> int:
        """Index of a key or task among the names."""
        names = self.keys if kind == "key" else self.tasks
        if name not in names:
            raise InputError(f"unknown {kind} {name!r}", expected=", ".join(names[:10]), found=name)
        return names.index(name) + (0 if kind == "key" else len(self.keys))

    def occurrences(self, name: str, kind: str) -> int:
        """Cell of the occurrences of a name."""
        return self.name(name, kind)

    def documents(self, name: str, kind: str) -> int:
        """Cell of the documents of a name."""
        return self.n_names + self.name(name, kind)

    def units(self, scope: str, name: str, kind: str) -> int:
        """Cell of the units of a scope that hold a name: documents, sentences, or occurrences for windows."""
        if scope == "document":
            return self.documents(name, kind)
        offset = self.scope_offset(scope)
        if scope == "sentence":
            return offset + len(self.keys) * len(self.tasks) + len(self.pairs) + self.name(name, kind)
        return self.occurrences(name, kind)

    def pair(self, scope: str, key: str, task: str) -> int:
        """Cell of the units with a key and a task."""
        row, column = self.name(key, "key"), self.name(task, "task") - len(self.keys)
        return self.scope_offset(scope) + row * len(self.tasks) + column

    def key_pair(self, scope: str, one: str, other: str) -> int:
        """Cell of the units with both keys of a named pair, in the order of the pattern file."""
        if (one, other) not in self.pairs:
            raise InputError(
                f"the pair {one!r}, {other!r} was not counted", expected=self.pairs[:5], found=(one, other)
            )
        return self.scope_offset(scope) + len(self.keys) * len(self.tasks) + self.pairs.index((one, other))

    @staticmethod
    def window(scope: str) -> int | None:
        """Size of a window scope, None for the others."""
        match = re.fullmatch(r"window:(\d+)", scope)
        return int(match[1]) if match else None
