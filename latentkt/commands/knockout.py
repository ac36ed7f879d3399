"""`latentkt knockout MODEL`: attention cut from role to role, layer by layer."""

from __future__ import annotations

import argparse

from latentkt.commands.measuring import add_arguments, options_of
from latentkt.errors import InputError


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_arguments(parser)
    parser.add_argument(
        "--edges", nargs="+", metavar="READ:READING", help="such as constraint:last shortcut:last; default: a dozen"
    )
    parser.add_argument("--layers", nargs="+", type=int, metavar="L", help="first layer of each window; default: all")
    parser.add_argument("--window", type=int, default=1, metavar="W", help="so many consecutive layers at once")
    parser.add_argument("--heads", action="store_true", help="head by head")
    parser.add_argument("--sinks", action="store_true", help="also cut position 0, special tokens and other sinks")
    parser.add_argument("--metric", default="log_odds", choices=("log_odds", "first_token"))


def run(args: argparse.Namespace) -> int:
    """Measure, and print where the tables are."""
    from latentkt.internals import knockout_items

    chosen = {name: getattr(args, name) for name in ("layers", "window", "heads", "sinks", "metric")}
    if args.edges:
        pairs = [tuple(edge.split(":")) for edge in args.edges]
        if any(len(pair) != 2 or not all(pair) for pair in pairs):
            raise InputError("an edge", expected="two roles with a colon: constraint:last", found=" ".join(args.edges))
        chosen["edges"] = pairs
    print(knockout_items(args.model, args.out, **chosen, **options_of(args)))
    return 0
