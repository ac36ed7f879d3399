"""`latentkt phantom sample`: a stratified subset of verified concepts, and real ones to hold against it."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from latentkt.errors import DataError

if TYPE_CHECKING:
    from latentkt.phantom import Concept

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("concepts", nargs="+", metavar="F", help="verified concepts (JSON lines)")
    parser.add_argument("--subset", required=True, choices=["T", "E", "Med", "Legal"])
    parser.add_argument("--size", type=int, metavar="N", help="default: the subset's own")
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    parser.add_argument("--beside", nargs="+", default=[], choices=["common", "rare", "between", "unattested"],
                        help="real ones to hold against it, as many of each category")  # fmt: skip
    parser.add_argument("--out", required=True, metavar="FILE")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from latentkt.phantom import SUBSETS, comparison, load_concepts, sample_subset, save_concepts
    from latentkt.results import jsonl_output

    jsonl_output(args.out, args.concepts)
    concepts = _together({path: load_concepts(path) for path in args.concepts})
    subset = sample_subset(concepts, args.subset, size=args.size, seed=args.seed)
    real = [concept for what in args.beside for concept in comparison(concepts, subset, what, seed=args.seed)]
    save_concepts([*subset, *real], args.out)
    for (what, category), count in sorted(Counter((c.existence, c.category) for c in [*subset, *real]).items()):
        print(f"{what:<11} {count:>6,}  {category}")
    print("\n".join(_summary(args, SUBSETS[args.subset].size, subset, real)))
    return 0


def _together(files: Mapping[str, Sequence[Concept]]) -> list[Concept]:
    """The concepts of several files.

    Raises:
        DataError: One stands in two of them: which search counts for it?
    """
    home: dict[str, str] = {}
    for path, concepts in files.items():
        for concept in concepts:
            if concept.id in home:
                raise DataError(
                    f"{path}: concept {concept.concept!r} stands in {home[concept.id]} too",
                    expected="each concept in one of the files",
                    fix="give one of the two files",
                )
            home[concept.id] = path
    return [concept for concepts in files.values() for concept in concepts]


def _summary(args: argparse.Namespace, default: int, subset: Sequence[Concept], real: Sequence[Concept]) -> list[str]:
    lines = [f"{len(subset):,} made and {len(real):,} real concepts in {args.out}"]
    missing = (default if args.size is None else args.size) - len(subset)
    if missing > 0:
        lines.append(f"warning: {missing:,} fewer than the size of the subset; the files hold no more")
    for what in args.beside:
        lacking = len(subset) - sum(concept.existence == what for concept in real)
        if lacking:
            lines.append(f"warning: {what}: {lacking:,} fewer than made ones; their categories hold no more")
    return lines
