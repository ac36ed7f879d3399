"""`latentkt trapqa analyse RECORDS --out DIR`: every table of the paper, with the statistics that it lacks."""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from latentkt.trapqa.analysis import Records


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("records", nargs="+", metavar="RECORDS", help="files of records (JSON lines), read as one")
    parser.add_argument("--out", required=True, metavar="DIR", help="run folder, new: tables, LaTeX, figures, report")
    parser.add_argument("--json", action="store_true", help="print {setting: {table: …}} instead of a summary")
    parser.add_argument(
        "--fame",
        metavar="CSV",
        help="pages of candidates: name, page_length, page_views, external_links; needs --items",
    )
    parser.add_argument("--norm", choices=("minmax", "rank"), default="minmax", help="how fame is normalised")
    parser.add_argument(
        "--items", metavar="FILE", help="the items of the records, or `builtin`: names their candidates"
    )
    parser.add_argument("--priors", metavar="CSV", help="question_id with cooccurrence, log_prior_ratio or both")


def run(args: argparse.Namespace) -> int:
    """Analyse, write, and print what each table leaves out."""
    import json

    from latentkt.report import build
    from latentkt.results import load_run
    from latentkt.trapqa.analysis import analyse, read_records, write_analysis

    records, options = _joined(read_records(args.records), args)
    analysis = analyse(records)
    folder = write_analysis(analysis, args.out, options=options, command=args.command_line)
    report = build(load_run(folder))
    _figures(folder)
    texts = analysis.ledger.texts()
    if args.json:
        print(json.dumps(analysis.to_json(), indent=1, ensure_ascii=False, allow_nan=False))
        print(*texts, sep="\n", file=sys.stderr)
        return 0
    print(f"tables: {folder / 'tables.md'}", f"report: {report}", sep="\n")
    print("left out:", *(f"  {text}" for text in texts or ["nothing"]), sep="\n")
    return 0


def _joined(records: Records, args: argparse.Namespace) -> tuple[Records, dict[str, Any]]:
    """Records with the fame and the priors that were named, and the options for the metadata."""
    from latentkt.errors import InputError
    from latentkt.trapqa import builtin_items, load_items
    from latentkt.trapqa.analysis import fame_scores, join_fame, join_names, join_priors, read_fame, read_priors

    options: dict[str, Any] = {}
    items = None if args.items is None else builtin_items() if args.items == "builtin" else load_items(args.items)
    if items is not None:
        records, options["items"] = join_names(records, items), items.sha256
    if args.fame:
        if items is None:
            raise InputError(
                "--fame needs the names of the candidates",
                expected="--items FILE, or --items builtin",
                found="no --items",
            )
        records = join_fame(records, fame_scores(read_fame(args.fame), norm=args.norm), items)
        options |= {"fame": _named(args.fame), "norm": args.norm}
    if args.priors:
        records = join_priors(records, read_priors(args.priors))
        options["priors"] = _named(args.priors)
    return records, options


def _named(path: str) -> list[str]:
    """Name and sha256 of a file, for the metadata."""
    return [Path(path).name, hashlib.sha256(Path(path).read_bytes()).hexdigest()]


def _figures(folder: Path) -> None:
    """Each figure as a file of its own, for papers."""
    from latentkt.plots import to_svg
    from latentkt.report.sections.trapqa_tables import PICTURES
    from latentkt.results import atomic_write, load_run
    from latentkt.trapqa.analysis.output import PREFIX

    tables = load_run(folder).tables
    for name, (draw, _) in PICTURES.items():
        if f"{PREFIX}{name}" in tables:
            with atomic_write(folder / "figures" / f"{name}.svg") as file:
                file.write(to_svg(draw(tables[f"{PREFIX}{name}"])).encode())
