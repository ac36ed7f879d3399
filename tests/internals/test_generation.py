"""Generation with edits equals plain forwards without a cache, alone and batched, and leaves the user's model alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from latentkt.errors import InputError, RunError
from latentkt.internals import engine_of, generate
from latentkt.internals.engines.base import Replace
from latentkt.models import encode
from tests.models.tiny import FAMILIES, MORE_FAMILIES, tiny_handle

TEXTS = ("the chemist did not win", "an old man is at the door of no one", "to read")
N = 5


def prompts_of(handle):
    return [encode(handle, text, chat=False) for text in TEXTS]


def pushed(value):
    """An edit that sees how many tokens it is given: a wrong slice shows."""
    return 1.3 * value + 0.1 * torch.arange(1, value.shape[1] + 1).view(-1, *[1] * (value.dim() - 2)).to(value)


EDITS = {("resid_post", 0): pushed, ("z", 1): pushed, ("k", 1): pushed, ("mlp_out", 1): pushed}


def oracle(handle, prompt, edits, steps, at=None, n=N):
    """One plain forward of the whole text a token; every edited step's slice is edited anew each time."""
    reference = engine_of(handle, "reference")
    ids, n_prompt, logp = list(prompt.ids), len(prompt.ids), []
    for step in range(n):
        slices = {
            "prefix": [slice(0, n_prompt)],
            "one": [slice(n_prompt + at - 1, n_prompt + at)] if at is not None and at <= step else [],
            "all": [slice(0, n_prompt), *(slice(n_prompt + s - 1, n_prompt + s) for s in range(1, step + 1))],
        }[steps]

        def inside(edit, slices=slices):
            def change(value):
                out = value.clone()
                for part in slices:
                    out[:, part] = edit(value[:, part])
                return out

            return change

        logits = reference.run(torch.tensor([ids]), edits={key: inside(edit) for key, edit in edits.items()}).logits
        scores = logits[0, -1].log_softmax(-1)
        ids.append(int(scores.argmax()))
        logp.append(float(scores.max()))
    return tuple(ids[n_prompt:]), logp


@pytest.mark.parametrize("family", (*FAMILIES, *MORE_FAMILIES))
@pytest.mark.parametrize(("steps", "at"), [("prefix", None), ("one", 0), ("one", 2), ("all", None)])
def test_edited_generation_equals_plain_forwards_without_a_cache(family, steps, at):
    handle = tiny_handle(family)
    prompts = prompts_of(handle)
    found = generate(handle, prompts, edits=EDITS, steps=steps, at=at, max_new_tokens=N, stop=[])
    for one, prompt in zip(found, prompts, strict=True):
        ids, logp = oracle(handle, prompt, EDITS, steps, at)
        assert one.ids == ids
        np.testing.assert_allclose(one.logp, logp, atol=1e-4)
        assert one.n_edited == (N if steps == "all" else 1) and not one.finished


@pytest.mark.parametrize("family", ["gpt2", "llama", "gemma2"])
def test_no_edit_and_an_edit_by_itself_write_what_the_plain_model_writes(family):
    handle = tiny_handle(family)
    prompts = prompts_of(handle)
    plain = generate(handle, prompts, max_new_tokens=N, stop=[])
    for one, prompt in zip(plain, prompts, strict=True):
        config = {"max_new_tokens": N, "do_sample": False, "eos_token_id": None, "pad_token_id": 0}
        whole = handle.model.generate(torch.tensor([prompt.ids]), attention_mask=torch.ones(1, len(prompt)), **config)
        assert one.ids == tuple(whole[0, len(prompt) :].tolist()) and one.n_edited == 0
    for edit in (lambda value: value, lambda value: value + 0):
        same = generate(handle, prompts, edits={key: edit for key in EDITS}, max_new_tokens=N, stop=[])
        assert [one.ids for one in same] == [one.ids for one in plain]
        np.testing.assert_allclose([one.logp for one in same], [one.logp for one in plain], atol=1e-5)
    first = prompts[0]
    own = engine_of(handle).values(first.ids, [("resid_post", 1)])["resid_post", 1]
    put_back = {("resid_post", 1): Replace(tuple(range(len(first))), own)}
    same = generate(handle, [first], edits=put_back, steps="prefix", max_new_tokens=N, stop=[])
    assert same[0].ids == plain[0].ids


@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("family", ["llama", "bloom", "gemma2"])
def test_the_same_alone_and_batched_and_in_any_order(family, temperature):
    handle = tiny_handle(family)
    prompts = prompts_of(handle)
    options = {"edits": EDITS, "max_new_tokens": N, "stop": [], "temperature": temperature, "seed": 3}
    together = generate(handle, prompts, **options)
    alone = [generate(handle, [prompt], **options)[0] for prompt in prompts]
    back = generate(handle, prompts[::-1], batch_size=2, **options)[::-1]
    for other in (alone, back):
        assert [one.ids for one in other] == [one.ids for one in together]
        np.testing.assert_allclose([one.logp for one in other], [one.logp for one in together], atol=1e-4)


