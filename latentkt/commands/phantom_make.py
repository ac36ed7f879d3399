"""`latentkt phantom make`: concepts that do not exist, from seeds that do."""

from __future__ import annotations

import argparse

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("seeds", nargs="+", metavar="SEEDS")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    raise NotImplementedError
