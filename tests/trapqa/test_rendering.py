"""Prompts: parts and order, roles that cover every character, spans that move with the text."""

from __future__ import annotations

import itertools
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latentkt.errors import InputError
from latentkt.trapqa import mark_item, own_condition, read_prompt_template, render, render_probe
from latentkt.trapqa.rendering import Order
from latentkt.trapqa.templates import CONDITIONS

ORDERS = get_args(Order)


def texts(prompt, role):
    return [prompt.text[start:end] for start, end in prompt.spans.get(role, ())]


def covers(prompt) -> bool:
    """Whether every character of the prompt has exactly one role."""
    ranges = sorted(span for spans in prompt.spans.values() for span in spans)
    ends = [0, *(end for _, end in ranges)]
    return [start for start, _ in ranges] == ends[:-1] and ends[-1] == len(prompt.text)


def test_names_have_the_parts_of_the_paper_in_their_order(small):
    prompt = render(small.by_id("sci-negated"), template="plain")
    instruction, first, second, blank, head, question, cue = prompt.text.split("\n")
    assert "two options" in instruction
    assert (first, second, blank, head) == ("1. Arnold Sommerfeld", "2. Niels Bohr", "", "Question:")
    assert question == small.by_id("sci-negated").text
    assert cue == "Answer:"
    assert texts(prompt, "answer") == ["\nAnswer:"]
    assert texts(prompt, "constraint") == ["did not"]
    assert texts(prompt, "rest")[-1] == " receive the Nobel Prize in Physics. Who is this person?"
    assert (prompt.correct, prompt.shortcut, prompt.right) == ("Arnold Sommerfeld", "Niels Bohr", "correct")
    assert prompt.answer_prefix == " "


def test_profiles_come_first_then_the_task_then_the_question(small):
    item = small.by_id("sci-negated")
    prompt = render(item, condition="profiles", order="shortcut_first", template="plain")
    at = [
        prompt.text.index(part) for part in ("profiles", "Niels Bohr\nDanish", "Arnold Sommerfeld\nGerman", item.text)
    ]
    assert at == sorted(at)
    assert texts(prompt, "option_shortcut") == [f"Niels Bohr\n{item.shortcut.profile}"]
    assert texts(prompt, "option_correct") == [f"Arnold Sommerfeld\n{item.correct.profile}"]


def test_the_order_is_that_of_the_items_answers_in_the_control_too(small):
    for item, which in itertools.product(small, ("item", "control")):
        first = render(item, which=which, order="correct_first", template="plain")
        second = render(item, which=which, order="shortcut_first", template="plain")
        assert first.spans["option_correct"] < first.spans["option_shortcut"]
        assert second.spans["option_shortcut"] < second.spans["option_correct"]
        for prompt in (first, second):
            assert (prompt.correct, prompt.shortcut) == (item.correct.text, item.shortcut.text)
            assert texts(prompt, "option_correct") == [item.correct.text]
            assert texts(prompt, "option_shortcut") == [item.shortcut.text]
    assert render(small.by_id("act-flip"), which="control", template="plain").right == "shortcut"
    assert render(small.by_id("act-neutral"), which="control", template="plain").right is None


def test_an_actions_options_fill_its_slots_and_stand_nowhere_else(small):
    item = small.by_id("act-neutral")
    prompt = render(item, order="shortcut_first", template="plain")
    assert prompt.condition == own_condition(item) == "real_life"
    assert "Should I walk or drive?\nAnswer:" in prompt.text
    assert prompt.text.count("drive") == prompt.text.count("walk") == 1
    assert texts(prompt, "constraint") == ["car needs new tyres"]


def test_neutral_prompts_hold_the_options_and_no_description(small):
    person = render(small.by_id("sci-negated"), condition="neutral", template="plain")
    names = render(small.by_id("sci-negated"), condition="names", template="plain")
    assert person.text == names.text.replace(small.by_id("sci-negated").text, "Who is this person?")
    assert texts(person, "rest") == ["Who is this person?"]
    action = render(small.by_id("act-neutral"), condition="neutral", template="plain")
    assert "Which of the two: drive or walk?" in action.text
    assert "garage" not in action.text
    for prompt in (person, action):
        assert prompt.right is None
        assert not {"shortcut", "constraint"} & prompt.spans.keys()
    for item in small:
        prompts = [render(item, which=w, condition="neutral", template="plain") for w in ("item", "control")]
        assert prompts[0].text == prompts[1].text


