"""From a plan to a trap item: the templates, which need no model.

The words are chosen so that no sentence comes up more often than it must: among equals, the one used least so far.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from latentkt.trapqa.authoring import mark_item
from latentkt.trapqa.build.facts import Fact
from latentkt.trapqa.build.lists import ClosedList
from latentkt.trapqa.build.masking import linearise
from latentkt.trapqa.build.patterning import person_key, statement_task, topic_task
from latentkt.trapqa.build.planning import Plan
from latentkt.trapqa.build.profiles import Profile
from latentkt.trapqa.build.statements import Statement
from latentkt.trapqa.build.wording import CLAUSES, FRAMES, QUESTIONS, WORDINGS, Clause, Wording
from latentkt.trapqa.items import TrapItem

__all__ = ["CLOSING", "Style", "Writer", "said"]

CLOSING = "Who is this person?"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Style:
    """What the questions call people, and what belongs to all of them.

    Attributes:
        noun: What the people are ("physicist").
        aspect: Field of knowledge for the items, or None.
        source: Where the profiles come from.
    """

    noun: str = "person"
    aspect: str | None = None
    source: str = "the profiles"

    @property
    def a_noun(self) -> str:
        """The noun with its article."""
        return f"{'an' if self.noun[0].lower() in 'aeiou' else 'a'} {self.noun}"


def said(statement: Statement, text: str, wordings: Mapping[str, Wording] = WORDINGS, topic: str | None = None) -> str:
    """A template about a statement, filled.

    Example:
        >>> said(Statement("birth_year", side="before", year=1900), "Was {name} born in {year} or {other}?")
        'Was {name} born in 1900 or later?'
    """
    base = wordings[statement.attribute].base.format(topic or statement.value) if statement.attribute else ""
    filled = {
        "{value}": topic or str(statement.value),
        "{side}": str(statement.side),
        "{year}": str(statement.year),
        "{other}": {"before": "later", "after": "earlier"}.get(str(statement.side), ""),
        "{base}": base,
    }
    for place, words in filled.items():
        text = text.replace(place, words)
    return text


def listed(phrases: Sequence[str]) -> str:
    """Phrases in a row.

    Example:
        >>> listed(["a", "b", "c"])
        'a, b and c'
    """
    return " and ".join([", ".join(phrases[:-1]), phrases[-1]]) if len(phrases) > 1 else phrases[0]


class Writer:
    """Writes items from templates.

    Args:
        style: What is the same in all.
        lists: The closed lists, for what profiles say of awards.
        seed: Of the choices among wordings.
        wordings: How attributes are said.
    """

    def __init__(
        self, style: Style, lists: Sequence[ClosedList], *, seed: int, wordings: Mapping[str, Wording] = WORDINGS
    ) -> None:
        self.style, self.lists, self.seed, self.wordings = style, lists, seed, wordings
        self._used: Counter[object] = Counter()

    def write(self, plan: Plan, number: int) -> TrapItem:
        """The item of a plan.

        Raises:
            DataError: The words break a clause of the item format.
        """
        rng = random.Random(f"{self.seed} {number} {plan.name}")
        clause = self._least(CLAUSES[plan.statement.kind], rng, plan.statement.family)
        frame = self._least(FRAMES[plan.place], rng, plan.statement.family, clause)
        facts = self._facts(plan, rng)
        return self.item(plan, number, self._text(plan, clause, frame, facts), self._swap(plan, clause), facts, rng)

    def _facts(self, plan: Plan, rng: random.Random) -> list[Fact]:
        """Two or three facts, the first of them the cue; one century is enough."""
        lives = [fact for fact in plan.facts if fact.attribute in ("born", "died")]
        others = [fact for fact in plan.facts if fact not in lives]
        return [*others, *lives[:1]][: rng.choice((2, 2, 3))]

    def _text(self, plan: Plan, clause: Clause, frame: str, facts: Sequence[Fact]) -> str:
        cued = plan.polarity == "affirmed"
        phrases: list[str] = []
        verbs: list[str] = []
        for index, fact in enumerate(facts):
            fresh = [form for form in fact.forms if form.split()[:2] not in [verb.split()[:2] for verb in verbs]]
            form = self._least(fresh or fact.forms, random.Random(f"{self.seed} {plan.name} {fact.topic}"), "fact")
            verbs.append(form)
            phrases.append(form.format(f"[[shortcut: {fact.topic}]]" if cued and index == 0 else fact.topic))
        sentence = frame.replace("{facts}", listed(phrases)).replace("{constraint}", self.constraint(plan, clause))
        sentence = sentence.replace("{a_noun}", self.style.a_noun).replace("{noun}", self.style.noun)
        return f"{sentence[0].upper()}{sentence[1:]} {CLOSING}"

    def constraint(self, plan: Plan, clause: Clause) -> str:
        """The decisive clause, with its marks."""
        topic = said(plan.statement, clause.topic, self.wordings, plan.topic)
        marked = topic if plan.polarity == "affirmed" else f"[[shortcut: {topic}]]"
        mark = f"[[constraint: {clause.yes if plan.polarity == 'affirmed' else clause.no}]]"
        return (
            said(plan.statement, clause.text, self.wordings, plan.topic)
            .replace("{topic}", marked)
            .replace("{mark}", mark)
        )

    def _swap(self, plan: Plan, clause: Clause) -> dict[str, str]:
        return {"constraint": clause.no if plan.polarity == "affirmed" else clause.yes}

    def item(
        self,
        plan: Plan,
        number: int,
        text: str,
        control: str | Mapping[str, str],
        facts: Sequence[Fact],
        rng: random.Random,
        generator: str = "templates",
    ) -> TrapItem:
        """A checked item of a marked text: everything but the words is the plan's."""
        asserted = plan.polarity == "affirmed"
        return mark_item(
            id=f"{plan.statement.kind.replace('_', '-')}-{number:04d}",
            kind="scientist",
            family=plan.statement.family,
            aspect=self.style.aspect,
            constraint_kind=plan.statement.kind,
            polarity=plan.polarity,
            text=text,
            control=control,
            correct=self._candidate(plan.correct, plan.shortcut, plan.statement),
            shortcut=self._candidate(plan.shortcut, plan.correct, plan.statement),
            paths=self._paths(plan, facts[0]),
            probe_questions=self._probes(plan, rng),
            source=self._sources(plan),
            meta={
                "pair": plan.pair,
                "people": {"correct": plan.correct.id, "shortcut": plan.shortcut.id},
                "statement": plan.statement.to_dict(),
                "truth": {"correct": asserted, "shortcut": not asserted},
                "asserted": asserted,
                "asked": plan.asked,
                "facts": [{"attribute": fact.attribute, "value": fact.value, "topic": fact.topic} for fact in facts],
                "verified": plan.verified,
                "generator": generator,
            },
        )

    def _candidate(self, person: Profile, other: Profile, statement: Statement) -> dict[str, Any]:
        taken = {name.casefold() for name in other.names}
        aliases = [name for name in person.aliases if name.casefold() not in taken]
        return {"text": person.name, "aliases": aliases, "profile": self.profile_text(person, statement)}

    def profile_text(self, person: Profile, statement: Statement) -> str:
        """The whole profile as a paragraph, with what a closed list says of the decisive award."""
        parts = [linearise(person)]
        parts += [f"{word}: {date}." for word, date in (("Born", person.born), ("Died", person.died)) if date]
        for closed in self.lists:
            if statement.kind in ("award", "award_year") and statement.value in closed.awards:
                years = [str(e.year) for e in closed.look_up(person).entries if e.award == statement.value]
                parts.append(f"{statement.value}: {', '.join(years) or f'none up to {closed.last_year}'}.")
        return " ".join(parts)

    def _paths(self, plan: Plan, cue: Fact) -> dict[str, str]:
        relation = statement_task(plan.statement)
        told = relation if plan.polarity == "negated" else topic_task(cue)
        return {
            "correct": f"{person_key(plan.correct)}:{relation}",
            "shortcut": f"{person_key(plan.shortcut)}:{told}",
        }

    def _probes(self, plan: Plan, rng: random.Random) -> list[dict[str, Any]]:
        holds, fails = self._least(QUESTIONS[plan.statement.kind], rng, "probe")
        question = said(plan.statement, holds if plan.asked else fails, self.wordings, plan.topic)
        asserted = plan.polarity == "affirmed"
        return [
            {"role": role, "text": question.replace("{name}", person.name), "answer": truth == plan.asked}
            for role, person, truth in (
                ("eliminative", plan.shortcut, not asserted),
                ("compatibility", plan.correct, asserted),
            )
        ]

    def _sources(self, plan: Plan) -> list[str]:
        cue = {
            "negated": f"the relation that is denied holds of {plan.shortcut.name}, so text that names this person "
            "with it is to be expected",
            "affirmed": f"the description fits both, and {plan.shortcut.name} is written about at least as much "
            f"({_fame(plan.shortcut)} against {_fame(plan.correct)})",
        }
        return [
            f"Decisive fact, {plan.correct.name}: {plan.why[0]}.",
            f"Decisive fact, {plan.shortcut.name}: {plan.why[1]}.",
            f"Description: shared attributes of {self.style.source}.",
            f"Shortcut (a hypothesis, not a count): {cue[plan.polarity]}.",
        ]

    def _least(self, choices: Sequence[T], rng: random.Random, *context: object) -> T:
        """The choice that was used least in its context; equals are drawn."""
        counts = [self._used[(*context, choice)] for choice in choices]
        chosen = choices[rng.choice([i for i, n in enumerate(counts) if n == min(counts)])]
        self._used[(*context, chosen)] += 1
        return chosen


def _fame(person: Profile) -> str:
    return "fame unknown" if person.fame is None else f"fame {person.fame:g}"
