"""`latentkt items`: check item files; make items of questions at several levels."""

from __future__ import annotations

import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    """Add `items check` and `items levels`."""
    commands = parser.add_subparsers(required=True, metavar="check|levels")
    levels = commands.add_parser(
        "levels",
        help="make items of questions asked at several levels of explicitness",
        description="Turn a file of questions (levels L0 to L3, one control) into items, one a level, and list what "
        "gave none.",
    )
    levels.add_argument("file", metavar="FILE", help="JSON lines; see docs/guide/explicitness.md")
    levels.add_argument("out", metavar="OUT", help="item file to write (.jsonl)")
    levels.add_argument("--source", default="", help="where the questions come from, written to every item")
    levels.set_defaults(work=_levels)
    check = commands.add_parser(
        "check",
        help="validate an item file and print its balance",
        description="Validate every item of a file (and its pattern file) and print how the set is balanced. Exit code "
        "2 where an item is refused.",
    )
    check.add_argument("file", metavar="FILE", help="a file of JSON lines, or `builtin` for the built-in set")
    check.add_argument("--model", help="also report lengths under this model's tokenizer (smollm2, a folder, a hub id)")
    check.add_argument("--strict", action="store_true", help="exit code 2 where there is a notice, too")
    check.set_defaults(work=_check)


def run(args: argparse.Namespace) -> int:
    """Do what was asked for, and return the exit code."""
    return int(args.work(args))


def _levels(args: argparse.Namespace) -> int:
    from collections import Counter

    from latentkt.trapqa import import_levels, save_items

    found = import_levels(args.file, source=args.source)
    save_items(found.items, args.out)
    by_level = Counter(item.level or 0 for item in found.items)
    print(f"{args.out}: {len(found.items)} items; level " + ", ".join(f"{n}: {by_level[n]}" for n in sorted(by_level)))
    print(f"left out: {len(found.skipped) or 'none'}")
    for row in found.skipped:
        print(f"  {row['question']} {row['level']}: {row['reason']}")
    return 0


def _check(args: argparse.Namespace) -> int:
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