def test_a_probe_question_is_asked_alone(small, make_tokenizer):
    item = small.by_id("sci-negated")
    plain = render_probe(item, "eliminative", template="plain")
    assert plain.text == "Did Niels Bohr receive the Nobel Prize in Physics?\nAnswer:"
    assert (plain.correct, plain.shortcut, plain.right) == ("Yes", "No", "correct")
    assert plain.spans == {"rest": ((0, 50),), "answer": ((50, 58),)}
    chat = render_probe(item, "compatibility", tokenizer=make_tokenizer("open"))
    assert chat.text == "<|user|>\nDid Arnold Sommerfeld receive the Nobel Prize in Physics?<|end|>\n<|assistant|>\n"
    assert (chat.correct, chat.shortcut, chat.condition, chat.order) == ("No", "Yes", "probe_compatibility", None)
    with pytest.raises(InputError, match="has no eliminative probe question"):
        render_probe(small.by_id("act-flip"), "eliminative", template="plain")
    with pytest.raises(InputError, match="role is wrong"):
        render_probe(item, "other", template="plain")


def test_every_condition_order_and_template_covers_the_prompt(small, tokenizer):
    for item in small:
        for condition, order, which in itertools.product(CONDITIONS[item.kind], ORDERS, ("item", "control")):
            for template in ("plain", "chat"):
                prompt = render(
                    item, condition=condition, order=order, which=which, template=template, tokenizer=tokenizer
                )
                assert covers(prompt)
                assert prompt.spans["answer"][-1][1] == len(prompt.text)


@pytest.mark.parametrize(
    ("item_id", "options", "message"),
    [
        ("sci-negated", {"condition": "real_life"}, "cannot be asked in the condition 'real_life'"),
        ("act-flip", {"condition": "names"}, "cannot be asked in the condition 'names'"),
        ("act-flip", {"condition": "profiles"}, "cannot be asked in the condition 'profiles'"),
        ("act-flip", {"which": "both"}, "which is wrong"),
        ("act-flip", {"order": "random"}, "order is wrong"),
        ("act-flip", {"template": "prose"}, "template is wrong"),
        ("act-flip", {"template": "chat"}, "a chat prompt needs the tokenizer"),
        ("act-flip", {"system": "Be brief."}, "a plain prompt has no system prompt"),
    ],
)
def test_what_does_not_fit_is_refused(item_id, options, message, small):
    with pytest.raises(InputError, match=message):
        render(small.by_id(item_id), **{"template": "plain", **options})


def test_profiles_are_refused_where_one_is_missing():
    item = mark_item(
        id="p",
        kind="scientist",
        family="f",
        text="[[shortcut: This]] [[constraint: is]]?",
        control={"constraint": "was"},
        correct={"text": "A", "profile": "first"},
        shortcut="B",
    )
    with pytest.raises(InputError, match="cannot be asked in the condition 'profiles'"):
        render(item, condition="profiles", template="plain")


def test_a_users_template_is_taken_exactly(small, tmp_path):
    path = tmp_path / "prompt.txt"
    path.write_bytes(b"Choices: {option_b} / {option_a}. {json}".replace(b" {json}", b"") + b"\n\nQ: {question}\nA:\n")
    words = read_prompt_template(path)
    item = small.by_id("sci-affirmed")
    prompt = render(item, template="plain", prompt_template=words)
    assert prompt.text == f"Choices: Ernest Rutherford / James Chadwick.\n\nQ: {item.text}\nA:"
    assert texts(prompt, "answer") == ["\nA:"]
    assert texts(prompt, "constraint") == ["did indeed"]
    assert covers(prompt)
    assert prompt.prompt_template == words


def test_a_users_template_may_end_with_the_question(small):
    prompt = render(small.by_id("act-flip"), template="plain", prompt_template="{question}")
    assert "answer" not in prompt.spans
    assert covers(prompt)


