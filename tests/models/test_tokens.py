"""One function tokenises: ids, offsets, and exactly one role a token."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latentkt.errors import InputError
from latentkt.models import encode
from latentkt.models.tokens import COVERING
from tests.models.tiny import tiny_handle

TEXT = "The man did not win the prize. Answer:"


def test_plain_ids_are_the_tokenizers_default_and_chat_ids_add_nothing():
    handle = tiny_handle("llama", bos=True)
    plain = encode(handle, TEXT, chat=False)
    assert list(plain.ids) == handle.tokenizer(TEXT)["input_ids"]
    assert plain.ids[0] == handle.tokenizer.bos_token_id
    messages = [{"role": "user", "content": TEXT}]
    rendered = handle.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    chat = encode(handle, rendered, chat=True)
    assert list(chat.ids) == handle.tokenizer(rendered, add_special_tokens=False)["input_ids"]
    assert chat.ids[:2] != (1, 1)
    assert chat.ids[0] == 1
    own = handle.tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)
    assert list(chat.ids) == own["input_ids"]


def test_a_rendered_conversation_taken_for_plain_text_doubles_the_bos_and_is_refused():
    handle = tiny_handle("llama", bos=True)
    rendered = handle.tokenizer.apply_chat_template([{"role": "user", "content": "a"}], tokenize=False)
    with pytest.raises(InputError, match="twice"):
        encode(handle, rendered, chat=False)


def test_special_tokens_are_marked_by_id_wherever_they_stand():
    handle = tiny_handle("llama", bos=True)
    found = encode(handle, "a<|end|>b", chat=False)
    assert [t for t, special in zip(found.ids, found.is_special, strict=True) if special] == [1, 7]
    assert found.roles[0] == "template"  # the BOS that the tokenizer adds stands for no characters
    assert found.offsets[0] == (0, 0)


def test_a_token_belongs_to_the_span_that_it_overlaps():
    handle = tiny_handle()
    start = TEXT.index("did not")
    spans = {"constraint": [(start, start + 7)], "rest": [(0, len(TEXT))]}
    found = encode(handle, TEXT, chat=False, spans=spans)
    tokens = [handle.tokenizer.convert_ids_to_tokens(found.ids[p]) for p in found.positions("constraint")]
    assert tokens == [" did", " not"]  # the space before "did" comes with its token
    assert set(found.roles) == {"constraint", "rest"}


def test_a_token_between_two_spans_goes_to_the_one_with_more_of_it():
    found = encode(tiny_handle(), "a the b", chat=False, spans={"left": [(0, 2)], "right": [(2, 7)]})
    assert found.roles == ("left", "right", "right", "right")
    with pytest.raises(InputError, match=r"'left'.*no token"):
        encode(tiny_handle(), "the b", chat=False, spans={"left": [(0, 1)], "right": [(1, 5)]})


@given(st.text("the man did not ax:.\n", min_size=1, max_size=40), st.data())
def test_roles_cover_every_token_once(text, data):
    edges = sorted(data.draw(st.lists(st.integers(0, len(text)), min_size=2, max_size=6)))
    spans = {f"r{n}": [(a, b)] for n, (a, b) in enumerate(zip(edges[::2], edges[1::2], strict=False)) if a < b}
    spans["rest"] = [(0, len(text))]
    try:
        found = encode(tiny_handle(), text, chat=False, spans=spans)
    except InputError as error:
        assert "no token" in str(error)
        return
    covered = sorted(p for role in found.spans for p in found.positions(role))
    assert covered == list(range(len(found)))
    for role in found.spans:
        assert {found.roles[p] for p in found.positions(role)} == {role}
        for p in found.positions(role):
            a, b = found.offsets[p]
            assert role in COVERING or any(a < end and start < b for start, end in spans[role])


def test_offsets_are_code_points():
    text = "é né the"
    found = encode(tiny_handle(), text, chat=False, spans={"shortcut": [(5, 8)]})
    assert [text[a:b] for a, b in (found.offsets[p] for p in found.positions("shortcut"))] == [" the"]


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ({"a": [(3, 3)]}, "outside"),
        ({"a": [(0, 99)]}, "outside"),
        ({"a": [(0, 5)], "b": [(4, 8)]}, "overlap"),
    ],
)
def test_bad_spans_are_refused(spans, message):
    with pytest.raises(InputError, match=message):
        encode(tiny_handle(), TEXT, chat=False, spans=spans, name="item a1")


def test_too_long_and_empty_prompts_are_refused_by_name():
    with pytest.raises(InputError, match=r"item a1 is longer than the context(.|\n)*512(.|\n)*600"):
        encode(tiny_handle(), "x" * 600, chat=False, name="item a1")
    with pytest.raises(InputError, match="item a1 has no tokens"):
        encode(tiny_handle(), "", chat=False, name="item a1")
    assert len(encode(tiny_handle("bloom"), "x" * 600, chat=False)) == 600  # no bound there
