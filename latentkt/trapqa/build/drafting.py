"""Questions written by a language model: it finds the words, the plan keeps the facts and the gold.

The model is given the facts that hold of both people and the decisive clause, no names and no profiles. It leaves a
mark where the words of polarity go; item and control are made by filling it, so a model cannot change what is right.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from latentkt.errors import LatentKTError
from latentkt.trapqa.build.facts import Fact
from latentkt.trapqa.build.language import Failure, generate
from latentkt.trapqa.build.log import StageLog
from latentkt.trapqa.build.planning import Plan
from latentkt.trapqa.build.questions import CLOSING, Writer, said
from latentkt.trapqa.build.wording import CLAUSES, Clause
from latentkt.trapqa.items import TrapItem

if TYPE_CHECKING:
    from inspect_ai.model import Model

__all__ = ["Draft", "write_with_model"]

STAGE = "questions"
MARK = "<<MARK>>"
_PROMPT = """\
Write the text of a question about one of two {noun}s who are easily confused. You are not told who they are.

Facts that hold of both:
{facts}

Decisive clause, with a mark in place of the words that deny or affirm it ("{no}" or "{yes}"):
{clause}

description: one to three sentences about "this {noun}" in the third person, without he or she. Use every fact above, in
your own order and words, but keep the words in quotes exactly as they are. Add no other fact, no year, no name.
sentence: one sentence with the decisive clause. It holds {mark} exactly once, followed by the rest of the clause word
for word. It must be good English with either of the two fillings. It asks nothing."""


@dataclass
class Draft:
    """What a model writes.

    Attributes:
        description: Sentences that are true of both people.
        sentence: The decisive sentence with its mark.
    """

    description: str
    sentence: str


def write_with_model(
    plans: Sequence[Plan],
    writer: Writer,
    model: str | Model,
    log: StageLog,
    *,
    retries: int = 2,
    journal: str | Path | None = None,
) -> list[TrapItem]:
    """The items of plans in a model's words; what cannot be used goes into the log.

    Args:
        plans: The plans.
        writer: Makes items; its seed is passed on to the model.
        model: A model of inspect-ai, or its name.
        log: Gets the removals (stage `questions`): prose in place of the schema, and drafts that lack a fact's words,
            the mark or the clause, or that break the item format.
        retries: How often a reply of the wrong form is sent back.
        journal: Keeps the replies, for a run that is stopped.
    """
    tasks = [_Task(plan, writer, number) for number, plan in enumerate(plans, start=1)]
    drafts = generate(
        model, [task.prompt() for task in tasks], Draft, retries=retries, seed=writer.seed, journal=journal
    )
    items = []
    for task, draft in zip(tasks, drafts, strict=True):
        if isinstance(draft, Failure):
            log.remove(STAGE, task.plan.name, f"model: {draft.why}", draft.detail)
            continue
        wrong = task.wrong(draft)
        try:
            if wrong is None:
                items.append(task.item(draft, str(model)))
            else:
                log.remove(STAGE, task.plan.name, *wrong)
        except LatentKTError as error:
            log.remove(STAGE, task.plan.name, "breaks the item format", str(error))
    log.count(STAGE, kept=len(items))
    return items


class _Task:
    """One plan, with the clause and the facts that the model is given."""

    def __init__(self, plan: Plan, writer: Writer, number: int) -> None:
        self.plan, self.writer, self.number = plan, writer, number
        self.rng = random.Random(f"{writer.seed} {number} {plan.name}")
        self.clause: Clause = self.rng.choice(CLAUSES[plan.statement.kind])
        self.facts: list[Fact] = list(plan.facts)
        self.topic = said(plan.statement, self.clause.topic, writer.wordings, plan.topic)
        text = said(plan.statement, self.clause.text, writer.wordings, plan.topic)
        self.rest = text.replace("{mark}", "").replace("{topic}", self.topic).strip()

    def prompt(self) -> str:
        facts = "\n".join(f"- {fact.forms[0].format(chr(34) + fact.topic + chr(34))}" for fact in self.facts)
        return _PROMPT.format(
            noun=self.writer.style.noun,
            facts=facts,
            no=self.clause.no,
            yes=self.clause.yes,
            clause=f'{MARK} "{self.rest}"',
            mark=MARK,
        )

    def wrong(self, draft: Draft) -> tuple[str, str] | None:
        """The rule that a draft breaks."""
        lacking = [fact.topic for fact in self.facts if draft.description.count(fact.topic) != 1]
        if lacking:
            return "model: a fact's words are not there once", "; ".join(lacking)
        if draft.sentence.count(MARK) != 1 or f"{MARK} {self.rest}" not in draft.sentence:
            return "model: the mark and the clause are not there once", draft.sentence
        whole = draft.description + draft.sentence
        if any(sign in whole for sign in ("[[", "]]", "?", "{", "}")):
            return "model: it asks, or holds signs of marking", whole
        if self.topic not in self.rest:
            return "model: the clause lacks its topic", self.rest
        return None

    def item(self, draft: Draft, model: str) -> TrapItem:
        asserted = self.plan.polarity == "affirmed"
        description, rest = draft.description.strip(), self.rest
        if asserted:
            cue = self.facts[0].topic
            description = description.replace(cue, f"[[shortcut: {cue}]]")
        else:
            rest = rest.replace(self.topic, f"[[shortcut: {self.topic}]]")
        here, there = (self.clause.yes, self.clause.no) if asserted else (self.clause.no, self.clause.yes)
        sentence = draft.sentence.strip().replace(f"{MARK} {self.rest}", f"[[constraint: {here}]] {rest}")
        parts = [description, sentence] if self.plan.place == "last" else [sentence, description]
        text = f"{' '.join(parts)} {CLOSING}"
        return self.writer.item(
            self.plan, self.number, text, {"constraint": there}, self.facts, self.rng, generator=model
        )
