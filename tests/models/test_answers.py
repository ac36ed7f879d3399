"""Answers are cut out of prompt + answer; scores equal one unbatched pass in float64."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from latentkt.errors import InputError
from latentkt.models import encode, encode_answers, handle_from_hf, make_pair, score_answers
from latentkt.models.scoring import _batches, neutral_corrected
from tests.models.tiny import FAMILIES, tiny_handle, tiny_model, tiny_tokenizer

PROMPTS = (
    "The capital of the land is",
    "Who did not write it, and in which year did she not write it? Options: a, b. Answer:",
    "x",
    "The prize of the year. Answer:",
)
ANSWERS = ((" rome", " paris the great"), (" not a", " a"), (" the man", " the end of it"), (" and", " is"))


def questions(handle, chat=False):
    prompts = []
    for text in PROMPTS:
        if chat:
            messages = [{"role": "user", "content": text}]
            text = handle.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        prompts.append(encode(handle, text, chat=chat))
    strip = str.strip if chat else str
    answers = [encode_answers(handle, p, strip(a), strip(b)) for p, (a, b) in zip(prompts, ANSWERS, strict=True)]
    return prompts, answers


def token_logp(handle, prompt, ids):
    """The oracle: one unbatched forward pass, log_softmax in float64."""
    logits = handle.logits(torch.tensor([[*prompt.ids, *ids]]))[0]
    table = logits.double().log_softmax(-1)
    return np.array([table[len(prompt) - 1 + n, token].item() for n, token in enumerate(ids)])


@pytest.mark.parametrize("chat", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_scores_equal_the_oracle(family, chat):
    handle = tiny_handle(family)
    prompts, answers = questions(handle, chat)
    scores = score_answers(handle, prompts, answers)
    for n, (prompt, answer) in enumerate(zip(prompts, answers, strict=True)):
        correct, shortcut = (token_logp(handle, prompt, ids) for ids in (answer.correct_ids, answer.shortcut_ids))
        at = answer.first_difference
        assert scores.logp_correct[n] == pytest.approx(correct.sum(), abs=1e-4)
        assert scores.logp_shortcut[n] == pytest.approx(shortcut.sum(), abs=1e-4)
        assert scores.logp_correct_open[n] == pytest.approx(correct[:-1].sum(), abs=1e-4)
        assert scores.logp_shortcut_open[n] == pytest.approx(shortcut[:-1].sum(), abs=1e-4)
        assert scores.log_odds[n] == pytest.approx(correct.sum() - shortcut.sum(), abs=1e-4)
        assert scores.first_token_log_odds[n] == pytest.approx(correct[at] - shortcut[at], abs=1e-4)
        assert scores.mean_log_odds[n] == pytest.approx(correct.mean() - shortcut.mean(), abs=1e-4)


@pytest.mark.parametrize("family", ["llama", "mistral", "bloom", "opt"])
def test_a_score_does_not_depend_on_its_batch(family):
    handle = tiny_handle(family)
    prompts, answers = questions(handle)
    together = score_answers(handle, prompts, answers).to_frame()
    for budget in (1, 60):
        assert (
            score_answers(handle, prompts, answers, batch_tokens=budget).to_frame() - together
        ).abs().max().max() < 1e-4
    alone = score_answers(handle, prompts[2:3], answers[2:3]).to_frame()
    assert (alone.iloc[0] - together.iloc[2]).abs().max() < 1e-4


def test_batches_hold_every_prompt_once_within_the_budget():
    handle = tiny_handle()
    prompts = [encode(handle, "x" * n, chat=False) for n in (3, 40, 5, 12, 7, 30, 90)]
    batches = list(_batches(prompts, 60))
    assert sorted(n for batch in batches for n in batch) == list(range(7))
    assert all(len(b) == 1 or len(b) * max(len(prompts[n]) for n in b) <= 60 for b in batches)
    assert [len(b) for b in batches] == [1, 1, 2, 3]


def test_the_terminator_is_the_end_of_turn_in_chat_and_a_newline_in_plain():
    handle = tiny_handle()
    tokens = handle.tokenizer.convert_ids_to_tokens
    assert tokens(handle.end_of_turn) == "<|end|>"
    assert tokens(handle.newline) == "\n"
    for chat, end in ((True, handle.end_of_turn), (False, handle.newline)):
        _, answers = questions(handle, chat)
        assert all(a.correct_ids[-1] == a.shortcut_ids[-1] == a.terminator == end for a in answers)


def test_the_first_differing_token_may_be_the_terminator():
    handle = tiny_handle()
    prompt = encode(handle, "x", chat=False)
    answer = encode_answers(handle, prompt, " not", " not a")
    assert answer.first_difference == 1
    assert answer.correct_ids[1] == handle.newline
    assert encode_answers(handle, prompt, " the man", " the end").first_difference == 2


def test_answer_ids_are_cut_out_of_the_context():
    handle = tiny_handle()
    prompt = encode(handle, "xt", chat=False)
    with pytest.raises(InputError, match=r"item a1 changes the tokens of its prompt(.|\n)*begin plain answers"):
        encode_answers(handle, prompt, "he", " a", name="item a1")  # t + he is the token "the"


@pytest.mark.parametrize(
    ("correct", "shortcut", "message"),
    [(" Rome", " rome", "same tokens"), ("", " a", "no tokens"), (" a", " " + "x" * 600, "does not fit the context")],
)
def test_bad_answers_are_refused(correct, shortcut, message):
    handle = tiny_handle()
    with pytest.raises(InputError, match=message):
        encode_answers(handle, encode(handle, "x", chat=False), correct, shortcut, name="item a1")


def test_a_tokenizer_without_a_newline_has_no_plain_terminator():
    tokenizer = tiny_tokenizer()
    tokenizer.backend_tokenizer.pre_tokenizer = __import__("tokenizers").pre_tokenizers.WhitespaceSplit()
    handle = handle_from_hf(tiny_model("llama"), tokenizer, name="no newline")
    with pytest.raises(InputError, match="terminator"):
        encode_answers(handle, encode(handle, "x", chat=False), " a", " b")


def test_neutral_correction_subtracts_the_same_strings_after_the_neutral_prompt():
    handle = tiny_handle()
    neutral = encode(handle, "Answer:", chat=False)
    prompts, answers = questions(handle)
    after_neutral = [encode_answers(handle, neutral, a.correct, a.shortcut) for a in answers]
    scores = score_answers(handle, prompts, answers)
    reference = score_answers(handle, [neutral] * len(prompts), after_neutral)
    assert neutral_corrected(scores, reference) == pytest.approx(scores.log_odds - reference.log_odds)
    assert neutral_corrected(scores, scores) == pytest.approx(np.zeros(4))
    with pytest.raises(InputError, match="same answers"):
        neutral_corrected(scores, score_answers(handle, prompts[:1], answers[:1]))


def test_counts_that_do_not_match_are_refused():
    handle = tiny_handle()
    prompts, answers = questions(handle)
    with pytest.raises(InputError, match="do not match"):
        score_answers(handle, prompts, answers[:2])
    with pytest.raises(InputError, match="batch_tokens"):
        score_answers(handle, prompts, answers, batch_tokens=0)
    assert len(score_answers(handle, [], []).log_odds) == 0


@settings(max_examples=15, deadline=None)
@given(st.text("thenaxi ", min_size=1, max_size=8), st.text("thenaxi ", min_size=1, max_size=8))
def test_swapping_the_answers_turns_the_sign(first, second):
    handle = tiny_handle("qwen2")
    prompt = encode(handle, "Answer:", chat=False)
    try:
        there = encode_answers(handle, prompt, " " + first, " " + second)
    except InputError:
        return
    back = encode_answers(handle, prompt, " " + second, " " + first)
    scores = [score_answers(handle, [prompt], [answers]) for answers in (there, back)]
    assert scores[0].log_odds == pytest.approx(-scores[1].log_odds, abs=1e-4)
    assert scores[0].first_token_log_odds == pytest.approx(-scores[1].first_token_log_odds, abs=1e-4)


def test_a_pair_is_made_from_two_prompts_and_two_answers(monkeypatch):
    handle = tiny_handle()
    pair = make_pair(handle, "he did win:", "he not win:", correct=" a", shortcut=" b", name="p1", meta={"family": "f"})
    assert pair.answers.correct_ids[-1] == handle.newline
    assert pair.alignment.first_difference == 1
    assert pair.meta["family"] == "f"
    back = pair.swapped()
    assert back.base.text == "he not win:"
    assert back.answers is pair.answers
    with pytest.raises(InputError, match="mixes"):
        make_pair(handle, dataclasses.replace(pair.base, chat=True), pair.source, correct=" a", shortcut=" b")
    moved = iter([pair.answers, dataclasses.replace(pair.answers, correct_ids=(9, handle.newline))])
    monkeypatch.setattr("latentkt.models.pair.encode_answers", lambda *_, **__: next(moved))
    with pytest.raises(InputError, match="other ids after the source"):
        make_pair(handle, pair.base, pair.source, correct=" a", shortcut=" b")
