"""`latentkt corpus count | prior | show`: from a corpus to counts, from counts to priors."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latentkt.errors import InputError

if TYPE_CHECKING:
    from latentkt.corpus.counts import Counts
    from latentkt.corpus.priors import PriorRatio

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="count|prior|show")
    _configure_count(actions.add_parser("count", help="count keys, tasks and their co-occurrence in a corpus"))
    _configure_prior(actions.add_parser("prior", help="the log prior ratio of two paths, with its interval"))
    _configure_show(actions.add_parser("show", help="print counts, or hits in context"))


def _configure_count(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help="file, folder, glob, URL or hub:NAME[@CONFIG][#SPLIT]")
    parser.add_argument("--patterns", required=True, metavar="FILE", help="pattern file (JSON)")
    parser.add_argument("--out", required=True, metavar="FOLDER", help="where the counts go; the same command resumes")
    parser.add_argument("--window", type=int, action="append", default=[], metavar="N", help="add the scope window:N")
    parser.add_argument("--sentence", action="store_true", help="add the scope sentence")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes (datatrove: tasks)")
    parser.add_argument("--engine", default="local", choices=["local", "datatrove"])
    parser.add_argument("--cluster", metavar="FIELD", help="field, host:FIELD, document or none (default: found)")
    parser.add_argument("--text-field", metavar="FIELD", help="field of the text (default: found)")
    parser.add_argument("--case", default="simple", choices=["simple", "full", "sensitive", "casings"])
    parser.add_argument("--normalize", default="nfc", choices=["nfc", "nfkc", "none"])
    parser.add_argument("--punctuation", default="keep", choices=["keep", "plain"], help="plain: curly quotes, dashes")
    parser.add_argument("--kernel", default="auto", choices=["auto", "numba", "numpy"])
    parser.add_argument("--strict", action="store_true", help="stop at the first damaged line")


def _configure_prior(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("counts", metavar="COUNTS")
    parser.add_argument("--shortcut", required=True, metavar="KEY:TASK")
    parser.add_argument("--correct", required=True, metavar="KEY:TASK")
    parser.add_argument("--scope", metavar="S", help="document, sentence or window:N (default: the smallest window)")
    parser.add_argument("--interval", default="auto", choices=["auto", "multinomial", "cluster"])
    parser.add_argument("--level", type=float, default=0.95)
    parser.add_argument("--json", action="store_true")


def _configure_show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("counts", metavar="COUNTS")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--concordance", metavar="KEY:TASK", help="print hits in context")
    parser.add_argument("-n", type=int, default=20, help="number of hits")
    parser.add_argument("--window", type=int, default=50, metavar="N", help="largest distance of a hit, in words")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    return {"count": _count, "prior": _prior, "show": _show}[args.action](args)


def _count(args: argparse.Namespace) -> int:
    from latentkt.corpus.lexicon import unfiltered
    from latentkt.corpus.local import count_corpus
    from latentkt.corpus.matching import Matching
    from latentkt.corpus.patterns import load_patterns

    patterns = load_patterns(args.patterns)
    for form in unfiltered(patterns):
        print(f"note: no text is certain to stand in each match of {form!r}: it runs on every document, slowly")
    counts = count_corpus(
        args.paths,
        patterns,
        args.out,
        engine=args.engine,
        workers=args.workers,
        windows=args.window,
        sentence=args.sentence,
        matching=Matching(args.case, args.normalize, args.punctuation),
        text_field=args.text_field,
        cluster=args.cluster,
        kernel=args.kernel,
        strict=args.strict,
    )
    print(_summary(counts, args.out))
    for name, pairs in patterns.nested().items():
        print(f"note: forms of {name!r} lie inside each other and count twice there: {pairs[:3]}")
    return 0


def _summary(counts: Counts, out: str) -> str:
    about = counts.manifest
    clusters = "over 100,000" if about["n_clusters"] is None else f"{about['n_clusters']:,}"
    lines = [
        f"{about['documents']:,} documents, {about['words']:,} words, {about['text_bytes'] / 1e6:,.1f} MB of text, "
        f"{clusters} clusters ({about['fields']['cluster']})",
    ]
    lines += [f"skipped: {count:,} × {reason}" for reason, count in about["skipped"].items()]
    lines += [f"  {file}:{line}: {reason}" for file, line, reason in about["listed"][:10]]
    if about["missing_clusters"]:
        lines.append(f"{about['missing_clusters']:,} documents lack the cluster field and stand alone")
    if about["passed_over"]:
        lines.append(f"passed over for their suffix: {len(about['passed_over'])} files, e.g. {about['passed_over'][0]}")
    if about["n_clusters"] is not None and about["n_clusters"] < 30:
        lines.append("warning: under 30 clusters; intervals over clusters will be poor")
    return "\n".join([*lines, f"counts in {out}"])


def _prior(args: argparse.Namespace) -> int:
    from latentkt.corpus.counts import load_counts
    from latentkt.corpus.priors import log_prior_ratio

    counts = load_counts(args.counts)
    result = log_prior_ratio(
        counts, shortcut=args.shortcut, correct=args.correct, scope=args.scope, method=args.interval, level=args.level
    )
    print(json.dumps(result.to_dict(), ensure_ascii=False, indent=1) if args.json else _ratio_text(result))
    return 0


def _ratio_text(result: PriorRatio) -> str:
    ratio, key = result.ratio, result.key_part
    lines = [
        f"log prior ratio, {result.shortcut.path} over {result.correct.path}, scope {result.scope}",
        f"  {ratio.estimate:+.3f} nats  [{ratio.low:+.3f}, {ratio.high:+.3f}]  {ratio.level:.0%} {ratio.method}",
        f"  key part {key.estimate:+.3f} [{key.low:+.3f}, {key.high:+.3f}], task part {result.task_part:+.3f}",
        f"  standard error {ratio.se_multinomial:.3f} multinomial, {ratio.se_cluster:.3f} cluster, "
        f"design effect {ratio.design_effect:.1f}",
    ]
    for path in (result.shortcut, result.correct):
        lines.append(
            f"  {path.path}: {path.units:,} units, {path.documents:,} documents; key in {path.key_units:,} units, "
            f"{path.key_occurrences:,} occurrences"
        )
    lines.append(f"  supporting clusters: {ratio.clusters}")
    if result.key_pair is not None:
        lines.append(f"  units with both keys: {result.key_pair:,}")
    return "\n".join([*lines, *(f"  warning: {text}" for text in result.warnings)])


def _show(args: argparse.Namespace) -> int:
    from latentkt.corpus.counts import load_counts

    if args.concordance:
        return _concordance(args)
    counts = load_counts(args.counts)
    table = counts.to_dict()
    if args.json:
        print(json.dumps(table, ensure_ascii=False))
        return 0
    print(_summary(counts, str(Path(args.counts))))
    for kind in ("keys", "tasks"):
        print(f"\n{kind}")
        for name, count in table[kind].items():
            documents = counts.documents(name, kind[:-1])
            print(f"  {name:<30} {count:>12,} occurrences {documents:>12,} documents")
    for scope, cells in table["cooccurrence"].items():
        print(f"\nkey and task, {scope}")
        for path, count in sorted(cells.items(), key=lambda cell: (-cell[1], cell[0])):
            if count:
                print(f"  {path:<45} {count:>12,}")
        zero = sum(count == 0 for count in cells.values())
        if zero:
            print(f"  ({zero} pairs never)")
    return 0


def _concordance(args: argparse.Namespace) -> int:
    from dataclasses import asdict

    from latentkt.corpus.hits import concordance

    if args.n < 1:
        raise InputError("bad number of hits", expected="at least 1", found=args.n)
    hits = concordance(args.counts, args.concordance, n=args.n, window=args.window)
    if args.json:
        rows: list[dict[str, Any]] = [asdict(hit) for hit in hits]
        print(json.dumps(rows, ensure_ascii=False))
        return 0
    for hit in hits:
        print(f"{hit.shard}:{hit.document}: {hit.left:>60} [{hit.key}] {hit.right:<60} ({hit.task}, {hit.distance:+d})")
    if not hits:
        print("no hits")
    return 0
