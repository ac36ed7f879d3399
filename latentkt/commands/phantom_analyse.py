"""`latentkt phantom analyse JUDGED --out DIR`: every table, the figures and the report."""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from latentkt.phantom.answers import Answer


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("judged", nargs="+", metavar="JUDGED", help="answers of `latentkt phantom judge`, read as one")
    parser.add_argument("--out", required=True, metavar="DIR", help="run folder, new: tables and report")
    parser.add_argument("--concepts", metavar="F", help="the verified concepts: what was searched, for the report")
    parser.add_argument(
        "--inside", metavar="DIR", help="a run of `latentkt phantom probe`, to stand in the same report"
    )
    parser.add_argument("--facts", metavar="CSV", help="setting, family, size, domain, base, categories")
    parser.add_argument("--labels", metavar="CSV", help="labels by hand (prompt_id, setting, label): agreement")
    parser.add_argument("--annotations", metavar="CSV", help="labels of several people: alternative annotator test")
    parser.add_argument("--epsilon", type=float, default=0.15, help="advantage granted to a person in that test")
    parser.add_argument("--ratings", metavar="CSV", help="ratings of concepts by people: Mann-Whitney")
    parser.add_argument("--claims", metavar="CSV", help="the sheet of claims inside abstentions, filled in")
    parser.add_argument("--claims-sheet", metavar="CSV", help="write that sheet, to be filled in by a person")
    parser.add_argument("--seed", type=int, default=0, help="of bootstraps, permutations and the sheet")


def run(args: argparse.Namespace) -> int:
    """Analyse, write, and print what the tables leave out."""
    from latentkt.phantom.analysis import analyse, read_setting_facts, write_analysis
    from latentkt.phantom.answers import read_answers
    from latentkt.phantom.concepts import load_concepts
    from latentkt.phantom.judging import write_claims_sheet
    from latentkt.report import build
    from latentkt.results import load_run

    answers = read_answers(*args.judged)
    found = analyse(
        answers,
        facts=read_setting_facts(args.facts) if args.facts else (),
        concepts=load_concepts(args.concepts) if args.concepts else (),
        more=_by_people(args, answers),
        seed=args.seed,
    )
    inside = load_run(args.inside) if args.inside else None
    identity: dict[str, Any] = {
        "options": {"files": _named([*args.judged, args.concepts, args.facts, args.labels, args.annotations])},
        "seeds": {"analysis": args.seed},
        **({"model": inside.identity["model"], "inside": dict(inside.identity)} if inside else {}),
    }
    tables = {name: inside.tables[name] for name in inside.tables} if inside else None
    folder = write_analysis(found, args.out, inside=tables, identity=identity, command=args.command_line)
    if args.claims_sheet:
        print(f"sheet: {args.claims_sheet} ({write_claims_sheet(answers, args.claims_sheet, seed=args.seed)} answers)")
    print(f"tables: {folder / 'tables.md'}", f"report: {build(load_run(folder))}", sep="\n")
    print("left out:", *(f"  {text}" for text in found.ledger.texts() or ["nothing"]), sep="\n")
    return 0


def _by_people(args: argparse.Namespace, answers: Sequence[Answer]) -> dict[str, pd.DataFrame]:
    """Tables that rest on what people said."""
    from latentkt.phantom.judging import (
        agreement,
        alternative_annotator_test,
        compare_ratings,
        read_annotations,
        read_claims,
        read_labels,
        read_ratings,
    )
    from latentkt.phantom.judging.annotators import judge_labels
    from latentkt.phantom.judging.claims import claims_table

    tables: dict[str, pd.DataFrame] = {}
    if args.labels:
        tables["agreement"] = agreement(answers, read_labels(args.labels)).to_frame()
    if args.annotations:
        people = read_annotations(args.annotations)
        found = alternative_annotator_test(people, judge_labels(answers), epsilon=args.epsilon)
        tables["annotator_test"] = found.to_frame()
    if args.ratings:
        tables["ratings"] = compare_ratings(read_ratings(args.ratings))
    if args.claims:
        tables["claims"] = claims_table(read_claims(args.claims))
    return tables


def _named(paths: Sequence[str | None]) -> list[list[str]]:
    """Name and sha256 of each file, for the metadata."""
    there = [Path(path) for path in paths if path]
    return [[path.name, hashlib.sha256(path.read_bytes()).hexdigest()] for path in there]
