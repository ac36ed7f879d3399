"""`latentkt items`: check item files."""

from __future__ import annotations

import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    """Add `items check`."""
    check = parser.add_subparsers(required=True, metavar="check").add_parser(
        "check",
        help="validate an item file and print its balance",
        description="Validate every item of a file (and its pattern file) and print how the set is balanced. Exit code "
        "2 where an item is refused.",
    )
    check.add_argument("file", metavar="FILE", help="a file of JSON lines, or `builtin` for the built-in set")
    check.add_argument("--model", help="also report lengths under this model's tokenizer (smollm2, a folder, a hub id)")
    check.add_argument("--strict", action="store_true", help="exit code 2 where there is a notice, too")


def run(args: argparse.Namespace) -> int:
    """Check, print, and return the exit code."""
    from latentkt.trapqa import builtin_items, check_items, load_items
    from latentkt.trapqa.check_text import report_lines

    item_set = builtin_items() if args.file == "builtin" else load_items(args.file)
    handle = None
    if args.model is not None:
        from latentkt.models import open_model

        handle = open_model(args.model)
    report = check_items(item_set, handle=handle)
    print("\n".join(report_lines(report)))
    return 2 if args.strict and report.notices else 0
