"""`latentkt theory check|explain CASE.json`: the exact model, answered and put into words."""

from __future__ import annotations

import argparse
import json
from pathlib import Path


def configure(parser: argparse.ArgumentParser) -> None:
    """Add `check` and `explain`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="check|explain")
    check = actions.add_parser("check", help="print every quantity of a case, exactly")
    check.add_argument("--json", action="store_true", help="print one flat JSON object")
    explain = actions.add_parser("explain", help="say which path wins, why, and what is certified")
    explain.add_argument(
        "--figures", type=Path, metavar="DIR", help="also draw the dominance map and the terms of a model case, as SVG"
    )
    for action in (check, explain):
        action.add_argument("case", type=Path, metavar="CASE.json", help="a theory case (docs/guide/theory.md)")


def run(args: argparse.Namespace) -> int:
    """Print the outputs or the explanation of the case."""
    from latentkt.keytask import check_case, explain_case, load_case

    case = load_case(args.case)
    if args.action == "check":
        outputs = check_case(case)
        if args.json:
            print(json.dumps(outputs, ensure_ascii=False, indent=1))
        else:
            width = max(map(len, outputs))
            print("\n".join(f"{name:<{width}}  {_plain(value)}" for name, value in outputs.items()))
        return 0
    print(explain_case(case))
    if args.figures is not None:
        from latentkt.plots.theory import draw_case

        print("\n" + "\n".join(f"drawn: {path}" for path in draw_case(case, args.figures)))
    return 0


def _plain(value: object) -> str:
    if value is None:
        return "does not exist"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)
