"""The bank of cleaned associations: lemmas of cue and response, with how many of the people asked gave it.

Cleaning goes as the paper lists it: small letters, lemmas, obvious duplicates together, generic and noisy answers out,
words beyond the frequency limits out. Every removal is logged by cue and response.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field
from pathlib import Path
from typing import Any

from latentkt.errors import DataError, InputError
from latentkt.results import atomic_write, read_json_lines
from latentkt.trapqa.build.everyday import builtin_words as builtin
from latentkt.trapqa.build.everyday.strengths import Strength
from latentkt.trapqa.build.everyday.words import WordTools
from latentkt.trapqa.build.log import StageLog

__all__ = ["Association", "Bank", "Cleaning", "clean"]

STAGE = "associations"
MARK = "latentkt associations 1"


@dataclass(frozen=True, slots=True)
class Association:
    """One cleaned association.

    Attributes:
        cue: Lemma of the cue.
        response: Lemma of the response.
        count: People who gave the response (or another form of it) to the cue (or another form of it).
        n: People who were asked with any form of the cue in the file, whether or not it brought this response; so the
            strengths of one cue never add up to more than 1.
        cue_forms: Forms of the cue in the file.
        response_forms: Forms of the response in the file.
        cue_kind: Coarse kind of the cue, or None.
        response_kind: Coarse kind of the response, or None.
        cue_zipf: Zipf frequency of the cue, or None.
        response_zipf: Zipf frequency of the response, or None.
    """

    cue: str
    response: str
    count: int
    n: int
    cue_forms: tuple[str, ...] = ()
    response_forms: tuple[str, ...] = ()
    cue_kind: str | None = None
    response_kind: str | None = None
    cue_zipf: float | None = None
    response_zipf: float | None = None

    @property
    def strength(self) -> float:
        """Share of the people asked who gave the response."""
        return self.count / self.n


@dataclass(frozen=True, slots=True)
class Cleaning:
    """The limits of cleaning.

    Attributes:
        high_zipf: Words that are more frequent than this say nothing (the paper's 6.5).
        low_zipf: Words that are rarer than this are noise (the paper's 1.0).
        min_count: Answers given by fewer people than this are noise.
    """

    high_zipf: float = 6.5
    low_zipf: float = 1.0
    min_count: int = 2

    def __post_init__(self) -> None:
        if not self.low_zipf < self.high_zipf or self.min_count < 1:
            raise InputError(
                "bad limits of cleaning", expected="low Zipf below high Zipf, at least 1 person", found=astuple(self)
            )


@dataclass
class Bank:
    """Cleaned associations, looked up by cue and response.

    Attributes:
        associations: The associations, by cue and falling strength.
        about: What the bank was made of: file, hash, word tools, limits.
    """

    associations: tuple[Association, ...]
    about: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._by_pair = {(each.cue, each.response): each for each in self.associations}
        self._lemmas: dict[str, str] = {}
        self._forms: dict[str, set[str]] = {}
        for each in self.associations:
            for lemma, forms in ((each.cue, each.cue_forms), (each.response, each.response_forms)):
                self._forms.setdefault(lemma, {lemma}).update(forms)
                self._lemmas.update({form: lemma for form in forms})
        self._known = frozenset(self._forms)

    def __len__(self) -> int:
        return len(self.associations)

    def lemma(self, word: str) -> str:
        """The lemma that the bank gave to a form, else what the built-in endings make of it."""
        plain = small(word)
        return self._lemmas.get(plain) or builtin.lemma(plain, self._known)

    def forms(self, lemma: str) -> tuple[str, ...]:
        """The forms that the bank has of a lemma."""
        return tuple(sorted(self._forms.get(lemma, {lemma})))

    def find(self, cue: str, response: str) -> Association | None:
        """The association of two words in any of their forms, or None."""
        return self._by_pair.get((self.lemma(cue), self.lemma(response)))

    def pull(self, cues: Iterable[str], response: str) -> float:
        """The strongest association of any of the words with the response; 0 where there is none."""
        found = (self.find(cue, response) for cue in cues)
        return max((each.strength for each in found if each is not None), default=0.0)

    def save(self, path: str | Path, extra: Mapping[tuple[str, str], Mapping[str, Any]] | None = None) -> None:
        """Write the bank as JSON lines: what it was made of, then one association a line.

        Args:
            path: The file.
            extra: (cue, response) -> more fields of that line.
        """
        lines = [json.dumps({"format": MARK, **self.about}, ensure_ascii=False)]
        for each in self.associations:
            row = {"cue": each.cue, "response": each.response, "strength": round(each.strength, 5)}
            row |= {name: value for name, value in asdict(each).items() if value not in (None, ())}
            row |= dict((extra or {}).get((each.cue, each.response), {}))
            lines.append(json.dumps(row, ensure_ascii=False))
        with atomic_write(path) as file:
            file.write(("\n".join(lines) + "\n").encode())

    @classmethod
    def load(cls, path: str | Path) -> tuple[Bank, dict[tuple[str, str], dict[str, Any]]]:
        """Read what `save` wrote: the bank, and the further fields of its lines.

        Raises:
            InputError: There is no such file.
            DataError: The file is no such bank.
        """
        lines = list(read_json_lines(path, lambda row, where: (where, row)))
        if not lines or lines[0][1].get("format") != MARK:
            raise DataError(
                f"{path}: no bank of associations", expected=f"a file of `latentkt trapqa associations` ({MARK})"
            )
        about = {name: value for name, value in lines[0][1].items() if name != "format"}
        associations, extra = [], {}
        names = set(Association.__slots__)
        for where, row in lines[1:]:
            try:
                fields: dict[str, Any] = {
                    n: tuple(v) if isinstance(v, list) else v for n, v in row.items() if n in names
                }
                association = Association(**fields)
            except TypeError as error:
                raise DataError(f"{where}: not an association", found=error) from error
            associations.append(association)
            rest = {n: v for n, v in row.items() if n not in names and n != "strength"}
            if rest:
                extra[association.cue, association.response] = rest
        return cls(tuple(associations), about), extra


def clean(rows: Sequence[Strength], tools: WordTools, log: StageLog, limits: Cleaning | None = None) -> Bank:
    """Clean rows into a bank.

    Args:
        rows: The rows of a strength file.
        tools: What is known of words.
        log: Where removals go, by `cue -> response`.
        limits: The limits.

    Raises:
        DataError: Nothing is left.
    """
    limits = limits or Cleaning()
    asked: dict[str, dict[str, int]] = {}
    for row in rows:
        written = small(row.cue)
        asked.setdefault(tools.lemma(written), {})[written] = row.n
    merged = _merge(rows, tools, log)
    kept = []
    for (cue, response), group in merged.items():
        rule = _noise(cue, response, sum(row.count for row in group), tools, limits)
        if rule:
            log.remove(STAGE, f"{cue} -> {response}", rule)
        else:
            kept.append(_association(cue, response, group, tools, n=sum(asked[cue].values())))
    log.count(STAGE, kept=len(kept))
    if not kept:
        raise DataError("no association is left after cleaning", expected="at least one", fix="see the log for why")
    return Bank(tuple(sorted(kept, key=lambda each: (each.cue, -each.strength, each.response))))


def small(text: str) -> str:
    """A word in small letters with single spaces and plain apostrophes."""
    return " ".join(text.lower().replace("’", "'").split())


def _merge(rows: Sequence[Strength], tools: WordTools, log: StageLog) -> dict[tuple[str, str], list[Strength]]:
    """Rows by lemmas; a row that stands twice in the same form is kept once."""
    merged: dict[tuple[str, str], list[Strength]] = {}
    seen: set[tuple[str, str]] = set()
    for row in rows:
        written = small(row.cue), small(row.response)
        if written in seen:
            log.remove(STAGE, f"{written[0]} -> {written[1]}", "row stands twice")
            continue
        seen.add(written)
        plain = Strength(*written, row.count, row.n)
        key = tools.lemma(plain.cue), tools.lemma(plain.response)
        if key in merged:
            log.remove(STAGE, f"{plain.cue} -> {plain.response}", "merged with another form", f"{key[0]} -> {key[1]}")
        merged.setdefault(key, []).append(plain)
    return merged


def _noise(cue: str, response: str, count: int, tools: WordTools, limits: Cleaning) -> str:
    """The rule that an association breaks, or nothing."""
    if cue == response:
        return "response is the cue"
    for name, word in (("cue", cue), ("response", response)):
        bare = word.replace(" ", "").replace("-", "").replace("'", "")
        if not bare.isalpha() or len(bare) < 2:
            return f"{name} is no word"
    if tools.empty(response):
        return "generic response"
    if tools.empty(cue):
        return "generic cue"
    if count < limits.min_count:
        return "too few people"
    return _frequency(cue, response, tools, limits)


def _frequency(cue: str, response: str, tools: WordTools, limits: Cleaning) -> str:
    for name, word in (("cue", cue), ("response", response)):
        zipf = tools.zipf(word)
        if zipf is not None and zipf > limits.high_zipf:
            return f"{name} too frequent"
        if zipf is not None and zipf < limits.low_zipf:
            return f"{name} too rare"
    return ""


def _association(cue: str, response: str, group: Sequence[Strength], tools: WordTools, *, n: int) -> Association:
    return Association(
        cue=cue,
        response=response,
        count=sum(row.count for row in group),
        n=n,
        cue_forms=tuple(sorted({row.cue for row in group})),
        response_forms=tuple(sorted({row.response for row in group})),
        cue_kind=tools.kind(cue),
        response_kind=tools.kind(response),
        cue_zipf=tools.zipf(cue),
        response_zipf=tools.zipf(response),
    )
