"""`latentkt report DIR`: write the HTML page of a run again from its tables."""

from __future__ import annotations

import argparse
from pathlib import Path


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("directory", type=Path, help="run directory")
    parser.add_argument("--out", type=Path, help="where to write the page (default: report.html in the run directory)")
    parser.add_argument("--partial", action="store_true", help="accept a run that is not finished")


def run(args: argparse.Namespace) -> int:
    """Write the page and print where it is."""
    from latentkt.report import build
    from latentkt.results import load_run

    print(build(load_run(args.directory, partial=args.partial), args.out))
    return 0
