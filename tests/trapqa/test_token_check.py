"""What the report says of a tokenizer is what the tokenizer does."""

from __future__ import annotations

import math

from latentkt.models import handle_from_hf
from latentkt.trapqa import ItemSet, check_items, mark_item, render
from latentkt.trapqa.token_check import Share
from tests.models.tiny import tiny_handle, tiny_model, tiny_tokenizer


def _item(item_id, words, other_words, correct="zzz", shortcut="qq"):
    return mark_item(
        id=item_id,
        kind="scientist",
        family="f",
        text=f"a [[shortcut: cue]] and [[constraint: {words}]]. who?",
        control={"constraint": other_words},
        correct=correct,
        shortcut=shortcut,
    )


EQUAL = _item("equal", "xyz", "xyw")
LONGER = _item("longer", "xyz", "xyzw", correct="q", shortcut="zz")
SAME_IDS = _item("same-ids", "xyz", "xyw", correct="ann", shortcut="änn")
TOO_LONG = _item("too-long", "xyz" * 200, "xyw")


def test_pairs_of_equal_length_are_counted_and_the_others_named():
    handle = tiny_handle("llama")
    report = check_items(ItemSet((EQUAL, LONGER)), handle=handle).tokens
    assert report.equal_length == report.equal_spans == Share(1, 2)
    assert report.unequal == ("longer",)
    assert (report.correct_longer, report.shortcut_longer) == (Share(1, 2), Share(1, 2))
    assert (report.model, report.template, report.refused) == ("tiny/llama", "chat", ())
    prompts = [
        render(item, which=which, order=order, tokenizer=handle.tokenizer).text
        for item in (EQUAL, LONGER)
        for which in ("item", "control")
        for order in ("correct_first", "shortcut_first")
    ]
    assert report.longest == max(len(handle.tokenizer(text, add_special_tokens=False)["input_ids"]) for text in prompts)


def test_spans_may_differ_where_the_whole_does_not():
    balanced = mark_item(
        id="balanced",
        kind="scientist",
        family="f",
        text="a [[shortcut: cuex]] and [[constraint: xyz]]. who?",
        control={"shortcut": "cue", "constraint": "xyzw"},
        correct="zzz",
        shortcut="qq",
    )
    report = check_items(ItemSet((balanced,)), handle=tiny_handle("llama")).tokens
    assert (report.equal_length, report.equal_spans) == (Share(1, 1), Share(0, 1))


def test_items_that_the_tokenizer_does_not_take_are_listed():
    report = check_items(ItemSet((EQUAL, SAME_IDS, TOO_LONG)), handle=tiny_handle("llama"))
    reasons = dict(report.tokens.refused)
    assert list(reasons) == ["same-ids", "too-long"]
    assert "have the same tokens" in reasons["same-ids"]
    assert "longer than the context" in reasons["too-long"]
    assert report.tokens.equal_length == Share(1, 1)
    assert [notice.split(" is refused")[0] for notice in report.notices] == ["item 'same-ids'", "item 'too-long'"]


def test_nothing_is_said_of_lengths_where_every_item_is_refused():
    report = check_items(ItemSet((SAME_IDS,)), handle=tiny_handle("llama"))
    assert math.isnan(report.tokens.equal_length.value)
    assert len(report.notices) == 1


def test_unequal_pairs_are_a_notice():
    (notice,) = check_items(ItemSet((EQUAL, LONGER)), handle=tiny_handle("llama")).notices
    assert "1 of 2 (50 %) pairs only" in notice
    assert "longer" in notice


def test_a_model_without_a_chat_template_gets_plain_prompts():
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = None
    handle = handle_from_hf(tiny_model("gpt2"), tokenizer, name="tiny/plain")
    report = check_items(ItemSet((EQUAL, LONGER)), handle=handle).tokens
    assert (report.template, report.equal_length, report.refused) == ("plain", Share(1, 2), ())
