"""Run every machine proof: `python -m theory.prove [--json] [NAME …]`.

For each claim: is it proved, can its hypotheses hold, is the variant that is false on purpose refuted? Exits 1 if any
answer is no, 2 if z3 or sympy is missing.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from collections.abc import Sequence

from theory.claim import Claim, Verdict, judge

__all__ = ["all_claims", "main"]


def all_claims() -> tuple[Claim, ...]:
    """Every claim, in the order of the documents."""
    from theory import claims_bounds, claims_floors, claims_identities, claims_printed

    parts = (claims_identities, claims_printed, claims_bounds, claims_floors)
    return tuple(sorted((claim for part in parts for claim in part.CLAIMS), key=lambda claim: claim.document))


def _missing() -> list[str]:
    return [name for name in ("z3", "sympy") if importlib.util.find_spec(name) is None]


def _table(results: list[tuple[Claim, Verdict]]) -> str:
    rows = [("claim", "verdict", "hypotheses", "false variant", "what it says")]
    for claim, verdict in results:
        rows.append(
            (
                claim.name,
                verdict.verdict,
                "can hold" if verdict.hypotheses_sat else "CANNOT HOLD",
                "refuted" if verdict.false_variant_refuted else "NOT REFUTED",
                f"{claim.statement} ({claim.document})",
            )
        )
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    lines = [
        "  ".join((*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[4])) for row in rows
    ]
    good = sum(verdict.good for _, verdict in results)
    return "\n".join([*lines, "", f"{good} of {len(results)} claims proved"])


def main(argv: Sequence[str] | None = None) -> int:
    """Prove the claims named (default: all) and print the outcome; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m theory.prove", description="Run the machine proofs of theory/.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="claims to prove (default: all)")
    parser.add_argument("--json", action="store_true", help="print a list of objects instead of a table")
    args = parser.parse_args(argv)
    if missing := _missing():
        print(f"the proofs need {' and '.join(missing)}: pip install 'latentkt[theory]'", file=sys.stderr)
        return 2
    claims = all_claims()
    unknown = sorted(set(args.names) - {claim.name for claim in claims})
    if unknown:
        print(f"no claims named {', '.join(unknown)}; there are {', '.join(c.name for c in claims)}", file=sys.stderr)
        return 2
    results = [(claim, judge(claim)) for claim in claims if not args.names or claim.name in args.names]
    if args.json:
        fields = ("verdict", "hypotheses_sat", "false_variant_refuted")
        print(json.dumps([{"name": c.name, **{f: getattr(v, f) for f in fields}} for c, v in results], indent=1))
    else:
        print(_table(results))
    return 0 if all(verdict.good for _, verdict in results) else 1


if __name__ == "__main__":
    sys.exit(main())
