"""`latentkt phantom verify`: search a corpus for concepts."""

from __future__ import annotations

import argparse

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("concepts", metavar="FILE")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    raise NotImplementedError