@pytest.mark.parametrize(
    ("item_id", "condition", "words", "message"),
    [
        ("sci-negated", "names", "1. {option_a} 2. {option_b}", "not one question"),
        ("sci-negated", "names", "{option_a} {option_b} {question} {question}", "not one question"),
        ("sci-negated", "names", "{option_a} {option_b} {question} {name}", "an unknown placeholder"),
        ("sci-negated", "names", "{question}", "no options, or one of two"),
        ("act-flip", "real_life", "{option_a} {question}", "no options, or one of two"),
        ("sci-negated", "names", "{profile_a} {profile_b} {question}", "profiles"),
        ("sci-negated", "profiles", "{option_a} {option_b} {question}", "no options, or one of two"),
        ("act-flip", "real_life", "{question} ", "ends with white space"),
    ],
)
def test_a_template_that_cannot_carry_the_item_is_refused(item_id, condition, words, message, small):
    with pytest.raises(InputError, match=message):
        render(small.by_id(item_id), condition=condition, template="plain", prompt_template=words)


def test_a_template_file_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="cannot read the prompt template"):
        read_prompt_template(tmp_path / "none.txt")


# Any text but brackets and braces, which are marks and slots; no line ends, which templates have of their own.
_PROSE = st.text(
    st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp"), exclude_characters="[]{}"), min_size=1, max_size=12
)
_WORDS = _PROSE.map(str.strip).filter(bool)


@st.composite
def questions(draw):
    """A question in parts: (text, role), where the role None is unmarked; slots are parts of actions."""
    kind = draw(st.sampled_from(["scientist", "action"]))
    roles = ["shortcut", "constraint", *draw(st.lists(st.sampled_from(["shortcut", "constraint", "cue"]), max_size=3))]
    parts = [(draw(_WORDS), role) for role in draw(st.permutations(roles))]
    for _ in range(draw(st.integers(0, 4))):
        parts.insert(draw(st.integers(0, len(parts))), (draw(_PROSE), None))
    if kind == "action":
        at = sorted(draw(st.lists(st.integers(0, len(parts)), min_size=2, max_size=2)))
        parts.insert(at[1], ("{option_b}", "slot"))
        parts.insert(at[0], ("{option_a}", "slot"))
    return kind, [("¶", None), *parts, ("¶", None)]


def _marked(parts):
    return "".join(text if role in (None, "slot") else f"[[{role}: {text}]]" for text, role in parts)


@settings(max_examples=60, deadline=None)
@given(question=questions(), answers=st.lists(_WORDS, min_size=2, max_size=2), data=st.data())
def test_spans_move_with_the_text(question, answers, data, make_tokenizer):
    kind, parts = question
    correct, shortcut = f"⟨{answers[0]}⟩ yes", f"⟨{answers[1]}⟩ no"
    changed = [(text + "†" if role == "constraint" else text, role) for text, role in parts]
    item = mark_item(
        id="any",
        kind=kind,
        family="f",
        text=_marked(parts),
        control=_marked(changed),
        correct={"text": correct, "profile": "first"},
        shortcut={"text": shortcut, "profile": "second"},
    )
    which = data.draw(st.sampled_from(["item", "control"]))
    order = data.draw(st.sampled_from(ORDERS))
    condition = data.draw(st.sampled_from([c for c in CONDITIONS[kind] if c != "neutral"]))
    tokenizer = make_tokenizer(data.draw(st.sampled_from(["default", "open", "no_system", "inline", "preamble"])))
    template = data.draw(st.sampled_from(["chat", "plain"]))
    prompt = render(item, which=which, order=order, condition=condition, template=template, tokenizer=tokenizer)

    # The oracle writes the question from its parts and looks where it stands in the prompt.
    shown = [correct, shortcut] if order == "correct_first" else [shortcut, correct]
    slots = {"{option_a}": shown[0], "{option_b}": shown[1]}
    written = [(slots.get(text, text), role) for text, role in (parts if which == "item" else changed)]
    whole = "".join(text for text, _ in written)
    assert prompt.text.count(whole) == 1
    at = prompt.text.index(whole)
    expected: dict[str, list[tuple[int, int]]] = {}
    for text, role in written:
        if role not in (None, "slot"):
            expected.setdefault(role, []).append((at, at + len(text)))
        at += len(text)
    for role in ("shortcut", "constraint", "cue"):
        assert list(prompt.spans.get(role, ())) == expected.get(role, [])
    assert covers(prompt)
    assert all(correct in text for text in texts(prompt, "option_correct"))
    assert all(shortcut in text for text in texts(prompt, "option_shortcut"))
    if template == "chat":
        assert prompt.text == tokenizer.apply_chat_template(
            list(prompt.messages), tokenize=False, add_generation_prompt=True
        )
