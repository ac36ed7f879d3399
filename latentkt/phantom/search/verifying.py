"""Which concepts are in a corpus: made ones that are go, real ones are sorted by how often they are."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from latentkt.errors import DataError, InputError
from latentkt.phantom.concepts import Concept, Existence
from latentkt.phantom.search.found import Found, Searched, Searcher, rate_bounds
from latentkt.phantom.search.journal import Journal
from latentkt.phantom.words import concept_key
from latentkt.progress import progress

__all__ = ["Limits", "Removed", "Verification", "verify"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Where real concepts are common, and where rare.

    Attributes:
        common: At least so many matches.
        rare: At least one match, and at most so many.
        per_million: Whether the two are matches per million tokens instead.

    Raises:
        InputError: The limits overlap, or are no numbers above 0.

    Example:
        >>> [Limits().existence(matches, tokens=10**7) for matches in (0, 1, 15, 16, 500)]
        ['unattested', 'rare', 'rare', 'between', 'common']
        >>> Limits(common=50, rare=1.5, per_million=True).existence(500, tokens=10**7)
        'common'
    """

    common: float = 500
    rare: float = 15
    per_million: bool = False

    def __post_init__(self) -> None:
        if not (0 < self.rare < self.common < math.inf):
            raise InputError(
                "limits of common and rare", expected="0 < rare < common", found=f"{self.rare}, {self.common}"
            )

    def existence(self, matches: int, *, tokens: int | None) -> Existence:
        """What a real concept with so many matches is.

        Raises:
            InputError: The limits are per million tokens and the number of tokens is not known.
        """
        if matches == 0:
            return "unattested"
        if self.per_million and not tokens:
            raise InputError("limits per million tokens", expected="the number of tokens", fix="give it with --tokens")
        value = 1e6 * matches / (tokens or 1) if self.per_million else matches
        if value >= self.common:
            return "common"
        return "rare" if value <= self.rare else "between"


@dataclass(frozen=True, slots=True)
class Removed:
    """A made concept that does not count as one.

    Attributes:
        concept: It.
        reason: `in the corpus` or `a dictionary headword`.
        matches: In the corpus.
    """

    concept: Concept
    reason: str
    matches: int

    def to_dict(self) -> dict[str, Any]:
        """As a row."""
        return {"reason": self.reason, "matches": self.matches, **self.concept.to_dict()}


@dataclass(frozen=True, slots=True)
class Verification:
    """The outcome.

    Attributes:
        concepts: Made ones without a match (`phantom`), and all real ones with what they are; `search` says what was
            found.
        removed: Made ones with a match, or that are headwords of a dictionary.
        searched: What was searched.
        level: Confidence level of the bounds.
        upper_per_million: Highest rate per million tokens that no match allows; NaN where the tokens are not known.
        upper_documents: Highest share of documents, likewise.
        limits: Where real concepts are common, and rare.
        n_headwords: Headwords that made concepts were compared with.
    """

    concepts: tuple[Concept, ...]
    removed: tuple[Removed, ...]
    searched: Searched
    level: float
    upper_per_million: float
    upper_documents: float
    limits: Limits
    n_headwords: int

    def counts(self) -> dict[str, dict[str, int]]:
        """Category -> what its concepts are -> how many; removed ones by their reason."""
        table: dict[str, Counter[str]] = {}
        for concept in self.concepts:
            table.setdefault(concept.category, Counter())[concept.existence] += 1
        for removed in self.removed:
            table.setdefault(removed.concept.category, Counter())[removed.reason] += 1
        return {category: dict(counts) for category, counts in table.items()}

    def to_dict(self) -> dict[str, Any]:
        """All but the concepts, as plain data; null where a bound does not exist."""
        return {
            "searched": asdict(self.searched),
            "zero_matches_allow": {
                "per_million_tokens": None if math.isnan(self.upper_per_million) else self.upper_per_million,
                "share_of_documents": None if math.isnan(self.upper_documents) else self.upper_documents,
                "interval": f"one-sided Clopper-Pearson, {self.level:.0%}; tokens, or documents, as independent draws",
            },
            "limits": asdict(self.limits),
            "headwords": self.n_headwords,
            "categories": self.counts(),
        }


