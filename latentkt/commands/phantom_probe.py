"""`latentkt phantom probe MODEL CONCEPTS --corpus F --out DIR`: does the network know what exists?"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("model", help="smollm2, a local folder, or a hub id")
    parser.add_argument("concepts", metavar="CONCEPTS", help="verified concepts, made and real (JSONL)")
    parser.add_argument(
        "--corpus", nargs="+", required=True, metavar="F", help="text, for the frequency of subwords: files or folders"
    )
    parser.add_argument("--text-field", metavar="NAME", help="field of the text; default: found in the first record")
    parser.add_argument("--answers", nargs="+", default=[], metavar="JUDGED", help="judged answers of the same model")
    parser.add_argument("--out", required=True, metavar="DIR", help="run folder, new")
    parser.add_argument("--question", metavar="TEXT", help="in which concepts are read, with {concept} once")
    parser.add_argument("--contrast", nargs="+", metavar="NAME", help="what is told apart; default: every contrast")
    parser.add_argument("--kind", choices=("logistic", "ridge", "lda", "mean_difference"), default="ridge")
    parser.add_argument("--pairs", type=int, default=200, help="at most so many matched pairs a contrast")
    parser.add_argument("--caliper", type=float, default=0.25, help="of matching, in nats of mean log frequency")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--steer-layer", type=int, metavar="L", help="default: the middle one")
    parser.add_argument("--steer-concepts", type=int, default=20, help="concepts that are pushed; 0: no steering")
    parser.add_argument("--placebos", type=int, default=4, help="random directions beside the probe's")
    parser.add_argument("--template", choices=("chat", "plain"), help="default: chat where the tokenizer has one")
    parser.add_argument("--system", metavar="TEXT", help='system prompt; "none" removes the template\'s own')
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16", "float16"))


def run(args: argparse.Namespace) -> int:
    """Measure, write the report, and print where it is."""
    from latentkt.models import open_model
    from latentkt.phantom.answers import read_answers
    from latentkt.phantom.concepts import load_concepts
    from latentkt.phantom.inside import InsideOptions, probe_concepts
    from latentkt.report import build
    from latentkt.results import load_run

    given: dict[str, Any] = {"frame": args.question, "contrasts": args.contrast and tuple(args.contrast)}
    options = InsideOptions(
        **{name: value for name, value in given.items() if value},
        kind=args.kind,
        pairs=args.pairs,
        caliper=args.caliper,
        max_folds=args.folds,
        steer_layer=args.steer_layer,
        steer_concepts=args.steer_concepts,
        placebos=args.placebos,
        template=args.template,
        system=args.system,
        seed=args.seed,
    )
    concepts = load_concepts(args.concepts)
    answers = read_answers(*args.answers) if args.answers else []
    files = [args.concepts, *args.answers]
    digests = {Path(path).name: hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in files}
    identity = {"items": digests, "corpus": [Path(path).name for path in args.corpus]}
    handle = open_model(args.model, device=args.device, dtype=args.dtype)
    texts = _texts(args.corpus, args.text_field)
    folder = probe_concepts(
        handle, concepts, texts, args.out, options, answers=answers, identity=identity, command=args.command_line
    )
    print(f"report: {build(load_run(folder))}")
    return 0


def _texts(paths: list[str], field: str | None) -> Iterator[str]:
    """Documents of a corpus, one after the other."""
    from latentkt.corpus import read_texts

    yield from read_texts(paths, text_field=field)
