"""`latentkt atp MODEL`: attribution patching of items and controls, nodes and edges, with exact patches as a check."""

from __future__ import annotations

import argparse

from latentkt.commands.measuring import add_arguments, options_of


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_arguments(parser)
    parser.add_argument("--sites", nargs="+", default=["z", "mlp_out"], metavar="SITE", help="default: z mlp_out")
    parser.add_argument("--roles", nargs="+", default=["shortcut", "constraint", "last"], metavar="ROLE")
    parser.add_argument("--positions", action="store_true", help="every prompt token on its own, instead of roles")
    parser.add_argument("--layers", nargs="+", type=int, metavar="L", help="default: all")
    parser.add_argument("--method", default="atp", choices=("atp", "ig"), help="ig: integrated gradients")
    parser.add_argument("--steps", type=int, default=5, metavar="N", help="steps of ig, 5 or more")
    parser.add_argument("--qk-fix", action="store_true", help="let patched q and k go through the softmax exactly")
    parser.add_argument("--edges", action="store_true", help="also attribute edges (eap, or eap_ig with ig)")
    parser.add_argument("--keep", type=int, default=200, metavar="N", help="rows of edges kept a pair")
    parser.add_argument("--top", type=int, default=10, metavar="N", help="so many of the largest are run exactly")
    parser.add_argument("--sample", type=int, default=20, metavar="N", help="so many drawn over tenths of size are run")
    parser.add_argument("--metric", default="log_odds", choices=("log_odds", "first_token"))


def run(args: argparse.Namespace) -> int:
    """Measure, and print where the tables are."""
    from latentkt.internals import atp_items

    names = ("sites", "roles", "positions", "layers", "method", "steps", "qk_fix", "edges", "keep", "top", "sample")
    chosen = {name: getattr(args, name) for name in (*names, "metric")}
    print(atp_items(args.model, args.out, **chosen, **options_of(args)))
    return 0
