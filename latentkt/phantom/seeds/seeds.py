"""What a set of seeds is, and how it is put together from what the adapters read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from latentkt.errors import DataError
from latentkt.phantom.concepts import Concept, Kind
from latentkt.phantom.words import normalised

__all__ = ["Row", "Seeds", "Skip", "collect"]

Row = tuple[str | None, str]
"""Category (None: the name of the file) and text."""
Skip = Callable[[str], None]

LONGEST = 200


@dataclass(frozen=True, slots=True)
class Seeds:
    """Concepts that exist.

    Attributes:
        by_category: Category -> texts, in the order in which they were read, each text once in the whole set.
        sources: The files.
        skipped: Reason -> how many rows were passed over for it.
        others: Texts of categories that were left out by `only`: they exist, so nothing made may equal them.
    """

    by_category: Mapping[str, tuple[str, ...]]
    sources: tuple[str, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)
    others: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return sum(map(len, self.by_category.values()))

    def only(self, categories: Iterable[str]) -> Seeds:
        """The seeds of some categories.

        Raises:
            DataError: There is no such category.
        """
        categories = list(dict.fromkeys(categories))
        unknown = [name for name in categories if name not in self.by_category]
        if unknown:
            raise DataError("no seeds of that category", expected=", ".join(self.by_category), found=unknown[0])
        left = {text for name, texts in self.by_category.items() if name not in categories for text in texts}
        chosen = {name: self.by_category[name] for name in categories}
        return Seeds(chosen, self.sources, self.skipped, self.others | left)

    def concepts(self, kind: Kind) -> list[Concept]:
        """The seeds as real concepts, to be sorted by their frequency in a corpus."""
        return [
            Concept.make(text, kind=kind, category=name) for name, texts in self.by_category.items() for text in texts
        ]


def collect(rows: Iterable[tuple[str, str]], skipped: Counter[str], sources: Iterable[str]) -> Seeds:
    """Put rows of category and text together: normalised, each text once (its first category counts).

    Raises:
        DataError: Nothing is left.
    """
    seen: set[str] = set()
    by_category: dict[str, list[str]] = {}
    for category, raw in rows:
        text = normalised(raw)
        reason = _unusable(text, seen)
        if reason:
            skipped[reason] += 1
            continue
        seen.add(text)
        by_category.setdefault(normalised(category), []).append(text)
    sources = tuple(sources)
    if not by_category:
        raise DataError(
            "no seeds", expected=f"at least one concept in {', '.join(sources)}", found=dict(skipped) or "empty files"
        )
    return Seeds({name: tuple(texts) for name, texts in by_category.items()}, sources, dict(skipped))


def _unusable(text: str, seen: set[str]) -> str | None:
    if not text:
        return "blank"
    if len(text) > LONGEST:
        return f"longer than {LONGEST} characters"
    if any(not (char.isprintable()) for char in text):
        return "control characters"
    if not any(char.isalnum() for char in text):
        return "no letter or digit"
    return "repeated" if text in seen else None
