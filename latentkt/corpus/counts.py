"""Counts of keys, tasks and their co-occurrence: what a run leaves, saved and loaded without loss."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from latentkt.corpus.layout import Layout
from latentkt.corpus.patterns import Patterns, path_name
from latentkt.corpus.tally import Tally
from latentkt.errors import DataError, RunError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COUNTS_FILE", "MANIFEST", "Counts", "load_counts", "read_arrays", "write_arrays"]

MANIFEST, COUNTS_FILE = "manifest.json", "counts.npz"
SCHEMA = 2


@dataclass(frozen=True)
class Counts:
    """What was counted.

    Attributes:
        patterns: The keys, tasks, exclusions and pairs.
        layout: Where each cell lies; ``layout.scopes`` are the scopes counted.
        tally: The counts.
        manifest: How it came about: matching, fields, cluster rule, documents, words, bytes, skipped lines, shards.

    Example:
        >>> from latentkt.corpus import Patterns, count_texts
        >>> patterns = Patterns.from_dict({"keys": {"darwin": ["Darwin"]}, "tasks": {"evolution": ["evolution"]}})
        >>> counts = count_texts(["Darwin on evolution.", "Darwin."], patterns, windows=[5])
        >>> counts.occurrences("darwin"), counts.pair("darwin:evolution", "window:5")
        (2, 1)
    """

    patterns: Patterns
    layout: Layout
    tally: Tally
    manifest: Mapping[str, Any] = field(default_factory=dict)

    @property
    def scopes(self) -> tuple[str, ...]:
        """Names of the scopes counted."""
        return self.layout.scopes

    @property
    def default_scope(self) -> str:
        """The scope that priors use unless told otherwise: the smallest window, else the document."""
        return next((scope for scope in self.scopes if scope.startswith("window:")), "document")

    def occurrences(self, name: str, kind: str = "key") -> int:
        """Occurrences of a key (or, with kind ``task``, of a task)."""
        return self.tally.total(self.layout.occurrences(name, kind))

    def documents(self, name: str, kind: str = "key") -> int:
        """Documents that hold a key or task."""
        return self.tally.total(self.layout.documents(name, kind))

    def units(self, name: str, scope: str, kind: str = "key") -> int:
        """Units of a scope that hold a key or task."""
        return self.tally.total(self.layout.units(scope, name, kind))

    def pair(self, path: str, scope: str) -> int:
        """Units of a scope that hold the key and the task of ``KEY:TASK``."""
        return self.tally.total(self.layout.pair(scope, *self.patterns.check_path(path)))

    def key_pair(self, one: str, other: str, scope: str) -> int:
        """Units of a scope that hold both keys of a pair named in the patterns, in either order."""
        pair = (one, other) if (one, other) in self.layout.pairs else (other, one)
        return self.tally.total(self.layout.key_pair(scope, *pair))

    def to_dict(self) -> dict[str, Any]:
        """Plain integers: occurrences of keys and tasks, and the units of every pair by scope."""
        layout = self.layout
        singles = self.tally.dense(0, layout.n_names).tolist()
        table: dict[str, Any] = {
            "keys": dict(zip(layout.keys, singles, strict=False)),
            "tasks": dict(zip(layout.tasks, singles[len(layout.keys) :], strict=True)),
            "cooccurrence": {},
        }
        paths = [path_name(key, task) for key in layout.keys for task in layout.tasks]
        for scope in layout.scopes:
            offset = layout.scope_offset(scope)
            units = self.tally.dense(offset, offset + len(paths)).tolist()
            table["cooccurrence"][scope] = dict(zip(paths, units, strict=True))
        if layout.pairs:
            table["key_pairs"] = {
                scope: {f"{a}&{b}": self.key_pair(a, b, scope) for a, b in layout.pairs} for scope in layout.scopes
            }
        return table

    def to_frame(self) -> pd.DataFrame:
        """Long table: kind (key, task, path, pair), name, scope (empty for kinds key and task), unit, count."""
        import pandas as pd

        rows: list[tuple[str, str, str, str, int]] = []
        for kind, names in (("key", self.layout.keys), ("task", self.layout.tasks)):
            for name in names:
                rows.append((kind, name, "", "occurrences", self.occurrences(name, kind)))
                rows.append((kind, name, "", "documents", self.documents(name, kind)))
        for scope, cells in self.to_dict()["cooccurrence"].items():
            rows += [("path", path, scope, _unit(scope), count) for path, count in cells.items()]
            rows += [
                ("pair", f"{a}&{b}", scope, _unit(scope), self.key_pair(a, b, scope)) for a, b in self.layout.pairs
            ]
        return pd.DataFrame(rows, columns=["kind", "name", "scope", "unit", "count"])

    def save(self, folder: str | Path) -> None:
        """Write ``manifest.json`` and ``counts.npz`` (temporary names, then renamed; the manifest last).

        Raises:
            RunError: They cannot be written.
        """
        target = Path(folder)
        try:
            target.mkdir(parents=True, exist_ok=True)
            write_arrays(target / COUNTS_FILE, self.tally.arrays())
            entries = {"schema": SCHEMA, **self.manifest}.items()
            lines = [f" {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in entries]
            temporary = target / (MANIFEST + ".part")
            temporary.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
            temporary.replace(target / MANIFEST)
        except OSError as error:
            raise RunError(
                f"cannot write the counts to {target}", expected="room and permission", found=error
            ) from error


def _unit(scope: str) -> str:
    return {"document": "documents", "sentence": "sentences"}.get(scope, "key occurrences")


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write arrays as ``.npz`` with the same bytes for the same arrays, under a temporary name first.

    Tables are deflated; lists are narrow already, and deflating them can cost more than counting did.
    """
    temporary = path.with_name(path.name + ".part")
    with zipfile.ZipFile(temporary, "w", compresslevel=1) as archive:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, np.ascontiguousarray(array), allow_pickle=False)
            kind = zipfile.ZIP_DEFLATED if array.ndim > 1 else zipfile.ZIP_STORED
            archive.writestr(zipfile.ZipInfo(name + ".npy"), content.getbuffer(), kind)
    temporary.replace(path)


def read_arrays(path: Path) -> dict[str, Any]:
    """What `write_arrays` wrote.

    Raises:
        DataError: The file is missing or damaged.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise DataError(f"cannot read {path}", expected="arrays of latentkt", found=error) from error


def load_counts(folder: str | Path) -> Counts:
    """Load what a run of ``latentkt corpus count`` left.

    Raises:
        DataError: The folder holds no finished counts.
    """
    source = Path(folder)
    try:
        manifest = json.loads((source / MANIFEST).read_text(encoding="utf-8"))
        schema = manifest.pop("schema")
        if schema != SCHEMA:
            raise DataError(f"{source}: unknown schema of counts", expected=SCHEMA, found=schema)
        patterns = Patterns.from_dict(manifest["patterns"], where=str(source))
        layout = Layout.of(patterns, manifest["scopes"])
    except (OSError, ValueError, KeyError) as error:
        unfinished = (source / "plan.json").exists()
        raise DataError(
            f"no counts in {source}",
            expected=f"a folder with {MANIFEST} and {COUNTS_FILE}",
            found="an unfinished run" if unfinished else repr(error),
            fix="run the same `latentkt corpus count` again to finish it" if unfinished else None,
        ) from error
    return Counts(patterns, layout, Tally.from_arrays(read_arrays(source / COUNTS_FILE)), manifest)
