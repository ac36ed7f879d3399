from __future__ import annotations

import pytest

from latentkt.errors import DataError, InputError
from latentkt.trapqa import mark_item
from latentkt.trapqa.authoring import read_marks

BASE = {"id": "x", "kind": "scientist", "family": "f", "correct": "Ada", "shortcut": "Bea"}
TEXT = "A [[shortcut: coder]], [[constraint: born]] in [[constraint: 1815]]. Who?"


def test_marks_become_spans():
    text, spans = read_marks("[[a: x]]y [[b:  z]] [[a:w]]")
    assert text == "xy  z w"
    assert {role: [text[s:e] for s, e in ranges] for role, ranges in spans.items()} == {"a": ["x", "w"], "b": [" z"]}


@pytest.mark.parametrize("marked", ["[[a: x", "x]]", "[[A: x]]", "[[a x]]", "[[a: [[b: x]] y]]"])
def test_broken_marks_are_refused(marked):
    with pytest.raises(InputError, match="marks that cannot be read"):
        read_marks(marked)


def test_a_control_is_given_whole_or_by_its_words():
    whole = mark_item(**BASE, text=TEXT, control=TEXT.replace("1815", "1816").replace("born", "dead"))
    words = mark_item(**BASE, text=TEXT, control={"constraint": ["dead", "1816"]})
    assert whole == words
    assert words.control.text == "A coder, dead in 1816. Who?"
    assert words.text == "A coder, born in 1815. Who?"


@pytest.mark.parametrize(
    ("control", "message"),
    [
        ({"constraint": "dead"}, "too few words for the role 'constraint'"),
        ({"constraint": ["dead", "1816", "x"]}, "does not mark"),
        ({"cue": "x"}, "does not mark"),
    ],
)
def test_words_that_do_not_fit_the_marks_are_refused(control, message):
    with pytest.raises(InputError, match=message):
        mark_item(**BASE, text=TEXT, control=control)


def test_a_marked_item_is_checked_like_one_of_a_file():
    with pytest.raises(DataError, match="mark_item, item 'x': polarity is wrong"):
        mark_item(**BASE, text=TEXT, control={"constraint": ["dead", "1816"]}, polarity="maybe")
    item = mark_item(**BASE, text=TEXT, control={"constraint": ["not", "1816"]}, control_kind="neutral", aspect="a")
    assert (item.control.kind, item.aspect, item.right("control")) == ("neutral", "a", None)
