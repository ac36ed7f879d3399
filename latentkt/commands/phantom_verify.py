"""`latentkt phantom verify`: search a corpus, an index here or one over HTTP for concepts."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from latentkt.errors import InputError

if TYPE_CHECKING:
    from latentkt.phantom.search.found import Searcher
    from latentkt.phantom.search.verifying import Verification

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("concepts", metavar="F", help="concepts, made or real (JSON lines)")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--corpus", nargs="+", metavar="PATH", help="file, folder, glob, URL or hub:NAME[@CONFIG][#SPLIT]"
    )
    where.add_argument("--index", metavar="FOLDER", help="a local infini-gram index of bytes")
    where.add_argument("--infinigram", metavar="NAME", help="an infini-gram index served over HTTP")
    parser.add_argument("--url", metavar="URL", help="its server (default: the public one)")
    parser.add_argument("--out", metavar="FILE", help="default: F with .verified.jsonl")
    parser.add_argument("--resume", action="store_true", help="go on with a search that was stopped")
    parser.add_argument("--headwords", nargs="+", default=[], metavar="FILE", help="dictionaries: made ones in them go")
    parser.add_argument("--common", type=float, default=500, metavar="N", help="real: at least so many matches")
    parser.add_argument("--rare", type=float, default=15, metavar="N", help="real: at most so many, at least one")
    parser.add_argument("--per-million", action="store_true", help="the two limits are per million tokens")
    parser.add_argument("--level", type=float, default=0.95, help="of the bounds (default 0.95)")
    parser.add_argument("--case", default="casings", choices=["casings", "simple", "full", "sensitive"])
    parser.add_argument("--text-field", metavar="FIELD", help="field of the text (default: found)")
    parser.add_argument("--kernel", default="auto", choices=["auto", "numba", "numpy"])
    parser.add_argument("--tokens", type=int, metavar="N", help="tokens of an index, for rates and bounds")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from latentkt.phantom import load_concepts, load_seeds, save_concepts
    from latentkt.phantom.search import Limits, verify
    from latentkt.results import atomic_write, jsonl_output, write_json_lines

    out = Path(args.out) if args.out else Path(args.concepts).with_suffix(".verified.jsonl")
    beside = (".removed.jsonl", ".search.json", ".journal")
    out = jsonl_output(out, [args.concepts, *args.headwords, *(args.corpus or [])], beside=beside)
    concepts = load_concepts(args.concepts)
    heads = load_seeds(args.headwords) if args.headwords else None
    outcome = verify(
        concepts,
        _searcher(args),
        headwords=[text for texts in heads.by_category.values() for text in texts] if heads else [],
        limits=Limits(args.common, args.rare, args.per_million),
        level=args.level,
        journal=out.with_suffix(".journal"),
        resume=args.resume,
    )
    save_concepts(outcome.concepts, out)
    write_json_lines((removed.to_dict() for removed in outcome.removed), out.with_suffix(".removed.jsonl"))
    with atomic_write(out.with_suffix(".search.json")) as file:
        file.write((json.dumps(outcome.to_dict(), indent=1, ensure_ascii=False) + "\n").encode())
    print("\n".join(_summary(outcome, str(out))))
    return 0


def _searcher(args: argparse.Namespace) -> Searcher:
    if args.corpus:
        from latentkt.corpus import Matching
        from latentkt.phantom.search import ScanSearch

        matching = Matching(case=args.case)
        return ScanSearch(args.corpus, matching=matching, text_field=args.text_field, kernel=args.kernel)
    if args.case not in {"casings", "sensitive"}:
        raise InputError("an index is case-sensitive", expected="--case casings or sensitive", found=args.case)
    from latentkt.corpus import InfiniGramClient, InfiniGramIndex
    from latentkt.phantom.search import PUBLIC_INDEXES, IndexSearch

    casings = args.case == "casings"
    if args.index:
        name = Path(args.index).name
        return IndexSearch(
            InfiniGramIndex(args.index), name, tokens=args.tokens, unit="bytes of the index", casings=casings
        )
    tokens, documents = PUBLIC_INDEXES.get(args.infinigram, (None, None))
    client = InfiniGramClient(args.infinigram, **({"url": args.url} if args.url else {}))
    return IndexSearch(
        client, args.infinigram, "http", tokens=args.tokens or tokens, documents=documents, casings=casings
    )


def _summary(outcome: Verification, out: str) -> list[str]:
    searched = outcome.searched
    size = "an unknown number of" if searched.tokens is None else f"{searched.tokens:,}"
    lines = [f"searched {searched.corpus}: {size} {searched.unit}; {searched.quantity}"]
    lines += [f"skipped: {count:,} × {reason}" for reason, count in searched.details.get("skipped", {}).items()]
    if searched.tokens:
        lines.append(
            f"no match allows up to {outcome.upper_per_million:.3g} per million {searched.unit} "
            f"(one-sided {outcome.level:.0%}, tokens as independent draws)"
        )
    if searched.documents:
        lines.append(f"and up to {outcome.upper_documents:.3g} of the {searched.documents:,} documents")
    kept = Counter(concept.existence for concept in outcome.concepts)
    gone = Counter(removed.reason for removed in outcome.removed)
    lines.append("kept: " + (", ".join(f"{count:,} {name}" for name, count in kept.items()) or "none"))
    lines.append("removed: " + (", ".join(f"{count:,} {name}" for name, count in gone.items()) or "none"))
    words = sum((concept.search or {}).get("made_word_matches", 0) > 0 for concept in outcome.concepts)
    if words:
        lines.append(f"in {words:,} blended ones a made word is in the corpus by itself (search.made_word_matches)")
    return [*lines, f"concepts in {out}"]
