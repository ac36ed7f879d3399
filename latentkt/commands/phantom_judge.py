"""`latentkt phantom judge ANSWERS --judge MODEL|phrases --out F`."""

from __future__ import annotations

import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("answers", nargs="+", metavar="ANSWERS", help="answers of `latentkt phantom ask`")
    parser.add_argument(
        "--judge",
        required=True,
        metavar="MODEL",
        help="a model as inspect-ai writes it (google/gemini-2.5-flash), or `phrases`: a phrase list, no judge",
    )
    parser.add_argument("--out", required=True, metavar="JUDGED", help="the judged answers, a .jsonl file")
    parser.add_argument(
        "-M", dest="arguments", action="append", default=[], metavar="NAME=VALUE", help="argument of the judge model"
    )
    parser.add_argument("--retries", type=int, default=2, help="further tries after a reply that is no verdict")
    parser.add_argument("--no-kinds", action="store_true", help="do not ask for the kind of each abstention")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="longest reply of the judge, reasoning included")
    parser.add_argument("--labels", metavar="CSV", help="labels by hand (prompt_id, setting, label): print agreement")
    parser.add_argument("--batch-size", type=int, default=64, help="answers judged, and written down, at once")
    parser.add_argument("--resume", action="store_true", help="go on with JUDGED: nothing is judged twice")


def run(args: argparse.Namespace) -> int:
    """Judge, and print what was found."""
    from latentkt.errors import InputError
    from latentkt.phantom.judging import PhraseJudge, agreement, judge_file, model_judge, read_labels
    from latentkt.phantom.judging.judges import Judge

    pairs = [part.partition("=") for part in args.arguments]
    if any(not name or not sign for name, sign, _ in pairs):
        raise InputError("-M cannot be read", expected="NAME=VALUE", found=" ".join(args.arguments))
    judge: Judge
    if args.judge == "phrases":
        judge = PhraseJudge()
    else:
        more = {name: value for name, _, value in pairs}
        judge = model_judge(
            args.judge, retries=args.retries, kinds=not args.no_kinds, max_tokens=args.max_tokens, **more
        )
    done = judge_file(
        args.answers, judge, args.out, batch_size=args.batch_size, resume=args.resume, command=args.command_line
    )
    print("\n".join(done.lines()))
    if args.labels:
        found = agreement(done.answers, read_labels(args.labels))
        print(
            f"  agrees with {found.agree:.0%} of {found.n} labels (kappa {found.kappa:.2f}); no verdict on "
            f"{found.unparsable}; of labelled abstentions it finds {found.found:.0%}, of its own {found.right:.0%} are"
        )
    return 0
