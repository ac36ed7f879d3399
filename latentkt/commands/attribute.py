"""`latentkt attribute MODEL`: what each part of the network adds to the answer."""

from __future__ import annotations

import argparse

from latentkt.commands.measuring import add_arguments, options_of


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_arguments(parser)
    parser.add_argument("--norm", default="frozen", choices=("frozen", "recomputed"), help="scale of the final norm")


def run(args: argparse.Namespace) -> int:
    """Measure, and print where the tables are."""
    from latentkt.internals import attribute_items

    print(attribute_items(args.model, args.out, norm=args.norm, **options_of(args)))
    return 0
