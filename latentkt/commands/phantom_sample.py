"""`latentkt phantom sample`: a stratified subset of verified concepts, and real ones to hold against it."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from latentkt.errors import InputError

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
    from latentkt.phantom import comparison, load_concepts, sample_subset, save_concepts

    if Path(args.out).suffix != ".jsonl" or args.out in args.concepts:
        raise InputError("bad name of the output", expected="another name ending in .jsonl", found=args.out)
    concepts = [concept for path in args.concepts for concept in load_concepts(path)]
    subset = sample_subset(concepts, args.subset, size=args.size, seed=args.seed)
    real = [concept for what in args.beside for concept in comparison(concepts, subset, what, seed=args.seed)]
    save_concepts([*subset, *real], args.out)
    for (what, category), count in sorted(Counter((c.existence, c.category) for c in [*subset, *real]).items()):
        print(f"{what:<11} {count:>6,}  {category}")
    print(f"{len(subset):,} made and {len(real):,} real concepts in {args.out}")
    return 0
