"""Which question is asked of which pair: twins of plans, and a coin that picks one of each.

A statement that holds of one of two people gives two questions with the same words but for the constraint: denied, it
leaves the one of whom it does not hold; affirmed, the other. Twins are made where both are traps. Denied, the shortcut
is the one of whom the statement holds, because text that names that person with the relation is to be expected.
Affirmed, it is the other one, who must then be written about at least as much, because the description fits both.
Which twin becomes the question is a coin of its own, so names and description say nothing about the answer.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from latentkt.errors import InputError
from latentkt.trapqa.build.facts import Fact, Facts, suits
from latentkt.trapqa.build.lists import ClosedList
from latentkt.trapqa.build.log import StageLog
from latentkt.trapqa.build.places import PLACES
from latentkt.trapqa.build.profiles import Profile, latin, year_of
from latentkt.trapqa.build.statements import Decision, Statement, decide, statements_for

__all__ = ["Plan", "Twins", "choose", "plans_for"]

STAGE = "plans"
T = TypeVar("T")
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
        topic: The words for an attribute's value, where the statement is about one.
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
    topic: str | None = None

    @property
    def name(self) -> str:
        """The pair, for logs."""
        return f"{self.correct.name} | {self.shortcut.name}"


Twins = tuple[Plan, Plan]
"""The negated and the affirmed question of one statement; what is right in one is the shortcut in the other."""


def plans_for(
    pairs: Sequence[tuple[Profile, Profile]],
    facts: Facts,
    lists: Sequence[ClosedList],
    log: StageLog,
    *,
    attributes: Sequence[str] = (),
) -> list[Twins]:
    """All twins of all pairs; pairs that give none go into the log with the reason.

    Args:
        pairs: Pairs of people, best first.
        facts: Finds shared facts.
        lists: Closed lists.
        log: Gets the removals (stage `plans`, whose unit is the pair).
        attributes: Attributes whose absence is taken as false; such plans are marked as not verified.
    """
    found: list[Twins] = []
    kept = 0
    for rank, (one, other) in enumerate(pairs, start=1):
        name = f"{one.name} | {other.name}"
        if not (latin(one.name) and latin(other.name)):
            log.remove(STAGE, name, "a name in another script")
            continue
        shared = facts.shared(one, other)
        described = [*shared, *_centuries(one, other, facts)]
        made, undecided, separated = _plans(rank, one, other, described, lists, attributes, facts)
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
    facts: Facts,
) -> tuple[list[Twins], list[str], bool]:
    """The twins of a pair, why statements were not decided, and whether any statement separates the two."""
    made: list[Twins] = []
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
        if _telling(said, len(facts.profiles)):
            topic = facts.words(statement.attribute, str(statement.value)) if statement.attribute else ""
            if topic is not None:
                made += _twins(rank, (one, other), statement, decisions, said, verified, topic or None)
    return made, undecided, separated


def _twins(
    rank: int,
    people: tuple[Profile, Profile],
    statement: Statement,
    decisions: Sequence[Decision],
    said: Sequence[Fact],
    verified: bool,
    topic: str | None,
) -> Iterator[Twins]:
    holds = 0 if decisions[0].truth else 1
    true, false = people[holds], people[1 - holds]
    if true.fame is not None and false.fame is not None and false.fame < true.fame:
        return
    whys = decisions[holds].why, decisions[1 - holds].why
    facts = tuple(said[:_MAX_FACTS])
    yield (
        Plan(rank, false, true, statement, "negated", (whys[1], whys[0]), facts, verified, topic=topic),
        Plan(rank, true, false, statement, "affirmed", whys, facts, verified, topic=topic),
    )


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
    twins: Sequence[Twins],
    log: StageLog,
    *,
    seed: int,
    limit: int | None = None,
    per_person: int = 8,
    per_pair: int = 2,
) -> list[Plan]:
    """Choose twins by families in turn, and draw one of each; half of a family's questions are negated.

    The place of the constraint and the sense of the probe questions are dealt out as well, each of their four ways for
    a quarter of the questions of a family and polarity.

    Args:
        twins: All twins.
        log: Gets what is left over (stage `choice`, whose unit is the statement).
        seed: Of all that is drawn.
        limit: At most so many.
        per_person: In how many questions one person may stand.
        per_pair: How many questions one pair may give, of different families.

    Raises:
        InputError: A bound is not positive.
    """
    if min(per_person, per_pair, 1 if limit is None else limit) < 1:
        raise InputError("a bound of the choice is wrong", expected="1 or more", found=(limit, per_person, per_pair))
    rng = random.Random(f"choice {seed}")
    families: dict[str, list[Twins]] = defaultdict(list)
    for pair in twins:
        families[pair[0].statement.family].append(pair)
    for family in families.values():
        rng.shuffle(family)
    taken = _taken(families, limit, per_person, per_pair)
    chosen = [plan for name in sorted(taken) for plan in _dealt(taken[name], rng)]
    rng.shuffle(chosen)
    log.remove_many("choice", "left over by the bounds", len(twins) - len(chosen))
    log.count("choice", kept=len(chosen))
    return chosen


def _taken(
    families: Mapping[str, Sequence[Twins]], limit: int | None, per_person: int, per_pair: int
) -> dict[str, list[Twins]]:
    """The first twins of each family that the bounds allow, one family after the other, round by round."""
    taken: dict[str, list[Twins]] = defaultdict(list)
    people: Counter[str] = Counter()
    used: dict[int, set[str]] = defaultdict(set)
    queues = {name: iter(families[name]) for name in sorted(families)}
    while queues and (limit is None or sum(map(len, taken.values())) < limit):
        for name in list(queues):
            if limit is not None and sum(map(len, taken.values())) >= limit:
                break
            for twins in queues[name]:
                plan = twins[0]
                both = plan.correct.id, plan.shortcut.id
                full = max(people[person] for person in both) >= per_person
                if not full and name not in used[plan.pair] and len(used[plan.pair]) < per_pair:
                    taken[name].append(twins)
                    people.update(both)
                    used[plan.pair].add(name)
                    break
            else:
                del queues[name]
    return taken


_WAYS: tuple[tuple[Literal["first", "last"], bool], ...] = (
    ("last", True), ("first", False), ("last", False), ("first", True)
)  # fmt: skip


def _dealt(twins: Sequence[Twins], rng: random.Random) -> Iterator[Plan]:
    """One of each two twins, either polarity for half of them, and the four ways for a quarter of each half."""
    coins = [index % 2 for index in range(len(twins))]
    if len(coins) % 2:
        coins[-1] = rng.randrange(2)
    rng.shuffle(coins)
    ways = {coin: _shuffled(_WAYS, coins.count(coin), rng) for coin in (0, 1)}
    for pair, coin in zip(twins, coins, strict=True):
        place, asked = ways[coin].pop()
        yield replace(pair[coin], place=place, asked=asked)


def _shuffled(ways: Sequence[T], n: int, rng: random.Random) -> list[T]:
    """The ways, each as often as the others (or once more), in a drawn order."""
    start = rng.randrange(len(ways))
    dealt = [ways[(start + index) % len(ways)] for index in range(n)]
    rng.shuffle(dealt)
    return dealt
