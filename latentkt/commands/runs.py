"""`latentkt runs show DIR`: what a run holds and how far it is."""

from __future__ import annotations

import argparse
from pathlib import Path


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    actions = parser.add_subparsers(required=True)
    show = actions.add_parser("show", help="tables, progress and identity of a run; checks the tables' hashes")
    show.add_argument("directory", type=Path, help="run directory")


def run(args: argparse.Namespace) -> int:
    """Print the run."""
    from latentkt.results import load_run
    from latentkt.results.show import describe

    print(describe(load_run(args.directory, partial=True)))
    return 0
