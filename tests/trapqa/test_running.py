"""Asking a model on this machine: what is asked, what is recorded, and that a stopped run goes on."""

from __future__ import annotations

import json
import socket

import pytest
import torch

from latentkt.errors import InputError, RunError
from latentkt.models import encode
from latentkt.trapqa import builtin_items
from latentkt.trapqa.running import RunOptions, asking, load_source, plan_questions, read_records, run, run_trapqa
from latentkt.trapqa.running.journal import meta_path
from latentkt.trapqa.running.questions import numbered, seeded_order
from tests.models.tiny import tiny_handle

ALL = ("names", "profiles", "neutral", "probes", "real_life")


@pytest.fixture(scope="module")
def handle():
    return tiny_handle("llama")


@pytest.fixture(scope="module")
def whole(handle, small, tmp_path_factory):
    """All conditions of the small set, in both orders."""
    path = tmp_path_factory.mktemp("whole") / "records.jsonl"
    return run_trapqa(handle, small, RunOptions(conditions=ALL, orders="both", batch_size=4), path)


def _answer_logp(handle, text: str, answer: str, *, chat: bool) -> float:
    """Sum over the answer's tokens and its terminator, from one plain forward pass."""
    prompt = encode(handle, text, chat=chat).ids
    ids = [*encode(handle, text + answer, chat=chat).ids, handle.end_of_turn if chat else handle.newline]
    with torch.no_grad():
        logp = handle.logits(torch.tensor([ids])).log_softmax(-1)[0]
    return sum(float(logp[n - 1, ids[n]]) for n in range(len(prompt), len(ids)))


@pytest.mark.parametrize("template", ["chat", "plain"])
def test_log_odds_are_those_of_plain_forward_passes(template, handle, small, tmp_path):
    options = RunOptions(conditions=ALL, template=template, limit=2)
    done = run_trapqa(handle, small, options, tmp_path / "r.jsonl")
    questions = plan_questions(load_source(small, ALL).given, limit=2).questions
    assert len(done.records) == len(questions)
    for record, question in zip(done.records, questions, strict=True):
        prompts = question.prompts(template=template, tokenizer=handle.tokenizer)
        odds = []
        for prompt in prompts:
            space = "" if prompt.chat else " "
            sides = [
                _answer_logp(handle, prompt.text, space + side, chat=prompt.chat)
                for side in (prompt.correct, prompt.shortcut)
            ]
            odds.append(sides[0] - sides[1])
        if question.condition == "probes":
            assert record.answer is None and record.log_odds is None
            assert record.meta["eliminative_log_odds"] == pytest.approx(odds[0], abs=1e-4)
            assert record.probe_eliminative_correct is (odds[0] > 0)
            assert record.probe_eliminative_predicted is ((odds[0] > 0) == (prompts[0].correct == "Yes"))
        else:
            assert record.log_odds == pytest.approx(odds[0], abs=1e-4)
            assert record.answer == ("correct" if odds[0] > 0 else "shortcut")


def test_every_question_has_one_record_and_items_that_do_not_fit_are_counted(whole, small):
    keys = [record.key for record in whole.records]
    assert len(keys) == len(set(keys)) == whole.asked
    scientists, actions = (len(small.filter(kind=kind)) for kind in ("scientist", "action"))
    by_condition = {name: sum(r.condition == name for r in whole.records) for name in ALL}
    assert by_condition == {
        "names": 2 * scientists,
        "profiles": 2 * scientists,
        "neutral": 2 * (scientists + actions),
        "probes": scientists,
        "real_life": 2 * actions,
    }
    assert sorted((s.condition, s.question_id) for s in whole.skipped if s.condition == "names") == sorted(
        ("names", item.id) for item in small.filter(kind="action")
    )
    assert any("not asked in names" in line for line in whole.lines())


