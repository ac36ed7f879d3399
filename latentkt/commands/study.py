"""`latentkt study MODEL`: the main job."""

from __future__ import annotations

import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the main job."""
    parser.add_argument("model", help="smollm2, a local folder, or a hub id")
    parser.add_argument("--items", metavar="FILE", help="trap items (JSONL); default: the built-in set")
    parser.add_argument("--out", metavar="DIR", help="run folder; default: runs/<UTC stamp>-<preset>")
    parser.add_argument("--preset", default="quick", choices=("quick", "full"), help="how much is measured")
    parser.add_argument("--limit", type=int, metavar="N", help="at most N items of each kind")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16", "float16"))
    parser.add_argument(
        "--template", choices=("chat", "plain"), help="default: chat where the tokenizer has a template"
    )
    parser.add_argument("--system", metavar="TEXT", help='system prompt; "none" removes the template\'s own')
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--corpus", nargs="+", default=[], metavar="PATH", help="count the items' paths there and join")
    parser.add_argument("--window", type=int, default=50, metavar="N", help="words on either side of a key")
    parser.add_argument("--training-corpus", action="store_true", help="the corpus is what the model was trained on")
    parser.add_argument("--workers", type=int, metavar="N", help="single-thread processes; default 2 on a CPU")
    parser.add_argument("--resume", action="store_true", help="go on with the run in --out")


def run(args: argparse.Namespace) -> int:
    """Run the study and print where its report is."""
    from latentkt.study import StudyOptions, study

    names = (
        "window",
        "training_corpus",
        "model",
        "items",
        "preset",
        "limit",
        "device",
        "dtype",
        "template",
        "system",
        "seed",
    )
    options = StudyOptions(corpus=tuple(args.corpus), **{name: getattr(args, name) for name in names})
    folder = study(
        options, out=args.out, resume=args.resume, workers=args.workers, command=args.command_line, log=print
    )
    print(f"report: {folder / 'report.html'}")
    return 0
