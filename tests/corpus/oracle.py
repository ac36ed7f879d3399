"""The slow definition of matching and counting, in plain `re` and Python, with nothing of the library in it."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache

CURLY = {"\u2018": "'", "\u2019": "'", "\u201a": "'", "\u201b": "'", "\u201c": '"', "\u201d": '"', "\u201e": '"',
         "\u201f": '"', **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-")}  # fmt: skip


@lru_cache(maxsize=4096)
def normalised(text, *, normalize="nfc", punctuation="keep", case="simple"):
    """The text that is searched, its case kept; foldings that are not all of one class are made here."""
    if normalize != "none":
        text = unicodedata.normalize(normalize.upper(), text)
    if punctuation == "plain":
        text = "".join(CURLY.get(char, char) for char in text)
    return "".join(early(char, case) for char in text)


@lru_cache(maxsize=100_000)
def early(char, case):
    """A character whose folding is of another class (word, space, other) is folded before anything is matched."""

    def kind(one):
        return bool(re.match(r"\w", one)), bool(re.match(r"\s", one))

    return char if all(kind(one) == kind(char) for one in folded(char, case)) else folded(char, case)


@lru_cache(maxsize=4096)
def folded(text, case):
    if case == "simple":
        return "".join(simple(char) for char in text)
    return text.casefold() if case == "full" else text


def simple(char):
    """Statuses C and S of Unicode's CaseFolding.txt."""
    if len(char.casefold()) == 1:
        return char.casefold()
    return char.lower() if len(char.lower()) == 1 else char


def expression(form):
    """The regular expression of one literal form."""
    return r"(?<!\w)" + r"\s+".join(re.escape(part) for part in form.split()) + r"(?!\w)"


def all_spans(pattern, text):
    """Every start at which the pattern matches, overlapping or not."""
    spans = []
    match = pattern.search(text)
    while match:
        spans.append(match.span())
        match = pattern.search(text, match.start() + 1)
    return spans


def literal_spans(form, text, *, case="simple", **options):
    """Spans of one form in one document (offsets into the normalised text); four exact casings for ``casings``."""
    variants = {form, form.upper(), form.title(), form.lower()} if case == "casings" else {form}
    text = normalised(text, case=case, **options)
    origin = [index for index, char in enumerate(text) for _ in folded(char, case)] + [len(text)]
    spans = set()
    for variant in variants:
        pattern = re.compile(expression(folded(normalised(variant, case=case, **options), case)))
        spans.update((origin[a], origin[b]) for a, b in all_spans(pattern, folded(text, case)))
    return spans


def regex_spans(form, text, *, case="simple", **options):
    """Spans of one regex form: it sees the normalised text, its case ignored by `re` unless case counts."""
    flags = re.IGNORECASE if case in {"simple", "full"} else 0
    pattern = re.compile(rf"(?<!\w)(?:{form})(?!\w)", flags)
    return set(all_spans(pattern, normalised(text, case=case, **options)))


def phrase_counts(phrases, documents, **matching):
    """Per phrase: occurrences and documents."""
    hits = [[len(literal_spans(phrase, document, **matching)) for document in documents] for phrase in phrases]
    return [(sum(row), sum(map(bool, row))) for row in hits]


def name_spans(forms, excluded, text, **matching):
    """Spans of a name: distinct spans of its forms that overlap no span of its exclusions."""

    def spans(some):
        found = set()
        for form in some:
            if isinstance(form, dict):
                found |= regex_spans(form["regex"], text, **matching)
            else:
                found |= literal_spans(form, text, **matching)
        return found

    out = spans(excluded)
    return sorted((a, b) for a, b in spans(forms) if not any(a < d and c < b for c, d in out))


def sentence_starts(text, abbreviations):
    """Starts of the sentences of a document, by the documented rules, one character at a time."""
    starts, at = [0], 0
    while at < len(text):
        step = _boundary(text, at, abbreviations)
        if step and step > starts[-1]:
            starts.append(step)
        at = max(at + 1, step or 0)
    return [start for start in starts if start < len(text)] or [0]


def _boundary(text, at, abbreviations):
    """Where the next sentence starts if one ends at `at`, else None."""
    blank = re.compile(r"\n[^\S\n]*\n\s*").match(text, at)
    if blank:
        return blank.end()
    end = re.compile(r"[.!?\u2026]+[\"'\u201d\u2019)\]]*(?=\s)|[\u3002\uff01\uff1f]+").match(text, at)
    if not end or (at and text[at - 1] in ".!?\u2026\u3002\uff01\uff1f"):
        return None
    after = re.compile(r"\s*").match(text, end.end()).end()
    if end.group() == ".":
        before = re.compile(r"\w*$").search(text[max(0, at - 40) : at]).group()
        if before.lower() in abbreviations or (len(before) == 1 and before.isalpha()):
            return None
    return None if after < len(text) and text[after].islower() else after


def counts(documents, patterns, *, windows=(), sentence=False, abbreviations=(), **matching):
    """Everything that `latentkt corpus count` stores, as a nested dict of plain integers."""
    names = {
        **{("key", k): f for k, f in patterns["keys"].items()},
        **{("task", t): f for t, f in patterns["tasks"].items()},
    }
    scopes = ["document", *(["sentence"] if sentence else []), *(f"window:{n}" for n in windows)]
    total = {
        "occurrences": Counter(), "documents": Counter(), "sentences": Counter(),
        "pairs": {s: Counter() for s in scopes}, "key_pairs": {s: Counter() for s in scopes},
    }  # fmt: skip
    for text in documents:
        plain = normalised(text, **matching)
        spans = {
            name: name_spans(forms, patterns.get("exclude", {}).get(name[1], ()), text, **matching)
            for name, forms in names.items()
        }
        words = [match.span() for match in re.finditer(r"\w+", plain)]
        starts = sentence_starts(plain, abbreviations) if sentence else []
        _add_document(total, spans, words, starts, patterns, windows, sentence)
    return total


def _sentences(spans, starts):
    return {max(i for i, start in enumerate(starts) if start <= a) for a, _ in spans}


def _word_range(span, words):
    a, b = span
    return sum(e <= a for _, e in words), sum(s < b for s, _ in words) - 1


def _near(key_span, task_spans, words, n):
    first, last = _word_range(key_span, words)
    return any(a >= first - n and b <= last + n for a, b in (_word_range(span, words) for span in task_spans))


def _add_document(total, spans, words, starts, patterns, windows, sentence):
    for name, found in spans.items():
        total["occurrences"][name] += len(found)
        total["documents"][name] += bool(found)
        if sentence:
            total["sentences"][name] += len(_sentences(found, starts))
    groups = [("pairs", [(k, t) for k in patterns["keys"] for t in patterns["tasks"]], "task"),
              ("key_pairs", [tuple(pair) for pair in patterns.get("pairs", ())], "key")]  # fmt: skip
    for group, pairs, kind in groups:
        for one, other in pairs:
            a, b = spans["key", one], spans[kind, other]
            total[group]["document"][one, other] += bool(a and b)
            if sentence:
                total[group]["sentence"][one, other] += len(_sentences(a, starts) & _sentences(b, starts))
            for n in windows:
                total[group][f"window:{n}"][one, other] += sum(_near(span, b, words, n) for span in a)