def test_the_limit_counts_what_remains(small):
    plan = plan_questions(load_source(small, ["real_life"]).given, limit=2)
    assert [q.item.kind for q in plan.questions] == ["action"] * 2
    assert len(plan.skipped) == len(small.filter(kind="scientist"))


def test_a_seeded_order_belongs_to_the_question():
    source = load_source(builtin_items(), ["names", "neutral", "profiles"])
    one, other = (plan_questions(source.given, seed=seed).questions for seed in (0, 1))
    orders = {}
    for question in one:
        assert orders.setdefault(question.item.id, question.order) == question.order
    drawn = [question.order for question in one if question.condition == "names"]
    assert 10 < drawn.count("correct_first") < 40
    assert drawn != [question.order for question in other if question.condition == "names"]
    assert seeded_order(0, one[5].item.id) == one[5].order
    both = plan_questions(source.given, orders="both").questions
    assert len(both) == 2 * len(one)


def test_numbers_are_those_that_the_prompt_shows(small):
    for question in plan_questions(load_source(small, ALL).given, orders="both").questions:
        for prompt in question.prompts(template="plain"):
            found = numbered(prompt)
            if found is not None:
                assert prompt.text.index(f"1. {getattr(prompt, found[0])}") < prompt.text.index(
                    f"2. {getattr(prompt, found[1])}"
                )
            assert (found is not None) == (
                question.item.kind == "scientist" and question.condition in ("names", "neutral")
            )


def test_probe_answers_are_joined_into_the_other_records(whole):
    probes = {r.question_id: r for r in whole.records if r.condition == "probes"}
    for record in whole.records:
        if record.condition in ("names", "profiles"):
            assert record.probe_eliminative_correct is probes[record.question_id].probe_eliminative_correct is not None
        elif record.condition != "probes":
            assert record.probe_eliminative_correct is None


@pytest.mark.parametrize("after", [1, 3])
@pytest.mark.parametrize("torn", [False, True])
def test_a_stopped_run_goes_on_without_asking_twice(after, torn, whole, handle, small, tmp_path, monkeypatch):
    path = tmp_path / "records.jsonl"
    options = RunOptions(conditions=ALL, orders="both", batch_size=4)
    asked: list[tuple] = []

    def counting(handle, questions, options, **more):
        if len(asked) >= 4 * after and not path.with_suffix(".again").exists():
            raise KeyboardInterrupt
        asked.extend(question.key("m") for question in questions)
        return asking.ask(handle, questions, options, **more)

    monkeypatch.setattr(run, "ask", counting)
    with pytest.raises(KeyboardInterrupt):
        run_trapqa(handle, small, options, path)
    if torn:
        lines = path.read_bytes()
        path.write_bytes(lines[:-20])
        asked.pop()  # the answer that was not written to its end is asked again
    path.with_suffix(".again").touch()
    with pytest.raises(RunError, match="exists"):
        run_trapqa(handle, small, options, path)
    done = run_trapqa(handle, small, options, path, resume=True)
    assert done.dropped == torn
    assert len(asked) == len(set(asked)) == len(done.records)
    if torn:
        for record, unbroken in zip(done.records, whole.records, strict=True):
            assert record.key == unbroken.key and record.log_odds == pytest.approx(unbroken.log_odds, abs=1e-4)
    else:
        assert path.read_bytes() == whole.path.read_bytes()
    sessions = json.loads(meta_path(path).read_text())["sessions"]
    assert [session["ended"] is None for session in sessions] == [True, False]


