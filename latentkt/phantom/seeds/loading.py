"""Reading seed files: which adapter, which category."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from latentkt.errors import InputError
from latentkt.phantom.seeds.files import open_text
from latentkt.phantom.seeds.glossary import read_glossary
from latentkt.phantom.seeds.lists import read_json, read_jsonl, read_table, read_text
from latentkt.phantom.seeds.medical import read_medal, read_ncbi, read_umnsrs
from latentkt.phantom.seeds.popqa import read_popqa
from latentkt.phantom.seeds.seeds import Row, Seeds, Skip, collect
from latentkt.phantom.seeds.wikidata import read_wikidata

__all__ = ["FORMATS", "find_format", "load_seeds"]

FORMATS: dict[str, Callable[[Path, Skip], Iterator[Row]]] = {
    "text": read_text,
    "json": read_json,
    "jsonl": read_jsonl,
    "table": read_table,
    "wikidata": read_wikidata,
    "popqa": read_popqa,
    "ncbi": read_ncbi,
    "medal": read_medal,
    "umnsrs": read_umnsrs,
    "glossary": read_glossary,
}
_SUFFIXES = {".txt": "text", ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "table", ".tsv": "table"}


def load_seeds(paths: Sequence[str | Path], *, format: str = "auto", category: str | None = None) -> Seeds:
    r"""Read seeds.

    Args:
        paths: Files, plain or `.gz`. `NAME@FILE` puts all of a file into the category NAME.
        format: A name of `FORMATS` for all of them; `auto` finds it by suffix and content.
        category: One category for everything, instead of those that the files hold (else a file's name).

    Raises:
        InputError: A file is absent, or the format is unknown.
        DataError: A file is not of its format, or there is nothing in any.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "law.txt")
        ...     _ = path.write_text("statutory law\nfalse verdict\nstatutory law\n")
        ...     seeds = load_seeds([path])
        >>> seeds.by_category, seeds.skipped
        ({'law': ('statutory law', 'false verdict')}, {'repeated': 1})
    """
    if format != "auto" and format not in FORMATS:
        raise InputError("unknown format of seeds", expected=f"auto, {', '.join(FORMATS)}", found=repr(format))
    skipped: Counter[str] = Counter()

    def skip(reason: str) -> None:
        skipped[reason] += 1

    def rows() -> Iterator[tuple[str, str]]:
        for path in paths:
            given, file = _split(path)
            given = given or category
            chosen = find_format(file) if format == "auto" else format
            for own, text in FORMATS[chosen](file, skip):
                yield given or own or _stem(file), text

    return collect(rows(), skipped, [str(path) for path in paths])


def _split(path: str | Path) -> tuple[str | None, Path]:
    name, at, file = str(path).partition("@")
    return (name, Path(file)) if at and not Path(path).exists() else (None, Path(path))


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").split(".")[0] or path.name


def find_format(path: Path) -> str:
    """The format of a seed file, by its suffix and its first characters.

    Raises:
        InputError: It cannot be opened.
    """
    with open_text(path) as file:
        head = file.read(4096)
    names = {name.strip().lower() for name in head.partition("\n")[0].replace("\t", ",").split(",")}
    rules = (
        ("wikidata", '"bindings"' in head or '"itemLabel"' in head),
        ("glossary", '"categorymembers"' in head or "{{term" in head.lower() or "{{glossary" in head.lower()),
        ("popqa", {"subj", "prop", "obj"} <= names),
        ("medal", {"abstract_id", "label"} <= names),
        ("umnsrs", {"term1", "term2"} <= names or "Text 1:" in head),
        ("ncbi", "|t|" in head and "|a|" in head),
    )
    found = next((name for name, fits in rules if fits), None)
    return found or _SUFFIXES.get(Path(path.name.removesuffix(".gz")).suffix.lower(), "text")
