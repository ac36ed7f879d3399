"""The stage `questions`: pairs in, a finished item set out, with patterns, log and data card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from latentkt.errors import InputError
from latentkt.results import jsonl_output
from latentkt.trapqa.build.artefacts import artefact_tests
from latentkt.trapqa.build.drafting import write_with_model
from latentkt.trapqa.build.facts import Fact, Facts
from latentkt.trapqa.build.lists import ClosedList
from latentkt.trapqa.build.log import log_beside
from latentkt.trapqa.build.output import BESIDE, Made, Source, write_items
from latentkt.trapqa.build.pair_stage import READ, PairFile, load_pairs
from latentkt.trapqa.build.patterning import patterns_for
from latentkt.trapqa.build.planning import Plan, choose, plans_for
from latentkt.trapqa.build.proof import prove
from latentkt.trapqa.build.questions import Style, Writer
from latentkt.trapqa.build.reviewing import review
from latentkt.trapqa.build.wording import WORDINGS, Wording

if TYPE_CHECKING:
    from inspect_ai.model import Model

    from latentkt.trapqa.items import TrapItem

__all__ = ["QuestionOptions", "make_questions"]


@dataclass(frozen=True)
class QuestionOptions:
    """How questions are made.

    Attributes:
        lists: Closed lists that decide awards.
        noun: What the people are called.
        aspect: Field of knowledge, for the items.
        limit: At most so many questions.
        per_person: In how many of them one person may stand.
        unverified: Attributes whose absence in a profile is taken as false; their items are marked as not verified.
        wordings: Further wordings of attributes.
        model: A model that writes the questions; None for templates.
        checker: A model that gives a second opinion; None for rules alone.
        retries: How often a reply of the wrong form is sent back.
        seed: Of every choice.
    """

    lists: Sequence[ClosedList] = ()
    noun: str = "person"
    aspect: str | None = None
    limit: int | None = None
    per_person: int = 8
    unverified: Sequence[str] = ()
    wordings: Mapping[str, Wording] = field(default_factory=dict)
    model: str | Model | None = None
    checker: str | Model | None = None
    retries: int = 2
    seed: int = 0


def make_questions(pairs: str | Path, options: QuestionOptions, *, out: str | Path) -> Made:
    """Plan, choose, write, prove and save.

    The same pairs and options give the same files. Replies of models are kept beside the items (`.generated.jsonl`,
    `.checked.jsonl`) as they come, so that a run that was stopped goes on without asking again.

    Args:
        pairs: What `make_pairs` wrote.
        options: How.
        out: The item file, ending in `.jsonl`.

    Raises:
        InputError: No item is left, or an option is wrong.
    """
    path = jsonl_output(out, [pairs, *(Path(pairs).with_suffix(ending) for ending in READ)], beside=BESIDE)
    found = load_pairs(pairs)
    held = {name for person in found.everybody for name in person.attributes}
    unknown = [name for name in options.unverified if name not in held]
    if unknown:
        raise InputError("no profile has that attribute", expected=", ".join(sorted(held)), found=", ".join(unknown))
    wordings = {**WORDINGS, **options.wordings}
    facts = Facts(found.everybody, wordings)
    twins = plans_for(found.pairs, facts, options.lists, found.log, attributes=options.unverified)
    chosen = choose(twins, found.log, seed=options.seed, limit=options.limit, per_person=options.per_person)
    style = Style(options.noun, options.aspect, str(found.meta["options"]["source"]))
    writer = Writer(style, options.lists, seed=options.seed, wordings=wordings)
    items = _written(chosen, writer, found, options, path)
    people = {person.id: person for person in found.everybody}
    proved = prove(items, people, options.lists, found.log, unverified=bool(options.unverified))
    if options.checker is not None:
        journal = path.with_suffix(".checked.jsonl")
        proved = review(proved, options.checker, found.log, seed=options.seed, retries=options.retries, journal=journal)
    if not proved:
        found.log.save(log_beside(path))
        raise InputError(
            "no item is left to write",
            expected="at least one",
            found="; ".join(found.log.lines()),
            fix=f"see {log_beside(path)}; take more pairs, or give a list of awards or wordings for attributes",
        )
    tests = artefact_tests(proved)
    written = write_items(
        proved,
        found.log,
        out=path,
        sources=_sources(found, options),
        patterns=patterns_for(_cues(proved, chosen), found.everybody) if proved else None,
        title="Questions about people",
        how=_how(found, options, facts),
        tests=tests,
    )
    return Made(written, tests, found.log)


def _written(
    chosen: Sequence[Plan], writer: Writer, found: PairFile, options: QuestionOptions, path: Path
) -> list[TrapItem]:
    path.parent.mkdir(parents=True, exist_ok=True)
    if options.model is not None:
        journal = path.with_suffix(".generated.jsonl")
        return write_with_model(chosen, writer, options.model, found.log, retries=options.retries, journal=journal)
    items = [writer.write(plan, number) for number, plan in enumerate(chosen, start=1)]
    found.log.count("questions", kept=len(items))
    return items


def _cues(items: Sequence[TrapItem], plans: Sequence[Plan]) -> list[tuple[Plan, Fact]]:
    """Plan and cue of each item that is left; the number in an item's id is its plan's."""
    cued = []
    for item in items:
        plan = plans[int(item.id.rpartition("-")[2]) - 1]
        cued.append((plan, next(fact for fact in plan.facts if fact.topic == item.meta["facts"][0]["topic"])))
    return cued


def _sources(found: PairFile, options: QuestionOptions) -> list[Source]:
    made = found.meta["options"]
    sources = [Source(made["source"], made["licence"], "profiles, names, descriptions", made["source_sha256"])]
    sources += [Source(c.name, c.licence, "who has received an award, and when", c.sha256) for c in options.lists]
    sources.append(Source(found.meta["embedding"], found.meta["embedding_licence"], "similarity of profiles"))
    for model, used in (
        (options.model, "the words of the questions"),
        (options.checker, "second opinion on each item"),
    ):
        if model is not None:
            sources.append(Source(str(model), "of the provider", used))
    if options.model is None:
        sources.append(Source("templates of latentkt", "MIT", "the words of the questions"))
    return sources


def _how(found: PairFile, options: QuestionOptions, facts: Facts) -> list[str]:
    meta = found.meta
    unusable = ", ".join(f"{name}: {why} ({n})" for (name, why), n in facts.unusable.most_common(6))
    writer = "templates" if options.model is None else str(options.model)
    checker = "none" if options.checker is None else str(options.checker)
    assumed = f", but for {', '.join(options.unverified)}, as asked for" if options.unverified else ""
    return [
        f"Pairs: the top {meta['pairs']} of {meta['all_pairs']:,} pairs of {meta['people']} people "
        f"({100 * meta['fraction']:.4g} %) by Equation 1 of arXiv 2607.00447, lambda {meta['median_tag_count']:g}, "
        f"embedding {meta['embedding']}.",
        f"Questions: {writer}, seed {options.seed}; second opinion: {checker}. A description of attributes that both "
        "people have, then one constraint that holds of exactly one. Closed lists decide awards, dates of both people "
        "decide years, two cities that exclude each other decide places of birth; what a profile does not say decides "
        f"nothing{assumed}.",
        "Which person is the shortcut is a hypothesis with its reason in `source`: in negated items the one of whom "
        "the denied relation holds, in affirmed ones the other, who is written about at least as much. Count the paths "
        "in a corpus. Every statement could be denied or affirmed, with opposite answers; which it is was drawn.",
        f"Shared values that were not used in sentences, of all pairs: {unusable or 'none'}.",
    ]