def test_conditions_can_be_added_and_nothing_else_changed(handle, small, tmp_path):
    path = tmp_path / "records.jsonl"
    run_trapqa(handle, small, RunOptions(conditions=("names",)), path)
    done = run_trapqa(handle, small, RunOptions(conditions=("names", "probes")), path, resume=True)
    assert (done.asked, done.kept) == (2, 2)
    assert all(r.probe_eliminative_correct is not None for r in read_records(path))
    for change, name in (({"seed": 1}, "seed"), ({"system": "Be brief."}, "system"), ({"mode": "generate"}, "mode")):
        with pytest.raises(RunError, match="begun otherwise") as refusal:
            run_trapqa(handle, small, RunOptions(conditions=("names",), **change), path, resume=True)
        assert name in str(refusal.value)
    with pytest.raises(RunError, match="items of names"):
        run_trapqa(handle, small.filter(kind="scientist"), RunOptions(conditions=("names",)), path, resume=True)
    with pytest.raises(RunError, match="begun otherwise"):
        run_trapqa(tiny_handle("gpt2"), small, RunOptions(conditions=("names",)), path, resume=True)


def test_provenance_says_what_the_answers_depend_on(whole, handle):
    meta = json.loads(meta_path(whole.path).read_text())
    identity = meta["identity"]
    assert identity["model"]["weight_hash"] == handle.weight_hash
    assert identity["mode"] == "logprob" and identity["decoding"] == {} and identity["seed"] == 0
    assert set(identity["items"]["sha256"]) == set(ALL)
    assert meta["sessions"][0]["asked"] == whole.asked and meta["sessions"][0]["ended"]
    assert {each["condition"] for each in meta["sessions"][0]["skipped"]} >= {"names", "real_life"}


def test_a_local_run_opens_no_connection(handle, small, tmp_path, monkeypatch):
    def refuse(*args, **more):
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert run_trapqa(handle, small, RunOptions(conditions=("names",), limit=1), tmp_path / "r.jsonl").asked == 1


def test_what_the_model_refuses_is_listed_and_the_rest_is_asked(handle, small, tmp_path):
    long = "word " * 600 + "\n1. {option_a}\n2. {option_b}\n{question}"
    options = RunOptions(conditions=("names", "probes"), prompt_template=long)
    done = run_trapqa(handle, small, options, tmp_path / "r.jsonl")
    assert {record.condition for record in done.records} == {"probes"}
    refused = [each for each in done.skipped if "kind" not in each.reason and each.condition == "names"]
    assert len(refused) == len(small.filter(kind="scientist"))


# Generation


def _greedy(handle, ids: list[int], stops: set[int], limit: int) -> tuple[list[int], bool]:
    """One prompt, no cache, no batch."""
    new: list[int] = []
    while len(new) < limit:
        with torch.no_grad():
            token = int(handle.logits(torch.tensor([[*ids, *new]]))[0, -1].argmax())
        if token in stops:
            return new, False
        new.append(token)
    return new, True


@pytest.mark.parametrize("template", ["chat", "plain"])
@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_replies_are_those_of_a_slow_loop(family, template, small, tmp_path):
    handle = tiny_handle(family)
    options = RunOptions(conditions=("names", "real_life"), mode="generate", template=template, max_new_tokens=6)
    done = run_trapqa(handle, small, options, tmp_path / "r.jsonl")
    stops = {handle.end_of_turn if template == "chat" else handle.newline, handle.tokenizer.eos_token_id}
    for record, question in zip(
        done.records, plan_questions(load_source(small, ("names", "real_life")).given).questions, strict=True
    ):
        prompt = question.prompts(template=template, tokenizer=handle.tokenizer)[0]
        new, cut = _greedy(handle, list(encode(handle, prompt.text, chat=prompt.chat).ids), stops, 6)
        assert record.raw == handle.tokenizer.decode(new, skip_special_tokens=True)
        assert record.meta["truncated"] is cut
        assert record.log_odds is None


def test_samples_do_not_depend_on_what_else_is_asked(handle, small, tmp_path):
    raws = []
    for size in (1, 5):
        options = RunOptions(
            conditions=("names", "real_life"),
            mode="generate",
            temperature=1.0,
            batch_size=size,
            max_new_tokens=6,
            seed=3,
        )
        raws.append([r.raw for r in run_trapqa(handle, small, options, tmp_path / f"{size}.jsonl").records])
    assert raws[0] == raws[1]
    assert len(set(raws[0])) > 1
    state = torch.random.get_rng_state()
    other = RunOptions(conditions=("names",), mode="generate", temperature=1.0, max_new_tokens=6, seed=4)
    again = [r.raw for r in run_trapqa(handle, small, other, tmp_path / "other.jsonl").records]
    assert again != raws[0][: len(again)]
    assert torch.equal(state, torch.random.get_rng_state())


