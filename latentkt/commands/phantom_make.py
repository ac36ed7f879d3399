"""`latentkt phantom make`: concepts that do not exist, from seeds that do."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentkt.errors import InputError

if TYPE_CHECKING:
    from latentkt.phantom import EntityRules, Made, Seeds, TermRules

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("seeds", nargs="+", metavar="SEEDS", help="files of real concepts; NAME@FILE sets the category")
    parser.add_argument("--kind", required=True, choices=["term", "entity"])
    parser.add_argument("--n", type=int, metavar="N", help="how many (default: one pass over the seeds)")
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    parser.add_argument("--out", required=True, metavar="F", help="JSON lines; F.meta.json says how they were made")
    parser.add_argument("--format", default="auto", metavar="NAME", help="format of the seeds (default: found)")
    parser.add_argument("--category", metavar="NAME", help="one category for all seeds")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="categories to take")
    parser.add_argument("--with-seeds", action="store_true", help="write the seeds too, as real concepts")
    parser.add_argument(
        "--lists", metavar="FILE", help="affixes, stop words, articles, prepositions of your own (JSON)"
    )
    terms = parser.add_argument_group("terms")
    terms.add_argument("--blends", type=int, metavar="N", help="cap on blended words (default: as many as words)")
    terms.add_argument("--affix-uses", type=int, default=3, metavar="N", help="an affix is in more words than this")
    terms.add_argument("--most-words", type=int, default=4, metavar="N", help="longest seed that is taken apart")
    terms.add_argument("--any-position", action="store_true", help="draw words without regard to where they stand")
    terms.add_argument("--exchange-all", action="store_true", help="exchange function words and numbers too")
    entities = parser.add_argument_group("entities")
    entities.add_argument("--uses", type=int, default=20, metavar="N", help="how often each pattern is used")
    entities.add_argument("--threshold", type=int, metavar="N", help="a pattern is in more names than this")
    entities.add_argument("--any-run", action="store_true", help="take parts of names as items too")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from latentkt.phantom import load_seeds, make_concepts, save_concepts
    from latentkt.results import jsonl_output

    _check_bounds(args)
    read = [name for given in args.seeds for name in (given, given.partition("@")[2] or given)]
    out = jsonl_output(args.out, [*read, *([args.lists] if args.lists else [])], beside=[".meta.json"])
    seeds = load_seeds(args.seeds, format=args.format, category=args.category)
    seeds = seeds.only(args.only) if args.only else seeds
    rules = _term_rules(args) if args.kind == "term" else _entity_rules(args, seeds)
    made = make_concepts(seeds, kind=args.kind, n=args.n, seed=args.seed, rules=rules)
    real = seeds.concepts(args.kind) if args.with_seeds else []
    save_concepts([*made.concepts, *real], out)
    _write_meta(out, args, seeds, made, rules)
    print("\n".join(_summary(seeds, made, len(real), args.out)))
    return 0


def _check_bounds(args: argparse.Namespace) -> None:
    """Refuse numbers that would make nothing without a word."""
    for name, least in (("blends", 0), ("affix_uses", 0), ("most_words", 1), ("uses", 1), ("threshold", 1)):
        value = getattr(args, name)
        if value is not None and value < least:
            option = "--" + name.replace("_", "-")
            raise InputError(f"bad {option}", expected=f"at least {least}", found=value)


def _term_rules(args: argparse.Namespace) -> TermRules:
    from latentkt.phantom import BlendRules, TermRules, load_word_lists

    return TermRules(
        most_words=args.most_words,
        affix_uses=args.affix_uses,
        blends=BlendRules(most=args.blends),
        keep_function_words=not args.exchange_all,
        by_position=not args.any_position,
        lists=load_word_lists(args.lists) if args.lists else None,
    )


def _entity_rules(args: argparse.Namespace, seeds: Seeds) -> EntityRules:
    from latentkt.phantom import EntityRules, PatternRules, load_word_lists

    patterns = PatternRules(
        thresholds={} if args.threshold is None else dict.fromkeys(seeds.by_category, args.threshold),
        whole_runs=not args.any_run,
        lists=load_word_lists(args.lists) if args.lists else None,
    )
    return EntityRules(patterns=patterns, uses=args.uses)


def _write_meta(out: Path, args: argparse.Namespace, seeds: Seeds, made: Made, rules: TermRules | EntityRules) -> None:
    from dataclasses import asdict

    from latentkt.results import atomic_write

    about: dict[str, Any] = {
        "kind": args.kind,
        "seed": args.seed,
        "asked": made.asked,
        "seeds": {name: len(texts) for name, texts in seeds.by_category.items()},
        "skipped_seeds": dict(seeds.skipped),
        "sources": [Path(source).name for source in seeds.sources],
        "made": dict(made.by_category),
        "methods": dict(Counter(concept.method for concept in made.concepts)),
        "rejected": dict(made.rejected),
        "rules": asdict(rules) | ({"lists": args.lists} if args.lists else {}),
    }
    with atomic_write(out.with_suffix(".meta.json")) as file:
        file.write((json.dumps(about, indent=1, ensure_ascii=False, default=sorted) + "\n").encode())


def _summary(seeds: Seeds, made: Made, n_real: int, out: str) -> list[str]:
    methods = Counter(concept.method for concept in made.concepts)
    lines = [
        f"{len(seeds):,} seeds in {len(seeds.by_category)} categories",
        *(f"  skipped: {count:,} × {reason}" for reason, count in seeds.skipped.items()),
        f"{len(made.concepts):,} concepts made: " + ", ".join(f"{count:,} {name}" for name, count in methods.items()),
        *(f"  passed over: {count:,} × {reason}" for reason, count in made.rejected.items()),
    ]
    empty = [name for name, count in made.by_category.items() if not count]
    if empty:
        lines.append(f"warning: nothing could be made in {len(empty)} categories: {', '.join(empty[:8])}")
    if made.shortfall:
        lines.append(f"warning: {made.shortfall:,} fewer than asked for; the seeds give no more")
    if n_real:
        lines.append(f"{n_real:,} seeds written beside them, as real concepts")
    return [*lines, f"concepts in {out}; verify them before they count as non-existent"]
