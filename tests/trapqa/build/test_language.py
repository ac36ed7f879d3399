from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("inspect_ai")

from inspect_ai.model import ModelOutput, ModelUsage, get_model

from latentkt.errors import InputError
from latentkt.trapqa.build import Failure, generate


@dataclass
class Scene:
    words: str
    n: int


GOOD = json.dumps({"words": "a", "n": 1})


def said(text: str, **more: Any) -> ModelOutput:
    """A reply that carries its usage, so that nothing counts its tokens."""
    output = ModelOutput.from_content("mockllm", text, **more)
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return output


def model(*replies: str | ModelOutput, asked: list[Any] | None = None) -> Any:
    left = list(replies)

    def answer(messages: list[Any], *_: Any) -> ModelOutput:
        if asked is not None:
            asked.append([message.text for message in messages])
        reply = left.pop(0)
        return reply if isinstance(reply, ModelOutput) else said(reply)

    return get_model("mockllm/model", custom_outputs=answer, memoize=False)


def test_an_object_comes_back() -> None:
    asked: list[Any] = []
    assert generate(model(GOOD, asked=asked), ["write"], Scene) == [Scene("a", 1)]
    assert asked[0][0].startswith("write") and '"words"' in asked[0][0]


def test_a_fence_is_taken_off_but_words_are_not() -> None:
    fenced = f"```json\n{GOOD}\n```"
    chatty = f"Here you are: {GOOD}"
    assert generate(model(fenced), ["write"], Scene) == [Scene("a", 1)]
    (failure,) = generate(model(chatty), ["write"], Scene, retries=0)
    assert isinstance(failure, Failure) and failure.why == "prose" and failure.raw == chatty


def test_a_wrong_reply_is_sent_back_with_what_is_wrong() -> None:
    asked: list[Any] = []
    found = generate(model("Sure!", '{"words": "a"}', GOOD, asked=asked), ["write"], Scene, retries=2)
    assert found == [Scene("a", 1)]
    assert "no JSON object" in asked[1][-1] and asked[1][-2] == "Sure!"
    assert "n" in asked[2][-1] and len(asked[2]) == 5


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("I would say that it depends.", "prose"),
        ('{"words": "a", "n": "1"}', "schema"),
        ('{"words": "a", "n": 1, "more": 2}', "schema"),
        ("[1]", "schema"),
        ("null", "schema"),
        ('{"words": "a", "n": 1', "prose"),
        (said('{"words": "a', stop_reason="max_tokens"), "truncated"),
        (said("", stop_reason="content_filter"), "refused"),
    ],
)
def test_why_there_is_no_answer(reply: str | ModelOutput, why: str) -> None:
    (failure,) = generate(model(reply, reply), ["write"], Scene, retries=1)
    assert isinstance(failure, Failure)
    assert (failure.why, failure.attempts) == (why, 2)


def test_a_provider_that_fails_is_a_failure_and_is_asked_again(tmp_path: Path) -> None:
    journal = tmp_path / "j.jsonl"

    def breaks(*_: Any) -> ModelOutput:
        raise OSError("no route")

    broken = get_model("mockllm/model", custom_outputs=breaks, memoize=False)
    (failure,) = generate(broken, ["write"], Scene, journal=journal)
    assert isinstance(failure, Failure) and failure.why == "error" and "no route" in failure.detail
    assert generate(model(GOOD), ["write"], Scene, journal=journal) == [Scene("a", 1)]


def test_a_stopped_run_goes_on(tmp_path: Path) -> None:
    journal = tmp_path / "j.jsonl"
    generate(model(GOOD), ["one"], Scene, journal=journal)
    journal.write_bytes(journal.read_bytes() + b'{"mark": "half')
    asked: list[Any] = []
    second = json.dumps({"words": "b", "n": 2})
    found = generate(model(second, asked=asked), ["one", "two"], Scene, journal=journal)
    assert found == [Scene("a", 1), Scene("b", 2)]
    assert len(asked) == 1 and len(journal.read_text().splitlines()) == 2
    generate(model(GOOD, asked=asked), ["one"], Scene, journal=journal, seed=1)
    assert len(asked) == 2, "another seed is another question"


def test_order_is_that_of_the_prompts() -> None:
    def answer(messages: list[Any], *_: Any) -> ModelOutput:
        return said(json.dumps({"words": messages[0].text[:2], "n": 0}))

    echo = get_model("mockllm/model", custom_outputs=answer, memoize=False)
    found = generate(echo, [f"{i:02d} write" for i in range(20)], Scene)
    assert [scene.words for scene in found] == [f"{i:02d}" for i in range(20)]  # type: ignore[union-attr]


def test_a_schema_is_a_dataclass() -> None:
    with pytest.raises(InputError, match="dataclass"):
        generate("mockllm/model", ["x"], dict)
