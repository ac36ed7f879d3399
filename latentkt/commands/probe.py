"""`latentkt probe MODEL`: what can be read from the residual stream, by layer and role, beside its baselines."""

from __future__ import annotations

import argparse

from latentkt.commands.measuring import add_arguments, options_of

TARGETS = ("answer_side", "polarity", "first_option_is_correct", "fact_known", "shortcut_favoured")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_arguments(parser)
    parser.add_argument(
        "--targets", nargs="+", default=list(TARGETS), metavar="TARGET", help=f"of {', '.join(TARGETS)}"
    )
    parser.add_argument("--roles", nargs="+", default=["shortcut", "constraint", "last"], metavar="ROLE")
    parser.add_argument(
        "--kinds", nargs="+", default=["logistic"], metavar="KIND", help="of logistic, ridge, lda, mean_difference"
    )
    parser.add_argument("--splits", nargs="+", default=["generalisation", "selectivity"], metavar="SPLIT")
    parser.add_argument("--layer-step", type=int, default=1, metavar="N", help="probe every N layers")
    parser.add_argument("--folds", type=int, default=5, metavar="N", dest="max_folds", help="default: 5")
    parser.add_argument(
        "--random-layers", type=int, metavar="N", help="layers of the model with random weights; 0: none; default: all"
    )
    parser.add_argument("--seed", type=int, default=0)


def run(args: argparse.Namespace) -> int:
    """Measure, and print where the tables are."""
    from latentkt.internals import probe_items

    names = ("targets", "roles", "kinds", "splits", "layer_step", "max_folds", "random_layers", "seed")
    print(probe_items(args.model, args.out, **{name: getattr(args, name) for name in names}, **options_of(args)))
    return 0
