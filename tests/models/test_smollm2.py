"""The real SmolLM2: its reading, its tokens, its answers."""

from __future__ import annotations

import pytest
import torch

from latentkt.models import align, encode, encode_answers, open_model, score_answers

pytestmark = pytest.mark.smollm2


@pytest.fixture(scope="module")
def handle():
    return open_model("smollm2")


def chat(handle, question):
    messages = [{"role": "user", "content": question}]
    text = handle.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    return encode(handle, text, chat=True)


def test_it_is_read_rightly(handle):
    assert all(finding.passed for finding in handle.report.findings)
    assert (handle.n_layers, handle.n_heads, handle.n_kv_heads, handle.d_head) == (30, 9, 3, 64)
    assert handle.n_ctx == 8192


def test_its_bos_is_its_turn_marker_and_stands_three_times_in_a_chat_prompt(handle):
    prompt = chat(handle, "What is the capital of France?")
    bos = handle.tokenizer.bos_token_id
    assert prompt.ids.count(bos) == 3
    assert prompt.ids[0] == bos != prompt.ids[1]
    assert handle.end_of_turn == handle.tokenizer.eos_token_id
    assert bos not in encode(handle, "The capital", chat=False).ids


def test_answers_of_several_tokens_equal_the_oracle(handle):
    prompts = [
        chat(handle, "What is the capital of Australia? Answer with one name."),
        chat(handle, "Who discovered the element polonium, Marie Curie or Otto Hahn? Answer with one name."),
    ]
    words = [("Canberra", "Sydney"), ("Marie Curie", "Otto Hahn")]
    answers = [encode_answers(handle, p, *pair) for p, pair in zip(prompts, words, strict=True)]
    scores = score_answers(handle, prompts, answers)
    for n, (prompt, answer) in enumerate(zip(prompts, answers, strict=True)):
        for ids, found in (
            (answer.correct_ids, scores.logp_correct[n]),
            (answer.shortcut_ids, scores.logp_shortcut[n]),
        ):
            with torch.no_grad():
                table = handle.logits(torch.tensor([[*prompt.ids, *ids]]))[0].double().log_softmax(-1)
            oracle = sum(table[len(prompt) - 1 + k, token].item() for k, token in enumerate(ids))
            assert found == pytest.approx(oracle, abs=1e-4)
    assert len(answers[1].correct_ids) > 2


def test_a_minimal_pair_of_equal_length_aligns(handle):
    def prompt(words):
        text = f"A chemist who {words} win the prize in 1911. Answer:"
        start = text.index(words)
        return encode(handle, text, chat=False, spans={"constraint": [(start, start + len(words))]})

    found = align(prompt("did not"), prompt("did indeed"))
    assert not found.shifted
    assert found.unmapped == 0
