"""Tokens of a pair: spans by role, the rest one to one, nothing silently shifted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latentkt.errors import InputError
from latentkt.models import align, encode
from tests.models.tiny import tiny_handle


def prompt(before, span, after, role="constraint"):
    text = before + span + after
    return encode(tiny_handle(), text, chat=False, spans={role: [(len(before), len(before) + len(span))]})


def test_equal_spans_map_one_to_one():
    base, source = prompt("he", " did not", " win: x"), prompt("he", " not did", " win: x")
    found = align(base, source)
    assert found.base_to_source.tolist() == list(range(len(base)))
    assert not found.shifted
    assert (found.shift, found.unmapped, found.unequal_roles) == (0, 0, ())
    assert found.first_difference == 1


def test_unequal_spans_map_by_their_last_token_only():
    base, source = prompt("he", " did not", " win: x"), prompt("he", " not", " win: x")
    found = align(base, source)
    assert found.base_to_source.tolist() == [0, -1, 1, 2, 3, 4, 5, 6, 7, 8][: len(base)]
    assert found.shifted
    assert found.shift == -1
    assert found.unequal_roles == ("constraint",)
    assert found.unmapped == 1
    assert found.first_difference == 1


def test_a_longer_span_at_the_end_shifts_nothing():
    base, source = prompt("he win", " not", ""), prompt("he win", " did not", "")
    found = align(base, source)
    assert found.base_to_source[-1] == len(source) - 1
    assert found.shifted  # the last token itself stands one later
    assert found.shift == 1


def test_identical_prompts_differ_nowhere():
    base = prompt("he", " did not", " win")
    found = align(base, base)
    assert found.first_difference == len(base)
    assert not found.shifted


def test_text_outside_spans_of_another_length_maps_its_equal_head_and_tail():
    base, source = prompt("xaby", " not", " z"), prompt("xaaby", " not", " z")
    found = align(base, source)
    assert found.base_to_source.tolist() == [0, 1, 3, 4, 5, 6, 7]
    assert found.unmapped == 0
    base, source = prompt("xqy", " not", " z"), prompt("xaby", " not", " z")
    assert align(base, source).base_to_source.tolist() == [0, -1, 3, 4, 5, 6]


def test_spans_map_by_role_where_their_order_differs():
    def two(first, second):
        text = "x the: y not: z"
        a, b = text.index(" the"), text.index(" not")
        return encode(tiny_handle(), text, chat=False, spans={first: [(a, a + 4)], second: [(b, b + 4)]})

    base, source = two("shortcut", "constraint"), two("constraint", "shortcut")
    found = align(base, source)
    assert found.base_to_source[base.positions("shortcut")[0]] == source.positions("shortcut")[0]
    assert found.shifted


def test_a_role_on_one_side_only_is_refused():
    with pytest.raises(InputError, match="'constraint' of item a1"):
        align(prompt("he", " not", " x"), prompt("he", " not", " x", role="shortcut"), name="item a1")


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 5), st.integers(0, 5))
def test_a_mapped_token_outside_spans_is_the_same_token_and_the_map_is_injective(n, m, before, after):
    base, source = prompt("q" * before, "a" * n, "z" * after), prompt("q" * before, "a" * m, "z" * after)
    found = align(base, source)
    mapped = np.flatnonzero(found.base_to_source >= 0)
    targets = found.base_to_source[mapped]
    assert len(set(targets.tolist())) == len(targets)
    for p, q in zip(mapped, targets, strict=True):
        assert base.roles[p] == source.roles[q]
        assert base.ids[p] == source.ids[q]
    assert found.unmapped == (0 if n == m else n - 1)
    assert found.shifted == (n != m)
