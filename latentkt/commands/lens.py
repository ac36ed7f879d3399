"""`latentkt lens MODEL`: what the model would answer after each layer."""

from __future__ import annotations

import argparse

from latentkt.commands.measuring import add_arguments, options_of


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_arguments(parser)
    parser.add_argument("--tokens", action="store_true", help="also read every prompt token (table lens_tokens)")


def run(args: argparse.Namespace) -> int:
    """Measure, and print where the tables are."""
    from latentkt.internals import lens_items

    print(lens_items(args.model, args.out, tokens=args.tokens, **options_of(args)))
    return 0
