"""`latentkt faithfulness MODEL`: how much of the answer the top nodes or edges keep."""

from __future__ import annotations

import argparse

from latentkt.commands.measuring import add_arguments, options_of


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_arguments(parser)
    parser.add_argument("--of", default="nodes", choices=("nodes", "edges"))
    parser.add_argument("--rankings", nargs="+", metavar="R", help="atp, ig (nodes), eap, eap_ig (edges), random")
    parser.add_argument("--shares", nargs="+", type=float, metavar="X", help="shares of all parts in the top set")
    parser.add_argument("--curves", nargs="+", default=["keep", "remove"], choices=("keep", "remove"))
    parser.add_argument("--steps", type=int, default=5, metavar="N", help="steps of ig and eap_ig, 5 or more")
    parser.add_argument("--metric", default="log_odds", choices=("log_odds", "first_token"))


def run(args: argparse.Namespace) -> int:
    """Measure, and print where the tables are."""
    from latentkt.internals import faithfulness_items

    names = ("of", "rankings", "curves", "steps", "metric", *(("shares",) if args.shares else ()))
    chosen = {name: getattr(args, name) for name in names}
    print(faithfulness_items(args.model, args.out, **chosen, **options_of(args)))
    return 0
