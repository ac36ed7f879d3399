"""Which question is asked of which pair: plans, and a choice among them that gives nothing away.

A plan names the decisive statement, its polarity, and which of the two people it leaves. In a negated plan the shortcut
is the one of whom the statement holds, because text that names that person together with the relation is to be expected.
In an affirmed plan it is the one who is written about more, because the description, which fits both, points there.
The choice takes the families in turn, both polarities of each, and keeps everybody right as often as wrong.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from latentkt.errors import InputError
from latentkt.trapqa.build.facts import Fact, Facts, suits
from latentkt.trapqa.build.lists import ClosedList
from latentkt.trapqa.build.log import StageLog
from latentkt.trapqa.build.places import PLACES
from latentkt.trapqa.build.profiles import Profile, latin, year_of
from latentkt.trapqa.build.statements import Decision, Statement, decide, statements_for

__all__ = ["Plan", "choose", "plans_for"]

STAGE = "plans"
_TELLING = 0.1
_MAX_FACTS = 3
_LIFE = ("born", "died")


@dataclass(frozen=True)
class Plan:
    """A question before it is written.

    Attributes:
        pair: Rank of the pair, best first.
        correct: The person whom the constraint leaves.
        shortcut: The other.
        statement: What decides.
        polarity: `negated` or `affirmed`.
        why: What decides the statement for the correct person and for the shortcut person.
        facts: Shared facts, the most telling first.
        verified: False where only the incompleteness of a profile separates the two.
        place: Where the constraint stands in the sentence.
        asked: Whether yes to a probe question means that the statement holds.
    """

    pair: int
    correct: Profile
    shortcut: Profile
    statement: Statement
    polarity: Literal["negated", "affirmed"]
    why: tuple[str, str]
    facts: tuple[Fact, ...]
    verified: bool = True
    place: Literal["first", "last"] = "last"
    asked: bool = True

    @property
    def name(self) -> str:
        """The pair, for logs."""
        return f"{self.correct.name} | {self.shortcut.name}"


def plans_for(
    pairs: Sequence[tuple[Profile, Profile]],
    facts: Facts,
    lists: Sequence[ClosedList],
    log: StageLog,
    *,
    attributes: Sequence[str] = (),
) -> list[Plan]:
    """All plans of all pairs; pairs that give none go into the log with the reason.

    Args:
        pairs: Pairs of people, best first.
        facts: Finds shared facts.
        lists: Closed lists.
        log: Gets the removals (stage `plans`, whose unit is the pair).
        attributes: Attributes whose absence is taken as false; such plans are marked as not verified.
    """
    found: list[Plan] = []
    kept = 0
    for rank, (one, other) in enumerate(pairs, start=1):
        name = f"{one.name} | {other.name}"
        if not (latin(one.name) and latin(other.name)):
            log.remove(STAGE, name, "a name in another script")
            continue
        shared = facts.shared(one, other)
        described = [*shared, *_centuries(one, other, facts)]
        made, undecided, separated = _plans(rank, one, other, described, lists, attributes, len(facts.profiles))
        if made:
            found += made
            kept += 1
        else:
            rule = _why_none(shared, undecided, separated)
            log.remove(STAGE, name, rule, "; ".join(dict.fromkeys(undecided)) if rule == "undecided" else "")
    log.count(STAGE, kept=kept)
    return found


def _why_none(shared: Sequence[Fact], undecided: Sequence[str], separated: bool) -> str:
    if not shared:
        return "nothing to describe both with"
    if separated:
        return "what both have says too little"
    return "undecided" if undecided else "no attribute separates the two"


def _plans(
    rank: int,
    one: Profile,
    other: Profile,
    shared: Sequence[Fact],
    lists: Sequence[ClosedList],
    attributes: Sequence[str],
    total: int,
) -> tuple[list[Plan], list[str], bool]:
    """The plans of a pair, why statements were not decided, and whether any statement separates the two."""
    made: list[Plan] = []
    separated = False
    undecided: list[str] = []
    for statement in statements_for(one, other, lists, attributes):
        decisions = [decide(statement, person, lists) for person in (one, other)]
        verified = all(decision.truth is not None for decision in decisions)
        if statement.kind == "attribute":  # only here, and only where asked for, is what is missing taken as false
            decisions = [d if d.truth is not None else replace(d, truth=False) for d in decisions]
        if None in (decisions[0].truth, decisions[1].truth):
            undecided += [f"{statement.family}: {d.why}" for d in decisions if d.truth is None]
            continue
        said = _fitting(shared, statement)
        if decisions[0].truth == decisions[1].truth:
            continue
        separated = True
        if _telling(said, total):
            made += _both_polarities(rank, (one, other), statement, decisions, said, verified)
    return made, undecided, separated


def _both_polarities(
    rank: int,
    people: tuple[Profile, Profile],
    statement: Statement,
    decisions: Sequence[Decision],
    said: Sequence[Fact],
    verified: bool,
) -> Iterator[Plan]:
    holds = 0 if decisions[0].truth else 1
    true, false = people[holds], people[1 - holds]
    whys = decisions[holds].why, decisions[1 - holds].why
    facts = tuple(said[:_MAX_FACTS])
    yield Plan(rank, false, true, statement, "negated", (whys[1], whys[0]), facts, verified)
    if true.fame is None or false.fame is None or false.fame >= true.fame:
        yield Plan(rank, true, false, statement, "affirmed", whys, facts, verified)


def _fitting(shared: Sequence[Fact], statement: Statement) -> list[Fact]:
    """The facts that may stand beside a statement: of other relations, and not two about one birth."""
    said = [fact for fact in shared if suits(fact, statement)]
    own = {"birth_year": "born", "death_year": "died"}.get(statement.kind)
    births = [fact for fact in said if fact.attribute in (*PLACES, "born") and fact.attribute != own]
    return [fact for fact in said if fact.attribute != own and fact not in births[1:]]


def _telling(facts: Sequence[Fact], total: int) -> bool:
    """At least two facts, the first of which at most a tenth of all people share; a century says too little."""
    return len(facts) > 1 and facts[0].attribute not in _LIFE and facts[0].holders <= max(_TELLING * total, 2)


_ORDINALS = {16: "sixteenth", 17: "seventeenth", 18: "eighteenth", 19: "nineteenth", 20: "twentieth"}


def _centuries(one: Profile, other: Profile, facts: Facts) -> Iterator[Fact]:
    """The century of birth or death, where both dates are known, stand in the texts and share it."""
    for attribute, kind, verb in (("born", "birth_year", "was born"), ("died", "death_year", "died")):
        years = [year_of(getattr(person, attribute)) for person in (one, other)]
        if years[0] is None or years[1] is None:
            continue
        centuries = {(year - 1) // 100 + 1 for year in years if year is not None}
        known = all(
            decide(Statement(kind, side="before", year=9999), person, []).truth  # type: ignore[arg-type]
            for person in (one, other)
        )
        if len(centuries) == 1 and known and (century := centuries.pop()) in _ORDINALS:
            text = f"the {_ORDINALS[century]} century"
            yield Fact(attribute, text, text, (f"{verb} in {{}}",), len(facts.profiles))


def choose(
    plans: Sequence[Plan], log: StageLog, *, seed: int, limit: int | None = None, per_person: int = 8, per_pair: int = 2
) -> list[Plan]:
    """Choose plans that are balanced, and deal out the place of the constraint and the sense of the probe questions.

    Args:
        plans: All plans.
        log: Gets what is left over (stage `choice`).
        seed: Of the order in which equals are taken.
        limit: At most so many.
        per_person: In how many questions one person may stand.
        per_pair: How many questions one pair may give, of different families.

    Raises:
        InputError: A bound is not positive.
    """
    if min(per_person, per_pair, 1 if limit is None else limit) < 1:
        raise InputError("a bound of the choice is wrong", expected="1 or more", found=(limit, per_person, per_pair))
    rng = random.Random(f"choice {seed}")
    cells: dict[tuple[str, str], list[Plan]] = defaultdict(list)
    for plan in plans:
        cells[plan.statement.family, plan.polarity].append(plan)
    for cell in cells.values():
        rng.shuffle(cell)
    choice = _Choice(per_person, per_pair)
    while limit is None or len(choice.taken) < limit:
        before = len(choice.taken)
        for family in sorted({family for family, _ in cells}):
            two = [choice.best(cells.get((family, polarity), [])) for polarity in ("negated", "affirmed")]
            if all(two) and (limit is None or len(choice.taken) + 2 <= limit):
                choice.take_both(cells, family)
        if len(choice.taken) == before:
            break
    chosen = _dealt(choice.taken, rng)
    log.remove_many("choice", "left over by the balance", len(plans) - len(chosen))
    log.count("choice", kept=len(chosen))
    return chosen


class _Choice:
    """What is taken, and how the balance stands."""

    def __init__(self, per_person: int, per_pair: int) -> None:
        self.per_person, self.per_pair = per_person, per_pair
        self.taken: list[Plan] = []
        self.ids: set[int] = set()
        self._balance: Counter[str] = Counter()
        self._used: Counter[str] = Counter()
        self._pairs: dict[int, set[str]] = defaultdict(set)

    def best(self, cell: list[Plan]) -> Plan | None:
        """The first plan of a cell that may be taken and mends the balance most."""
        allowed = [plan for plan in cell if self._allows(plan)]
        return min(allowed, key=self._tilt, default=None)

    def take_both(self, cells: dict[tuple[str, str], list[Plan]], family: str) -> None:
        """One plan of either polarity, or none."""
        taken = []
        for polarity in ("negated", "affirmed"):
            plan = self.best(cells[family, polarity])
            if plan is None:
                break
            self._take(plan, 1)
            taken.append(plan)
        if len(taken) < 2:
            for plan in taken:
                self._take(plan, -1)

    def _tilt(self, plan: Plan) -> tuple[int, int]:
        tilt = self._balance[plan.correct.id] - self._balance[plan.shortcut.id]
        return tilt, self._used[plan.correct.id] + self._used[plan.shortcut.id]

    def _allows(self, plan: Plan) -> bool:
        people = plan.correct.id, plan.shortcut.id
        return (
            self._balance[people[0]] <= 0
            and self._balance[people[1]] >= 0
            and max(self._used[person] for person in people) < self.per_person
            and len(self._pairs[plan.pair]) < self.per_pair
            and plan.statement.family not in self._pairs[plan.pair]
        )

    def _take(self, plan: Plan, sign: int) -> None:
        for person, change in ((plan.correct.id, 1), (plan.shortcut.id, -1)):
            self._balance[person] += sign * change
            self._used[person] += sign
        if sign > 0:
            self.taken.append(plan)
            self.ids.add(id(plan))
            self._pairs[plan.pair].add(plan.statement.family)
        else:
            self.taken.remove(plan)
            self.ids.discard(id(plan))
            self._pairs[plan.pair].discard(plan.statement.family)


def _dealt(taken: Sequence[Plan], rng: random.Random) -> list[Plan]:
    """Each of the four ways (place, sense of the probes) for a quarter of the plans of a family and polarity."""
    ways: list[tuple[Literal["first", "last"], bool]] = [
        ("last", True),
        ("first", False),
        ("last", False),
        ("first", True),
    ]
    turn: Counter[tuple[str, str]] = Counter()
    start = {key: rng.randrange(4) for key in sorted({(p.statement.family, p.polarity) for p in taken})}
    dealt = []
    for plan in taken:
        key = plan.statement.family, plan.polarity
        place, asked = ways[(start[key] + turn[key]) % 4]
        turn[key] += 1
        dealt.append(replace(plan, place=place, asked=asked))
    return dealt
