"""Long lists of phrases: both kernels, both ways of looking up, chunks, and proof of every yes."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latentkt.corpus import count_phrases
from latentkt.corpus.documents import make_buffer
from latentkt.corpus.kernel import open_kernel, plain, table
from latentkt.corpus.kernel.table import build_table
from latentkt.corpus.matching import Matching
from latentkt.errors import InputError, MissingExtraError, RunError
from tests.corpus import oracle, trouble

KERNELS = ["numpy", "numba"]


@pytest.mark.parametrize("direct", [True, False])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_counts_equal_the_oracle(direct, data):
    from latentkt.corpus.kernel import tallying

    texts = data.draw(st.lists(trouble.documents(), max_size=4))
    phrases = data.draw(st.lists(trouble.phrases(max_words=3), min_size=1, max_size=10))
    phrases = [phrase for phrase in phrases if oracle.re.match(r"\w(.*\w)?\Z", phrase, oracle.re.S)] or ["x"]
    limit = tallying._DIRECT
    tallying._DIRECT = limit if direct else 0
    try:
        for kernel in KERNELS:
            counts = count_phrases(phrases, texts=texts, kernel=kernel)
            expected = oracle.phrase_counts(phrases, texts)
            assert list(zip(counts.occurrences.tolist(), counts.documents.tolist(), strict=True)) == expected
    finally:
        tallying._DIRECT = limit


@pytest.mark.parametrize("separator", [" ", "\u3000", "-", "\u00e9 ", "\0"])
def test_kernels_agree_over_many_chunks(separator):
    """One long document (or many short ones) of 300 kB: phrases over the edges of chunks and blocks."""
    rng = random.Random(7)
    words = ["Ab", "cd", "\u00e9f", "ghijklmnopqrstuvwxyz", "\u65e5\u672c", "x1", "_y", "\u212aelvin"]
    text = "".join(rng.choice(words) + rng.choice([separator, " ", separator]) for _ in range(50_000))
    texts = text.split("\0")
    phrases = [" ".join(rng.choice(words) for _ in range(rng.randrange(1, 9))) for _ in range(400)]
    phrases += [phrase.replace(" ", "-") for phrase in phrases[:50]]
    results = []
    for kernel in KERNELS:
        module = open_kernel(kernel)
        buffer = make_buffer(texts, Matching(), module)
        table = build_table([Matching().prepare(phrase) for phrase in phrases], Matching(), module)
        results.append((module.find(buffer, table), module.PhraseCounter(table), buffer))
    for one, other in zip(results[0][0], results[1][0], strict=True):
        assert (one == other).all()
    for _, counter, buffer in results:
        counter.add(buffer)
        counter.add(buffer)
    assert (results[0][1].occurrences == results[1][1].occurrences).all() and results[0][1].occurrences.sum() > 1000
    assert (results[0][1].documents == results[1][1].documents).all()


@pytest.mark.parametrize("kernel", KERNELS)
def test_text_without_ascii_separators(kernel):
    text = "\u65e5\u672c\u3002" * 60_000 + "\u65e5\u672c"
    counts = count_phrases(["\u65e5\u672c", "\u672c\u65e5"], texts=[text, "\u65e5" * 200_000, ""], kernel=kernel)
    assert counts.occurrences.tolist() == [60_001, 0] and counts.documents.tolist() == [1, 0]


def test_tables_are_the_same_for_both_kernels():
    rng = random.Random(3)
    phrases = [" ".join(rng.choice(trouble.WORDS) for _ in range(rng.randrange(1, 8))) for _ in range(3000)]
    phrases = [Matching().prepare(phrase) for phrase in phrases]
    one, other = (build_table(phrases, Matching(), open_kernel(kernel)) for kernel in KERNELS)
    for a, b in zip(one[1:], other[1:], strict=True):
        assert np.array_equal(a, b)


def test_every_yes_is_checked_against_the_text(monkeypatch):
    for module in (plain, table):
        monkeypatch.setattr(module, "finish", lambda value: np.full(len(value), 5, np.uint64))
    with pytest.raises(RunError, match="matched other text"):
        count_phrases(["ab cd"], texts=["xy cd"], kernel="numpy")


def test_two_phrases_with_one_hash_are_refused(monkeypatch):
    same = lambda words, last, length: np.full(len(last), 5, np.uint64)  # noqa: E731
    monkeypatch.setattr("latentkt.corpus.kernel.table.phrase_keys", same)
    with pytest.raises(InputError, match="share a hash"):
        count_phrases(["ab cd", "ef gh"], texts=[], kernel="numpy")


def test_casings_sum_over_the_distinct_casings():
    text = "iPhone case, IPHONE CASE, Iphone Case, iphone case, IPhone case"
    counts = count_phrases(["iPhone case"], texts=[text], matching=Matching(case="casings"))
    assert counts.occurrences.tolist() == [4]
    assert count_phrases(["iPhone case"], texts=[text]).occurrences.tolist() == [5]


def test_bounds_and_refusals(monkeypatch):
    counts = count_phrases(["nowhere"], texts=["x"] * 300)
    assert counts.upper_bound() == pytest.approx(3 / 300, rel=0.01) and not counts.exists[0]
    for phrase in ("", "...", "C++", "a b c d e f g h i"):
        with pytest.raises(InputError, match="cannot be counted in a list"):
            count_phrases([phrase], texts=[])
    with pytest.raises(InputError, match="paths or texts"):
        count_phrases(["x"])
    with pytest.raises(InputError, match="unknown kernel"):
        open_kernel("fortran")
    monkeypatch.setattr("latentkt.corpus.kernel.find_spec", lambda name: None)
    assert open_kernel("auto") is plain
    with pytest.raises(MissingExtraError, match=r"latentkt\[fast\]"):
        open_kernel("numba")


@pytest.mark.parametrize("kernel", KERNELS)
def test_forms_without_words_do_not_hide_gaps(kernel):
    table = build_table(["a-b", "..."], Matching(), open_kernel(kernel))
    assert table.gaps and table.slot_of.tolist() == [0, -1]


@pytest.mark.parametrize("kernel", KERNELS)
def test_white_space_over_whole_blocks(kernel):
    texts = ["x" * offset + " a" + " " * length + "b" for offset in range(66) for length in (63, 64, 127, 128, 200)]
    assert count_phrases(["a b"], texts=texts, kernel=kernel).occurrences.tolist() == [len(texts)]
