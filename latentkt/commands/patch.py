"""`latentkt patch MODEL`: exact patching between items and their controls, held against placebo donors."""

from __future__ import annotations

import argparse

from latentkt.commands.measuring import add_arguments, options_of


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_arguments(parser)
    parser.add_argument("--sites", nargs="+", default=["resid_post"], metavar="SITE", help="default: resid_post")
    parser.add_argument("--roles", nargs="+", default=["shortcut", "constraint", "last"], metavar="ROLE")
    parser.add_argument("--positions", action="store_true", help="every prompt token on its own, instead of roles")
    parser.add_argument("--heads", action="store_true", help="head by head (z, q, k, v, pattern)")
    parser.add_argument("--layers", nargs="+", type=int, metavar="L", help="default: all")
    parser.add_argument("--window", type=int, default=1, metavar="W", help="so many consecutive layers at once")
    parser.add_argument("--no-placebo", action="store_true", help="leave out the patches from matched donors")


def run(args: argparse.Namespace) -> int:
    """Measure, and print where the tables are."""
    from latentkt.internals import patch_items

    names = ("sites", "roles", "positions", "heads", "layers", "window")
    chosen = {name: getattr(args, name) for name in names}
    print(patch_items(args.model, args.out, placebo=not args.no_placebo, **chosen, **options_of(args)))
    return 0