def verify(
    concepts: Sequence[Concept],
    searcher: Searcher,
    *,
    headwords: Iterable[str] = (),
    limits: Limits | None = None,
    level: float = 0.95,
    journal: str | Path | None = None,
    resume: bool = False,
    show_progress: bool | None = None,
) -> Verification:
    r"""Search a corpus for concepts.

    Args:
        concepts: Made and real ones.
        searcher: `ScanSearch`, or `IndexSearch`.
        headwords: Entries of dictionaries; a made concept that is one, but for case, hyphens and spaces, is removed.
        limits: Where real concepts are common, and rare.
        level: Confidence level of the bounds.
        journal: File that keeps what was done while the search lasts; it is removed at the end.
        resume: Go on with it.
        show_progress: Draw a bar; by default where standard error is a terminal.

    Raises:
        InputError: There are no concepts, limits per million without the number of tokens, or a bad level.
        DataError: The corpus holds no word: nothing would be found in it, and nothing would follow.
        RunError: The corpus or index cannot be read on; the journal keeps what was done.

    Example:
        >>> import tempfile
        >>> from latentkt.phantom.search import ScanSearch
        >>> made = Concept.make("cell wave", kind="term", category="c", parents=["cell wall"], method="recombined")
        >>> real = Concept.make("cell wall", kind="term", category="c")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "a.txt").write_text("The cell wall and the Cell\nWall.")
        ...     found = verify([made, real], ScanSearch([folder]))
        >>> [(concept.existence, concept.search["matches"]) for concept in found.concepts]
        [('phantom', 0), ('rare', 2)]
    """
    if not concepts:
        raise InputError("nothing to verify", expected="at least one concept")
    if not 0 < level < 1:  # before the search, not after it
        raise InputError("bad confidence level", expected="between 0 and 1", found=level)
    limits = limits or Limits()
    texts = _texts(concepts, words=searcher.counts_words)
    identity = {**searcher.identity(), "texts": hashlib.sha256("\n".join(texts).encode()).hexdigest()}
    kept = Journal(None if journal is None else Path(journal), identity, resume=resume)
    try:
        with progress(show=show_progress) as bar:
            stage = bar.stage("searching", total=searcher.ticks(list(texts)))
            found = searcher.search(list(texts), kept, stage.advance)
        if found.searched.tokens == 0:
            raise DataError(
                f"nothing was searched: {found.searched.corpus} holds no {found.searched.unit}",
                expected="a corpus with text, in which zero matches say something",
                found=dict(found.searched.details.get("skipped", {})) or "empty files",
            )
        outcome = _judged(concepts, texts, found, headwords, limits, level)
    except BaseException as error:
        kept.close(finished=isinstance(error, DataError) or not kept.done)  # nothing that one could go on with
        raise
    kept.close(finished=True)
    return outcome


def _made_words(concept: Concept) -> list[str]:
    """The words of a blended term that are no words of its parents."""
    if concept.method != "blended":
        return []
    known = {word for parent in concept.parents for word in parent.split()}
    return [word for word in concept.concept.split() if word not in known]


def _texts(concepts: Sequence[Concept], *, words: bool) -> dict[str, int]:
    """What is searched for -> its place: the concepts, then the made words that are not such already."""
    texts = {concept.concept: None for concept in concepts}
    if words:
        texts |= {word: None for concept in concepts for word in _made_words(concept)}
    return {text: place for place, text in enumerate(texts)}


def _judged(
    concepts: Sequence[Concept],
    texts: dict[str, int],
    found: Found,
    headwords: Iterable[str],
    limits: Limits,
    level: float,
) -> Verification:
    tokens, documents = found.searched.tokens, found.searched.documents
    known = {concept_key(word) for word in headwords}
    bounds = rate_bounds(found.matches, tokens, level)
    kept, removed = [], []
    for concept in concepts:
        place = texts[concept.concept]
        matches = int(found.matches[place])
        row = _row(concept, texts, found, float(bounds[place]))
        reason = _reason(concept, matches, known)
        if reason:
            removed.append(Removed(replace(concept, search=row), reason, matches))
        else:
            what = "phantom" if concept.made else limits.existence(matches, tokens=tokens)
            kept.append(replace(concept, existence=what, search=row))
    none = np.zeros(1, np.int64)
    return Verification(
        tuple(kept),
        tuple(removed),
        found.searched,
        level,
        float(rate_bounds(none, tokens, level)[0]),
        float(rate_bounds(none, documents, level)[0]) / 1e6,
        limits,
        len(known),
    )


def _reason(concept: Concept, matches: int, headwords: set[str]) -> str | None:
    if not concept.made:
        return None
    if matches:
        return "in the corpus"
    return "a dictionary headword" if concept_key(concept.concept) in headwords else None


def _row(concept: Concept, texts: dict[str, int], found: Found, bound: float) -> dict[str, Any]:
    place = texts[concept.concept]
    matches, tokens = int(found.matches[place]), found.searched.tokens
    row: dict[str, Any] = {
        "corpus": found.searched.corpus,
        "tokens": tokens,
        "matches": matches,
        "per_million": 1e6 * matches / tokens if tokens else None,
        "upper_per_million": None if math.isnan(bound) else bound,
    }
    if found.approximate[place]:
        row["approximate"] = True
    words = [word for word in _made_words(concept) if word in texts]
    if words:
        row["made_word_matches"] = max(int(found.matches[texts[word]]) for word in words)
    return row