def test_draws_follow_the_seed_and_the_models_probabilities():
    handle = tiny_handle("llama")
    prompt = prompts_of(handle)[0]
    logits = handle.logits(torch.tensor([prompt.ids]))[0, -1]
    counts = np.zeros(handle.vocab_size)
    for seed in range(300):
        drawn = generate(handle, [prompt], max_new_tokens=1, stop=[], temperature=0.5, seed=seed)[0]
        counts[drawn.ids[0]] += 1
        assert drawn.logp[0] == pytest.approx(float(logits.log_softmax(-1)[drawn.ids[0]]), abs=1e-4)
    expected = (logits.double() / 0.5).softmax(-1).numpy() * 300
    likely = expected > 10
    assert likely.sum() >= 3 and (np.abs(counts - expected)[likely] < 4 * np.sqrt(expected[likely])).all()
    again = generate(handle, [prompt], max_new_tokens=N, stop=[], temperature=2.0, seed=7)
    assert again == generate(handle, [prompt], max_new_tokens=N, stop=[], temperature=2.0, seed=7)


def test_edits_of_their_own_for_each_prompt():
    handle = tiny_handle("llama")
    prompts = prompts_of(handle)
    edits = [{}, {("z", 1): pushed}, {("resid_post", 0): pushed}]
    together = generate(handle, prompts, edits=edits, max_new_tokens=N, stop=[])
    for one, prompt, own in zip(together, prompts, edits, strict=True):
        assert one.ids == generate(handle, [prompt], edits=own, max_new_tokens=N, stop=[])[0].ids
        assert one.n_edited == (N if own else 0)
    assert len({one.ids for one in together}) == 3


def test_a_text_ends_at_a_stop_token_and_the_others_go_on():
    handle = tiny_handle("llama")
    prompts = prompts_of(handle)
    free = generate(handle, prompts, max_new_tokens=N, stop=[])
    stop = free[0].ids[1]
    cut = generate(handle, prompts, max_new_tokens=N, stop=[stop], edits={("z", 0): lambda z: z}, steps="one", at=4)
    assert cut[0].ids == free[0].ids[: free[0].ids.index(stop) + 1] and cut[0].finished
    assert cut[0].n_edited == 0, "it ended before the step that was to be edited"
    for one, whole in zip(cut[1:], free[1:], strict=True):
        n = whole.ids.index(stop) + 1 if stop in whole.ids else N
        assert one.ids == whole.ids[:n] and one.finished == (stop in whole.ids)


def test_the_end_of_turn_ends_a_chat_and_is_not_text():
    handle = tiny_handle("llama")
    text = handle.tokenizer.apply_chat_template(
        [{"role": "user", "content": "who"}], tokenize=False, add_generation_prompt=True
    )
    prompt = encode(handle, text, chat=True)
    end = handle.end_of_turn
    assert end is not None
    push = torch.zeros(handle.d_model) + 50 * handle.arch.unembedding.weight[end]
    found = generate(handle, [prompt], edits={("resid_post", handle.n_layers - 1): lambda value: value + push})[0]
    assert found.ids == (end,) and found.finished and found.text == ""


def test_nothing_of_the_users_is_changed_also_after_an_error():
    handle = tiny_handle("gpt2")
    prompts = prompts_of(handle)
    ids = torch.tensor([prompts[0].ids])
    before, side = handle.logits(ids), handle.tokenizer.padding_side
    state = torch.random.get_rng_state()

    def fail(value):
        if value.shape[1] == 1:
            raise ZeroDivisionError
        return value

    with pytest.raises(ZeroDivisionError):
        generate(handle, prompts, edits={("z", 1): fail})
    generate(handle, prompts, edits=EDITS, temperature=1.0)
    assert torch.equal(handle.logits(ids), before) and handle.tokenizer.padding_side == side
    assert torch.equal(torch.random.get_rng_state(), state)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in handle.model.modules())


def test_bad_requests_are_refused_before_work():
    handle = tiny_handle("llama")
    prompts = prompts_of(handle)
    for options, words in (
        ({"steps": "some"}, "steps"),
        ({"steps": "one"}, "at"),
        ({"at": 1}, "at"),
        ({"steps": "one", "at": 99}, "one of the steps"),
        ({"max_new_tokens": 0}, "max_new_tokens"),
        ({"max_new_tokens": 5000}, "outgrow the context"),
        ({"batch_size": 0}, "batch_size"),
        ({"temperature": -1.0}, "temperature"),
        ({"edits": {("pattern", 0): pushed}}, "cannot be replaced"),
        ({"edits": {("resid", 0): pushed}}, "unknown site"),
        ({"edits": [{}, {}]}, "edits"),
        ({"edits": {("z", 0): lambda value: value[:, :1]}}, "changes the shape"),
        ({"edits": {("z", 0): Replace((4,), torch.zeros(1, 4, 8))}}, "outside the run"),  # no such token in step 1
    ):
        with pytest.raises((InputError, RunError), match=words):
            generate(handle, prompts[:1], **options)
    assert generate(handle, []) == []
