"""`latentkt verdict MODEL`: for each item, what is answered and whether its constraint is read."""

from __future__ import annotations

import argparse

from latentkt.commands.measuring import add_arguments, options_of


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_arguments(parser)
    parser.add_argument(
        "--layers", nargs="+", type=int, metavar="L", help="where the constraint is patched; default: all"
    )
    parser.add_argument("--donors", type=int, default=5, metavar="N", help="placebo donors a pair (default: 5)")
    parser.add_argument("--seed", type=int, default=0)


def run(args: argparse.Namespace) -> int:
    """Measure, and print the verdicts and where the tables are."""
    from latentkt.internals import verdict_items
    from latentkt.results import load_run

    chosen = {name: getattr(args, name) for name in ("layers", "donors", "seed")}
    path = verdict_items(args.model, args.out, **chosen, **options_of(args))
    run = load_run(path)
    if run.has("verdict"):
        for row in run.tables["verdict"].value_counts(["answer", "constraint"]).reset_index().to_dict("records"):
            print(f"{row['count']:>4}  {row['answer']}; constraint {row['constraint']}")
    print(path)
    return 0
