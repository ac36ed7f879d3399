"""The two stages: a strength file becomes a bank with seeds, a bank becomes a finished set of everyday items."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from latentkt.errors import DataError, InputError
from latentkt.results import jsonl_output
from latentkt.trapqa.build.artefacts import artefact_tests
from latentkt.trapqa.build.everyday.bank import Bank, Cleaning, clean, small
from latentkt.trapqa.build.everyday.compose import Recipe, compose, recipes
from latentkt.trapqa.build.everyday.families import Family, Scene, families
from latentkt.trapqa.build.everyday.inventing import STAGE as SCENES
from latentkt.trapqa.build.everyday.inventing import invent_scenes, pairs_of_seeds
from latentkt.trapqa.build.everyday.judging import judge_items
from latentkt.trapqa.build.everyday.patterning import patterns_for
from latentkt.trapqa.build.everyday.perturb import Perturbation, perturbed
from latentkt.trapqa.build.everyday.proof import prove
from latentkt.trapqa.build.everyday.seeds import Seed, SeedLimits, choose_seeds, load_seeds, save_seeds
from latentkt.trapqa.build.everyday.strengths import read_strengths
from latentkt.trapqa.build.everyday.words import word_tools
from latentkt.trapqa.build.log import StageLog, log_beside
from latentkt.trapqa.build.output import BESIDE, Made, Source, write_items
from latentkt.trapqa.items import TrapItem

if TYPE_CHECKING:
    from inspect_ai.model import Model

__all__ = ["ScenarioOptions", "make_associations", "make_scenarios"]

STAGE = "scenes"


def make_associations(
    strengths: str | Path,
    *,
    out: str | Path,
    use: Literal["auto", "builtin"] = "auto",
    cleaning: Cleaning | None = None,
    limits: SeedLimits | None = None,
    licence: str = "not stated",
    seed: int = 0,
) -> list[str]:
    """Clean a strength file and choose the seeds of the eight families.

    Args:
        strengths: A file of association strengths (SWOW's layout).
        out: Where the bank is written (`.jsonl`); its log of removals lies beside it.
        use: `auto`: spaCy, NLTK's WordNet and wordfreq where they are installed; `builtin`: none of them.
        cleaning: The limits of cleaning.
        limits: The limits of the choice of seeds.
        licence: Licence of the file, for the data card.
        seed: Written into the file; nothing is drawn here.

    Returns:
        What was done, a line each.

    Raises:
        InputError: The file is absent, or `out` has another ending.
        DataError: It is no strength file, or nothing of it is left.
    """
    path = jsonl_output(out, [strengths], beside=[".removed.jsonl"])
    cleaning, limits, log = cleaning or Cleaning(), limits or SeedLimits(), StageLog()
    rows = read_strengths(strengths, log)
    tools = word_tools({small(word) for row in rows for word in (row.cue, row.response)}, use=use)
    bank = clean(rows, tools, log, cleaning)
    bank.about = {
        "source": Path(strengths).name,
        "sha256": hashlib.sha256(Path(strengths).read_bytes()).hexdigest(),
        "licence": licence,
        "words": dict(tools.sources),
        "cleaning": asdict(cleaning),
        "seeds": asdict(limits),
        "seed": seed,
    }
    known = families()
    seeds = choose_seeds(bank, known, log, limits)
    path.parent.mkdir(parents=True, exist_ok=True)
    log.save(log_beside(path))
    save_seeds(path, bank, seeds, known)
    counts = {family.name: sum(each.family == family.name for each in seeds) for family in known}
    sources = (f"{what}: {source}" for what, source in tools.sources.items())
    return [
        *sources,
        *log.lines(),
        "seeds by family: " + ", ".join(f"{name} {n}" for name, n in counts.items()),
        f"associations: {path} ({len(bank)})",
    ]


@dataclass(frozen=True)
class ScenarioOptions:
    """How scenarios are made.

    Attributes:
        perturb: Perturbed versions to add.
        model: A model of inspect-ai that writes further scenes; None for the written ones alone.
        per_family: How many scenes the model is asked for in each family.
        checker: A model that gives a second opinion; None for rules alone.
        per_response: In how many scenes of a family one response may be an option.
        limit: At most so many items (mirror images and levels are kept together), drawn over the families; None: all.
        retries: How often a reply of the wrong form is sent back.
        seed: Of every choice.
    """

    perturb: Sequence[Perturbation] = ()
    model: str | Model | None = None
    per_family: int = 10
    checker: str | Model | None = None
    per_response: int = 12
    limit: int | None = None
    retries: int = 2
    seed: int = 0


def make_scenarios(seeds: str | Path, options: ScenarioOptions, *, out: str | Path) -> Made:
    """Make everyday items of the seeds in a bank.

    The same bank and options give the same files. Replies of models are kept beside the items (`.generated.jsonl`,
    `.checked.jsonl`) as they come, so that a run that was stopped goes on without asking again.

    Args:
        seeds: What `make_associations` wrote.
        options: How.
        out: The item file, ending in `.jsonl`.

    Raises:
        InputError: No item is left, or an option is wrong.
        DataError: `seeds` is no such file.
    """
    path = jsonl_output(out, [seeds, log_beside(seeds)], beside=BESIDE)
    _check_bounds(options)
    bank, chosen = load_seeds(seeds)
    log = StageLog.load(log_beside(seeds)) if log_beside(seeds).exists() else StageLog()
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(options.seed)
    made: list[Recipe] = []
    used: set[tuple[str, str]] = set()
    for family in families():
        mine = [each for each in chosen if each.family == family.name]
        scenes = [*family.scenes, *_invented(family, mine, options, rng, log, path)]
        made += recipes(family, scenes, mine, bank, rng, log, used)
    if options.model is not None:
        log.count(SCENES, kept=len({recipe.scene.id for recipe in made if recipe.scene.id.startswith("model-")}))
    log.count(STAGE, kept=len({(recipe.family.name, recipe.scene.id) for recipe in made}))
    made = perturbed(_limited(made, options.limit, rng, log), options.perturb, rng)
    items = _composed(made, bank, log)
    proved = prove(items, bank, log, per_response=options.per_response)
    if options.checker is not None:
        journal = path.with_suffix(".checked.jsonl")
        proved = judge_items(proved, options.checker, log, seed=options.seed, retries=options.retries, journal=journal)
    if not proved:
        log.save(log_beside(path))
        raise InputError("no item is left to write", expected="at least one", found="; ".join(log.lines()))
    tests = artefact_tests(proved, seed=options.seed)
    written = write_items(
        proved,
        log,
        out=path,
        sources=_sources(bank, options),
        patterns=patterns_for(proved, [recipe.scene for recipe in made], bank),
        title="Everyday scenes",
        how=_how(bank, options, proved),
        tests=tests,
    )
    return Made(written, tests, log)


def _check_bounds(options: ScenarioOptions) -> None:
    if options.limit is not None and options.limit < 2:
        raise InputError("bad limit", expected="at least 2: mirror images stay together", found=options.limit)
    for name, least in (("per_response", 1), ("per_family", 1), ("retries", 0), ("seed", 0)):
        if getattr(options, name) < least:
            raise InputError(f"bad {name}", expected=f"at least {least}", found=getattr(options, name))


def _invented(
    family: Family, seeds: Sequence[Seed], options: ScenarioOptions, rng: np.random.Generator, log: StageLog, path: Path
) -> list[Scene]:
    if options.model is None:
        return []
    pairs = pairs_of_seeds(seeds, options.per_family, rng)
    journal = path.with_suffix(".generated.jsonl")
    return invent_scenes(family, pairs, options.model, log, seed=options.seed, retries=options.retries, journal=journal)


def _limited(made: list[Recipe], limit: int | None, rng: np.random.Generator, log: StageLog) -> list[Recipe]:
    """At most `limit` recipes: whole scenes, one from each family in turn, drawn within the family."""
    if limit is None or len(made) <= limit:
        return made
    turns: dict[str, list[str]] = {}
    for recipe in made:
        listed = turns.setdefault(recipe.family.name, [])
        if recipe.scene.id not in listed:
            listed.append(recipe.scene.id)
    for listed in turns.values():
        rng.shuffle(listed)
    in_turn = [
        (name, listed[turn])
        for turn in range(max(map(len, turns.values())))
        for name, listed in turns.items()
        if turn < len(listed)
    ]
    chosen = set(in_turn[: limit // 2])
    for recipe in made:
        if (recipe.family.name, recipe.scene.id) not in chosen:
            log.remove("limit", recipe.base, "beyond --limit")
    kept = [recipe for recipe in made if (recipe.family.name, recipe.scene.id) in chosen]
    log.count("limit", kept=len(kept))
    return kept


def _composed(made: Sequence[Recipe], bank: Bank, log: StageLog) -> list[TrapItem]:
    items = []
    for recipe in made:
        try:
            items.append(compose(recipe, bank, source=str(bank.about.get("source", "the association file"))))
        except DataError as error:
            log.remove("format", recipe.base, "breaks a clause of the format", str(error))
    log.count("format", kept=len(items))
    return items


def _sources(bank: Bank, options: ScenarioOptions) -> list[Source]:
    about: dict[str, Any] = dict(bank.about)
    words = "; ".join(f"{what}: {source}" for what, source in about.get("words", {}).items())
    sources = [
        Source(str(about.get("source")), str(about.get("licence")), "associations and strengths", about.get("sha256")),
        Source(words, "of each package", "lemmas, stop words, kinds and frequencies of words"),
        Source("scenes of latentkt", "MIT", "the words of the scenes"),
    ]
    for model, used in ((options.model, "further scenes"), (options.checker, "second opinion on each item")):
        if model is not None:
            sources.append(Source(str(model), "of the provider", used))
    return sources


def _how(bank: Bank, options: ScenarioOptions, items: Sequence[TrapItem]) -> list[str]:
    strengths = sorted(item.meta["association"]["strength"] for item in items)
    own = sum("model-" in str(item.meta["scene"]) for item in items)
    return [
        f"Seed {options.seed}; perturbed versions: {', '.join(options.perturb) or 'none'}; second opinion: "
        f"{options.checker or 'none'}; scenes by a model: {own} of {len(items)} items.",
        "Every scene gives two items that mirror each other: the cue of one option with the constraint that leaves the "
        "other. What is right in one is the shortcut in the other, so neither option nor constraint tells the answer. "
        "The control holds the other constraint, and the shortcut is right there. Read both: whoever always takes the "
        "option that the cue does not suggest is right in every item and wrong in every control.",
        f"The shortcut is the response that people gave to the cue in the text: by {strengths[0]:.0%} to "
        f"{strengths[-1]:.0%} of the people asked, {strengths[len(strengths) // 2]:.0%} in the middle item. No word of "
        "a constraint pulls as strongly to the right option. That is a strength in people's answers, not a frequency "
        "in text: count the paths.",
    ]
