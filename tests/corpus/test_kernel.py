"""The kernels against plain `re`: which phrases, where, in which documents."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latentkt.corpus.documents import make_buffer
from latentkt.corpus.kernel import open_kernel
from latentkt.corpus.lexicon import build_lexicon
from latentkt.corpus.matching import Matching
from latentkt.corpus.patterns import Form
from latentkt.corpus.scan import scan
from tests.corpus import oracle, trouble

KERNELS = ["numpy", "numba"]
MATCHINGS = [
    Matching(),
    Matching(case="full", normalize="nfkc", punctuation="plain"),
    Matching(case="full"),
    Matching(case="sensitive", normalize="none"),
    Matching(case="casings", punctuation="plain"),
]


def _found(phrases, documents, matching, kernel):
    """Per phrase and document: the number of spans."""
    forms = [(index, Form(phrase)) for index, phrase in enumerate(phrases)]
    lexicon = build_lexicon(forms, matching, open_kernel(kernel))
    buffer = make_buffer(documents, matching, open_kernel(kernel))
    matches = scan(buffer, lexicon)
    table = [[0] * len(documents) for _ in phrases]
    for entry, document in zip(matches.entry.tolist(), matches.document.tolist(), strict=True):
        table[entry][document] += 1
    return table


def _expected(phrases, documents, matching):
    options = matching.to_dict()
    return [
        [len(oracle.literal_spans(phrase, text.replace("\0", "\1"), **options)) for text in documents]
        for phrase in phrases
    ]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("matching", MATCHINGS, ids=lambda matching: "-".join(matching.to_dict().values()))
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_equals_the_oracle(kernel, matching, data):
    documents = data.draw(st.lists(trouble.documents(), max_size=4))
    phrases = data.draw(st.lists(trouble.phrases(), min_size=1, max_size=12))
    pieces = [" ".join(text.split()[:3]).strip(" .,-'—…()\u2019\u200b") for text in documents]  # phrases that do occur
    phrases += [piece for piece in pieces if any(char.isalnum() for char in piece)]
    assert _found(phrases, documents, matching, kernel) == _expected(phrases, documents, matching)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("before", range(56, 67))
def test_white_space_over_the_edge_of_a_block(kernel, before):
    """A run of white space that fills blocks of 64 bytes still joins two words; one with a dot in it does not."""
    filler = "x" * (before - 3)
    texts = [f"{filler} new{' ' * n}york" for n in (1, 7, 8, 63, 64, 65, 128, 200)]
    texts += [text.replace("new ", "new.") for text in texts]
    found = _found(["new york"], texts, Matching(), kernel)
    assert found == [[1] * 8 + [0] * 8]
