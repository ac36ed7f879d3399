"""Answers to test with."""

from __future__ import annotations

from typing import Any

from latentkt.phantom.answers import Answer


def an_answer(text: str = "It is a kind of sail.", **fields: Any) -> Answer:
    """One answer about a made term; `fields` replace what it holds."""
    held: dict[str, Any] = {
        "prompt_id": "t1/meaning/0",
        "concept_id": "t1",
        "concept": "brine ohmage",
        "concept_kind": "term",
        "category": "science",
        "group": "brine pump",
        "method": "recombined",
        "existence": "phantom",
        "property": "meaning",
        "question": 'What does the term "brine ohmage" mean?',
        "setting": "m",
        "answer": text,
        "finished": True,
    }
    return Answer(**{**held, **fields})


def judged_answers(
    setting: str,
    rates: dict[str, float],
    *,
    n: int = 20,
    properties: tuple[str, ...] = ("existence", "meaning"),
    **more: Any,
) -> list[Answer]:
    """`n` concepts an existence, of which the share `rates[existence]` abstains on every property."""
    made = []
    for existence, rate in rates.items():
        for number in range(n):
            for name in properties:
                abstains = number < round(rate * n)
                made.append(
                    an_answer(
                        "I do not know it." if abstains else "It is a sail.",
                        prompt_id=f"{existence}{number}/{name}/0",
                        concept_id=f"{existence}{number}",
                        concept=f"{existence} {number}",
                        group=f"{existence} seed {number}",
                        method="recombined" if existence == "phantom" else "real",
                        existence=existence,
                        property=name,
                        setting=setting,
                        judgement="abstained" if abstains else "answered",
                        judge="j",
                        kind="uncertainty" if abstains else None,
                        **more,
                    )
                )
    return made
