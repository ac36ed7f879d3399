"""Chat prompts are what the tokenizer's template writes; the system prompt is kept, replaced or removed."""

from __future__ import annotations

import pytest

from latentkt.errors import InputError
from latentkt.trapqa import render
from latentkt.trapqa.chat import default_system


def _system(prompt):
    return [prompt.text[start:end] for start, end in prompt.spans.get("system", ())]


@pytest.fixture
def item(small):
    return small.by_id("act-flip")


def test_a_default_system_prompt_is_kept_and_recorded(item, make_tokenizer):
    tokenizer = make_tokenizer("default")
    prompt = render(item, tokenizer=tokenizer)
    assert default_system(tokenizer) == prompt.system == "You help."
    assert _system(prompt) == ["You help."]
    assert [message["role"] for message in prompt.messages] == ["user"]


@pytest.mark.parametrize("name", ["open", "no_system", "inline", "preamble"])
def test_no_system_prompt_is_recorded_where_none_is_written(name, item, make_tokenizer):
    prompt = render(item, tokenizer=make_tokenizer(name))
    assert default_system(make_tokenizer(name)) is None
    assert prompt.system is None
    assert _system(prompt) == []


@pytest.mark.parametrize("name", ["default", "open", "inline", "preamble"])
def test_a_system_prompt_replaces_the_default(name, item, make_tokenizer):
    prompt = render(item, tokenizer=make_tokenizer(name), system="Be brief.")
    assert prompt.system == "Be brief."
    assert _system(prompt) == ["Be brief."]
    assert "You help." not in prompt.text
    assert prompt.messages[0] == {"role": "system", "content": "Be brief."}


def test_a_system_prompt_that_the_message_repeats_is_still_found(item, make_tokenizer):
    prompt = render(item, tokenizer=make_tokenizer("default"), system="Two options")
    assert prompt.spans["system"][0][1] < prompt.text.index("Two options are named")


@pytest.mark.parametrize("name", ["default", "open", "no_system", "inline", "preamble"])
def test_none_removes_the_system_prompt(name, item, make_tokenizer):
    prompt = render(item, tokenizer=make_tokenizer(name), system="none")
    assert prompt.system is None
    assert "You help." not in prompt.text
    assert "none" not in prompt.text


def test_a_template_without_system_prompts_refuses_one(item, make_tokenizer):
    with pytest.raises(InputError, match="the chat template refuses the messages: no system role"):
        render(item, tokenizer=make_tokenizer("no_system"), system="Be brief.")


def test_a_template_that_drops_the_system_prompt_is_refused(item, make_tokenizer):
    dropping = "{% for m in messages if m['role'] == 'user' %}<u>{{ m['content'] }}</u>{% endfor %}<a>"
    assert render(item, tokenizer=make_tokenizer(dropping)).text.endswith("</u><a>")
    with pytest.raises(InputError, match="does not write the system prompt once"):
        render(item, tokenizer=make_tokenizer(dropping), system="Be brief.")


def test_a_default_that_an_empty_prompt_does_not_remove_is_refused(item, make_tokenizer):
    stubborn = (
        "{% if messages[0]['role'] == 'system' and messages[0]['content'] %}<s>{{ messages[0]['content'] }}</s>"
        "{% else %}<s>You help.</s>{% endif %}"
        "{% for m in messages if m['role'] == 'user' %}<u>{{ m['content'] }}</u>{% endfor %}<a>"
    )
    assert render(item, tokenizer=make_tokenizer(stubborn)).system == "You help."
    with pytest.raises(InputError, match="in spite of an empty one"):
        render(item, tokenizer=make_tokenizer(stubborn), system="none")


@pytest.mark.parametrize("change", ["| upper", "| replace('hammer', 'HAMMER')", "[:40]", "~ m['content']"])
def test_a_template_that_changes_the_message_is_refused(change, item, make_tokenizer):
    template = f"{{% for m in messages %}}<u>{{{{ m['content'] {change} }}}}</u>{{% endfor %}}<a>"
    with pytest.raises(InputError, match=r"the chat template (changes the text|does not write the message once)"):
        render(item, tokenizer=make_tokenizer(template))


def test_trimming_is_seen_where_there_is_something_to_trim(item, make_tokenizer):
    words = "{question}\n"
    assert render(item, tokenizer=make_tokenizer("open"), prompt_template=words).text.count("?\n<|end|>") == 1
    with pytest.raises(InputError, match="changes the text"):
        render(item, tokenizer=make_tokenizer("no_system"), prompt_template=words)


def test_the_cue_is_what_the_template_adds_for_the_answer(item, make_tokenizer):
    def cue(name):
        prompt = render(item, tokenizer=make_tokenizer(name))
        return [prompt.text[start:end] for start, end in prompt.spans["answer"]]

    assert cue("default") == ["<|assistant|>\n"]
    assert cue("no_system") == ["<turn>model\n"]
    assert cue("inline") == [" [/INST]"]


def test_a_tokenizer_without_a_template_is_refused(item, make_tokenizer):
    with pytest.raises(InputError, match="the tokenizer has no chat template"):
        render(item, tokenizer=make_tokenizer(None))


def test_chat_answers_begin_without_a_space(item, make_tokenizer):
    prompt = render(item, tokenizer=make_tokenizer("default"))
    assert prompt.chat
    assert prompt.answer_prefix == ""