def test_replies_are_matched_and_confidence_is_asked_after_them(handle, small, tmp_path, monkeypatch):
    prompts: list[str] = []

    def write(handle, ids, keys, options, *, chat):
        texts = ["".join(handle.tokenizer.decode(row).split()) for row in ids]  # it joins tokens by spaces
        prompts.extend(texts)
        said = []
        for key in keys:
            if key.endswith("confidence"):
                raw = "about 80%" if "sci-negated" in key else "70"
            elif "probe" in key:
                raw = "Yes." if "eliminative" in key else "I do not know."
            else:
                raw = "<think>bohr?</think>2" if "sci-negated" in key else "James Chadwick, not Lord Rutherford."
            said.append((raw, asking.read_reply(raw)))
        return said

    monkeypatch.setattr(asking, "_write", write)
    options = RunOptions(conditions=("names", "probes"), mode="generate", confidence=True)
    records = {
        (r.question_id, r.condition): r for r in run_trapqa(handle, small, options, tmp_path / "r.jsonl").records
    }
    negated, affirmed = records["sci-negated", "names"], records["sci-affirmed", "names"]
    second = "shortcut" if negated.order == "correct_first" else "correct"
    assert (negated.answer, negated.meta["rule"]) == (second, "number")
    assert negated.confidence is None and negated.meta["confidence_raw"] == "about 80%"
    assert (affirmed.answer, affirmed.confidence) == ("correct", 70.0)
    probe = records["sci-affirmed", "probes"]
    assert (probe.probe_eliminative_predicted, probe.probe_eliminative_correct) == (True, False)
    assert (probe.probe_compatibility_predicted, probe.probe_compatibility_correct) == (None, False)
    assert affirmed.probe_eliminative_predicted is True
    second_turns = [text for text in prompts if "certainlywrong" in text]
    assert len(second_turns) == 2
    assert "jameschadwick,notlordrutherford.<|end|>" in second_turns[1]
    assert "bohr?" not in second_turns[0]


@pytest.mark.parametrize(
    "wrong",
    [
        {"conditions": ()},
        {"conditions": ("name",)},
        {"conditions": ("names", "names")},
        {"mode": "both"},
        {"orders": "random"},
        {"limit": 0},
        {"temperature": -1.0},
        {"top_p": 0.0},
        {"template": "html"},
        {"confidence": True},
        {"confidence": True, "mode": "generate", "template": "plain"},
        {"setting": " "},
        {"max_new_tokens": 0},
    ],
)
def test_wrong_options_are_refused(wrong):
    with pytest.raises(InputError):
        RunOptions(**{"conditions": ("names",), **wrong})


def test_what_does_not_fit_the_model_is_refused(small, tmp_path):
    from latentkt.models import handle_from_hf
    from tests.models.tiny import tiny_model, tiny_tokenizer

    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = None
    base = handle_from_hf(tiny_model("gpt2"), tokenizer, name="base", check=False)
    for change in ({"template": "chat"}, {"mode": "generate", "confidence": True}):
        with pytest.raises(InputError, match="no chat template"):
            run_trapqa(base, small, RunOptions(conditions=("names",), **change), tmp_path / "r.jsonl")
    with pytest.raises(InputError, match=r"\.jsonl"):
        run_trapqa(base, small, RunOptions(conditions=("names",)), tmp_path / "r.json")
    done = run_trapqa(base, small, RunOptions(conditions=("names",), limit=1), tmp_path / "r.jsonl")
    assert json.loads(meta_path(done.path).read_text())["identity"]["template"] == "plain"
