"""`latentkt steer MODEL`: change runs along a probe's direction, beside controls of the same length."""

from __future__ import annotations

import argparse

from latentkt.commands.measuring import add_arguments, options_of


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_arguments(parser)
    parser.add_argument("--target", default="answer_side", help="what the direction stands for (default: answer_side)")
    parser.add_argument("--role", default="last", help="where it is read and put in (default: last)")
    parser.add_argument("--layer", type=int, metavar="L", help="default: the middle layer")
    parser.add_argument("--kind", default="mean_difference", help="of logistic, ridge, lda, mean_difference (default)")
    parser.add_argument("--how", nargs="+", default=["add", "remove", "interchange"], metavar="HOW")
    parser.add_argument("--strengths", nargs="+", type=float, default=[-1.0, 1.0], metavar="S", help="steps of add")
    parser.add_argument("--random", type=int, default=5, metavar="N", dest="n_random", help="random directions")
    parser.add_argument("--texts", type=int, default=2, metavar="N", help="items that are written out, steered")
    parser.add_argument("--no-random-model", action="store_true", help="leave out the model with random weights")
    parser.add_argument("--seed", type=int, default=0)


def run(args: argparse.Namespace) -> int:
    """Measure, and print where the tables are."""
    from latentkt.internals import steer_items

    names = ("target", "role", "layer", "kind", "how", "strengths", "n_random", "texts", "seed")
    chosen = {name: getattr(args, name) for name in names}
    print(steer_items(args.model, args.out, random_model=not args.no_random_model, **chosen, **options_of(args)))
    return 0
