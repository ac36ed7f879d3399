"""Questions written and judged by a model: scripted replies stand for one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("inspect_ai")

from inspect_ai.model import ModelOutput, ModelUsage, get_model

from latentkt.trapqa.build.drafting import write_with_model
from latentkt.trapqa.build.facts import Facts
from latentkt.trapqa.build.log import StageLog
from latentkt.trapqa.build.planning import Plan, choose, plans_for
from latentkt.trapqa.build.proof import prove
from latentkt.trapqa.build.questions import Style, Writer
from latentkt.trapqa.build.reviewing import review
from tests.trapqa.build.people import great_prize, people

EVERYBODY = people()[:90]
GREAT = great_prize(EVERYBODY)
PEOPLE = {person.id: person for person in EVERYBODY}


def model(answer: Callable[[str], str]) -> Any:
    def output(messages: list[Any], *_: Any) -> ModelOutput:
        made = ModelOutput.from_content("mockllm", answer(messages[0].text))
        made.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return made

    return get_model("mockllm/model", custom_outputs=output, memoize=False)


@pytest.fixture(scope="module")
def plans() -> list[Plan]:
    pairs = [pair for pair in combinations(EVERYBODY, 2) if len({p.attributes["alma_mater"] for p in pair}) == 1]
    log = StageLog()
    return choose(plans_for(pairs, Facts(EVERYBODY), [GREAT], log), log, seed=0, limit=24)


def writer() -> Writer:
    return Writer(Style("painter"), [GREAT], seed=5)


def good(prompt: str) -> str:
    """A description of all facts, and the clause at the end of a sentence of its own."""
    facts = re.findall(r'^- (.*)"(.*)"$', prompt, re.M)
    (clause,) = re.findall(r'^<<MARK>> "(.*)"$', prompt, re.M)
    said = " and ".join(f"{verb}{topic}" for verb, topic in facts)
    return json.dumps(
        {"description": f"This painter {said}.", "sentence": f"As records show, the painter <<MARK>> {clause}."}
    )


def test_a_good_model(plans: list[Plan], tmp_path: Path) -> None:
    log, journal = StageLog(), tmp_path / "j.jsonl"
    items = write_with_model(plans, writer(), model(good), log, journal=journal)
    assert len(items) == len(plans) and not len(log)
    assert prove(items, PEOPLE, [GREAT], log) == items
    assert {item.meta["generator"] for item in items} == {"mockllm/model"}
    assert all("As records show" in item.text for item in items)
    first = [item.spans["constraint"][0][0] < 40 for item in items]
    assert any(first) and not all(first)
    again = write_with_model(plans, writer(), model(lambda _: "nothing"), StageLog(), journal=journal)
    assert [item.to_dict() for item in again] == [item.to_dict() for item in items], "nothing is asked twice"


def bent(change: Callable[[dict[str, str]], dict[str, str]]) -> Callable[[str], str]:
    return lambda prompt: json.dumps(change(json.loads(good(prompt))))


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        (lambda _: "This painter was famous.", "model: prose"),
        (lambda _: '{"description": "x"}', "model: schema"),
        (bent(lambda d: {**d, "description": "This painter was famous."}), "model: a fact's words are not there once"),
        (
            bent(lambda d: {**d, "sentence": d["sentence"].replace("<<MARK>>", "did not")}),
            "model: the mark and the clause are not there once",
        ),
        (bent(lambda d: {**d, "sentence": d["sentence"] + " Who?"}), "model: it asks, or holds signs of marking"),
        (
            bent(lambda d: {**d, "description": d["description"] + " [[x: y]]"}),
            "model: it asks, or holds signs of marking",
        ),
    ],
)
def test_what_cannot_be_used_is_counted(plans: list[Plan], answer: Callable[[str], str], rule: str) -> None:
    log = StageLog()
    assert write_with_model(plans[:4], writer(), model(answer), log, retries=1) == []
    assert [r.rule for r in log] == [rule] * 4
    assert log.table()[0]["kept"] == 0


def test_a_name_in_the_words_of_a_model_is_found_by_the_proof(plans: list[Plan]) -> None:
    log = StageLog()
    name = plans[0].shortcut.name.split()[1]
    talks = bent(lambda d: {**d, "description": d["description"] + f" Rivals were {name}s."})
    items = write_with_model(plans[:1], writer(), model(talks), log)
    assert prove(items, PEOPLE, [GREAT], log) == []
    assert [r.rule for r in log] == ["the text names a candidate"]


def verdict(**changes: Any) -> str:
    told = {"description_fits_first": True, "description_fits_second": True, "leaves": "first", "names_somebody": False,
            "well_formed": True, "reason": "because"}  # fmt: skip
    return json.dumps({**told, **changes})


def test_a_second_opinion(plans: list[Plan]) -> None:
    items = [writer().write(plan, n) for n, plan in enumerate(plans, start=1)]
    right = {item.text: item.correct.text for item in items}

    def knows(prompt: str) -> str:
        text = next(text for text in right if text in prompt)
        return verdict(leaves="first" if f"First: {right[text]}\n" in prompt else "second")

    log = StageLog()
    assert review(items, model(knows), log) == items and not len(log)
    shown = sum(f"First: {item.correct.text}" in _prompt(item, n) for n, item in enumerate(items))
    assert 4 < shown < 20, "the right one is shown first about half of the time"
    always = review(items, model(lambda _: verdict()), StageLog())
    assert 4 < len(always) < 20, "who always says first keeps about half"


def _prompt(item: Any, number: int) -> str:
    asked: list[str] = []
    review([item], model(lambda prompt: asked.append(prompt) or verdict()), StageLog())  # type: ignore[func-returns-value]
    return asked[0]


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        (verdict(description_fits_second=False), "model: the description does not fit both"),
        (verdict(leaves="both"), "model: it leaves both"),
        (verdict(leaves="unknown"), "model: it leaves unknown"),
        (verdict(leaves="perhaps"), "no verdict: schema"),
        ("It is fine.", "no verdict: prose"),
    ],
)
def test_objections_are_counted(plans: list[Plan], answer: str, rule: str) -> None:
    items = [writer().write(plan, n) for n, plan in enumerate(plans[:3], start=1)]
    log = StageLog()
    assert review(items, model(lambda _: answer), log, retries=0) == []
    assert [r.rule for r in log] == [rule] * 3 and log.table()[0] == {
        "stage": "review", "given": 3, "removed": 3, "kept": 0, "rules": {rule: 3}}  # fmt: skip


def test_objections_to_form(plans: list[Plan]) -> None:
    items = [writer().write(plan, n) for n, plan in enumerate(plans[:6], start=1)]
    rules = set()
    for changes in ({"names_somebody": True}, {"well_formed": False}):
        for leaves in ("first", "second"):
            log = StageLog()
            answer = verdict(leaves=leaves, **changes)
            assert review(items, model(lambda _, answer=answer: answer), log) == []  # type: ignore[misc]
            rules |= {r.rule for r in log}
    assert rules == {"model: it names a candidate", "model: not well formed", "model: it leaves the other one"}
