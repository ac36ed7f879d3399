"""Counts of names, pairs and units in every scope against the plain-`re` oracle."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from latentkt.corpus import count_texts
from latentkt.corpus.matching import Matching
from latentkt.corpus.sentences import ABBREVIATIONS, sentence_starts
from tests.corpus import oracle, trouble

REGEXES = [r"dar\w+", r"[cC]af.", r"o.clock", r"s\w*l", r"(a|the)\s+\w+", r"\d{4}", "x-?ray"]


@st.composite
def pattern_sets(draw):
    """Keys, tasks, exclusions and pairs, with shared, nested and doubled forms."""
    form = st.one_of(trouble.phrases(max_words=2), trouble.phrases(max_words=3), trouble.word)
    form = form.filter(lambda text: any(char.isalnum() or char == "_" for char in text))
    forms = st.lists(
        st.one_of(form, form, st.sampled_from(REGEXES).map(lambda r: {"regex": r})), min_size=1, max_size=4
    )
    keys = {f"k{i}": draw(forms) for i in range(draw(st.integers(1, 3)))}
    tasks = {f"t{i}": draw(forms) for i in range(draw(st.integers(0, 3)))}
    exclude = {name: draw(forms) for name in [*keys, *tasks] if draw(st.integers(0, 3)) == 0}
    pairs = [["k0", "k1"]] if "k1" in keys else []
    return {"keys": keys, "tasks": tasks, "exclude": exclude, "pairs": pairs}


def flat(counts):
    """Library counts in the shape of the oracle's."""
    layout = counts.layout
    names = [("key", k) for k in layout.keys] + [("task", t) for t in layout.tasks]
    return {
        "occurrences": {name: counts.occurrences(name[1], name[0]) for name in names},
        "documents": {name: counts.documents(name[1], name[0]) for name in names},
        "sentences": {name: counts.units(name[1], "sentence", name[0]) for name in names},
        "pairs": {
            s: {(k, t): counts.pair(f"{k}:{t}", s) for k in layout.keys for t in layout.tasks} for s in counts.scopes
        },
        "key_pairs": {s: {(a, b): counts.key_pair(a, b, s) for a, b in layout.pairs} for s in counts.scopes},
    }


@pytest.mark.parametrize("kernel", ["numpy", "numba"])
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_every_cell_equals_the_oracle(kernel, data):
    documents = data.draw(st.lists(trouble.documents(max_words=25), min_size=1, max_size=4))
    patterns = data.draw(pattern_sets())
    options = data.draw(
        st.sampled_from([{}, {"case": "full", "punctuation": "plain"}, {"case": "sensitive"}, {"case": "casings"}])
    )
    counts = count_texts(
        documents, patterns, windows=[1, 3], sentence=True, matching=Matching(**options), kernel=kernel
    )
    expected = oracle.counts(documents, patterns, windows=[1, 3], sentence=True, abbreviations=ABBREVIATIONS, **options)
    assert flat(counts) == expected


@settings(max_examples=300, deadline=None)
@given(
    text=st.lists(
        st.sampled_from([*["Aab.", "..", "?!", "\n\n\n", "”", "。", "Mr.", "Dr", "A.", "etc.", "x́", "…"], " ", "\n"]),
        max_size=30,
    )
)
def test_sentences_equal_the_oracle(text):
    joined = "".join(text)
    assert sentence_starts(joined) == oracle.sentence_starts(joined, ABBREVIATIONS)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Mr. Darwin met A. Gray. They spoke.", 2),
        ('He said "No!" Then he left.', 2),
        ("One\n\ntwo", 2),
        ("It cost 3.5 pounds. e.g. nothing", 1),
        ("\u5b57\u3002\u5b57", 2),
        ("", 1),
    ],
)
def test_sentences_by_hand(text, sentences):
    assert len(sentence_starts(text)) == sentences


@pytest.mark.parametrize("kernel", ["numpy", "numba"])
def test_a_task_lies_wholly_within_the_window(kernel):
    patterns = {"keys": {"k": ["key"]}, "tasks": {"t": ["one two"], "u": ["three"]}}
    texts = ["one two x key", "key x one two", "key one two", "three key", "key", "three"]
    counts = count_texts(texts, patterns, windows=[1, 2, 3], kernel=kernel)
    assert [counts.pair("k:t", f"window:{n}") for n in (1, 2, 3)] == [0, 1, 3]
    assert counts.pair("k:u", "window:1") == 1  # never across documents
